"""From (ε, δ) to the ρ of zero-concentrated differential privacy that a Gaussian may spend."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

_MARGIN = 1 - 1e-9  # far above the rounding of the doubles below; costs nothing one could notice


@lru_cache(maxsize=256)
def rho_for(epsilon: Decimal, delta: Decimal) -> Fraction:
    """The largest ρ (found on a fine grid of orders) such that ρ-zCDP implies (ε, δ)-differential privacy.

    ρ-zCDP bounds the Rényi divergence of order α by αρ; by Proposition 12 of Canonne, Kamath and Steinke (2020) that
    gives (ε, δ) with ε = αρ + ln(1 − 1/α) − ln(αδ)/(α − 1). Each order yields a valid ρ, so the largest is valid.
    """
    target, log_delta = float(epsilon), math.log(float(delta))

    def rho(order: float) -> float:
        return (target - math.log1p(-1 / order) + (math.log(order) + log_delta) / (order - 1)) / order

    best = max(rho(1 + 2 ** (step / 16)) for step in range(-320, 641))
    return Fraction(max(best * _MARGIN, 0.0))
