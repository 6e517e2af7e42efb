"""Broken twins: mechanisms that break their promise in one way each. The audit must catch every one of them.

They show that the audit can find defects. Nothing outside the audit uses them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from evenhand.audit.broken_receipts import AnyGroup, AnyName, CountsOfARow, OneValue, Unsplit
from evenhand.audit.group_distances import GivenBound, distances
from evenhand.audit.located import located_mean, tilted
from evenhand.audit.looking import LOOK_PAIRS, looked
from evenhand.audit.mechanism import BlackBox, Claim, Mechanism, Pair
from evenhand.audit.pairs import HIGH, LOW, neighbours
from evenhand.audit.releases import EndToEnd, FixedRelease, Question, names_of_one
from evenhand.audit.searching import BUSY_PAIRS, CAPACITY, PAIRS, searched, told_apart
from evenhand.bounding import Contribution, LocatedMean, MeanContribution, NormClip, SmoothWeights, Summary, TotalCap
from evenhand.guarantee import Relation
from evenhand.noise import IntegerNoise
from evenhand.profiles import TiltRequest
from evenhand.release import Measurement, not_private
from evenhand.session import Drafts
from evenhand.statistics import BallMean, Draft, Mean, PerUserMean, Request
from evenhand.tables import Table
from evenhand.tables.expressions import Integers, Rows

BOUNDS = (LOW, HIGH)


@dataclass(frozen=True)
class Twin:
    """A broken mechanism, and the relation that it breaks.

    Args:
        mechanism: what is broken.
        relation: whose neighbours it tells apart.
        pair: for slow ones, the tables that give it away; None to search.
        pairs: for what is no release, where it is.
    """

    mechanism: Mechanism
    relation: Relation
    pair: str | None = None
    pairs: Sequence[Pair] = ()

    def neighbours(self) -> list[Pair]:
        """The pairs to try."""
        if self.pair is None:
            return list(neighbours(self.relation, quick=True))
        return [pair for pair in self.pairs or neighbours(self.relation) if pair.name == self.pair]


@dataclass(frozen=True)
class OneSide(LocatedMean):
    """Declares the cap above the centre, though users may also lie below it."""

    broken_on_purpose = True

    def of_mean(self, summary: Summary, relation: Relation) -> MeanContribution:
        honest = super().of_mean(summary, relation)
        return replace(honest, sums=replace(honest.sums, l1=self.above, l2_squared=self.above**2))


@dataclass(frozen=True)
class Unclamped(GivenBound):
    """Takes everybody's distances for 0, so that nobody is scaled down."""

    broken_on_purpose = True

    def _norms(self, placed: Rows) -> AbstractContextManager[Rows]:
        return self.pairs.users(placed, rows_norm=placed.size, residual_norm=placed.residual * 0)


