"""The standard deviation of a column: the root of the variance, and nothing else that is private."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.noise import IntegerNoise
from evenhand.release import Interval
from evenhand.release.intervals import Derived
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.variance import Variance


@dataclass(frozen=True)
class RootInterval(Derived):
    """The interval of a quantity that is not negative, for its root: roots keep the order, so it covers as often."""

    interval: Interval

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.interval.at(confidence)
        return math.sqrt(max(low, 0.0)), math.sqrt(high)

    def of(self, interval: Interval) -> Interval:
        return RootInterval(interval)


@dataclass(frozen=True)
class Std(Variance):
    """The standard deviation of a column over rows."""

    name = "std"
    unit_power = 1

    @property
    def words(self) -> str:
        return f"standard deviation of {self.column}"

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        variance = super().read(sums, noise)
        value = math.sqrt(variance.value)
        # To first order the root has the noise of the variance over twice the root. Near zero that says nothing, but
        # |√(v + e) − √v| ≤ √|e| holds everywhere.
        spread = min(variance.noise / (2 * value) if value else math.inf, math.sqrt(variance.noise))
        return Estimate(value, RootInterval(variance.interval), spread, variance.rows)
