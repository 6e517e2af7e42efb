"""Running a side of the comparison: what it answered, scored, as it is kept in ``results``."""

from __future__ import annotations

import datetime
import json
import math
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import advice, hindsight, ours
from benchmarks.peers.environments import InstallError, Peer, folder, interpreter
from benchmarks.peers.hindsight import Parameters
from benchmarks.peers.questions import DELTA, QUANTILES, Question, score, truth
from benchmarks.peers.runners.protocol import Job
from benchmarks.peers.tables import Table, table

ROOT = Path(__file__).parents[2]
COLUMNS = {"advised": advice, "known": hindsight}
"""The two columns of each library, and the module that sets its parameters."""


def parquet(name: str, place: Path) -> Path:
    """The table as a file, written once."""
    path = place / f"{name}.parquet"
    if not path.exists():
        place.mkdir(parents=True, exist_ok=True)
        table(name).write(path)
    return path


def run_ours(questions: Iterable[Question], runs: int, place: Path) -> dict[str, Any]:
    """Evenhand, three times as often without groups, where a run gives a single error."""
    found: dict[str, Any] = {}
    for question in questions:
        rows, path = table(question.table), parquet(question.table, place)
        exact = truth(question, rows)
        ours.release(question, rows, path)  # not measured: the first one loads libraries
        answers = [ours.timed(question, rows, path) for _ in range(runs if question.by else 3 * runs)]
        scores = [
            {**score(question, rows, exact, values), "seconds": seconds, "load": os.getloadavg()[0]}
            for values, seconds in answers
        ]
        found[question.name] = {"default": [gathered({}, scores)]}
        print(question.name, flush=True)
    return {"name": "Evenhand", "date": _today(), "questions": found}


def run_peer(peer: Peer, questions: Sequence[Question], runs: int, seconds: float) -> dict[str, Any]:
    """A library in its own environment, or the reason why it could not be run; only what it answered, if it was stopped."""
    head = {"name": peer.name, "date": _today()}
    try:
        python = interpreter(peer)
    except InstallError as reason:
        return {**head, "reason": str(reason)}
    jobs, asked = [], []
    for question in questions:
        for column, module in COLUMNS.items():
            for parameters in getattr(module, peer.module)(question, table(question.table)):
                jobs.append(_job(question, column, parameters, runs, seconds))
                asked.append(question)
    orders, answers = folder() / f"{peer.module}-jobs.json", folder() / f"{peer.module}-answers.jsonl"
    orders.write_text(json.dumps(jobs), encoding="utf-8")
    answers.write_text("", encoding="utf-8")
    command = [str(python), "-m", f"benchmarks.peers.runners.{peer.module}", str(orders), str(answers)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if ended.returncode:
        print(f"{peer.name} ended with code {ended.returncode}; what it answered until then is kept", flush=True)
    return {**head, "questions": _scored(asked, jobs, answers)}


def _job(question: Question, column: str, parameters: Parameters, runs: int, seconds: float) -> Job:
    rows = table(question.table)
    return {
        "name": question.name,
        "column": column,
        "path": str(parquet(question.table, folder())),
        "statistic": question.statistic,
        "by": question.by,
        "groups": question.groups(rows),
        "hidden": question.hidden,
        "bounds": rows.bounds,
        "quantiles": list(QUANTILES),
        "epsilon": question.epsilon,
        "delta": DELTA,
        "parameters": parameters,
        "runs": runs if question.by else 3 * runs,
        "seconds": seconds if question.by else 2 * seconds,
    }


def _scored(asked: Sequence[Question], jobs: Sequence[Job], answers: Path) -> dict[str, Any]:
    lines: list[list[dict[str, Any]]] = [[] for _ in jobs]
    for text in answers.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        lines[line["job"]].append(line)
    found: dict[str, Any] = {}
    for question, job, own in zip(asked, jobs, lines, strict=True):
        if not own:
            continue
        rows = table(question.table)
        exact = truth(question, rows)
        kept = gathered(job["parameters"], [_score(question, rows, exact, line) for line in own])
        found.setdefault(question.name, {}).setdefault(job["column"], []).append(kept)
    return found


def _score(question: Question, rows: Table, exact: Any, line: dict[str, Any]) -> dict[str, Any]:
    if "error" in line:
        return {"error": line["error"]}
    return {**score(question, rows, exact, dict(line["values"])), "seconds": line["seconds"], "load": line["load"]}


def gathered(parameters: Parameters, scores: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores of several runs, one list for each figure, to four digits; what has no value (an error over no keys) is left out."""
    figures: dict[str, list[Any]] = {}
    for one in scores:
        for name, value in one.items():
            own = figures.setdefault(name, [])
            if isinstance(value, str):
                own.append(value)
            elif not math.isnan(value):
                own.append(float(f"{value:.4g}"))
    return {"parameters": parameters, **figures}


def _today() -> str:
    return datetime.date.today().isoformat()
