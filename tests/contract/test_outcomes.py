"""Neighbouring tables look alike in everything that can be seen, whenever the noisy numbers are the same.

Values, errors and their texts, warnings, prints, free facts, events, previews: of every question of a session, in sessions of several
releases with a ledger in a file. `outcomes` says what is looked at; the neighbour suite checks the noisy numbers themselves.
"""

from __future__ import annotations

import inspect
import math
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import evenhand as eh
from nasty import HIGH, KEYS, LOW, Pair, Row, Rows, pairs
from visible import NOISE, Questions, Tape, compare, look

BOUNDS = (LOW, HIGH)
BY: dict[str, Any] = {"by": "g", "keys": list(KEYS)}


def _planned(session: eh.Session) -> Any:
    """A plan from a profile that was paid for."""
    profile = session.profile(epsilon=1)
    return eh.plan("mean", profile, bounds=BOUNDS, epsilon=1)


QUESTIONS: Questions = {
    "count": lambda ask: ask.count(epsilon=1),
    "users": lambda ask: ask.users(epsilon=1),
    "sum": lambda ask: ask.sum("v", bounds=BOUNDS, epsilon=1),
    "sum of two": lambda ask: ask.sum(["v", "x"], bounds=BOUNDS, epsilon=1),
    "sum, row limit": lambda ask: ask.sum("v", bounds=BOUNDS, epsilon=1, bounding=eh.RowLimit(2)),
    "mean": lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1),
    "mean, given": lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1, bounding=eh.SmoothWeights(2)),
    "share": lambda ask: ask.share("v > 0.5", epsilon=1),
    "share, users": lambda ask: ask.share("v > 0.5", of="users", epsilon=1),
    "share by": lambda ask: ask.share("v > 0.5", **BY, epsilon=1),
    "variance": lambda ask: ask.variance("v", bounds=BOUNDS, epsilon=1),
    "std": lambda ask: ask.std("v", bounds=BOUNDS, epsilon=1),
    "per_user_mean, total": lambda ask: ask.per_user_mean("v", bounds=BOUNDS, of="total", epsilon="0.1"),
    "per_user_mean by": lambda ask: ask.per_user_mean("v", bounds=BOUNDS, of="total", **BY, epsilon=1),
    "ratio by": lambda ask: ask.ratio(eh.sum("v", bounds=BOUNDS), eh.users(), **BY, epsilon=1, delta=1e-6),
    "ratio by selected keys": lambda ask: ask.ratio(eh.count(), eh.users(), by="g", epsilon=1, delta=1e-6),
    "median": lambda ask: ask.median("v", bounds=BOUNDS, epsilon=1),
    "quantiles": lambda ask: ask.quantiles("v", [0.1, 0.5], bounds=BOUNDS, epsilon=1),
    "histogram": lambda ask: ask.histogram("v", [LOW, 0, HIGH], epsilon=1),
    "histogram with δ": lambda ask: ask.histogram("v", [LOW, 0, HIGH], epsilon=1, delta=1e-6),
    "aggregate": lambda ask: ask.aggregate(
        n=eh.count(), s=eh.sum("v", bounds=BOUNDS), m=eh.mean("v", bounds=BOUNDS), **BY, epsilon=1
    ),
    "count by": lambda ask: ask.count(**BY, other="rest", epsilon=1),
    "users by": lambda ask: ask.users(**BY, epsilon=1),
    "sum by": lambda ask: ask.sum("v", bounds=BOUNDS, **BY, epsilon=1),
    "mean by": lambda ask: ask.mean("v", bounds=BOUNDS, **BY, epsilon=1),
    "mean by, Gaussian": lambda ask: ask.mean(
        "v", bounds=BOUNDS, **BY, epsilon=1, delta=1e-6, bounding=eh.NormClip(norm=2)
    ),
    "variance by": lambda ask: ask.variance("v", bounds=BOUNDS, **BY, epsilon=1),
    "distinct": lambda ask: ask.distinct("v", epsilon=1),
    "distinct by": lambda ask: ask.distinct("v", **BY, epsilon=1),
    "top": lambda ask: ask.top("g", 2, keys=list(KEYS), epsilon=1),
    "top, rows": lambda ask: ask.top("g", 2, of="rows", keys=list(KEYS), epsilon="1e-6"),
    "top, hidden": lambda ask: ask.top(["g", "u"], 3, epsilon=1, delta=1e-6),
    "top, hidden, few": lambda ask: ask.top(["g", "u"], 3, epsilon=1, delta=1e-6, groups_per_user=1),
    "count by selected keys": lambda ask: ask.count(by="g", epsilon=1, delta=1e-6),
    "mean by selected keys": lambda ask: ask.mean("v", bounds=BOUNDS, by=["g", "u"], epsilon=1, delta=1e-6),
    "profile": lambda ask: ask.profile(epsilon=1),
    "sql": lambda ask: ask.sql("SELECT COUNT(*) AS n, SUM(v) AS s FROM table", epsilon=1),
    "sql, several": lambda ask: ask.sql(
        "SELECT g, COUNT(DISTINCT v) AS a, COUNT(*) AS n FROM table GROUP BY g HAVING n > -9 ORDER BY SUM(v) / COUNT(*)",
        keys=list(KEYS), epsilon=1,
    ),
    "sql, members": lambda ask: ask.sql(
        "SELECT COUNT(*) AS n, COUNT(DISTINCT CASE WHEN v > 0 THEN u END) AS m FROM table WHERE u IN (SELECT u FROM table WHERE g = 'a')", epsilon=1
    ),
    "describe": lambda ask: ask.describe(),
    "plan": _planned,
    "mean from the shelf": lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1),
    "count from the shelf": lambda ask: ask.count(epsilon="0.01"),
    "count by, tiny ε": lambda ask: ask.count(**BY, epsilon="1e-6"),
    "ask": lambda ask: ask.ask(eh.mean("v", bounds=BOUNDS), **BY, epsilon=1),
    "no such column": lambda ask: ask.mean("velue", bounds=BOUNDS, epsilon=1),
}  # fmt: skip


