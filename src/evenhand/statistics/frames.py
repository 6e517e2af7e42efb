"""Grouped results as frames: keys first, then values; the same with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.release import Ends, Interval
from evenhand.release.believed import ends_of
from evenhand.release.intervals import covers, judged, noise_only, why_not
from evenhand.statistics.keys import Labels
from evenhand.statistics.statistic import Estimate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class GroupedInterval:
    """Intervals of all groups, as a frame with ``name``, ``name_low`` and ``name_high``."""

    labels: Labels
    estimates: Mapping[str, Sequence[Estimate]]

    def each(self, name: str) -> list[Interval]:
        """The interval of every group, of one column."""
        return [estimate.interval for estimate in self.estimates[name]]

    @property
    def covers(self) -> str:
        """What the intervals cover, in words."""
        return _covers([estimate.interval for column in self.estimates.values() for estimate in column[:1]])

    @property
    def noise_only(self) -> GroupedInterval:
        """The noise alone."""
        return self._each(noise_only)

    @property
    def judged(self) -> GroupedInterval:
        """What a verdict reads."""
        return self._each(judged)

    @property
    def whys(self) -> dict[str, list[str]]:
        """By column, why the interval of a group can't tell; empty where it can."""
        return {name: [why_not(estimate.interval) for estimate in column] for name, column in self.estimates.items()}

    def _each(self, of: Callable[[Interval], Interval]) -> GroupedInterval:
        changed = {
            name: [replace(estimate, interval=of(estimate.interval)) for estimate in column]
            for name, column in self.estimates.items()
        }
        return GroupedInterval(self.labels, changed)

    @property
    def sizes(self) -> dict[str, list[float | None]]:
        """About how many rows each estimate is about, where that is released."""
        return {name: [estimate.rows for estimate in column] for name, column in self.estimates.items()}

    def at(self, confidence: float) -> Ends:
        columns: dict[str, list[float]] = {}
        for name, estimates in self.estimates.items():
            ends = ends_of([estimate.interval for estimate in estimates], confidence)
            columns[name] = [estimate.value for estimate in estimates]
            columns[f"{name}_low"] = [low for low, _ in ends]
            columns[f"{name}_high"] = [high for _, high in ends]
        return frame(self.labels, columns)


@dataclass(frozen=True)
class ListedInterval:
    """Intervals of several columns, as a list of pairs."""

    intervals: Sequence[Interval]

    @property
    def covers(self) -> str:
        """What the intervals cover, in words."""
        return _covers(self.intervals)

    @property
    def noise_only(self) -> ListedInterval:
        """The noise alone."""
        return ListedInterval([noise_only(interval) for interval in self.intervals])

    @property
    def judged(self) -> ListedInterval:
        """What a verdict reads."""
        return ListedInterval([judged(interval) for interval in self.intervals])

    @property
    def whys(self) -> list[str]:
        """Why each can't tell; empty where it can."""
        return [why_not(interval) for interval in self.intervals]

    def at(self, confidence: float) -> Ends:
        return [interval.at(confidence) for interval in self.intervals]


def _covers(intervals: Sequence[Interval]) -> str:
    words = dict.fromkeys(covers(interval) for interval in intervals)
    return "; ".join(words) or "covers the noise"


def frame(labels: Labels, columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """A pandas frame: one row per group, the keys in the order given."""
    import pandas as pd

    key_columns = {name: [row[index] for row in labels.rows] for index, name in enumerate(labels.columns)}
    return pd.DataFrame({**key_columns, **columns})
