"""Quantiles and their intervals in the unit of the value, from how likely each is to lie below points of the grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from evenhand.profiles import Array
from evenhand.release import Interval, Unknown
from evenhand.statistics.cell_weights import Edges
from evenhand.statistics.rank_search import Found
from evenhand.tables import Grid

_SHORTEST, _LONGEST = -15, 15  # decimals of a number that stands for all near a point


@dataclass(frozen=True)
class RankInterval:
    """Which values may be a quantile of one group.

    Args:
        grid: where the points are.
        edges: points.
        reached: how likely the quantile lies below each of them: the standard normal variable that lies below this number as likely.
        by_noise: the same for the noise alone.
        point: the answer.
        bounded: whether what bounding did to the rank is covered.
        exact: whether every value is a point of the grid.
        beyond: between which numbers the values lie that count at the ends of the grid, if not between those ends.
    """

    grid: Grid
    edges: Edges
    reached: Array
    by_noise: Array
    point: int
    bounded: bool = True
    exact: bool = False
    beyond: tuple[float, float] | None = None

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        return (
            "covers the noise and, by a prior about how far busy users differ, the bound; one user with a large part of all rows may hide from it"
            if self.bounded
            else "covers the noise"
        )

    @property
    def why(self) -> str:
        """Why the interval can't tell."""
        if self.at(0.95) == self._anywhere:
            return "too few people for this ε: the value may lie anywhere between the bounds"
        return ""

    @property
    def _anywhere(self) -> tuple[float, float]:
        """Where any value lies."""
        return self.beyond or (self.grid.low, self.grid.high)

    @property
    def noise_only(self) -> RankInterval:
        """The noise alone."""
        return replace(self, reached=self.by_noise, bounded=False)

    @property
    def value(self) -> float:
        """The quantile: of the values that count at its point, one with the fewest decimals."""
        exactly = self._value(self.point)
        near = (round(exactly, decimals) for decimals in range(_SHORTEST, _LONGEST))
        half = 0.0 if self.exact else self.grid.units(Fraction(1, 2))
        low, high = max(exactly - half, self.grid.low), min(exactly + half, self.grid.high)
        return next((one for one in near if low <= one <= high), exactly)

    @property
    def spread(self) -> float:
        """By the noise alone, half of what lies between one standard deviation below and above, in the unit of the value."""
        rise = 1e-9 * np.arange(len(self.edges))
        low, high = np.interp([-1, 1], self.by_noise + rise, self.edges)
        return self.grid.units(float(high - low)) / 2

    def at(self, confidence: float) -> tuple[float, float]:
        # Nothing is known about how values lie within a cell, so an interval ends where a cell does.
        sure = NormalDist().inv_cdf((1 + confidence) / 2)
        low = min(self.edges[max(int(np.searchsorted(self.reached, -sure, side="right")) - 1, 0)], self.point)
        high = max(self.edges[min(int(np.searchsorted(self.reached, sure)), len(self.edges) - 1)] - 1, self.point)
        # A value counts at the nearest point of the grid; at its ends are all values beyond.
        half = 0.0 if self.exact else 0.5
        lowest, highest = self._anywhere
        return (
            lowest if low <= 0 else self._value(float(low) - half),
            highest if high >= self.grid.width else self._value(float(high) + half),
        )

    def _value(self, point: float) -> float:
        """A point in the unit of the column, inside the bounds."""
        return min(max(self.grid.origin + self.grid.units(point), self.grid.low), self.grid.high)


def rank_intervals(grid: Grid, found: Found, q: Fraction, exact: bool, bounded: bool) -> list[RankInterval]:
    """Of one quantile, by group."""
    both, noise, edges = found.reached()[q], found.reached(bounded=False)[q], found.weights.edges
    each = zip(edges, both, noise, found.points()[q], strict=True)
    return [RankInterval(grid, *one, bounded=bounded, exact=exact) for one in each]


def rank_interval(interval: RankInterval, known: bool) -> Interval:
    """The interval, if something is ``known`` about what the bound did; else one that says that nothing is."""
    if known:
        return interval
    words = "the bound was given and nothing is known about what it did: the value may lie anywhere between the bounds"
    return Unknown(interval.noise_only, words, interval.grid.low, interval.grid.high)
