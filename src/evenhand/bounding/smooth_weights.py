"""Weigh every row of a heavy user less, instead of dropping rows: epasto2020 section 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.bounding.strategy import (
    Contribution,
    Strategy,
    Summary,
    WeightedMean,
    ceil,
    clamp,
    parse_limit,
)
from evenhand.guarantee import Relation


@dataclass(frozen=True)
class SmoothWeights(Strategy):
    """Use all rows of each user, weighed so that together they count as at most ``h`` rows: ``min(h, s)·mean``.

    Guarantee: one user moves a sum by at most ``h·max(|lo|, |hi|)`` under presence and ``h·(hi − lo)`` under values; the
    pair that makes a mean by ``h·(hi − lo)`` in L1 norm under both.

    Args:
        h: the number of rows that one user may count for, any positive number; chosen if left out.

    Reference: epasto2020, section 3.1, Lemma 3.
    """

    h: Any = None
    title = "SmoothWeights"

    def __post_init__(self) -> None:
        parse_limit(self.h, "SmoothWeights", "rows per user")

    @property
    def parameter(self) -> Fraction | None:
        return parse_limit(self.h, "SmoothWeights", "rows per user")

    def describe(self) -> str:
        limit = "a chosen number of" if self.parameter is None else f"{float(self.parameter):g}"
        return f"all rows of a user are used, weighed to count as at most {limit} rows"

    def of_count(self, summary: Summary) -> Contribution:
        bound = ceil(self._limit)
        return Contribution((clamp(summary.rows, 0, bound),), l1=bound, l2_squared=bound**2)

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        import ibis

        grid = summary.grid
        assert grid is not None
        mean = self.of_mean(summary, relation)
        # min(h, s) rows at the lower bound; the floor keeps both engines on the same integer.
        full = int(self._limit * grid.bottom // 1)
        floor = (summary.rows <= float(self._limit)).ifelse(
            ibis.least(summary.rows, ceil(self._limit)) * grid.bottom, full
        )
        reach = ceil(self._limit * grid.reach) + 1  # one step for the two roundings
        moves = reach if relation is Relation.PRESENCE else mean.bound
        return Contribution((clamp(mean.value + floor, -reach, reach),), l1=moves, l2_squared=moves**2)

    def of_mean(self, summary: Summary, relation: Relation) -> WeightedMean:
        grid = summary.grid
        assert grid is not None
        bound = ceil(self._limit * grid.width)
        whole = summary.rows <= math.floor(self._limit)
        # Doubles are enough here: the clamp makes the bound exact, and IEEE division is the same on every engine.
        # With more rows than the limit the quotient is below the sum, so it fits 64 bits.
        shrunk = (summary.above.cast("float64") * float(self._limit) / summary.rows.cast("float64")).floor()
        value = whole.ifelse(summary.above, shrunk)
        weight = whole.ifelse(summary.rows * grid.width, bound)
        return WeightedMean(clamp(value, 0, bound), clamp(weight, 0, bound), bound)

    @property
    def _limit(self) -> Fraction:
        assert self.parameter is not None
        return self.parameter
