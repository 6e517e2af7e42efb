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


_BISECTIONS = 60
_DOUBLINGS = 2000  # from the smallest to the largest double


@dataclass(frozen=True)
class Quotient:
    """``numerator / denominator``, each with independent noise or public.

    At the true quotient m the known quantity ``A − m·B`` is pure noise. The interval holds every m for which it is within
    that noise's quantile (Fieller's method with the exact law), so it covers both noises at once. The quantile is a convex function of m
    (Bobkov 2010: quantiles of symmetric log-concave vectors are norms) and ``|A − m·B|`` is linear on either side of A/B, so what is
    plausible is one interval around A/B if B stands out from its noise. If it does not, no finite end can be stated on the side
    where m grows without limit.

    Args:
        numerator: as released.
        denominator: as released.
        nonnegative: neither can be negative before noise, so the quotient is not either.
    """

    numerator: Additive | Exact
    denominator: Additive | Exact
    nonnegative: bool

    @property
    def lost(self) -> bool:
        """Whether the denominator does not stand out from its noise, so that there is no estimate."""
        below = self.denominator.value if self.nonnegative else abs(self.denominator.value)
        return below <= _deviation(self.denominator)

    @property
    def value(self) -> float:
        """The estimate; NaN if the denominator is lost in noise."""
        if self.lost:
            return math.nan
        quotient = self.numerator.value / self.denominator.value
        return max(quotient, 0.0) if self.nonnegative else quotient

    @property
    def spread(self) -> float:
        """The standard deviation to first order; what it would be if the denominator just stood out, where it is lost."""
        below = max(abs(self.denominator.value), _deviation(self.denominator)) or 1.0
        quotient = self.numerator.value / below
        return math.hypot(_deviation(self.numerator), quotient * _deviation(self.denominator)) / below

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        return "covers the noise" + ("; the denominator does not stand out from its own" if self.lost else "")

    def at(self, confidence: float) -> tuple[float, float]:
        lowest = 0.0 if self.nonnegative else -math.inf
        below = self.denominator.value
        if not below:
            return lowest, math.inf
        if isinstance(self.denominator, Exact):
            ends = sorted(end / below for end in self.numerator.at(confidence))
            return max(ends[0], lowest), max(ends[1], lowest)
        estimate = max(self.numerator.value / below, lowest)
        if self._tail_of_one(abs(below)) < 1 - confidence:
            return self._edge(estimate, -1.0, confidence), self._edge(estimate, 1.0, confidence)
        if self.nonnegative and below > 0 and not self._plausible(0.0, confidence):
            return self._between(0.0, estimate, confidence), math.inf
        return lowest, math.inf

    def tail(self, m: float) -> float:
        """How probable it is that noise moves ``A − m·B`` further from 0 than it is, if m is true."""
        return self._tail(m, abs(self.numerator.value - m * self.denominator.value))

    def _edge(self, inside: float, side: float, confidence: float) -> float:
        """From the estimate, walk to where plausibility ends; the outer side is returned."""
        step = self.spread or abs(inside) * 1e-6 or 1e-300
        for _ in range(_DOUBLINGS):
            outside = inside + side * step
            if self.nonnegative and outside <= 0:
                return 0.0 if self._plausible(0.0, confidence) else self._between(0.0, inside, confidence)
            if not self._plausible(outside, confidence):
                return self._between(outside, inside, confidence)
            inside, step = outside, step * 2
        return side * math.inf

    def _between(self, outside: float, inside: float, confidence: float) -> float:
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if self._plausible(middle, confidence) else (inside, middle)
        return outside

    def _plausible(self, m: float, confidence: float) -> bool:
        distance = abs(self.numerator.value - m * self.denominator.value)
        # Discrete noise is within a step of the continuous one.
        slack = _unit(self.numerator) + abs(m) * _unit(self.denominator)
        return self._tail(m, max(distance - slack, 0.0)) >= 1 - confidence

    def _tail(self, m: float, distance: float) -> float:
        """P(|A's noise − m·B's noise| > distance), at least."""
        first, second = _scale(self.numerator), abs(m) * _scale(self.denominator)
        if not first and not second:
            return float(distance == 0)
        kinds = {type(part.noise) for part in (self.numerator, self.denominator) if isinstance(part, Additive)}
        if kinds == {Laplace}:
            return two_laplace_tail(first, second, distance)
        if Laplace not in kinds:
            return two_gaussian_tail(first, second, distance)
        # One of each: either exceeds its part of the distance.
        part = first / (first + second) * distance
        return _one_tail(self.numerator, first, part) + _one_tail(self.denominator, second, distance - part)

    def _tail_of_one(self, distance: float) -> float:
        """P(|B's noise| > distance), at least: what `_tail` comes to as m grows."""
        return _one_tail(self.denominator, _scale(self.denominator), max(distance - _unit(self.denominator), 0.0))


def _one_tail(part: Additive | Exact, scale: float, distance: float) -> float:
    if not scale:
        return 0.0
    laplace = isinstance(part, Additive) and isinstance(part.noise, Laplace)
    return (two_laplace_tail if laplace else two_gaussian_tail)(scale, 0.0, distance)


def _unit(part: Additive | Exact) -> float:
    return abs(part.unit) if isinstance(part, Additive) else 0.0


def _scale(part: Additive | Exact) -> float:
    return float(part.noise.scale) * _unit(part) if isinstance(part, Additive) else 0.0


