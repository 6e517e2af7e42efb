"""Cap each user's total: amin2019 section 3."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.bounding.strategy import LARGEST_BOUND, Contribution, Strategy, Summary, clamp, parse_limit
from evenhand.guarantee import Relation, UsageError


@dataclass(frozen=True)
class TotalCap(Strategy):
    """Add at most ``T`` of each user's total: ``clip(x, 0, T)``, or ``clip(x, −T, T)`` when values may be negative.

    Guarantee: one user moves the sum by at most ``T`` under presence; under values by ``T`` when all values have one
    sign, else by ``2T``.

    Args:
        T: the cap in the unit of the total (rows for a count); chosen if left out.

    Reference: amin2019, section 3.
    """

    T: Any = None
    title = "TotalCap"

    def __post_init__(self) -> None:
        parse_limit(self.T, "TotalCap", "units of the total", largest=2**200)

    @property
    def parameter(self) -> Fraction | None:
        return parse_limit(self.T, "TotalCap", "units of the total", largest=2**200)

    def describe(self) -> str:
        cap = "a chosen cap" if self.parameter is None else f"{float(self.parameter):g}"
        return f"each user's total is capped at {cap}"

    def of_count(self, summary: Summary) -> Contribution:
        cap = fitting(self.parameter, self.title)
        return Contribution((clamp(summary.rows, 0, cap),), l1=cap, l2_squared=cap**2)

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        grid = summary.grid
        assert grid is not None
        assert self.parameter is not None
        cap = fitting(self.parameter * grid.steps_per_unit, self.title)
        low = -cap if grid.bottom < 0 else 0
        high = cap if grid.top > 0 else 0
        moves = high - low if relation is not Relation.PRESENCE else cap
        return Contribution((clamp(summary.total, low, high),), l1=moves, l2_squared=moves**2)


def fitting(bound: Fraction | None, title: str) -> int:
    """A bound in whole grid steps, rounded up; refused, before data is read, if it leaves the integer range."""
    assert bound is not None
    steps = -(-bound.numerator // bound.denominator)
    if steps > LARGEST_BOUND:
        raise UsageError(
            f"{title} is too large for these bounds: {float(bound):.3g} grid steps, and the exact integer range ends at "
            f"{LARGEST_BOUND:.3g}. Lower it, or widen the bounds of a single value."
        )
    return steps
