"""Evenhand's side, through its public names and with its defaults."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import evenhand as eh
from benchmarks.peers.questions import DELTA, QUANTILES, Question
from benchmarks.peers.runners.protocol import Answer
from benchmarks.peers.tables import Table


def release(question: Question, table: Table, path: Path) -> Answer:
    """One release from a fresh ledger."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = eh.Ledger(Path(folder) / "budget.db", epsilon=question.epsilon, delta=DELTA)
        session = eh.Session(eh.read(path, user="user"), ledger)
        given: dict[str, Any] = {"epsilon": question.epsilon}
        if question.by:
            given |= {"by": question.by, "delta": DELTA}
            if not question.hidden:
                given["keys"] = list(range(question.groups(table)))
        if question.statistic in ("count", "users"):
            value = getattr(session, question.statistic)(**given).value
        elif question.statistic == "quantiles":
            value = session.quantiles("value", list(QUANTILES), bounds=table.bounds, **given).value
        else:
            value = getattr(session, question.statistic)("value", bounds=table.bounds, **given).value
    if question.by is None:
        return {0: [float(value)]}
    names = [name for name in value.columns if name != question.by]
    keys, numbers = value[question.by].tolist(), value[names].to_numpy(dtype=float).tolist()
    return {int(key): row for key, row in zip(keys, numbers, strict=True)}


def timed(question: Question, table: Table, path: Path) -> tuple[Answer, float]:
    """A release and its seconds."""
    start = time.perf_counter()
    answer = release(question, table, path)
    return answer, time.perf_counter() - start
