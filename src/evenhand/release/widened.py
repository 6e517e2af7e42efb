"""An interval of noise, widened on both sides by what bounding may have done in either direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from evenhand.release.intervals import Interval


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
        least, most = self.feasible
        return (
            max(self.value - math.hypot(max(self.value - low, 0.0), reach), least),
            min(self.value + math.hypot(max(high - self.value, 0.0), reach), most),
        )
