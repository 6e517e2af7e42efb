"""How far a released coefficient may be from the truth: sampling error and privacy noise together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.guarantee import UsageError


@dataclass(frozen=True)
class ErrorLaw:
    """The law of a normal error (of sampling) plus independent Laplace errors (noise) of these scales."""

    normal_sd: float
    laplace_scales: tuple[float, ...]

    @property
    def sd(self) -> float:
        """The standard deviation of the whole."""
        return math.sqrt(self.normal_sd**2 + 2 * sum(scale**2 for scale in self.laplace_scales))

    def tail(self, distance: float) -> float:
        """P(|error| > distance), by inversion of the characteristic function.

        The law is symmetric with characteristic function φ(w) = exp(−s²w²/2) / Π(1 + b²w²), hence
        P(|E| > x) = 1 − (2/π) ∫ sin(wx)/w φ(w) dw.
        """
        scales = [scale for scale in self.laplace_scales if scale > 1e-9 * self.sd]
        if self.normal_sd <= 1e-9 * self.sd and len(scales) == 1:
            return math.exp(-distance / scales[0])
        if not scales:
            return math.erfc(distance / (math.sqrt(2) * self.normal_sd))
        # The integrand oscillates with period 2π/x and decays at 1/sd; Simpson's rule on a grid finer than both.
        reach = min(40 / self.normal_sd if self.normal_sd > 0 else math.inf, 2000 / self.sd)
        steps = 2 * math.ceil(max(2000.0, 8 * reach * distance))
        w = np.linspace(0.0, reach, steps + 1)
        phi = np.exp(-((self.normal_sd * w) ** 2) / 2)
        for scale in scales:
            phi /= 1 + (scale * w) ** 2
        integrand = distance * np.sinc(w * distance / math.pi) * phi
        weights = np.ones(steps + 1)
        weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
        return 1 - 2 / math.pi * float(integrand @ weights) * (reach / steps) / 3

    def radius(self, confidence: float = 0.95) -> float:
        """The distance that the error exceeds with probability 1 − confidence."""
        _require_confidence(confidence)
        if self.sd == 0:
            return 0.0
        low, high = 0.0, self.sd
        while self.tail(high) > 1 - confidence:
            low, high = high, 2 * high
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail(middle) > 1 - confidence else (low, middle)
        return high


def _require_confidence(given: float) -> None:
    if not 0 < given < 1:
        raise UsageError(f"confidence={given} is out of range; expected a number such as 0.95.")


def spherical_radius(confidence: float, size: int, scale: float) -> float:
    """The distance that one coordinate of spherical noise exceeds with probability 1 − confidence.

    The noise has density ∝ exp(−‖b‖/scale) in ``size`` dimensions: a Gamma(size) radius times a coordinate of a
    uniform direction, whose square is Beta(½, (size−1)/2).
    """
    from scipy import integrate, optimize, stats

    _require_confidence(confidence)
    if size == 1:
        return -scale * math.log(1 - confidence)
    share = stats.beta(0.5, (size - 1) / 2)

    def excess(distance: float) -> float:
        tail, _ = integrate.quad(
            lambda r: stats.gamma.pdf(r, size) * share.sf((distance / r) ** 2), distance, math.inf, limit=200
        )
        return float(tail - (1 - confidence))

    return scale * float(optimize.brentq(excess, 1e-9, 40.0 * size))
