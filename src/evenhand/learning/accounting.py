"""How much noise T steps of noisy gradient descent need, by Google's dp-accounting (privacy loss distributions)."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from evenhand.guarantee import Relation

_MARGIN = 1 + 1e-9  # the accountant's answers are safe already; this covers the rounding of the products below


@lru_cache(maxsize=128)
def noise_multiplier(epsilon: Decimal, delta: Decimal, steps: int, share: float, relation: Relation) -> Fraction:
    """The least σ, in units of one user's clip, for which T steps are (ε, δ)-private.

    Each step adds N(0, σ²) to a sum over a Poisson sample of the users (all of them if ``share`` is 1). Neighbours
    differ by one user added or removed under presence, by one user replaced otherwise, where the sum moves by
    twice the clip; the accountant knows both relations.
    """
    import dp_accounting as dpa

    if share >= 1:  # T Gaussian steps are one Gaussian mechanism with √T times the sensitivity
        moved = 1 if relation is Relation.PRESENCE else 2
        sigma = dpa.get_sigma_gaussian(float(epsilon), float(delta))
        return Fraction(sigma * moved * math.sqrt(steps) * _MARGIN)
    neighbours = dpa.NeighboringRelation
    kind = neighbours.ADD_OR_REMOVE_ONE if relation is Relation.PRESENCE else neighbours.REPLACE_ONE
    guess = max(share * math.sqrt(2 * steps * math.log(1.25 / float(delta))) / float(epsilon), 0.5)
    found = dpa.calibrate_dp_mechanism(
        lambda: dpa.pld.PLDAccountant(kind),
        lambda sigma: dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(share, dpa.GaussianDpEvent(sigma)), steps),
        float(epsilon),
        float(delta),
        dpa.LowerEndpointAndGuess(0.0, guess),
        tol=guess * 1e-3,
    )
    return Fraction(float(found) * _MARGIN)


def zcdp(multiplier: Fraction, steps: int, relation: Relation) -> Decimal:
    """The ρ of T full-batch steps: T·Δ²/(2σ²), rounded up."""
    moved = 1 if relation is Relation.PRESENCE else 2
    rho = Fraction(steps * moved**2, 2) / multiplier**2
    return Decimal(math.ceil(rho * 10**40)).scaleb(-40)