def _deviation(part: Additive | Exact) -> float:
    return part.noise.variance**0.5 * _unit(part) if isinstance(part, Additive) else 0.0


_LEAST = 1e-9  # a large ε leaves no noise that doubles can tell from none


@dataclass(frozen=True)
class ResidualMean(Fieller):
    """A mean ``offset + unit·m`` from what three noisy numbers say about the total T and the rows N of a group.

    Around the second centre the unknowns are N and M = T − N·second. Released were ``first = M + gap·N + noise``, ``second = M + noise``
    and ``rows = N + noise``: three linear equations, solved by weighted least squares. So an error of the rows counts only in
    proportion to the distance from the second centre, and the change between the two centres says something about N as well.

    Args:
        first: distances from the first centre, in grid steps × rows.
        second: distances from the second centre.
        gap: the second centre minus the first, in grid steps.
        rows: the number of rows; exact if its noise is None.
        scales: what one step of noise in each of the three is worth.
        noises: of the three.
        feasible: the range of m, in grid steps from the second centre.
        offset: the value of the second centre.
        unit: what a grid step is worth.
    """

    first: float
    second: float
    gap: float
    rows: float
    scales: tuple[float, float, float]
    noises: tuple[IntegerNoise, IntegerNoise, IntegerNoise | None]
    feasible: tuple[float, float]
    offset: float
    unit: float

    @property
    def fraction(self) -> float:
        """The estimate of m; 0, the centre, when the rows are lost in noise."""
        low, high = self.feasible
        (distance, rows), _, deviation = self._solved
        if rows <= 2 * deviation:
            return min(max(0.0, low), high)
        return min(max(distance / rows, low), high)

    @property
    def spread(self) -> float:
        """The standard deviation of the released mean, to first order; half the range at most."""
        low, high = self.feasible
        (_, rows), _, deviation = self._solved
        variance = sum(
            (coefficient * self._deviation(index)) ** 2
            for index, coefficient in enumerate(self._coefficients(self.fraction))
        )
        if rows <= 2 * deviation:
            return self.unit * (high - low) / 2
        return self.unit * min(math.sqrt(variance) / rows, (high - low) / 2)

    def plausible(self, m: float, confidence: float) -> bool:
        (distance, rows), _, _ = self._solved
        scales = [abs(coefficient) * self._scale(index) for index, coefficient in enumerate(self._coefficients(m))]
        laplace = all(isinstance(noise, Laplace | None) for noise in self.noises)
        return _tail(scales, abs(distance - m * rows), laplace) >= 1 - confidence

    def _scale(self, index: int) -> float:
        noise = self.noises[index]
        return 0.0 if noise is None else float(noise.scale) * self.scales[index]

    def _deviation(self, index: int) -> float:
        noise = self.noises[index]
        return 0.0 if noise is None else math.sqrt(noise.variance) * self.scales[index]

    @functools.cached_property
    def _solved(self) -> tuple[tuple[float, float], list[tuple[float, float]], float]:
        """(M, N), how much each of the three numbers counts in them, and the standard deviation of N."""
        first, second = (1 / max(self._deviation(index), _LEAST) ** 2 for index in (0, 1))
        if self.noises[2] is None:
            both = first + second
            gains = [(first / both, 0.0), (second / both, 0.0), (-self.gap * first / both, 1.0)]
            deviation = 0.0
        else:
            third = 1 / max(self._deviation(2), _LEAST) ** 2
            mm, mn, nn = first + second, first * self.gap, third + first * self.gap**2
            determinant = mm * third + first * second * self.gap**2  # mm·nn − mn², without cancellation
            inverse = (nn / determinant, -mn / determinant, mm / determinant)
            gains = [
                (first * (inverse[0] + self.gap * inverse[1]), first * (inverse[1] + self.gap * inverse[2])),
                (second * inverse[0], second * inverse[1]),
                (third * inverse[1], third * inverse[2]),
            ]
            deviation = math.sqrt(max(inverse[2], 0.0))
        numbers = (self.first, self.second, self.rows)
        distance = sum(gain[0] * number for gain, number in zip(gains, numbers, strict=True))
        rows = sum(gain[1] * number for gain, number in zip(gains, numbers, strict=True))
        return (distance, rows), gains, deviation

    def _coefficients(self, m: float) -> list[float]:
        """How much each noise counts in M − m·N, which is 0 at the true m."""
        _, gains, _ = self._solved
        return [distance - m * rows for distance, rows in gains]


def _tail(scales: list[float], distance: float, laplace: bool) -> float:
    """P(|Σ scale·Z| > distance), at least, for independent Laplace (or normal) Z."""
    distance = max(distance - 2 * sum(scale > 0 for scale in scales), 0.0)
    positive = sorted((scale for scale in scales if scale > 0), reverse=True)
    if not positive:
        return 1.0 if distance == 0 else 0.0
    if not laplace:
        return math.erfc(distance / (math.sqrt(2) * math.hypot(*positive)))
    # Scales that are nearly equal are told apart upwards: the closed form divides by their differences.
    for index in range(len(positive) - 2, -1, -1):
        positive[index] = max(positive[index], positive[index + 1] * 1.01)
    tail = 0.0
    for scale in positive:
        factor = math.prod(scale**2 / (scale**2 - other**2) for other in positive if other != scale)
        tail += factor * math.exp(-distance / scale)
    return min(tail, 1.0)
