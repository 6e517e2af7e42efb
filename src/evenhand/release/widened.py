"""An interval of noise, widened by what bounding may have done: in either direction, or as a model says beyond bounds that were found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from evenhand.release.believed import Array, quantile
from evenhand.release.intervals import Derived, Interval, covers, judged, noise_only, why_not


@dataclass(frozen=True)
class Widened:
    """A noise interval and an independent error with mean 0: what reaches beyond the value on each side adds in squares.

    For normal noise and a normal error this is exact. Heavier tails of the noise make it a little too wide.

    Args:
        noise_only: the exact interval of the bounded value.
        value: inside it, as released.
        deviation: the standard deviation of what bounding did.
        covers: what the interval covers, in one plain sentence that names the model.
        feasible: where the truth lies, as public facts say.
        why: why the model can't tell; empty if it can.
    """

    noise_only: Interval
    value: float
    deviation: float
    covers: str
    feasible: tuple[float, float] = (-math.inf, math.inf)
    why: str = ""

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.noise_only.at(confidence)
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * self.deviation
        return _within(
            self.value - math.hypot(max(self.value - low, 0.0), reach),
            self.value + math.hypot(max(high - self.value, 0.0), reach),
            self.feasible,
        )


@dataclass(frozen=True)
class Beyond(Derived):
    """Another interval, and an independent amount that was cut off: what reaches beyond the value on each side adds in squares.

    Args:
        interval: of the value without the amount.
        value: inside it.
        amounts: what may have been cut off, increasing.
        weights: how much each is believed in; they add up to 1.
        added: what the released value was corrected by.
        words: what the amounts are, in one plain sentence that names the model; empty if the other interval says it.
        reason: why the model can't tell; empty if it can.
        feasible: where the truth lies, as public facts say.
    """

    interval: Interval
    value: float
    amounts: Array
    weights: Array
    added: float
    words: str
    reason: str = ""
    feasible: tuple[float, float] = (-math.inf, math.inf)

    @property
    def noise_only(self) -> Interval:
        return noise_only(self.interval)

    @property
    def judged(self) -> Interval:
        inner = judged(self.interval)
        return self if inner is self.interval else inner

    @property
    def covers(self) -> str:
        return "; ".join(filter(None, (covers(self.interval), self.words)))

    @property
    def why(self) -> str:
        return "; ".join(filter(None, (why_not(self.interval), self.reason)))

    def of(self, interval: Interval) -> Interval:
        return replace(self, interval=interval)

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.interval.at(confidence)
        few, many = (quantile(self.amounts, self.weights, (1 + side * confidence) / 2) for side in (-1, 1))
        below = math.hypot(max(self.value - low, 0.0), max(self.added - few, 0.0))
        above = math.hypot(max(high - self.value, 0.0), max(many - self.added, 0.0))
        return _within(self.value + self.added - below, self.value + self.added + above, self.feasible)


def _within(low: float, high: float, feasible: tuple[float, float]) -> tuple[float, float]:
    """The part of an interval that is feasible; all that is, if noise put the whole of it elsewhere."""
    least, most = max(low, feasible[0]), min(high, feasible[1])
    return (least, most) if least <= most else feasible
