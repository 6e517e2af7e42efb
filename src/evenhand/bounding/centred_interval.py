"""Clip each user's mean to an interval about the middle: rameshwar2024, worst-case optimal when counts are public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.bounding.strategy import Contribution, Strategy, Summary, WeightedMean, clamp, parse_limit
from evenhand.bounding.total_cap import fitting
from evenhand.guarantee import Relation


@dataclass(frozen=True)
class CentredInterval(Strategy):
    """Let each user's sum range over an interval of length ``T`` about its middle; light users are not touched.

    With values in ``[0, U]`` a user with ``s`` rows contributes ``clip(sum, (U·s − T)/2, (U·s + T)/2)``. It shines when
    the mean is near the middle of the bounds, and is biased toward the middle when it is not.

    Guarantee: one user moves a sum by at most ``T`` under values. Under presence nothing is bounded, so it is refused:
    the interval of a user grows with the number of rows.

    Args:
        T: length of the interval, in the unit of a user's sum above the lower bound; chosen if left out.

    Reference: rameshwar2024, Theorem III.1. For several columns the paper's Lemma III.3 is false (docs/proofs/papers.md);
    each column is treated by itself with its share of ε instead.
    """

    T: Any = None
    title = "CentredInterval"

    def __post_init__(self) -> None:
        parse_limit(self.T, "CentredInterval", "units of a user's sum", largest=2**200)

    @property
    def parameter(self) -> Fraction | None:
        return parse_limit(self.T, "CentredInterval", "units of a user's sum", largest=2**200)

    def supports(self, relation: Relation) -> bool:
        return relation.counts_are_public

    def describe(self) -> str:
        length = "a chosen length" if self.parameter is None else f"length {float(self.parameter):g}"
        return f"each user's sum is clipped to an interval of {length} about its middle"

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        mean = self.of_mean(summary, relation)
        lifted = Summary(summary.rows, mean.value, summary.grid)
        return Contribution((lifted.total,), l1=mean.bound, l2_squared=mean.bound**2)

    def of_mean(self, summary: Summary, relation: Relation) -> WeightedMean:
        grid = summary.grid
        assert grid is not None
        assert self.parameter is not None
        length = fitting(self.parameter * grid.steps_per_unit, self.title)
        full = summary.rows * grid.width
        # Any lower end that depends on the public row count alone keeps the range at `length`; halves round down.
        low = ((full - length).cast("float64") / 2.0).floor().cast("int64")
        low = clamp(low, 0, full)
        return WeightedMean(clamp(summary.above, low, low + length), full, length)
