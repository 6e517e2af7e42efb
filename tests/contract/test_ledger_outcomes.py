"""Second and third releases of a session with a real ledger: given equal noisy outputs, nothing else tells neighbours apart.

Each question is previewed and asked, one after the other, on two neighbouring tables. Noise is replaced by outputs that do not
depend on the table, as the adaptive composition theorem conditions on them. Then everything else must be equal: previews,
releases, guarantees, refusals and the events of the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.guarantee import EvenhandError, Guarantee, Purchase
from evenhand.noise import NoisyMax, seam
from evenhand.statistics.request import Request

BOUNDS = {"bounds": (0, 2)}
KEYS = {"by": "g", "keys": ["a", "b"]}

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "profile": lambda ask: ask.profile(epsilon=2) if isinstance(ask, eh.Session) else None,
    "count": lambda ask: ask.count(epsilon=1),
    "users": lambda ask: ask.users(epsilon=1),
    "sum": lambda ask: ask.sum("v", **BOUNDS, epsilon=1),
    "mean": lambda ask: ask.mean("v", **BOUNDS, epsilon=1),
    "variance": lambda ask: ask.variance("v", **BOUNDS, epsilon=1),
    "per_user_mean": lambda ask: ask.per_user_mean("v", **BOUNDS, epsilon=1),
    "ratio by group": lambda ask: ask.ratio(eh.sum("v", **BOUNDS), eh.users(), **KEYS, epsilon=1, delta=1e-7),
    "quantiles": lambda ask: ask.quantiles("v", [0.5], **BOUNDS, epsilon=1),
    "histogram": lambda ask: ask.histogram("v", [0, 1, 2], epsilon=1),
    "count by group": lambda ask: ask.count(**KEYS, epsilon=1),
    "mean by group": lambda ask: ask.mean("v", **BOUNDS, **KEYS, epsilon=1),
    "variance by group": lambda ask: ask.variance("v", **BOUNDS, **KEYS, epsilon=1, delta=1e-7),
    "selected groups": lambda ask: ask.count(by="g", epsilon=1, delta=1e-7),
    "too much": lambda ask: ask.mean("v", **BOUNDS, epsilon=100),
    "once more": lambda ask: ask.mean("v", **BOUNDS, epsilon=1),
}


def neighbours(relation: str) -> list[pd.DataFrame]:
    """Two tables that differ in one heavy user: there or not; with other values; with none."""
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(40), 3)
    rows = pd.DataFrame({"u": users, "v": rng.uniform(0, 1, users.size), "g": ["a", "b", "c"] * 40})
    victim = pd.DataFrame({"u": 999, "v": 2.0, "g": ["a", "b", "c"] * 30})
    if relation == "presence":
        return [rows, pd.concat([rows, victim])]
    return [pd.concat([rows, victim.assign(v=value)]) for value in (2.0, 0.0, np.nan, np.inf)]


def fixed(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
    """Outputs that depend on how many there are, not on what they are."""
    return [1000 + 17 * place for place in range(len(values))]


def transcript(rows: pd.DataFrame, relation: str, names: Sequence[str], place: Path) -> str:
    """All that an analyst and a reader of the ledger see, with events called by their numbers."""
    public = ["g"] if relation == "values" else []
    ledger = eh.Ledger(place, epsilon=20, delta=1e-6)
    session = eh.Session(eh.read(rows, user="u", protects=relation, public=public), ledger)
    seen: list[Any] = []
    for name in names:
        for ask in (session.preview, session):
            try:
                outcome = QUESTIONS[name](ask)
                seen.append(None if outcome is None else [name, str(outcome), outcome.to_dict()])
            except EvenhandError as error:
                seen.append([name, type(error).__name__, str(error)])
        seen.append([str(ledger.spent), str(ledger.remaining)])
    events = ledger.events
    seen += [event.to_dict() | {"time": ""} for event in events]
    ledger.verify()
    text = json.dumps(seen, ensure_ascii=False, default=str).replace(str(place), "LEDGER")
    for event in events:
        text = text.replace(event.id, f"#{event.number}").replace(event.id[:8], f"#{event.number}")
    return text


ORDERS = {
    "as listed": tuple(QUESTIONS),
    "without a profile": tuple(name for name in QUESTIONS if name != "profile"),
    "groups first": ("mean by group", "variance by group", "variance by group", "variance", "mean", "quantiles"),
}


@pytest.fixture(autouse=True)
def _fixed_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoisyMax, "choose", lambda self, scores: len(scores) // 3)


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("order", ORDERS)
def test_neighbours_leave_the_same_trace(relation: str, order: str, tmp_path: Path) -> None:
    with seam.replaced(fixed):
        traces = [
            transcript(rows, relation, ORDERS[order], tmp_path / f"{turn}.db")
            for turn, rows in enumerate(neighbours(relation))
        ]
    assert len(set(traces)) == 1
    if relation == "presence":
        assert '"together"' in traces[0], "some release rests on an earlier one"
    if order == "as listed":
        assert "BudgetExceeded" in traces[0]


def test_an_event_that_holds_an_exact_count_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: what a release says it rests on is read off the table."""
    promise = Request.guarantee

    def leaking(self: Request, *delta: Decimal) -> Guarantee:
        rows = self.table.engine.fetch(self.table.expression.count().as_table()).reveal().to_pylist()[0]
        return promise(self, *delta).resting_on(Purchase("leak", Decimal(next(iter(rows.values())))))

    monkeypatch.setattr(Request, "guarantee", leaking)
    with seam.replaced(fixed):
        one, other = (
            transcript(rows, "presence", ["count"], tmp_path / f"{turn}.db")
            for turn, rows in enumerate(neighbours("presence"))
        )
    assert one != other
