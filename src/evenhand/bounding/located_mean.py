"""Clip what each user adds to the distance from a located centre: the state of the art for user-level means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evenhand.bounding.strategy import LARGEST_BOUND, Contribution, Strategy, Summary, clamp
from evenhand.guarantee import Relation, UsageError
from evenhand.tables.summaries import MOST_ROWS


@dataclass(frozen=True)
class LocatedMean(Strategy):
    """Release how far the users' sums lie from a centre, each user's part capped: ``clip(sum − rows·centre, −a, b)``.

    When most user means are close to a centre, the part that must be hidden is small, and so is the noise; a user
    with many rows near the centre is not cut at all. The centre is found privately and coarsely first. Made by Auto.

    Guarantee: one user moves the total by at most ``max(a, b)`` under presence, ``a + b`` under values. Centre and caps are
    functions of released values, and any are safe.

    Args:
        centre: grid steps of one row above the grid's bottom.
        below: ``a`` in grid steps.
        above: ``b`` in grid steps.
        rows_cap: under presence, the cap on each user's rows in the denominator.
        rows: under presence, about how many rows there are: a noisy denominator is kept within half and twice this.

    Reference: Levy et al. 2021 and Cummings et al. 2022 locate and clip user means; capping the total residual instead
    needs no division and lets light users through untouched.
    """

    centre: int
    below: int
    above: int
    rows_cap: int | None = None
    rows: float | None = None
    words: str = "each user's distance from a located centre is capped"
    title = "LocatedMean"

    def __post_init__(self) -> None:
        for cap in (self.below, self.above):
            if not 0 < cap <= LARGEST_BOUND:
                raise UsageError(
                    f"LocatedMean: the cap {cap} does not fit the exact integers from 1 to {LARGEST_BOUND}."
                )

    @property
    def parameter(self) -> Fraction | None:
        return Fraction(self.below + self.above, 2)

    def describe(self) -> str:
        return self.words

    def of_residual(self, summary: Summary, relation: Relation) -> Contribution:
        """The capped distance of a user's sum from what it would be at the centre."""
        import ibis

        residual = summary.above - ibis.least(summary.rows, MOST_ROWS) * self.centre
        moves = max(self.below, self.above) if relation is Relation.PRESENCE else self.below + self.above
        return Contribution((clamp(residual, -self.below, self.above),), l1=moves, l2_squared=moves**2)

    def of_denominator(self, summary: Summary) -> Contribution:
        """The capped number of rows, when counts are secret."""
        assert self.rows_cap is not None
        return Contribution((clamp(summary.rows, 0, self.rows_cap),), l1=self.rows_cap, l2_squared=self.rows_cap**2)
