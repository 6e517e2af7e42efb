"""Exact integer noise: discrete Laplace and discrete Gaussian, each with its privacy map.

The sampling is OpenDP's, on 64-bit integers with the system's secure source; what is added here is
exact calibration. A scale is a rational rounded *up* to the next double, so the privacy map holds for the
very number that the sampler uses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from evenhand.guarantee import UsageError
from evenhand.noise import seam
from evenhand.noise.library import sampler

LARGEST_SCALE = 2**56
"""Noise stays far inside 64 bits: the chance to leave them at this scale is below e^-60."""


@dataclass(frozen=True)
class IntegerNoise(ABC):
    """Symmetric integer noise of a public scale: an exact rational, the value of a double."""

    scale: Fraction
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if not 0 < self.scale <= LARGEST_SCALE:
            raise UsageError(
                f"a noise scale of {float(self.scale):.3g} grid units does not fit 64-bit integers; "
                "lower the bound on a user's contribution or raise epsilon."
            )

    def add_to(self, values: Sequence[int]) -> list[int]:
        """Add independent noise to each integer."""
        substitute = seam.current()
        if substitute is not None:
            return substitute(self.name, values, self.scale)
        if not values:
            return []
        return [int(value) for value in sampler(self.name, float(self.scale))(list(values))]

    @property
    @abstractmethod
    def variance(self) -> float:
        """The exact variance of the discrete distribution."""

    @abstractmethod
    def tail(self, distance: float) -> float:
        """P(|noise| > distance)."""

    def radius(self, confidence: float) -> int:
        """The smallest k with P(|noise| <= k) >= confidence."""
        low, high = -1, max(self._about(1 - confidence), 1)
        if self.tail(high - 2) > 1 - confidence:
            low = high - 2
        while self.tail(high) > 1 - confidence:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tail(middle) <= 1 - confidence else (middle, high)
        return high

    def _about(self, tail: float) -> int:
        """A guess at the radius with this tail: where the search for it begins."""
        return 1


@dataclass(frozen=True)
class Laplace(IntegerNoise):
    """Discrete Laplace noise: P(k) ∝ exp(−|k|/scale).

    Guarantee: an integer vector that one user moves by at most ``l1`` in L1 norm is released with ε = l1/scale.
    """

    name = "laplace"

    @classmethod
    def calibrated(cls, l1: int, epsilon: Decimal) -> Laplace:
        """The least noise that protects an L1 sensitivity of ``l1`` with ε."""
        return cls(round_up(Fraction(max(l1, 1)) / Fraction(epsilon)))

    def epsilon(self, l1: int) -> Fraction:
        """The privacy map: the ε that this noise gives a vector of L1 sensitivity ``l1``, exactly."""
        return Fraction(l1) / self.scale

    @cached_property
    def variance(self) -> float:
        inverse = 1 / float(self.scale)
        return 1 / (2 * math.sinh(inverse / 2) ** 2) if inverse < 700 else 0.0

    def _about(self, tail: float) -> int:
        # The tail below, solved for the distance.
        inverse = 1 / float(self.scale)
        return math.ceil(-math.log(max(tail, 1e-300) * (1 + math.exp(-inverse)) / 2) / inverse)

    def tail(self, distance: float) -> float:
        if distance < 0:
            return 1.0
        inverse = 1 / float(self.scale)
        return 2 * math.exp(-(math.floor(distance) + 1) * inverse) / (1 + math.exp(-inverse))


@dataclass(frozen=True)
class Gaussian(IntegerNoise):
    """Discrete Gaussian noise: P(k) ∝ exp(−k²/(2·scale²)).

    Guarantee: an integer vector that one user moves by at most ``l2`` in L2 norm is released with
    ρ = l2²/(2·scale²) of zero-concentrated differential privacy (Canonne, Kamath and Steinke 2020, Theorem 4).
    """

    name = "gaussian"

    @classmethod
    def calibrated(cls, l2_squared: int, rho: Fraction) -> Gaussian:
        """The least noise that protects a squared L2 sensitivity of ``l2_squared`` with ρ."""
        square = Fraction(max(l2_squared, 1)) / (2 * rho)
        scale = round_up(Fraction(math.sqrt(square)))
        while scale * scale < square:
            scale = Fraction(math.nextafter(float(scale), math.inf))
        return cls(scale)

    def rho(self, l2_squared: int) -> Fraction:
        """The privacy map: the ρ that this noise gives a vector of squared L2 sensitivity ``l2_squared``."""
        return Fraction(l2_squared) / (2 * self.scale**2)

    @cached_property
    def variance(self) -> float:
        return float(self.scale) ** 2  # an upper bound (Canonne et al., Corollary 9), tight from scale 1 on

    def tail(self, distance: float) -> float:
        if distance < 0:
            return 1.0
        # The discrete Gaussian's tail is at most the continuous one's a unit earlier (Canonne et al., Prop. 25).
        return math.erfc(max(math.floor(distance), 0) / (float(self.scale) * math.sqrt(2)))


def round_up(value: Fraction) -> Fraction:
    """The smallest double at or above a positive rational, as a rational."""
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf))
