"""The standard deviation of a column: the root of the variance, and nothing else that is private."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from evenhand.noise import IntegerNoise
from evenhand.release import Error, Interval, Receipt
from evenhand.release.intervals import Derived
from evenhand.statistics.believed_means import corrected
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.request import Request
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
    """The standard deviation of a column over rows: the root of the variance, and so are the ends of its interval.

    Proof: variance.
    """

    name = "std"
    unit_power = 1

    @property
    def words(self) -> str:
        return f"standard deviation of {self.column}"

    def ungrouped(self, request: Request) -> Draft | None:
        draft = super().ungrouped(request)

        def run(receipt: Receipt) -> Outcome:
            assert draft is not None
            variance = draft.run(receipt)
            details = dict(variance.details)
            value, noise = _root(variance.value, variance.error.noise or 0.0)
            if "correction" in details:
                details["correction"] = corrected(math.sqrt(max(details["correction"]["measured"], 0.0)), value, noise)
            error = Error(noise, None, variance.error.basis)
            return replace(
                variance, value=value, interval=RootInterval(variance.interval), error=error, details=details
            )

        return None if draft is None else replace(draft, run=run)

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        variance = super().read(sums, noise)
        value, spread = _root(variance.value, variance.noise)
        return Estimate(value, RootInterval(variance.interval), spread, variance.rows)


def _root(variance: float, error: float) -> tuple[float, float]:
    """The root, and the standard deviation of its error: to first order that of the variance over twice the root.

    Near zero that says nothing, but |√(v + e) − √v| ≤ √|e| holds everywhere.
    """
    value = math.sqrt(variance)
    return value, min(error / (2 * value) if value else math.inf, math.sqrt(error))
