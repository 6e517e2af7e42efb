"""The quotient of two numbers whose intervals cover noise and bounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.release.intervals import Interval, judged, why_not
from evenhand.release.quotient import Quotient


@dataclass(frozen=True)
class BelievedRatio:
    """A quotient of corrected numbers. How far each of the two may be off moves it by itself, and what both do adds in squares.

    The same users are cut in both, so that their losses partly cancel; that is not counted on, which makes it rather too wide.

    Args:
        noise_only: the quotient as it was measured, with the interval of both noises.
        above: the corrected numerator.
        below: the corrected denominator.
        numerator: its interval.
        denominator: its interval.
        covers: what the interval covers, in words.
    """

    noise_only: Quotient
    above: float
    below: float
    numerator: Interval
    denominator: Interval
    covers: str

    @property
    def value(self) -> float:
        """The corrected quotient; NaN if the denominator is lost in noise."""
        if self.noise_only.lost or not self.below:
            return math.nan
        quotient = self.above / self.below
        return max(quotient, 0.0) if self.noise_only.nonnegative else quotient

    @property
    def why(self) -> str:
        """Why the interval can't tell."""
        return why_not(self.numerator) or why_not(self.denominator)

    @property
    def judged(self) -> Interval:
        """What a verdict reads: the noise, where nothing is known about what a given bound took."""
        known = all(judged(part) is part for part in (self.numerator, self.denominator))
        return self if known else self.noise_only

    def at(self, confidence: float) -> tuple[float, float]:
        value, noise = self.value, self.noise_only.at(confidence)
        least, most = self.denominator.at(confidence)
        if not math.isfinite(value) or not all(map(math.isfinite, noise)) or least <= 0:
            return noise
        low, high = self.numerator.at(confidence)
        below = min(max(self.below, least), most)
        up, down = below / least - 1, 1 - below / most
        up, down = (up, down) if value >= 0 else (down, up)
        first = value - math.hypot(max(self.above - low, 0.0) / below, abs(value) * down)
        last = value + math.hypot(max(high - self.above, 0.0) / below, abs(value) * up)
        return (max(first, 0.0) if self.noise_only.nonnegative else first), last
