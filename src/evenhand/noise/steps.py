"""How much noise T steps of noisy gradient descent need, by Google's dp-accounting, and never less.

The accountant computes in doubles. Where a formula exists its answer is checked in 100 digits and raised until the
formula holds; where it composes distributions, what its arithmetic may be off is taken from δ first.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from evenhand.guarantee import Relation, UsageError

if TYPE_CHECKING:
    from mpmath import mpf
    from mpmath.ctx_mp import MPContext

SMALLEST_SAMPLED_DELTA = Decimal("1e-10")
"""With ``sample`` < 1 a smaller δ is refused: the numerical error of the accountant's transforms could exceed it."""

_MARGIN = 1 + 1e-9  # first guess; covers the rounding of the products below
_OFF = 1e-12  # of δ: docs/proofs/weighted-erm.md bounds the error of the transforms for 10,000 steps
_DIGITS = 100


@lru_cache(maxsize=128)
def noise_multiplier(epsilon: Decimal, delta: Decimal, steps: int, share: float, relation: Relation) -> Fraction:
    """A σ, in units of one user's clip, for which T steps are (ε, δ)-private; hardly more than the least.

    Each step adds N(0, σ²) to a sum over a Poisson sample of the users (all of them if ``share`` is 1). Neighbours
    differ by one user added or removed under presence, by one user replaced otherwise, where the sum moves by
    twice the clip; the accountant knows both relations.
    """
    import dp_accounting as dpa

    if share >= 1:  # T Gaussian steps are one Gaussian mechanism with √T times the sensitivity
        single = _enough(Fraction(float(dpa.get_sigma_gaussian(float(epsilon), float(delta)))), epsilon, delta)
        return single * relation.moves * _root(steps)
    if delta < SMALLEST_SAMPLED_DELTA:
        raise UsageError(
            f"delta={delta} with sample={share}: expected delta of at least {SMALLEST_SAMPLED_DELTA} (a tenth of what is "
            "granted stays with the ledger); a smaller one can't be accounted for exactly. Use sample=1 or a larger delta."
        )
    neighbours = dpa.NeighboringRelation
    kind = neighbours.ADD_OR_REMOVE_ONE if relation is Relation.PRESENCE else neighbours.REPLACE_ONE
    guess = max(share * math.sqrt(2 * steps * math.log(1.25 / float(delta))) / float(epsilon), 0.5)
    found = dpa.calibrate_dp_mechanism(
        lambda: dpa.pld.PLDAccountant(kind),
        lambda sigma: dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(share, dpa.GaussianDpEvent(sigma)), steps),
        float(epsilon) * (1 - 1e-9),
        float(delta) * (1 - 1e-3) - _OFF,
        dpa.LowerEndpointAndGuess(0.0, guess),
        tol=guess * 1e-3,
    )
    return Fraction(float(found) * _MARGIN)


def rho_of_steps(multiplier: Fraction, steps: int, relation: Relation) -> Fraction:
    """The ρ of T steps that look at all users, T·Δ²/(2σ²)."""
    return Fraction(steps * relation.moves**2, 2) / multiplier**2


def gaussian_delta(sigma: Fraction, epsilon: Decimal) -> mpf:
    """The exact δ of Gaussian noise of σ sensitivities at ε, in 100 digits: Balle and Wang 2018, Theorem 8."""
    real = _reals()
    s, e = real.mpf(sigma.numerator) / sigma.denominator, real.mpf(str(epsilon))

    def below(x: mpf) -> mpf:
        return real.erfc(-x / real.sqrt(2)) / 2

    return below(1 / (2 * s) - e * s) - real.exp(e) * below(-1 / (2 * s) - e * s)


def _enough(sigma: Fraction, epsilon: Decimal, delta: Decimal) -> Fraction:
    """The first of ``sigma`` and slightly larger ones that is proved to be enough; δ falls as σ grows."""
    allowed = _reals().mpf(str(delta)) * (1 - _reals().mpf(10) ** (10 - _DIGITS))
    margin = Fraction(1, 10**9)
    while gaussian_delta(sigma, epsilon) > allowed:
        sigma *= 1 + margin
        margin *= 2
    return sigma


def _root(steps: int) -> Fraction:
    """√T, rounded up."""
    return Fraction(math.isqrt(steps * 10**24 - 1) + 1, 10**12)


@lru_cache(maxsize=1)
def _reals() -> MPContext:
    """Arithmetic of our own: the precision of ``mpmath.mp`` belongs to the whole program."""
    from mpmath.ctx_mp import MPContext

    real = MPContext()
    real.dps = _DIGITS
    return real
