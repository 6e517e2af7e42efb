"""Intervals of quantiles in the unit of the value: a band of ranks, turned into values by the released shape of the column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from evenhand.statistics.finding import Points
from evenhand.tables import Grid

_THINNER = 1.5
"""How much less dense than in the released shape the rows around the answer may be."""


@dataclass(frozen=True)
class Found:
    """The points chosen for one quantile, group by group.

    Args:
        points: on the grid.
        scale: of the rank error, in weight.
        bias: how far bounding may move the rank, one standard deviation, as a share of the rows; None if nothing is known.
    """

    points: Sequence[int]
    scale: float
    bias: float | None


@dataclass(frozen=True)
class RankInterval:
    """Which values may be a quantile of one group: those whose rank is within the noise, and within what bounding may do.

    The shape and the weight of each group are released numbers, so the interval costs nothing. It assumes that the rows
    of a group are not much less dense around its quantile than those of all groups together.

    Args:
        grid: where the points are.
        known: the search's shape of the column, and the weight of each group.
        found: the points of this quantile.
        group: which group.
    """

    grid: Grid
    known: Points
    found: Found
    group: int

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        known = self.found.bias is not None
        bounded = (
            "covers the noise and, by a prior, the bound" if known else "covers the noise; the bound may add to it"
        )
        return f"{bounded}; from the released shape of the column"

    @property
    def value(self) -> float:
        """The quantile."""
        return self._value(self.found.points[self.group])

    @property
    def spread(self) -> float:
        """Half the 68% interval: a standard deviation, in the unit of the value."""
        low, high = self.at(0.68)
        return (high - low) / 2

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.known.shape.around(self.found.points[self.group], self._reach(confidence))
        last = self.known.shape.tree.points - 1
        return self._value(low) if low else self.grid.low, self._value(high) if high < last else self.grid.high

    def _value(self, point: int) -> float:
        """A point in the unit of the column, inside the bounds."""
        return min(max(self.grid.origin + self.grid.units(point), self.grid.low), self.grid.high)

    def _reach(self, confidence: float) -> float:
        """How far, as a share of the group's rows, the true rank may be from the chosen point's."""
        slack = 0.0 if self.known.noise is None else math.sqrt(self.known.noise.noise.variance)
        weight = self.known.weights[self.group] - slack
        if weight <= 0:
            return math.inf
        noise = self.found.scale * math.log(1 / (1 - confidence)) / weight
        bounded = NormalDist().inv_cdf((1 + confidence) / 2) * (self.found.bias or 0.0)
        return math.hypot(noise, bounded) * _THINNER