def test_every_public_question_is_asked() -> None:
    """A new question on a session must be added above."""
    public = {name for name, _ in inspect.getmembers(eh.Session) if not name.startswith("_")}
    asked = {name.partition(" ")[0].partition(",")[0] for name in QUESTIONS}
    assert public - {"preview"} <= asked


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_neighbours_look_alike(relation: str, tmp_path: Path) -> None:
    some = st.lists(st.sampled_from(sorted(QUESTIONS)), min_size=3, max_size=5, unique=True)

    @settings(phases=[Phase.explicit, Phase.generate])  # a smaller example is not worth the time: each takes a second
    @given(pair=pairs(relation, steady=True), asked=some, noise=st.sampled_from(sorted(NOISE)), file=st.booleans())
    def check(pair: Pair, asked: list[str], noise: str, file: bool) -> None:
        place = tmp_path if file else None
        questions = {name: QUESTIONS[name] for name in asked}
        compare(partial(pair.first.read, relation, place), partial(pair.second.read, relation, place), questions, noise)

    check()


@pytest.mark.parametrize(("relation", "noise"), [("presence", "low"), ("presence", "high"), ("values", "high")])
def test_a_table_of_one_user_looks_like_an_empty_one(relation: str, noise: str) -> None:
    rows = Rows("text", tuple(Row("me", group, value) for group in ("a", None) for value in (HIGH, math.nan, None)))
    other = rows.without("me") if relation == "presence" else rows.altered("me", [None] * 6)
    compare(partial(rows.read, relation), partial(other.read, relation), QUESTIONS, noise)


HUGE = {"sum by": (393830.24, 393830.62), "variance": (0, 1e90), "mean by": (-1e140, 1e140), "quantiles": (0, 1e-140),
        "per_user_mean": (1e15, 1e15 + 1), "per_user_mean by": (-1e140, 1e140), "std": (0, 1e90)}  # fmt: skip


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("statistic", HUGE)
def test_nothing_is_paid_for_and_then_raised(statistic: str, relation: str) -> None:
    """Arithmetic that fails for public reasons fails before the debit."""
    bounds = HUGE[statistic]
    grouped = {"by": "g", "keys": ["x"]} if statistic.endswith("by") else {}
    rows = pa.table({"u": ["a"], "g": ["x"], "v": [393830.3]})
    public = ["g"] if relation == "values" else []
    name = statistic.partition(" ")[0]
    for noise in NOISE:
        seen = look(
            lambda: eh.read(rows, user="u", protects=relation, public=public),
            {name: lambda ask: getattr(ask, name)("v", bounds=bounds, epsilon=1, **grouped)},
            Tape(noise),
        )
        assert not seen.failures(), seen.entries[name]["raised"]


def _on(relation: str, rows: int = 10, public: tuple[str, ...] = (), group: str = "a") -> eh.Table:
    groups = [group, *["a"] * (rows - 1)]
    table = pa.table({"u": [f"u{row}" for row in range(rows)], "g": groups, "v": [1.0] * rows})
    return eh.read(table, user="u", protects=relation, public=public)