@dataclass(frozen=True)
class HalfTheReach(TiltRequest):
    """Declares half of how far a user may lie from the centre."""

    def of(self, table: Table, users: Rows, width: int) -> Measurement:
        honest = super().of(table, users, width)
        return replace(honest, l1=honest.l1 // 2, l2_squared=honest.l2_squared // 4)


def centre_from_rows(ask: Drafts) -> Draft:
    """Takes the exact mean of the table for the centre of all groups: a user with many rows moves the distances of all others."""
    rows = ask.table.expression
    found = not_private(
        ask.table.engine.fetch(rows.filter(rows.v.between(LOW, HIGH)).v.mean().name("mean").as_table())
    ).to_pylist()
    mean = found[0]["mean"]
    return distances(ask, centre=0.5 if mean is None else min(max((mean - LOW) / (HIGH - LOW), 0.0), 1.0))


def halved(noise: IntegerNoise) -> IntegerNoise:
    """Half the noise that was called for."""
    return replace(noise, scale=noise.scale / 2)


@dataclass(frozen=True)
class UncappedBelow(TotalCap):
    """Caps positive totals and forgets the negative ones."""

    broken_on_purpose = True

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        import ibis

        honest = super().of_sum(summary, relation)
        return replace(honest, integers=(ibis.least(summary.total, honest.l1),))


@dataclass(frozen=True)
class OneRow(SmoothWeights):
    """Declares what one row can do, not what one user can."""

    broken_on_purpose = True

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        honest = super().of_sum(summary, relation)
        assert summary.grid is not None
        width = summary.grid.width
        return replace(honest, l1=width, l2_squared=width**2)


@dataclass(frozen=True)
class HalvedRange(TotalCap):
    """Declares under values what holds under presence: a user who turns from +T to −T moves twice as far."""

    broken_on_purpose = True

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        return super().of_sum(summary, Relation.PRESENCE)


@dataclass(frozen=True)
class UnclampedTotal(PerUserMean):
    """Takes bounds of a total for a fact about users, and does not clamp to them."""

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return Mean.integers(self, weight, values)


@dataclass(frozen=True)
class HalfTheBall(BallMean):
    """Declares the radius of a user's ball, where a user may move from one side of it to the other (rameshwar2024, Lemma III.3)."""

    moves = 1


def half_the_ball(ask: Drafts) -> Draft:
    """Means in a ball by `HalfTheBall`."""
    return HalfTheBall(Request.parse(ask.table, 1, bounding=NormClip(3)), ("v", "w"), HIGH).draft()


def first_rows(ask: Drafts) -> Draft:
    """Samples rows by their place in the table: who comes first pushes the others out."""
    rows = ask.table.expression
    sampled = rows.order_by(["u", "v"]).limit(15)
    return _cap(TotalCap(1))(Drafts(replace(ask.table, expression=sampled)))


def bound_from_cells(ask: Drafts) -> Draft:
    """Bounds users by the largest norm in the table over the cells of a histogram, which is private."""
    rows = ask.table.expression
    cells = rows.group_by(["u", (rows.v >= 0).name("cell")]).aggregate(count=rows.count())
    norms = cells.group_by("u").aggregate(square=(cells["count"] * cells["count"]).sum())
    found = not_private(ask.table.engine.fetch(norms.aggregate(square=norms.square.max()))).to_pylist()
    largest = max(math.isqrt(int(found[0]["square"] or 0)), 1)
    return ask.histogram("v", [LOW, 0, HIGH], epsilon=1, bounding=NormClip(largest))


def bounds_from_rows(ask: Drafts) -> Draft:
    """Takes the exact largest value of the table for the upper bound that was left out."""
    rows = ask.table.expression
    found = not_private(ask.table.engine.fetch(rows.v.abs().max().name("most").as_table())).to_pylist()
    return ask.sum("v", bounds=(0, max(found[0]["most"] or 0.0, 1e-3)), epsilon=1, bounding=SmoothWeights(5))


def public_counts(ask: Drafts) -> Drafts:
    """The same table as if row counts were public."""
    return Drafts(replace(ask.table, relation=Relation.VALUES))


def _cap(cap: TotalCap | SmoothWeights, columns: str | Sequence[str] = "v") -> Question:
    return lambda ask: ask.sum(columns, bounds=BOUNDS, epsilon=1, bounding=cap)


def twins() -> Sequence[Twin]:
    """All broken twins."""
    claim, presence, values = Claim(1.0), Relation.PRESENCE, Relation.VALUES
    two_columns, giant = _cap(SmoothWeights(2), ["v", "w"]), "a giant at the top, nobody else"
    mean = partial(Drafts.mean, column="v", bounds=BOUNDS, epsilon=1, bounding=SmoothWeights(2))
    count = partial(Drafts.count, epsilon=1)
    found = partial(count, by="g", delta=0.02, groups_per_user=8, bounding=NormClip(2))
    counts_public = EndToEnd("secret counts taken for public", claim, lambda ask: mean(public_counts(ask)))
    one_cap = EndToEnd("only one of two caps declared", claim, lambda ask: located_mean(ask, 2**28, 2**26, OneSide))
    unbounded, of_a_row = partial(searched, capacity=CAPACITY // 20), partial(searched, receipt=CountsOfARow)
    busy = partial(told_apart, receipt=CountsOfARow)
    largest = partial(looked, around=lambda values, _: max(values, default=0.0))
    unpaid = partial(looked, reserve=Decimal(8))
    unsplit = EndToEnd("budget not split between profile and release", claim, count, receipt=Unsplit)
    shown = EndToEnd("no threshold for groups", Claim(1.0, 0.02), found, names_of_one, AnyGroup)
    totals = UnclampedTotal("v", BOUNDS, "total")
    unclamped = partial(Drafts.ask, statistic=totals, epsilon=1, by="g", keys=["a", "b"], bounding=NormClip(1))
    values_of = partial(Drafts.distinct, column="g", values_per_user=8, epsilon=1)
    names_of = partial(Drafts.top, column="g", k=8, groups_per_user=8, delta=0.02, epsilon=1)
    named = EndToEnd("no margin for names", Claim(1.0, 0.02), names_of, names_of_one, AnyName)
    return (
        Twin(FixedRelease("totals of users not clamped", claim, unclamped), presence),
        Twin(FixedRelease("one value declared", claim, values_of, receipt=OneValue), presence),
        Twin(named, presence, "a user alone in eight groups, mixed users"),
        Twin(FixedRelease("noise halved", claim, _cap(TotalCap(5)), halved), presence),
        Twin(FixedRelease("cap not applied below zero", claim, _cap(UncappedBelow(5))), presence),
        Twin(FixedRelease("sensitivity of one row", claim, _cap(OneRow(5))), presence),
        Twin(FixedRelease("sensitivity of one row", claim, _cap(OneRow(5))), values),
        Twin(FixedRelease("presence bound under values", claim, _cap(HalvedRange(5))), values),
        Twin(FixedRelease("the radius of a ball declared", claim, half_the_ball), values),
        Twin(FixedRelease("bound read off private cells", claim, bound_from_cells), values),
        Twin(FixedRelease("half the reach declared", claim, partial(tilted, kind=HalfTheReach)), presence),
        Twin(FixedRelease("bounds read off the largest value", claim, bounds_from_rows), presence),
        Twin(FixedRelease("distances not scaled down", claim, partial(distances, steps=Unclamped)), presence, giant),
        Twin(
            FixedRelease("centres read from the table", claim, centre_from_rows),
            presence,
            "a giant at the top, equal users",
        ),
        Twin(FixedRelease("rows sampled by their order", claim, first_rows), presence),
        Twin(FixedRelease("exact row count", claim, lambda ask: count(public_counts(ask))), presence),
        Twin(FixedRelease("budget not split between columns", claim, two_columns, receipt=Unsplit), presence),
        Twin(BlackBox("weights of rows not bounded", claim, unbounded), presence, PAIRS[0].name, PAIRS),
        Twin(BlackBox("counts of a row, not of a user", claim, of_a_row), presence, PAIRS[0].name, PAIRS),
        Twin(BlackBox("busy users, counted as rows", claim, busy), presence, BUSY_PAIRS[0].name, BUSY_PAIRS),
        Twin(
            BlackBox("users far above the bound, counted as rows", claim, busy),
            presence,
            BUSY_PAIRS[1].name,
            BUSY_PAIRS,
        ),
        Twin(BlackBox("cells around the largest value", claim, largest), presence, LOOK_PAIRS[0].name, LOOK_PAIRS),
        Twin(BlackBox("a reserve that is not paid for", claim, unpaid), presence, LOOK_PAIRS[0].name, LOOK_PAIRS),
        Twin(counts_public, presence, giant),
        Twin(one_cap, values, giant),
        Twin(unsplit, presence, giant),
        Twin(shown, presence, "a user alone in eight groups, mixed users"),
    )
