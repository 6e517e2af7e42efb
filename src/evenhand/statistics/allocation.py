"""How a grouped release divides its ε and δ: selecting keys, then each statistic by itself, its own choice of a bound included."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Protocol

from evenhand.bounding import PROFILE_SHARE
from evenhand.guarantee import exact_difference, exact_sum, portion, split
from evenhand.ledger import Cost, mechanism_delta, rho_with_pure
from evenhand.noise import rho_for
from evenhand.statistics.request import Request

_SELECTION = Fraction(1, 2)
_LEAST_SHARE = 0.08
_SHARE_OF_GROUPS = (0.4, 0.3)
"""With G groups a profile takes 0.4·G^−0.3 of ε. Many groups share the noise of one bound, which then lies among the bulk of the
users, where a few noisy counts are enough (`benchmarks/accuracy/groups.py`)."""


class Budget(Protocol):
    """ε and δ: of a request, or of a plan."""

    @property
    def epsilon(self) -> Decimal:
        """What may be spent."""

    @property
    def delta(self) -> Decimal:
        """What may be spent."""


NOTHING = Decimal(0)


class Mechanism(Enum):
    """Which noise a statistic gets: decided by what the analyst named, or by public facts, or by forecast once a profile is there."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"
    EITHER = "whichever forecasts less"


@dataclass(frozen=True)
class Share:
    """What one statistic may spend.

    Args:
        profile: ε for choosing its bound.
        epsilon: ε for the statistic itself.
        mechanism: which noise.
        delta: of a statistic that draws its noise by itself.
    """

    profile: Decimal
    epsilon: Decimal
    mechanism: Mechanism
    delta: Decimal = NOTHING

    def divided(self, profile: float | Decimal) -> Share:
        """The same ε with another part of it for choosing the bound."""
        first, rest = split(exact_sum((self.profile, self.epsilon)), profile)
        return replace(self, profile=first, epsilon=rest)


@dataclass(frozen=True)
class Allocation:
    """The parts of ε and δ, and what they cost together.

    Args:
        cost: for the ledger.
        selection: (ε, δ) for the private selection of keys.
        shares: by statistic.
        delta: δ for all statistics with Gaussian noise together.
    """

    cost: Cost
    selection: tuple[Decimal, Decimal]
    shares: Mapping[str, Share]
    delta: Decimal

    @classmethod
    def of(
        cls,
        request: Budget,
        weights: Mapping[str, Fraction],
        mechanisms: Mapping[str, Mechanism],
        profiles: Mapping[str, float | Decimal],
        selects: bool,
        apart: Sequence[str] = (),
    ) -> Allocation:
        """Divide the request's budget.

        Args:
            request: with its ε and δ.
            weights: of the statistics that need noise.
            mechanisms: of the same.
            profiles: for each, the part of its ε that buys what chooses the bound; 0 if that is given or known.
            selects: whether keys have to be selected.
            apart: the statistics that draw their noise by themselves; those that may be Gaussian get equal parts of δ, the others
                share one more.
        """
        usable = mechanism_delta(request.delta)
        kinds = set(mechanisms.values())
        delta = NOTHING if kinds <= {Mechanism.LAPLACE} else usable
        selection, rest = (NOTHING, NOTHING), request.epsilon
        if selects:
            first, rest = split(rest, _SELECTION)
            delta = portion(delta, 2)
            selection = (first, exact_difference(usable, delta))
        spent = delta
        alone = [name for name in apart if mechanisms[name] is not Mechanism.LAPLACE]
        others = {mechanism for name, mechanism in mechanisms.items() if name not in apart} - {Mechanism.LAPLACE}
        delta = portion(delta, max(len(alone) + bool(others), 1))
        total = sum(weights.values(), Fraction(0))
        shares: dict[str, Share] = {}
        for name, weight in weights.items():
            own, _ = split(rest, weight / total)
            mine = delta if name in alone else NOTHING
            shares[name] = Share(NOTHING, own, mechanisms[name], mine).divided(profiles[name])
        if selects:
            return cls(Cost.approximate(request.epsilon, usable), selection, shares, delta)
        if not spent:
            return cls(Cost.pure(request.epsilon), selection, shares, delta)
        if kinds == {Mechanism.GAUSSIAN}:
            pure = exact_sum(share.profile for share in shares.values())
            left = exact_sum(share.epsilon for share in shares.values())
            rho = rho_with_pure(rho_for(left, delta), pure)
            return cls(Cost.zcdp(rho, epsilon=request.epsilon, delta=delta), selection, shares, delta)
        return cls(Cost.approximate(request.epsilon, spent), selection, shares, delta)

    def rho(self, name: str) -> Fraction:
        """The ρ that one statistic will have at least if it gets Gaussian noise: with those that are sure to get it too.

        All with Gaussian noise share the ρ of their ε together, which is more than each would have alone. Who else will be among them is not
        known yet: counting on it could make a statistic worse than alone.
        """
        sure = {part: share.epsilon for part, share in self.shares.items() if share.mechanism is Mechanism.GAUSSIAN}
        sure[name] = self.shares[name].epsilon
        total = exact_sum(sure.values())
        return rho_for(total, self.delta) * Fraction(sure[name]) / Fraction(total)


def profile_share(request: Request, groups: int) -> Decimal | float:
    """The part of ε that buys the profile which chooses a bound over so many groups."""
    return request.auto.share or share_for(groups)


def share_for(groups: int) -> float:
    """The same, if the analyst does not say."""
    coefficient, exponent = _SHARE_OF_GROUPS
    wanted = round(coefficient * math.pow(groups, -exponent), 4)
    return min(float(PROFILE_SHARE), max(_LEAST_SHARE, wanted))


def gaussian_can_win(epsilon: Decimal, delta: Decimal, groups: float) -> bool:
    """Whether Gaussian noise on an L2 bound can be smaller than Laplace noise on an L1 bound at all.

    The L1 norm of what a user adds to G groups is at most √G times the L2 norm.
    """
    if not delta or not groups > 1:
        return False
    rho = float(rho_for(epsilon, delta))
    return rho > 0 and 1 / math.sqrt(2 * rho) < math.sqrt(2 * groups) / float(epsilon)
