"""How a grouped release divides its ε and δ: selecting keys, choosing the bound, the statistics themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.bounding import PROFILE_SHARE
from evenhand.guarantee import split
from evenhand.ledger import Cost, mechanism_delta, rho_with_pure
from evenhand.noise import rho_for
from evenhand.statistics.request import Request

_SELECTION = Fraction(1, 2)  # of ε; of δ too, where the statistics have Gaussian noise
_SPREAD = 100  # groups over which a heavy user's rows are assumed to spread, at most

NOTHING = Decimal(0)


@dataclass(frozen=True)
class Allocation:
    """The parts of ε and δ, and what they cost together.

    Args:
        cost: for the ledger.
        selection: (ε, δ) for the private selection of keys.
        profile: ε for choosing the bound.
        epsilon: ε for the statistics.
        delta: δ for the statistics: positive means Gaussian noise.
    """

    cost: Cost
    selection: tuple[Decimal, Decimal]
    profile: Decimal
    epsilon: Decimal
    delta: Decimal

    @classmethod
    def of(cls, request: Request, groups: int | None, laplace: bool = False, known: bool = False) -> Allocation:
        """Divide the request's budget.

        Args:
            request: with its ε and δ.
            groups: how many groups; None when keys have to be selected.
            laplace: Gaussian noise is out of the question.
            known: the session has bought the profile that will choose the bound.
        """
        usable = mechanism_delta(request.delta)
        selection = (NOTHING, NOTHING)
        rest = request.epsilon
        left = NOTHING
        if groups is None:
            first, rest = split(rest, _SELECTION)
            # How many groups will be shown is not known yet, so only a norm named by the analyst calls for Gaussian noise.
            named = not laplace and request.named is not None and request.named.gaussian
            for_selection, left = split(usable, _SELECTION) if named else (usable, NOTHING)
            selection = (first, for_selection)
        profile, rest = (NOTHING, rest) if known else _choice(request, rest)
        if groups is None:
            return cls(Cost.approximate(request.epsilon, usable), selection, profile, rest, left)
        if laplace or not _gaussian(request, rest, usable, groups):
            return cls(Cost.pure(request.epsilon), selection, profile, rest, NOTHING)
        rho = rho_with_pure(rho_for(rest, usable), profile)
        return cls(Cost.zcdp(rho, epsilon=request.epsilon, delta=usable), selection, profile, rest, usable)


def _choice(request: Request, epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """What a private choice of the bound takes, and what it leaves."""
    if request.strategy is not None or request.relation.counts_are_public or request.auto.profile is not None:
        return NOTHING, epsilon
    return split(epsilon, request.auto.share or PROFILE_SHARE)


def _gaussian(request: Request, epsilon: Decimal, delta: Decimal, groups: int) -> bool:
    """Whether Gaussian noise on an L2 bound forecasts less noise than Laplace noise on an L1 bound.

    A user whose rows spread over k groups has an L2 norm √k below the L1 norm. How far heavy users spread is private, so
    the number of groups, up to a hundred, stands for it; a norm named by the analyst decides.
    """
    if not delta:
        return False
    if request.named is not None:
        return request.named.gaussian
    gaussian = 1 / math.sqrt(2 * max(float(rho_for(epsilon, delta)), 1e-300))
    return gaussian < math.sqrt(2 * min(groups, _SPREAD)) / float(epsilon)
