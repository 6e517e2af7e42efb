"""How a grouped release divides its ε and δ: selecting keys, then each statistic by itself, its own choice of a bound included.

Where names are selected with Gaussian noise and the numbers get Gaussian noise too, nothing is split: both are one Gaussian mechanism
with μ² = μ_names² + μ_numbers², calibrated once. Halves of ε would leave each with a quarter of μ² instead of a half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Protocol

from evenhand.bounding import PROFILE_SHARE
from evenhand.guarantee import exact_difference, exact_sum, portion, split
from evenhand.ledger import Cost, mechanism_delta, rho_with_pure
from evenhand.noise import Normal, NormalThreshold, rho_for
from evenhand.statistics.request import Request

_SELECTION = Fraction(1, 2)
_COUNTED = Fraction(3, 4)
"""Of ε, for names that are selected by number of supporters, where numbers would share one (ε, δ) with weighted names: the smallest
group that is shown then has about the same relative noise either way, a third of its size."""

_LEAST_SHARE = 0.08
_SHARE_OF_GROUPS = (0.4, 0.3)
"""With G groups a profile takes 0.4·G^−0.3 of ε. Many groups share the noise of one bound, which then lies among the bulk of the
users, where a few noisy counts are enough (`benchmarks/accuracy/groups.py`)."""


_NUMBERS = Fraction(1, 4)
"""μ² of one statistic over that of the names: `benchmarks/accuracy/hidden_numbers.py`."""

BESIDE = 0.15
"""Of a statistic's share of half of ε, for the profile that chooses its bound over the groups that were found. With half as much, counts
of 2,000 people in four groups had 1.4 times the error; with more, fewer of many names are found (films: 4% fewer for each 0.06)."""


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
class Joint:
    """What names and numbers have together if both get Gaussian noise.

    Args:
        epsilon: for both, and for the choice how names are selected.
        delta: for both.
        numbers: the part of μ² for the numbers.
        shares: by statistic, the ε of its profile and its part of the numbers' μ².
    """

    epsilon: Decimal
    delta: Decimal
    numbers: Fraction
    shares: Mapping[str, tuple[Decimal, Fraction]]


@dataclass(frozen=True)
class Allocation:
    """The parts of ε and δ, and what they cost together.

    Args:
        cost: for the ledger.
        selection: (ε, δ) for the private selection of keys.
        shares: by statistic.
        delta: δ for all statistics with Gaussian noise together.
        joint: what takes the place of all parts if names are selected with Gaussian noise; None if not all statistics may have such noise.
        left: once they are, the ρ that is left for the numbers.
    """

    cost: Cost
    selection: tuple[Decimal, Decimal]
    shares: Mapping[str, Share]
    delta: Decimal
    joint: Joint | None = None
    left: Fraction = Fraction(0)

    @classmethod
    def of(
        cls,
        request: Budget,
        weights: Mapping[str, Fraction],
        mechanisms: Mapping[str, Mechanism],
        profiles: Mapping[str, float | Decimal],
        selects: bool,
        apart: Sequence[str] = (),
        beside: Mapping[str, float | Decimal] = MappingProxyType({}),
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
            beside: as ``profiles``, for numbers that share one (ε, δ) with the names.
        """
        usable = mechanism_delta(request.delta)
        kinds = set(mechanisms.values())
        delta = NOTHING if kinds <= {Mechanism.LAPLACE} else usable
        selection, rest = (NOTHING, NOTHING), request.epsilon
        together = selects and kinds == {Mechanism.EITHER} and not apart
        if together:  # numbers are Gaussian beside Gaussian names, and else Laplace: no δ is set aside for them
            mechanisms, delta = dict.fromkeys(mechanisms, Mechanism.LAPLACE), NOTHING
        if selects:
            first, rest = split(rest, _COUNTED if together else _SELECTION)
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
            joint = None
            if together:
                joint = _joint(
                    request.epsilon, usable, {name: weight / total for name, weight in weights.items()}, beside
                )
            return cls(Cost.approximate(request.epsilon, usable), selection, shares, delta, joint)
        if not spent:
            return cls(Cost.pure(request.epsilon), selection, shares, delta)
        if kinds == {Mechanism.GAUSSIAN}:
            pure = exact_sum(share.profile for share in shares.values())
            left = exact_sum(share.epsilon for share in shares.values())
            rho = rho_with_pure(rho_for(left, delta), pure)
            return cls(Cost.zcdp(rho, epsilon=request.epsilon, delta=delta), selection, shares, delta)
        return cls(Cost.approximate(request.epsilon, spent), selection, shares, delta)

    def beside(self, rho: Fraction) -> Allocation:
        """What is left once names were selected with Gaussian noise: profiles, and ρ for the numbers."""
        assert self.joint is not None
        shares = {name: Share(profile, NOTHING, Mechanism.GAUSSIAN) for name, (profile, _) in self.joint.shares.items()}
        return replace(self, shares=shares, delta=NOTHING, left=rho)

    def rho(self, name: str) -> Fraction:
        """The ρ that one statistic will have at least if it gets Gaussian noise: with those that are sure to get it too.

        All with Gaussian noise share the ρ of their ε together, which is more than each would have alone. Who else will be among them is not
        known yet: counting on it could make a statistic worse than alone.
        """
        if self.left:
            return self.left * self.part(name)
        sure = {part: share.epsilon for part, share in self.shares.items() if share.mechanism is Mechanism.GAUSSIAN}
        sure[name] = self.shares[name].epsilon
        total = exact_sum(sure.values())
        return rho_for(total, self.delta) * Fraction(sure[name]) / Fraction(total)

    def foreseen_rho(self, name: str) -> Fraction | None:
        """The ρ of one statistic if it gets Gaussian noise, about, before names are selected; None if it does not."""
        if self.joint is not None:
            joint = self.joint
            return NormalThreshold.way(1, joint.epsilon, joint.delta, 1, joint.numbers).rho * self.part(name)
        return self.rho(name) if self.shares[name].mechanism is not Mechanism.LAPLACE else None

    def check_joint(self, name: str, l2_squared: int) -> None:
        """Refuse, before any debit, numbers whose noise would not fit 64 bits beside the names."""
        rho = self.foreseen_rho(name)
        if self.joint is not None and rho is not None:
            Normal.calibrated(l2_squared, rho / 2)  # two rounds, and the choice, leave a little less

    def part(self, name: str) -> Fraction:
        """The part of one statistic in the ρ that is left for the numbers."""
        assert self.joint is not None
        return self.joint.shares[name][1]


def _joint(
    epsilon: Decimal, delta: Decimal, weights: Mapping[str, Fraction], profiles: Mapping[str, float | Decimal]
) -> Joint:
    half, _ = split(epsilon, _SELECTION)
    bought = {name: split(split(half, weight)[0], profiles.get(name, 0.0))[0] for name, weight in weights.items()}
    numbers = len(weights) * _NUMBERS / (1 + len(weights) * _NUMBERS)
    shares = {name: (bought[name], weight) for name, weight in weights.items()}
    return Joint(exact_difference(epsilon, exact_sum(bought.values())), delta, numbers, shares)


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
