"""Intervals of quantiles in the unit of the value: a band of ranks, turned into values by the released shape of the column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Any

from evenhand.release import Ends
from evenhand.statistics.finding import Points
from evenhand.statistics.frames import frame
from evenhand.statistics.keys import Keys
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
    """Which values may be the quantiles: those whose rank is within the noise, and within what bounding may do.

    The shape and the weight of each group are released numbers, so the intervals cost nothing. They assume that the rows
    of a group are not much less dense around its quantile than those of all groups together.

    Args:
        grid: where the points are.
        known: the search's shape of the column, and the weight of each group.
        found: by name.
        keys: the groups; without columns for one answer without groups.
        single: the value is a number, not a list.
    """

    grid: Grid
    known: Points
    found: Mapping[str, Found]
    keys: Keys
    single: bool

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        known = all(one.bias is not None for one in self.found.values())
        bounded = (
            "covers the noise and, by a prior, the bound" if known else "covers the noise; the bound may add to it"
        )
        return f"{bounded}; from the released shape of the column"

    @property
    def bias_known(self) -> bool:
        """Whether the bound was chosen from a profile, which says how far it may move ranks."""
        return all(one.bias is not None for one in self.found.values())

    @property
    def released(self) -> Any:  # noqa: ANN401 - as in `Outcome`
        """The value: a number, a list, or a frame."""
        columns = {name: [self.value(point) for point in found.points] for name, found in self.found.items()}
        if self.keys.columns:
            return frame(self.keys, columns)
        several = [column[0] for column in columns.values()]
        return several[0] if self.single else several

    def ends(self, found: Found, group: int, confidence: float) -> tuple[float, float]:
        """The interval of one quantile in one group."""
        low, high = self.known.shape.around(found.points[group], self._reach(found, group, confidence))
        values = self.value(low), self.value(high)
        return values[0] if low else self.grid.low, values[
            1
        ] if high < self.known.shape.tree.points - 1 else self.grid.high

    def value(self, point: int) -> float:
        """A point in the unit of the column, inside the bounds."""
        return min(max(self.grid.origin + self.grid.units(point), self.grid.low), self.grid.high)

    def spread(self, found: Found) -> float:
        """Half the 68% interval of a typical group: a standard deviation, in the unit of the value."""
        ends = [self.ends(found, group, 0.68) for group in range(len(found.points))]
        return median([(high - low) / 2 for low, high in ends])

    def at(self, confidence: float) -> Ends:
        pairs = {
            name: [self.ends(found, group, confidence) for group in range(len(found.points))]
            for name, found in self.found.items()
        }
        if not self.keys.columns:
            several = [column[0] for column in pairs.values()]
            return several[0] if self.single else several
        columns: dict[str, list[float]] = {}
        for name, found in self.found.items():
            columns[name] = [self.value(point) for point in found.points]
            columns[f"{name}_low"] = [low for low, _ in pairs[name]]
            columns[f"{name}_high"] = [high for _, high in pairs[name]]
        return frame(self.keys, columns)

    def _reach(self, found: Found, group: int, confidence: float) -> float:
        """How far, as a share of the group's rows, the true rank may be from the chosen point's."""
        slack = 0.0 if self.known.noise is None else math.sqrt(self.known.noise.noise.variance)
        weight = self.known.weights[group] - slack
        if weight <= 0:
            return math.inf
        noise = found.scale * math.log(1 / (1 - confidence)) / weight
        bounded = NormalDist().inv_cdf((1 + confidence) / 2) * (found.bias or 0.0)
        return math.hypot(noise, bounded) * _THINNER
