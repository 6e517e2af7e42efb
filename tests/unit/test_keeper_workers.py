"""A question whose slot says that it reads what its worker holds reads no row of its table, whatever was asked before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.service.slots import Slots
from evenhand.service.workers import SHORT, Workers
from evenhand.tables.engines import base
from evenhand.tables.engines.copied import SUMMARIES, copied

ROWS = pd.DataFrame({"u": [user for user in range(40) for _ in range(user % 5 + 1)]})
ROWS["x"] = ROWS.u % 7 * 1.0
QUESTIONS: dict[str, dict[str, Any]] = {
    "chosen": {"ask": "count", "epsilon": "1"},
    "cap": {"ask": "count", "epsilon": "1", "bounding": {"strategy": "TotalCap", "T": 3}},
    "weights": {"ask": "count", "epsilon": "1", "bounding": {"strategy": "SmoothWeights", "h": 2}},
    "limit": {"ask": "count", "epsilon": "1", "bounding": {"strategy": "RowLimit", "h": 2}},
    "users": {"ask": "users", "epsilon": "1"},
}


def opened(protects: str) -> eh.Table:
    return copied(eh.read(ROWS, user="u", protects=protects))


@pytest.fixture(params=["rows", "one row", "values"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    table = opened("values" if request.param == "values" else "presence")
    if request.param == "one row":
        table = table.per_user(x=eh._.x.sum())
    found = Workers({"t": table}, {"t": 3_000_000}, 10.0, 60.0, 1.0)
    found.warm()
    yield found
    found.close()


def asked(workers: Workers, question: dict[str, Any], ledger: eh.Ledger) -> bool:
    """Ask as the worker would; whether the slot says that no row is read."""
    planned = workers.planned("t", None, question)
    held = planned.slot < 0.3
    assert planned.lane is (workers.short if planned.slot <= SHORT else workers.long)
    receipt = planned.draft.pay(ledger)
    planned.draft.drawn(receipt)
    return held


def test_what_is_declared_short_reads_no_row(workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = eh.Ledger(tmp_path / "ledger.db", epsilon=1000)
    for bound in range(SUMMARIES + 8):  # none of these pushes out what is held
        asked(workers, {"ask": "mean", "column": "x", "bounds": [0, 7 + bound], "epsilon": "1"}, ledger)
    reads: list[int] = []
    monkeypatch.setattr(base, "_count_reading", lambda: reads.append(1))
    for name, question in QUESTIONS.items():
        reads.clear()
        held = asked(workers, question, ledger)
        assert held or name == "limit", name
        assert not (held and reads), f"{name} is declared to read no row of its table, and does"


def test_a_count_that_draws_rows_has_its_whole_slot() -> None:
    slots = Slots({"t": 1_000_000, "u": 1_000_000}, held={"t"})
    for question, held in (
        ({"statistic": "count"}, True),
        ({"statistic": "users"}, True),
        ({"statistic": "count", "bounding": {"strategy": "RowLimit", "h": 2}}, False),
        ({"statistic": "count", "by": ["g"], "keys": 3}, False),
        ({"statistic": "count", "sql": "SELECT COUNT(*) FROM table WHERE x > 1"}, False),
        ({"statistic": "sum", "column": "x"}, False),
    ):
        assert slots.reads_held("t", question) is held
        assert not slots.reads_held("u", question)
