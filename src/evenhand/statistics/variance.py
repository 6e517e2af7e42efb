"""The variance of a column: about its mean (`about_mean.py`), or by group two moments about the middle of the range, released together.

For values in ``[lo, hi]`` with middle ``c`` the variance is ``E(x−c)² − (E x − c)²``. About the middle the squares span the
smallest possible range, ``(B/2)²``, so they need the least noise that holds for every table. Each moment is a weighted
mean released as a pair (docs/proofs/mean-pair.md); the four integers share one L1 bound, three quarters of it for the squares,
whose noise enters the variance in full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.guarantee import Relation
from evenhand.noise import IntegerNoise
from evenhand.release import OfDeviation, Ratio, Rule
from evenhand.statistics.about_mean import VarianceInterval, variance_about_mean
from evenhand.statistics.draft import Draft
from evenhand.statistics.mean import Mean
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables.expressions import Integers

if TYPE_CHECKING:
    from evenhand.statistics.part import Part

_SQUARES = 3  # grid steps of the squares for one of the values


@dataclass(frozen=True)
class Variance(Mean):
    """The variance of a column over rows.

    Without groups and with a chosen bound: 15% of ε for a histogram of users by rows, a seventh of the rest for the mean, then squared
    distances from the released mean. By group, in ``aggregate`` and under a given bound: two weighted means, of values and of squared distances from the middle of the
    bounds, whose noise is many times larger.

    Interval: those of both means, each with half of the allowed failure probability, combined for the worst case; wider than necessary.

    Edge cases: never negative; near zero, not zero, for a constant column.

    Proof: variance, row-weights.
    """

    name = "variance"
    planned_as = None
    unit_power = 2
    noise_power = 2

    def ungrouped(self, request: Request) -> Draft | None:
        """Around the mean, where nothing is said about the bound."""
        if request.named is not None:
            return None
        return variance_about_mean(self, self.column, self.range, request)

    @property
    def rule(self) -> Rule:
        return OfDeviation()

    def road_for(self, request: Request) -> type[Part] | None:
        return None

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("above", "below", "square", "rest")

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        import ibis

        top, half = self.grid.top, self.grid.top / 2
        part = (values[0].cast("float64") - half) / half
        square = (part * part * float(_SQUARES * top) + 0.5).floor().cast("int64")
        square = ibis.least(ibis.greatest(square, 0), _SQUARES * top)
        both = super().integers(weight, values)
        return {
            "above": both["above"],
            "below": both["below"],
            "square": square * weight,
            "rest": (_SQUARES * top - square) * weight,
        }

    def reach(self, relation: Relation) -> int:
        """Under presence the four integers of a row add up to this; under values each pair moves by twice its range."""
        return (1 + _SQUARES) * self.grid.top * relation.moves

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        low, width = self.range[0], self.range[1] - self.range[0]
        noises, middle = (noise, noise), low + width / 2
        mean = Ratio(sums["above"], sums["above"] + sums["below"], noises, (0.0, 1.0), low, width, paired=True)
        square = Ratio(
            sums["square"], sums["square"] + sums["rest"], noises, (0.0, 1.0), 0.0, (width / 2) ** 2, paired=True
        )
        distance = mean.value - middle
        spread = math.hypot(square.spread, 2 * distance * mean.spread)  # squares of squares would overflow
        value = max(square.value - distance**2, 0.0)
        rows = max(sums["above"] + sums["below"], 0) / (self.grid.top * FULL)
        return Estimate(value, VarianceInterval(mean, square, middle, (width / 2) ** 2), spread, rows)
