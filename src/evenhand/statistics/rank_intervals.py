"""Intervals of quantiles in the unit of the value, from the ends that the search found."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.release import Interval, Unknown
from evenhand.statistics.ends import CONFIDENCE, Reach
from evenhand.tables import Grid


@dataclass(frozen=True)
class RankInterval:
    """Which values may be a quantile of one group: those whose rank is within the noise, and within what bounding may do.

    The ends were chosen for a confidence of 95%; for another one they lie nearer or further in proportion to the ranks that it allows.

    Args:
        grid: where the points are.
        point: the answer.
        ends: for 95%.
        reach: how far its rank may be off; None if the group is lost in noise.
        bounded: whether what bounding did to the rank is covered too.
    """

    grid: Grid
    point: int
    ends: tuple[int, int]
    reach: Reach | None
    bounded: bool = True

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        return (
            "covers the noise and, by a prior about how far busy users differ, the bound"
            if self.bounded
            else "covers the noise, about: its ends are those for noise and bound, scaled by how far ranks may be off"
        )

    @property
    def why(self) -> str:
        """Why the interval can't tell."""
        everything = self.ends == (0, self.grid.width)
        return "too few people for this ε: the value may lie anywhere between the bounds" if everything else ""

    @property
    def noise_only(self) -> RankInterval:
        """The noise alone."""
        return replace(self, bounded=False)

    @property
    def value(self) -> float:
        """The quantile."""
        return self._value(self.point)

    @property
    def spread(self) -> float:
        """Half the 68% interval: a standard deviation, in the unit of the value."""
        low, high = self.at(0.68)
        return (high - low) / 2

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = (
            self.point + (end - self.point) * self._part(confidence, above)
            for end, above in zip(self.ends, (False, True), strict=True)
        )
        # A value counts at the nearest point of the grid; at its ends are all values beyond.
        return (
            self.grid.low if low <= 0 else self._value(low - 0.5),
            self.grid.high if high >= self.grid.width else self._value(high + 0.5),
        )

    def _part(self, confidence: float, above: bool) -> float:
        """How far an end lies from the answer, as a part of that for 95%."""
        if self.reach is None:
            return 1.0
        return self.reach.at(confidence, above, self.bounded) / self.reach.at(CONFIDENCE, above)

    def _value(self, point: float) -> float:
        """A point in the unit of the column, inside the bounds."""
        return min(max(self.grid.origin + self.grid.units(point), self.grid.low), self.grid.high)


def rank_interval(interval: RankInterval, known: bool) -> Interval:
    """The interval, if something is ``known`` about what the bound did; else one that says that nothing is."""
    if known:
        return interval
    words = "the bound was given and nothing is known about what it did: the value may lie anywhere between the bounds"
    return Unknown(interval.noise_only, words, interval.grid.low, interval.grid.high)
