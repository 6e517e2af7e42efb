"""Without noise, each strategy yields the number of its formula (method of the papers, in plain arithmetic)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.session import Drafts
from watch import watch

LOW, HIGH = -1.0, 4.0
PEOPLE: dict[str, list[float]] = {
    "one": [3.0],
    "two": [4.0, -1.0],
    "some": [0.5, 1.5, 2.5, 3.5, 0.25],
    "many": [3.75] * 40,
    "low": [-1.0] * 12,
}
ROWS = pa.table(
    {
        "u": [user for user, values in PEOPLE.items() for _ in values],
        "v": [value for values in PEOPLE.values() for value in values],
    }
)


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def released(relation: str, question: str, **options: Any) -> float:
    table = eh.read(ROWS, user="u", protects=relation)
    column = [] if question in ("count", "users") else ["v"]

    def ask(drafts: Drafts) -> Any:
        return getattr(drafts, question)(*column, epsilon=1, **options)

    return float(watch(table, ask).outcome.value)


Each = Callable[[list[float]], float]


def total(each: Each) -> float:
    return sum(each(values) for values in PEOPLE.values())


def ratio(value: Each, weight: Each) -> float:
    return total(value) / total(weight)


def _words(part: Any) -> str:
    """The same test names in every process: a function's name holds its address."""
    return "formula" if callable(part) else str(part)


SUMS: list[tuple[str, Any, Each]] = [
    ("presence", eh.TotalCap(10), lambda values: clip(sum(values), -10, 10)),
    ("values", eh.TotalCap("2.5"), lambda values: clip(sum(values), -2.5, 2.5)),
    ("presence", eh.SmoothWeights(3), lambda values: min(3, len(values)) * fmean(values)),
    ("values", eh.SmoothWeights("1/2"), lambda values: min(0.5, len(values)) * fmean(values)),
    ("presence", eh.RowLimit(40), sum),
    (
        "values",
        eh.CentredInterval(6),
        lambda values: (
            clip(
                sum(values) - LOW * len(values),
                max((5 * len(values) - 6) / 2, 0),
                max((5 * len(values) - 6) / 2, 0) + 6,
            )
            + LOW * len(values)
        ),
    ),
]


@pytest.mark.parametrize(("relation", "strategy", "each"), SUMS, ids=_words)
def test_sums(relation: str, strategy: Any, each: Each) -> None:
    value = released(relation, "sum", bounds=(LOW, HIGH), bounding=strategy)
    assert value == pytest.approx(total(each), abs=1e-6)


MEANS: list[tuple[str, Any, Each, Each]] = [
    (
        relation,
        eh.SmoothWeights(h),
        partial(lambda h, values: min(h, len(values)) * fmean(values), h),
        partial(lambda h, values: min(h, len(values)), h),
    )
    for relation in ("presence", "values")
    for h in (1, 3.5, 1000)
]


@pytest.mark.parametrize(("relation", "strategy", "value", "weight"), MEANS, ids=_words)
def test_means(relation: str, strategy: Any, value: Each, weight: Each) -> None:
    found = released(relation, "mean", bounds=(LOW, HIGH), bounding=strategy)
    assert found == pytest.approx(ratio(value, weight), abs=1e-6)


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_a_mean_without_a_bound_is_the_mean_of_rows(relation: str) -> None:
    rows = ROWS["v"].to_pylist()
    for strategy in (eh.SmoothWeights(40), eh.RowLimit(40)):
        assert released(relation, "mean", bounds=(LOW, HIGH), bounding=strategy) == pytest.approx(fmean(rows), abs=1e-6)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(eh.TotalCap(12), 1 + 2 + 5 + 12 + 12), (eh.SmoothWeights(2), 1 + 2 * 4), (eh.RowLimit(1000), 60)],
    ids=str,
)
def test_counts(strategy: Any, expected: int) -> None:
    assert released("presence", "count", bounding=strategy) == expected


def test_users_count_once() -> None:
    assert released("presence", "users") == len(PEOPLE)


def test_variance_and_quantiles_of_unweighted_rows() -> None:
    rows = sorted(ROWS["v"].to_pylist())
    mean = fmean(rows)
    variance = fmean((value - mean) ** 2 for value in rows)
    strategy = eh.SmoothWeights(40)
    assert released("presence", "variance", bounds=(LOW, HIGH), bounding=strategy) == pytest.approx(variance, abs=1e-3)
    table = eh.read(ROWS, user="u")
    (median,) = watch(
        table, lambda ask: ask.quantiles("v", [0.5], bounds=(LOW, HIGH), epsilon=10000, bounding=strategy)
    ).outcome.value
    assert median == pytest.approx(rows[len(rows) // 2], abs=0.01)


def test_values_outside_the_bounds_are_clamped() -> None:
    rows = pa.table({"u": [1, 2, 3], "v": [-100.0, 1.0, 100.0]})
    table = eh.read(rows, user="u")
    outcome = watch(table, lambda ask: ask.sum("v", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(50))).outcome
    assert outcome.value == pytest.approx(0 + 1 + 5)


@pytest.mark.parametrize("strategy", [eh.TotalCap(7), eh.SmoothWeights(2), eh.RowLimit(3), eh.NormClip(4)], ids=str)
def test_a_strategy_says_what_it_does(strategy: Any) -> None:
    assert f"{float(strategy.bound):g}" in strategy.describe()
    assert str(strategy) == strategy.describe()
    assert not type(strategy)().is_set


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("grouped", [{}, {"by": "g", "keys": ["a", "b"]}], ids=["alone", "by group"])
@pytest.mark.parametrize(
    "named", [None, eh.SmoothWeights(), eh.CentredInterval(), eh.TotalCap(), eh.NormClip()], ids=str
)
def test_a_bound_chosen_for_huge_values_is_a_bound(relation: str, grouped: dict[str, Any], named: Any) -> None:
    """A strategy that refuses a chosen bound would do so after the debit."""
    users = np.repeat(np.arange(400), 3)
    rows = pa.table({"u": users, "v": np.full(users.size, 9e148), "g": np.where(users % 2, "a", "b")})
    table = eh.read(rows, user="u", protects=relation, public=["g"] if relation == "values" else [])
    for question in ("sum", "mean"):

        def ask(drafts: Drafts, question: str = question) -> Any:
            return getattr(drafts, question)(
                "v", bounds=(0, 1e149), epsilon=9, bounding=eh.Auto(strategy=named), **grouped
            )

        try:
            ask(Drafts(table))
        except eh.UsageError:
            continue  # refused before anything is read
        assert watch(table, ask, seed=1).outcome.bounding.parameter
