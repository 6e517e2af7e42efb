"""Run with ``python -m benchmarks peers``; ``--ours`` measures Evenhand alone and takes the others from ``results``."""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import PEERS, folder
from benchmarks.peers.measure import run_ours, run_peer
from benchmarks.peers.questions import QUESTIONS, Question
from benchmarks.peers.report import report

RESULTS = Path(__file__).parent / "results"
OURS = "evenhand"
MODULES = [OURS, *(peer.module for peer in PEERS)]


def kept(module: str) -> dict[str, Any] | None:
    """A side's results of an earlier run."""
    path = RESULTS / f"{module}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def keep(module: str, side: dict[str, Any]) -> None:
    """One line for each question, so that a new run gives a small difference."""
    questions = side.pop("questions", None)
    head = json.dumps(side, ensure_ascii=False)
    if questions is not None:
        lines = (f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(by)}" for name, by in questions.items())
        head = head[:-1] + ', "questions": {\n' + ",\n".join(lines) + "\n}}"
    (RESULTS / f"{module}.json").write_text(head + "\n", encoding="utf-8")


def merge(module: str, side: dict[str, Any]) -> None:
    """Keep new results, and old ones of questions that were not asked again."""
    if "questions" in side:
        side["questions"] = {**(kept(module) or {}).get("questions", {}), **side["questions"]}
    keep(module, side)


def measure(module: str, questions: Sequence[Question], runs: int, seconds: float) -> None:
    """One side, table by table, so that a run that is stopped leaves results."""
    for name in dict.fromkeys(question.table for question in questions):
        asked = [question for question in questions if question.table == name]
        if module == OURS:
            merge(module, run_ours(asked, runs, folder()))
        else:
            merge(module, run_peer(next(peer for peer in PEERS if peer.module == module), asked, runs, seconds))


def main() -> None:
    """Measure what was asked for, then write the report from all that is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true", help="measure Evenhand only")
    parser.add_argument("--peer", choices=MODULES[1:], action="append", help="measure these only")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the report again")
    parser.add_argument("--only", default="", help="only questions whose name has this in it")
    parser.add_argument("--missing", action="store_true", help="only questions without results")
    parser.add_argument("--runs", type=int, default=5, help="of each question; three times as many without groups")
    parser.add_argument("--seconds", type=float, default=20, help="no further run of a library's question after this")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    wanted = [OURS] if arguments.ours else arguments.peer or MODULES
    for module in [] if arguments.report else wanted:
        known = (kept(module) or {}).get("questions", {}) if arguments.missing else {}
        questions = [one for one in QUESTIONS if arguments.only in one.name and one.name not in known]
        measure(module, questions, arguments.runs, arguments.seconds)
    sides = {found["name"]: found for module in MODULES if (found := kept(module))}
    if "Evenhand" not in sides:
        return
    today = datetime.date.today().isoformat()
    text = report(sides, QUESTIONS, today)
    (RESULTS / f"{today}.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
