"""Intervals that cover the released noise. They say nothing about bias: that stands beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from evenhand.guarantee import UsageError
from evenhand.noise import IntegerNoise, Laplace


class Interval(Protocol):
    """Something that turns a confidence into a lower and an upper end."""

    def at(self, confidence: float) -> tuple[float, float]:
        """The interval that holds the bounded, noise-free value with at least this probability."""


def check_confidence(confidence: float) -> float:
    """Read a confidence in (0, 1)."""
    if not (isinstance(confidence, int | float) and 0 < confidence < 1):
        raise UsageError(f"interval({confidence!r}): expected a confidence between 0 and 1, such as 0.95.")
    return float(confidence)


@dataclass(frozen=True)
class Exact:
    """No noise: the value is public."""

    value: float

    def at(self, confidence: float) -> tuple[float, float]:
        return self.value, self.value


@dataclass(frozen=True)
class Additive:
    """A value with integer noise, in units of ``unit``; clipped to a feasible range where there is one."""

    value: float
    noise: IntegerNoise
    unit: float
    feasible: tuple[float, float] = (-math.inf, math.inf)

    def at(self, confidence: float) -> tuple[float, float]:
        radius = self.noise.radius(confidence) * self.unit
        low, high = self.feasible
        return min(max(self.value - radius, low), high), max(min(self.value + radius, high), low)


@dataclass(frozen=True)
class Ratio:
    """A mean ``low + width·a/(a + b)`` whose two parts each carry noise (Fieller's argument).

    At the true fraction m the known quantity ``(1 − m)·a − m·b`` is pure noise ``(1 − m)·Z₁ − m·Z₂``. The interval holds
    every m for which the observed quantity is within that noise's quantile, so it covers both noises at once
    and widens to the whole range when the weight is drowned.
    """

    a: int
    b: int
    noise: IntegerNoise
    low: float
    width: float

    def at(self, confidence: float) -> tuple[float, float]:
        plausible = [m / _POINTS for m in range(_POINTS + 1) if self._within(m / _POINTS, confidence)]
        guess = self._fraction()
        if not plausible:
            plausible = [guess]
        first = self._edge(min(*plausible, guess), -1 / _POINTS, confidence)
        last = self._edge(max(*plausible, guess), 1 / _POINTS, confidence)
        return self.low + self.width * first, self.low + self.width * last

    def _fraction(self) -> float:
        weight = self.a + self.b
        return min(max(self.a / weight, 0.0), 1.0) if weight > 0 else 0.5

    def _within(self, m: float, confidence: float) -> bool:
        return self._tail(m, abs((1 - m) * self.a - m * self.b)) >= 1 - confidence

    def _edge(self, inside: float, step: float, confidence: float) -> float:
        """Walk from a plausible fraction to where plausibility ends, by bisection."""
        outside = min(max(inside + step, 0.0), 1.0)
        if self._within(outside, confidence):
            return outside
        for _ in range(50):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if self._within(middle, confidence) else (inside, middle)
        return outside

    def _tail(self, m: float, distance: float) -> float:
        """P(|(1 − m)·Z₁ − m·Z₂| > distance), at least."""
        scale, large, small = float(self.noise.scale), max(m, 1 - m), min(m, 1 - m)
        if not isinstance(self.noise, Laplace):
            return math.erfc(max(distance - 1, 0) / (scale * math.hypot(large, small) * math.sqrt(2)))
        distance = max(distance - 1, 0)  # the discrete noise is within one step of the continuous one
        first = math.exp(-distance / (scale * large))
        if large - small < 1e-9:
            return first * (1 + distance / (2 * scale * large))
        second = math.exp(-distance / (scale * small)) if small > 0 else 0.0
        return (large**2 * first - small**2 * second) / (large**2 - small**2)


_POINTS = 400
