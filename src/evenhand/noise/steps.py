"""How much noise the vectors of a noisy gradient descent need, by Google's dp-accounting, and never less.

The accountant computes in doubles; its answer is checked in 100 digits and raised until the exact formula holds.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from evenhand.guarantee import Relation, exact_text

if TYPE_CHECKING:
    from mpmath import mpf
    from mpmath.ctx_mp import MPContext

_DIGITS = 100


@lru_cache(maxsize=128)
def noise_multiplier(epsilon: Decimal, delta: Decimal, relation: Relation, share: Fraction = Fraction(1)) -> Fraction:
    """A σ, in units of the largest norm of what one user adds, for a vector that takes this share of (ε, δ).

    Vectors with shares that add up to 1, each chosen in view of those before, are one Gaussian mechanism: the shares are
    parts of μ², the squared ratio of sensitivity and noise, which add up. Neighbours differ by one user added or removed
    under presence, by one user replaced otherwise, where a sum moves by twice the norm.
    """
    import dp_accounting as dpa

    single = _enough(Fraction(float(dpa.get_sigma_gaussian(float(epsilon), float(delta)))), epsilon, delta)
    return single * relation.moves * _root(1 / share)


def rho_of_vectors(epsilon: Decimal, delta: Decimal, relation: Relation) -> Fraction:
    """The ρ of all shares together, Δ²/(2σ²)."""
    return Fraction(relation.moves**2, 2) / noise_multiplier(epsilon, delta, relation) ** 2


def gaussian_delta(sigma: Fraction, epsilon: Decimal) -> mpf:
    """The exact δ of Gaussian noise of σ sensitivities at ε, in 100 digits: Balle and Wang 2018, Theorem 8."""
    real = _reals()
    s, e = real.mpf(sigma.numerator) / sigma.denominator, real.mpf(exact_text(epsilon))

    def below(x: mpf) -> mpf:
        return real.erfc(-x / real.sqrt(2)) / 2

    return below(1 / (2 * s) - e * s) - real.exp(e) * below(-1 / (2 * s) - e * s)


def _enough(sigma: Fraction, epsilon: Decimal, delta: Decimal) -> Fraction:
    """The first of ``sigma`` and slightly larger ones that is proved to be enough; δ falls as σ grows."""
    allowed = _reals().mpf(exact_text(delta)) * (1 - _reals().mpf(10) ** (10 - _DIGITS))
    margin = Fraction(1, 10**9)
    while gaussian_delta(sigma, epsilon) > allowed:
        sigma *= 1 + margin
        margin *= 2
    return sigma


def _root(value: Fraction) -> Fraction:
    """A square root, rounded up."""
    return Fraction(math.isqrt(-(-value.numerator * 10**24 // value.denominator) - 1) + 1, 10**12)


@lru_cache(maxsize=1)
def _reals() -> MPContext:
    """Arithmetic of our own: the precision of ``mpmath.mp`` belongs to the whole program."""
    from mpmath.ctx_mp import MPContext

    real = MPContext()
    real.dps = _DIGITS
    return real
