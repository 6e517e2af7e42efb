"""Arithmetic of aggregates: what is asked, and the tree over it; each column is asked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.sql.arithmetic import MOST_STEPS, Constant, Expression, Operation, Released, combine, number_in
from evenhand.sql.selecting import Select
from evenhand.tables.queries.parsing import parse_query
from evenhand.tables.queries.sources import Names, own_names

TABLE = eh.read(
    pd.DataFrame({"u": [1, 2], "a": [1.0, 2.0], "b": [3.0, 4.0], "g": ["x", "y"], "p": [True, False]}), user="u"
)
COUNT, SUM_A, SUM_B = Released("count"), Released("sum_a"), Released("sum_b")


def over(one: Expression, other: Expression) -> Expression:
    return Operation("/", (one, other))


TREES: dict[str, tuple[dict[str, Expression], set[str]]] = {
    "SELECT SUM(a) / COUNT(*) AS r FROM table": ({"r": over(SUM_A, COUNT)}, {"count", "sum_a"}),
    "SELECT SUM(a) / COUNT(*) AS r, COUNT(*) AS n, COUNT(*) * 2 AS m FROM table": (
        {"r": over(SUM_A, Released("n")), "n": Released("n"), "m": Operation("*", (Released("n"), Constant(2.0)))},
        {"n", "sum_a"},
    ),
    "SELECT 100.0 * (SUM(a) - SUM(b)) / SUM(b) AS r FROM table": (
        {"r": over(Operation("*", (Constant(100.0), Operation("-", (SUM_A, SUM_B)))), SUM_B)},
        {"sum_a", "sum_b"},
    ),
    "SELECT ROUND(CAST(SUM(a) AS DOUBLE) / NULLIF(COUNT(*), 0), 2) AS r FROM table": (
        {"r": over(SUM_A, COUNT)},
        {"count", "sum_a"},
    ),
    "SELECT -COALESCE(SUM(a), 0) * (1 + 2 * 0.5) AS r FROM table": (
        {"r": Operation("*", (Operation("negative", (SUM_A,)), Constant(2.0)))},
        {"sum_a"},
    ),
    "SELECT COUNT(*) FILTER (WHERE p) / COUNT(*) AS r FROM table": (
        {"r": over(Released("sum_count_if_p"), COUNT)},
        {"sum_count_if_p", "count"},
    ),
    "SELECT MAX(a) - MIN(a) AS spread FROM table": (
        {"spread": Operation("-", (Released("quantiles_a"), Released("quantiles_a_2")))},
        {"quantiles_a", "quantiles_a_2"},
    ),
    "SELECT g, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM table GROUP BY g": (
        {"share": over(Operation("*", (COUNT, Constant(100.0))), Operation("total", (COUNT,)))},
        {"count"},
    ),
}


def selected(text: str) -> Select:
    query = parse_query(text)
    found = Select(query, Names(own_names(TABLE)).source(query))
    found.read()
    return found


@pytest.mark.parametrize("text", TREES)
def test_an_expression_is_a_tree_over_what_is_asked_once(text: str) -> None:
    found = selected(text)
    assert (found.values, set(found.statistics)) == TREES[text]
    assert list(found.values) == list(TREES[text][0]), "in the order of SELECT"


class Said:
    """Stands for a release: writes down what is computed with it."""

    def __init__(self, words: str) -> None:
        self.words = words

    def _with(self, symbol: str, other: Any, turned: bool = False) -> Said:
        one, two = (other, self) if turned else (self, other)
        return Said(f"({getattr(one, 'words', one)} {symbol} {getattr(two, 'words', two)})")

    def __add__(self, other: Any) -> Said:
        return self._with("+", other)

    def __sub__(self, other: Any) -> Said:
        return self._with("-", other)

    def __mul__(self, other: Any) -> Said:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Said:
        return self._with("*", other, turned=True)

    def __truediv__(self, other: Any) -> Said:
        return self._with("/", other)

    def __neg__(self) -> Said:
        return Said(f"-{self.words}")

    def total(self) -> Said:
        return Said(f"total({self.words})")


def test_combining_uses_the_operators_of_what_is_released() -> None:
    def said(text: str) -> str:
        found = selected(text)
        (value,) = found.values.values()
        result: Said = combine(value, {name: Said(name) for name in found.statistics})
        return result.words

    assert said("SELECT 100 * (SUM(a) - SUM(b)) / -SUM(b) FROM table") == "((100.0 * (sum_a - sum_b)) / -sum_b)"
    assert (
        said("SELECT g, SUM(a) / SUM(COUNT(*)) OVER () + 1 FROM table GROUP BY g") == "((sum_a / total(count)) + 1.0)"
    )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"sum_a": 6.0, "count": 3.0}, 2.0),
        ({"sum_a": 6.0, "count": 0.0}, None),
        ({"sum_a": math.nan, "count": 3.0}, None),
        ({"sum_a": None, "count": 3.0}, None),
        ({"sum_a": "rest", "count": 3.0}, None),
        ({}, None),
        ({"sum_a": 1e308, "count": 1e-308}, math.inf),
    ],
)
def test_a_row_never_raises(row: Mapping[str, Any], expected: float | None) -> None:
    assert number_in(row, over(SUM_A, COUNT)) == expected


QUERIES = {
    "SELECT SUM(a) / COUNT(*) AS mean FROM table": 2.0,
    "SELECT 100 * SUM(a) / COUNT(*) - 1 FROM table": 199.0,
    "SELECT -COUNT(*) AS n FROM table": -600.0,
    "SELECT COUNT(*) / COUNT(DISTINCT u) AS visits FROM table": 3.0,
    "SELECT g, SUM(a) / COUNT(*) AS mean FROM table WHERE g IN ('x', 'y') GROUP BY g ORDER BY mean DESC": {
        "x": 2.0,
        "y": 2.0,
    },
    "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS part FROM table WHERE g IN ('x', 'y') GROUP BY g": {
        "x": 0.5,
        "y": 0.5,
    },
    "SELECT g, SUM(a) / COUNT(*) AS mean FROM table WHERE g IN ('x', 'y') GROUP BY g HAVING SUM(a) / COUNT(*) > 5": {},
}


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_selected_is_computed_from_what_is_released(query: str, tmp_path: Path) -> None:
    rows = pd.DataFrame({"u": [f"u{place % 200}" for place in range(600)], "a": [1.0, 3.0] * 300})
    rows["g"] = ["x" if place % 4 < 2 else "y" for place in range(600)]
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10_000, delta=1e-3)
    table = eh.read(rows, user="u", columns={"a": eh.Column(bounds=(0, 4))})
    answer = eh.Session(table, ledger).sql(query, epsilon=1000)
    assert len(ledger.events) == 1
    assert answer.event == ledger.events[0].id
    expected = QUERIES[query]
    if isinstance(expected, dict):
        assert dict(zip(answer.value["g"], answer.value.iloc[:, -1], strict=True)) == pytest.approx(expected, rel=0.05)
        return
    assert answer.value == pytest.approx(expected, rel=0.05)
    low, high = answer.interval(0.999)
    assert low - 0.1 <= expected <= high + 0.1


def test_a_long_expression_is_refused() -> None:
    with pytest.raises(eh.UsageError, match=f"more than {MOST_STEPS} operations"):
        selected(f"SELECT {' + '.join(['COUNT(*)'] * (MOST_STEPS + 2))} AS n FROM table")
