"""Intervals that cover the released noise. What bounding did is added by `believed.py`."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from evenhand.guarantee import UsageError
from evenhand.noise import IntegerNoise, Laplace

Ends: TypeAlias = Any
"""A lower and an upper end; a list of such pairs for several columns, a frame for groups."""


class Interval(Protocol):
    """Something that turns a confidence into a lower and an upper end."""

    def at(self, confidence: float) -> Ends:
        """The interval that holds the bounded, noise-free value with at least this probability."""


def noise_only(interval: Interval) -> Interval:
    """The exact interval of the noise alone, around the bounded value as it was measured."""
    found: Interval = getattr(interval, "noise_only", interval)
    return found


def judged(interval: Interval) -> Interval:
    """What a verdict on the number reads: the interval, unless it is open because nothing is known."""
    found: Interval = getattr(interval, "judged", interval)
    return found


def why_not(interval: Interval) -> str:
    """Why the interval can't say where the truth is; empty if it can."""
    return str(getattr(interval, "why", ""))


def covers(interval: Interval) -> str:
    """What the interval covers, in words."""
    return str(getattr(interval, "covers", "covers the noise"))


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


class Derived(ABC):
    """A function of another interval, which knows what it covers."""

    interval: Interval

    @abstractmethod
    def of(self, interval: Interval) -> Interval:
        """The same function of another one."""

    @property
    def noise_only(self) -> Interval:
        """The noise alone."""
        return self.of(noise_only(self.interval))

    @property
    def judged(self) -> Interval:
        """What a verdict reads."""
        return self.of(judged(self.interval))

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        return covers(self.interval)

    @property
    def why(self) -> str:
        """Why the interval can't tell."""
        return why_not(self.interval)


@dataclass(frozen=True)
class Scaled(Derived):
    """Another interval, times a public number."""

    interval: Interval
    factor: float

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.interval.at(confidence)
        return low * self.factor, high * self.factor

    def of(self, interval: Interval) -> Interval:
        return Scaled(interval, self.factor)


class Fieller(ABC):
    """An interval of all m that the released numbers leave plausible (Fieller's method), as ``offset + unit·m``."""

    feasible: tuple[float, float]
    offset: float
    unit: float

    @property
    @abstractmethod
    def fraction(self) -> float:
        """The estimate of m."""

    @abstractmethod
    def plausible(self, m: float, confidence: float) -> bool:
        """Whether noise alone explains the released numbers, if m is true."""

    @property
    def value(self) -> float:
        """The released mean."""
        return self.offset + self.unit * self.fraction

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.feasible
        plausible = [*self._among(self._raster, confidence), self.fraction]
        step = (high - low) / _STEPS
        first = self._edge(min(plausible), -step, confidence)
        last = self._edge(max(plausible), step, confidence)
        return self.offset + self.unit * first, self.offset + self.unit * last

    @functools.cached_property
    def _raster(self) -> list[float]:
        low, high = self.feasible
        return [low + (high - low) * step / _STEPS for step in range(_STEPS + 1)]

    def _among(self, candidates: list[float], confidence: float) -> list[float]:
        """Those that are plausible."""
        return [m for m in candidates if self.plausible(m, confidence)]

    def _edge(self, inside: float, step: float, confidence: float) -> float:
        """From a plausible m, walk to where plausibility ends, by bisection; the outer side is returned."""
        outside = min(max(inside + step, self.feasible[0]), self.feasible[1])
        if self.plausible(outside, confidence):
            return outside
        for _ in range(50):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if self.plausible(middle, confidence) else (inside, middle)
        return outside


@dataclass(frozen=True)
class Ratio(Fieller):
    """A mean ``offset + unit·m`` with ``m = numerator/denominator``, both of them noisy (Fieller's method).

    At the true m the known quantity ``numerator − m·denominator`` is pure noise ``c₁(m)·Z₁ − c₂(m)·Z₂``. The interval holds
    every m for which the observed quantity is within that noise's quantile, so it covers both noises at once
    and widens to the whole range when the denominator is lost in noise.

    Args:
        numerator: noisy, as released.
        denominator: noisy, as released.
        noises: of the two released integers.
        feasible: the range of m.
        offset: the value at m = 0.
        unit: what one unit of m is worth.
        paired: the two released integers are the numerator and the rest of the denominator (c = 1 − m and m), not the
            numerator and the denominator (c = 1 and m).
        expected: about what the denominator should be, from another release; the estimate of m keeps it within half and
            twice this, so that an extreme draw can't make it arbitrarily large.
    """

    numerator: int
    denominator: int
    noises: tuple[IntegerNoise, IntegerNoise]
    feasible: tuple[float, float]
    offset: float
    unit: float
    paired: bool
    expected: float | None = None

    @property
    def fraction(self) -> float:
        """The estimate of m, inside its range; the middle when the denominator is lost in noise."""
        low, high = self.feasible
        if self._divisor <= 0:
            return (low + high) / 2
        return min(max(self.numerator / self._divisor, low), high)

    @property
    def _divisor(self) -> float:
        if self.expected is None:
            return self.denominator
        return min(max(self.denominator, self.expected / 2), self.expected * 2)

    @property
    def spread(self) -> float:
        """The standard deviation of the released mean, to first order; half the range at most."""
        low, high = self.feasible
        first, second = self._coefficients(self.fraction)
        deviation = math.hypot(first * self.noises[0].variance ** 0.5, second * self.noises[1].variance ** 0.5)
        return self.unit * min(deviation / max(self._divisor, 1), (high - low) / 2)

    def plausible(self, m: float, confidence: float) -> bool:
        return self._tail(m, abs(self.numerator - m * self.denominator)) >= 1 - confidence

    def _among(self, candidates: list[float], confidence: float) -> list[float]:
        return [m for m, tail in zip(candidates, self._tails, strict=True) if tail >= 1 - confidence]

    @functools.cached_property
    def _tails(self) -> list[float]:
        """Over the raster, once for every confidence."""
        return [self._tail(m, abs(self.numerator - m * self.denominator)) for m in self._raster]

    @functools.cached_property
    def _scales(self) -> tuple[float, float]:
        return float(self.noises[0].scale), float(self.noises[1].scale)

    @functools.cached_property
    def _laplace(self) -> bool:
        return all(isinstance(noise, Laplace) for noise in self.noises)

    def _coefficients(self, m: float) -> tuple[float, float]:
        return (1 - m, m) if self.paired else (1.0, abs(m))

    def _tail(self, m: float, distance: float) -> float:
        """P(|c₁·Z₁ − c₂·Z₂| > distance), at least."""
        first, second = (c * scale for c, scale in zip(self._coefficients(m), self._scales, strict=True))
        distance = max(distance - 2, 0)  # discrete noise is within a step of the continuous one, twice
        if self._laplace:
            return two_laplace_tail(first, second, distance)
        return two_gaussian_tail(first, second, distance)


def two_laplace_tail(first: float, second: float, distance: float) -> float:
    """P(|X + Y| > distance) for independent Laplace variables with these scales, not both 0."""
    large, small = max(first, second), min(first, second)
    tail = math.exp(-distance / large)
    if large - small < 1e-6 * large:
        return tail * (1 + distance / (2 * large))
    other = math.exp(-distance / small) if small > 0 else 0.0
    return (large**2 * tail - small**2 * other) / (large**2 - small**2)


def two_gaussian_tail(first: float, second: float, distance: float) -> float:
    """P(|X + Y| > distance) for independent normal variables with these standard deviations, not both 0."""
    return math.erfc(distance / (math.hypot(first, second) * math.sqrt(2)))


_STEPS = 400