@pytest.mark.parametrize(
    ("first", "one", "other"),
    [
        ("presence", {"relation": "values"}, {"relation": "values", "rows": 11}),
        ("presence", {"relation": "labels"}, {"relation": "labels", "rows": 11}),
        ("values", {"relation": "values", "public": ("g",)}, {"relation": "values", "public": ("g",), "group": "b"}),
        ("values", {"relation": "labels", "public": ("g",)}, {"relation": "labels", "public": ("g",), "group": "b"}),
    ],
)
def test_facts_that_a_ledger_protects_are_not_free(first: str, one: Any, other: Any, tmp_path: Path) -> None:
    """What a ledger has promised to hide does not become public because the next table says so."""

    def outcome(name: str, options: dict[str, Any]) -> str:
        ledger = eh.Ledger(tmp_path / f"{name}.db", epsilon=10)
        eh.Session(_on(first), ledger).mean("v", bounds=(0, 2), epsilon=1, bounding=eh.SmoothWeights(1))
        by = "g" if "public" in options else None
        try:
            return str(eh.Session(_on(**options), ledger).count(by=by, epsilon=1).value)
        except eh.EvenhandError as error:
            return str(error).replace(name, "")

    assert outcome("ledger-1", one) == outcome("ledger-2", other)


def test_public_facts_leave_an_event(tmp_path: Path) -> None:
    """And that event fixes what the ledger protects, as a debit does."""
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10)
    eh.Session(_on("values", 10, ("g",)), ledger).count(by="g", epsilon=1)
    (event,) = ledger.events
    assert event.cost.epsilon == 0
    assert event.guarantee.public == ("g",)
    assert str(ledger.relation) == "values"


def test_a_guarantee_names_the_purchase_it_rests_on(tmp_path: Path) -> None:
    """A bound that comes from an earlier purchase is a function of that one too."""
    session = eh.Session(_on("presence", 10), eh.Ledger(tmp_path / "b.db", epsilon=100))
    alone = session.count(epsilon="0.01", bounding=eh.TotalCap(1))
    session.profile(epsilon=20)
    resting = session.count(epsilon="0.01")
    bought = session.ledger.events[1].id
    assert bought in str(resting.to_dict())
    assert bought not in str(alone.to_dict())
    assert alone.guarantee.words() != resting.guarantee.words()


# Broken twins: each lets one thing depend on the rows, and the comparison must notice.


def _rows(ask: Any) -> int:
    return int(ask.table.engine.fetch(ask.table.expression.count().as_table()).reveal()[0][0].as_py())


def _raises(ask: Any) -> Any:
    if _rows(ask) > 3:
        raise eh.DataError("the table is large")
    return ask.count(epsilon=1)


def _quotes(ask: Any) -> Any:
    raise eh.UsageError(f"{_rows(ask)} rows are too few")


def _warns(ask: Any) -> Any:
    if _rows(ask) > 3:
        warnings.warn("a large table", stacklevel=2)
    return ask.count(epsilon=1)


def _prints(ask: Any) -> Any:
    print("." * _rows(ask))
    return ask.count(epsilon=1)


def _spends(ask: Any) -> Any:
    return ask.count(epsilon=_rows(ask))


def _changes_type(ask: Any) -> Any:
    released = ask.count(epsilon=1)
    large = isinstance(ask, eh.Session) and _rows(ask) > 3
    return replace(released, value=float(released.value)) if large else released


@pytest.mark.parametrize(
    ("twin", "complaint"),
    [
        (_raises, "raised of"),
        (_quotes, "raised of"),
        (_warns, "warned of"),
        (_prints, "printed of"),
        (_spends, "depends on the rows"),
        (_changes_type, "shown of"),
    ],
)
def test_the_comparison_notices_a_broken_twin(twin: Any, complaint: str) -> None:
    rows = Rows("text", (Row("you", "a", 1.0), *[Row("me", "a", 1.0)] * 5))
    with pytest.raises(AssertionError, match=complaint):
        compare(partial(rows.read, "presence"), partial(rows.without("me").read, "presence"), {"twin": twin})


def test_what_is_raised_after_a_debit_is_noticed() -> None:
    def twin(ask: Any) -> Any:
        ask.count(epsilon=1)
        raise ZeroDivisionError

    rows = Rows("text", (Row("you", "a", 1.0),))
    with pytest.raises(AssertionError, match="raised after the debit"):
        compare(partial(rows.read, "presence"), partial(rows.read, "presence"), {"twin": twin})
