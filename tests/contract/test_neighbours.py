"""One user, added, removed or altered, never moves what is handed to the noise by more than was declared.

Exact integers, so there is no tolerance. Given the same noisy outputs, everything else a release says must be the same on
both tables: nothing but the noisy integers may depend on the rows.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import ibis
import numpy as np
import pytest
from cases import CASES, Case
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.audit.twins import UnclampedTotal
from evenhand.bounding import Contribution
from evenhand.guarantee import Relation
from evenhand.noise import Gaussian, Laplace, Normal
from evenhand.profiles import Look, users_by_bucket
from evenhand.release import Error, Measurement, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft, Outcome, level_cells
from evenhand.statistics.weighted_rows import WeightedRows
from evenhand.tables.engines.duckdb import DuckDBEngine
from nasty import HIGH, LOW, Pair, Row, Rows, extreme_pairs, pairs
from neighbouring import compare
from watch import Ask


def same_draw(seed: int) -> AbstractContextManager[object]:
    """The same rows are drawn from both tables: under values they have the same rows, and the bound is about one draw."""
    return mock.patch.object(DuckDBEngine, "reseed", lambda engine: engine.run(f"SELECT setseed({seed / 10})"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_user_moves_more_than_declared(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:

        @given(pair=pairs(case.relation, case.steady), seed=st.none() | st.integers(0, 9), file=st.booleans())
        def check(pair: Pair, seed: int | None, file: bool) -> None:
            place = Path(folder) if file else None
            one, other = pair.first.read(case.relation, place), pair.second.read(case.relation, place)
            with same_draw(seed or 0) if case.steady and case.relation == "values" else nullcontext():
                compare(case.ask, one, other, seed)

        (check if case.examples is None else settings(max_examples=case.examples)(check))()


@pytest.mark.parametrize("case", [case for case in CASES if case.attains is not None], ids=str)
def test_the_declared_bound_is_attained(case: Case) -> None:
    """A bound that nobody can reach would be noise for nothing."""
    assert case.attains is not None
    best = 0.0
    for pair in extreme_pairs(case.relation):
        reached = compare(case.ask, pair.first.read(case.relation), pair.second.read(case.relation))
        best = max(best, *reached) if reached else 1.0  # nothing was noised: the answer is public
        if best >= case.attains:
            return
    pytest.fail(f"no pair of tables reaches more than {best:.4f} of the declared bound, expected {case.attains}")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("case", [case for case in CASES if case.on_spark], ids=str)
def test_no_user_moves_more_than_declared_on_spark(case: Case, spark: None, tmp_path: Path) -> None:
    table = Rows(
        "pairs",
        (
            *(Row(("a", "b"), "a", value) for value in (None, math.nan, math.inf, HIGH, 1 / 3)),
            *(Row(("b", "a"), "b", 2.25) for _ in range(3)),
            Row(("", "ab"), None, -math.inf),
            Row(None, "a", HIGH),
        ),
    )
    changed = ("a", "b")
    neighbour = table.without(changed) if case.relation == "presence" else table.altered(changed, [LOW] * 5)
    one, other = (rows.read(case.relation, tmp_path, "spark") for rows in (table, neighbour))
    compare(case.ask, one, other)


# Broken twins: each breaks the promise in one way, and the suite must notice.


@dataclass(frozen=True)
class OneRow(eh.SmoothWeights):
    """Declares what one row can do, not what one user can."""

    broken_on_purpose = True

    def of_sum(self, summary: Any, relation: Any) -> Contribution:
        honest = super().of_sum(summary, relation)
        return Contribution(honest.integers, summary.grid.width, summary.grid.width**2)


@dataclass(frozen=True)
class OneStepShort(eh.TotalCap):
    """Declares one grid step too little."""

    broken_on_purpose = True

    def of_sum(self, summary: Any, relation: Any) -> Contribution:
        honest = super().of_sum(summary, relation)
        return Contribution(honest.integers, honest.l1 - 1, (honest.l1 - 1) ** 2)


@dataclass(frozen=True)
class Uncapped(eh.TotalCap):
    """Forgets to apply the cap."""

    broken_on_purpose = True

    def of_sum(self, summary: Any, relation: Any) -> Contribution:
        honest = super().of_sum(summary, relation)
        return Contribution((summary.total,), honest.l1, honest.l2_squared)


@dataclass(frozen=True)
class PresenceOnly(eh.TotalCap):
    """Declares under values what holds under presence: a user who turns from +T to −T moves twice as far."""

    broken_on_purpose = True

    def of_sum(self, summary: Any, relation: Any) -> Contribution:
        return super().of_sum(summary, Relation.PRESENCE)


def _asks(strategy: eh.TotalCap | eh.SmoothWeights) -> Ask:
    return lambda ask: ask.sum("v", bounds=(LOW, HIGH), epsilon=1, bounding=strategy)


def _exact(ask: Drafts, expression: Any) -> int:
    # In a context of its own, where nothing counts readings.
    return int(Context().run(ask.table.engine.fetch, expression.as_table()).reveal()[0][0].as_py())


def _peeks_at_error(ask: Drafts) -> Draft:
    """States the exact number of rows in the error forecast."""
    draft = ask.count(epsilon=1, bounding=eh.TotalCap(3))

    def run(receipt: Receipt) -> Outcome:
        return replace(draft.run(receipt), error=Error(float(_exact(ask, ask.table.expression.count()))))

    return replace(draft, run=run)


def _bounds_by_data(ask: Drafts) -> Draft:
    """Takes the largest number of rows in the table for the cap: private if it were public."""
    rows = ask.table.expression.group_by("u").aggregate(rows=ask.table.expression.count())
    largest = _exact(ask, rows.rows.max())
    return replace(ask.count(epsilon=1, bounding=eh.TotalCap(largest)), query={}, bounding=None, error=None)  # type: ignore[arg-type]


def _hides_small(ask: Drafts) -> Draft:
    """Releases nothing when the table looks small."""
    draft = ask.count(epsilon=1, bounding=eh.TotalCap(3))

    def run(receipt: Receipt) -> Outcome:
        small = _exact(ask, ask.table.expression.count()) < 10
        return replace(draft.run(receipt), value=0) if small else draft.run(receipt)

    return replace(draft, run=run)


def _values_move_once(ask: Drafts) -> Draft:
    """Declares under values that a user is in one bucket of the histogram of values, though changing values leaves one for another."""
    draft = ask.per_user_mean("v", bounds=(LOW, HIGH), of="total", epsilon=1)

    def run(receipt: Receipt) -> Outcome:
        with mock.patch("evenhand.statistics.per_user_mean.users_by_bucket", _once):
            return draft.run(receipt)

    return replace(draft, run=run)


def _once(table: Any, users: Any, value: Any, buckets: Any, moves: int) -> Measurement:
    return users_by_bucket(table, users, value, buckets)


def _bounds_from_rows(ask: Drafts) -> Draft:
    """Finds the upper bound by looking: the largest value below 100."""
    value = ask.table.expression.v
    most = float(
        Context().run(ask.table.engine.fetch, value.clip(0.5, 100).max().as_table()).reveal()[0][0].as_py() or 1
    )
    draft = ask.sum("v", bounds=(0, most), epsilon=1, bounding=eh.SmoothWeights(2))
    return replace(draft, query={}, bounding=None, error=None)  # type: ignore[arg-type]


def _cells_of_rows_alone(ask: Drafts) -> Draft:
    """Counts rows in the cells as if each were a user."""
    draft = ask.mean("v", epsilon=1000)

    def run(receipt: Receipt) -> Outcome:
        with mock.patch("evenhand.statistics.level_cells.WeightedRows", _OneUserPerRow):
            return draft.run(receipt)

    return replace(draft, run=run)


def _totals_of_rows(ask: Drafts) -> Draft:
    """Counts rows in the cells of totals, and caps each of them, as if each were a user."""
    draft, real = ask.sum("v", epsilon=1000), level_cells.numbers_of_rows

    @contextmanager
    def apart(copy: eh.Table, column: str) -> Iterator[Any]:
        with real(copy, column) as numbers:
            place = ibis.row_number().over(ibis.window(order_by="value"))
            yield numbers.mutate(**dict.fromkeys(copy.user_names, place))

    def run(receipt: Receipt) -> Outcome:
        with mock.patch.object(level_cells, "numbers_of_rows", apart):
            return draft.run(receipt)

    return replace(draft, run=run)


def _centre_from_rows(ask: Drafts) -> Draft:
    """Lays the cells around the largest value below 100 of the table, not around one that noisy weights show."""
    draft = ask.mean("v", epsilon=1000)

    def around(buy: Any, epsilon: Any, moves: int, given: Any, reserve: Any) -> Look:
        centre = float(_exact(ask, ask.table.expression.v.clip(0, 100).max()))
        return Look(centre, np.array(buy(centre, epsilon)), moves / float(epsilon))

    def run(receipt: Receipt) -> Outcome:
        with mock.patch("evenhand.statistics.found_bounds.look_around", around):
            return draft.run(receipt)

    return replace(draft, run=run)


class _OneUserPerRow(WeightedRows):
    def weighted(self, users: Any, norm: Any, capacity: int) -> Any:
        return super().weighted(users.mutate(**{norm.name: 1}), norm, capacity)


def _unclamped(ask: Drafts) -> Draft:
    return ask.ask(
        UnclampedTotal("v", (LOW, HIGH), "total"), by="g", keys=["a", "b"], epsilon=1, bounding=eh.NormClip(1)
    )


@pytest.mark.parametrize(
    ("relation", "ask", "complaint"),
    [
        ("presence", _asks(OneRow(5)), "moved the integers"),
        ("values", _asks(OneRow(5)), "moved the integers"),
        ("presence", _asks(OneStepShort(5)), "moved the integers"),
        ("values", _asks(OneStepShort(5)), "moved the integers"),
        ("presence", _asks(Uncapped(5)), "moved the integers"),
        ("values", _asks(PresenceOnly(5)), "moved the integers"),
        ("values", _values_move_once, "moved the integers"),
        ("presence", _cells_of_rows_alone, "moved the integers"),
        ("presence", _totals_of_rows, "moved the integers"),
        ("presence", _centre_from_rows, "moved the integers"),
        ("presence", _bounds_from_rows, "more than the noisy integers|declared bound depends on rows"),
        ("presence", _unclamped, "moved the integers"),
        ("values", _unclamped, "moved the integers"),
        ("presence", _peeks_at_error, "more than the noisy integers"),
        ("presence", _bounds_by_data, "declared bound depends on rows"),
        ("presence", _hides_small, "more than the noisy integers"),
    ],
)
def test_the_suite_notices_a_broken_twin(relation: str, ask: Ask, complaint: str) -> None:
    def look_for_it() -> None:
        for pair in extreme_pairs(relation):
            compare(ask, pair.first.read(relation), pair.second.read(relation))

    with pytest.raises(AssertionError, match=complaint):
        look_for_it()


@pytest.mark.parametrize(
    ("noise", "options"),
    [
        (Laplace, {"by": "g", "keys": ["a"], "bounding": eh.NormClip(3)}),
        (Gaussian, {"by": "g", "keys": ["a"], "delta": 1e-6, "bounding": eh.NormClip(3, norm=2)}),
        (Normal, {"by": "g", "delta": 1e-6, "groups_per_user": 3}),
    ],
)
def test_the_suite_notices_half_the_noise(noise: Any, options: dict[str, Any]) -> None:
    """Whatever was declared: what the noise lost is counted from the integers and its scale."""
    crowd = Rows("text", tuple(Row(f"user {number}", "a", 1.0) for number in range(200)))
    giant = replace(crowd, rows=(*crowd.rows, *[Row("giant", "a", 1.0)] * 50))
    honest = noise.calibrated.__func__

    def look() -> None:
        compare(lambda ask: ask.count(epsilon=1, **options), giant.read("presence"), crowd.read("presence"))

    look()
    halved = classmethod(lambda cls, *given: replace(honest(cls, *given), scale=honest(cls, *given).scale / 2))
    with mock.patch.object(noise, "calibrated", halved), pytest.raises(AssertionError, match=r"lost [ερ] = "):
        look()
