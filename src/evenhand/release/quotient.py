"""The quotient of two released numbers, and the interval that covers the noise of both."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.noise import Laplace
from evenhand.release.intervals import Additive, Exact, two_gaussian_tail, two_laplace_tail

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
