"""Which groups pass: two ways to tell, from how much support each group has, which names may be shown.

A way is calibrated for users who support at most ``groups`` groups. It says how far one user may move the supports, and
tells which of them pass; a group without support never does. The proofs are in docs/proofs/key-selection.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from evenhand.noise import seam
from evenhand.noise.integers import Laplace, round_up
from evenhand.noise.normal import normal_multiplier, quantile, reached

UNIT = 2**16
"""The weight of a user who supports one group only, where supports are weighted."""

FIRST = (
    1 / 16
)  # of the privacy loss (in 1/σ²) for the first of two rounds, which finds the groups that nearly all users are in
_GAUSSIAN, _FIRST, _SECOND = (Decimal(part) / 16 for part in (10, 1, 5))  # of δ: for the noise, and for each threshold
_LARGEST_EPSILON = 300
_WORK = Context(prec=60, Emax=10**9, Emin=-(10**9))
_MARGIN = Decimal("1e-40")  # far above what 60 digits can be off


class Round(ABC):
    """One look at the supports.

    Guarantee: `passing` is all that leaves; ``l2_squared`` is how far one user may move the supports.
    """

    l2_squared: int

    @abstractmethod
    def weight(self, groups: int) -> int:
        """What a user who supports so many groups adds to each."""

    @abstractmethod
    def passing(self, supports: Sequence[int]) -> list[int]:
        """The places of the supports that pass, drawn."""


@dataclass(frozen=True)
class Way:
    """A way to select groups, and what it costs: (ε, δ), all rounds together.

    Args:
        groups: how many groups one user may support, at most.
        rounds: one look after the other; what has passed is left out of the next.
    """

    epsilon: Decimal
    delta: Decimal
    groups: int
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class TruncatedGeometric(Round):
    """Each user supports up to k groups with 1; a group passes if supporters + noise > ``reach``.

    The noise is discrete Laplace of scale k/ε, drawn again while it is beyond ±``reach``; ``reach`` K is the least with P(noise = K) ≤ δ/k.
    For k = 1 no mechanism shows a group with a larger probability, up to the rounding of K to an integer.

    Reference: Desfontaines, Voss and Gipson 2020, Differentially private partition selection.
    """

    l2_squared: int
    scale: Fraction
    reach: int

    @classmethod
    def way(cls, groups: int, epsilon: Decimal, delta: Decimal) -> Way:
        """The least noise for (ε, δ): each of k groups gets ε/k and δ/k."""
        scale = round_up(groups / Fraction(min(epsilon, Decimal(_LARGEST_EPSILON * groups))))
        return Way(epsilon, delta, groups, (cls(groups, scale, _reach(scale, groups, delta)),))

    def weight(self, groups: int) -> int:
        return 1

    def passing(self, supports: Sequence[int]) -> list[int]:
        noise, again = Laplace(self.scale), seam.current() is None
        left, shown = [place for place, support in enumerate(supports) if support > 0], []
        while left:
            drawn = dict(zip(left, noise.add_to([supports[place] for place in left]), strict=True))
            left = [place for place in left if abs(drawn[place] - supports[place]) > self.reach and again]
            shown += [place for place in drawn.keys() - set(left) if drawn[place] > self.reach]
        return sorted(shown)


@dataclass(frozen=True)
class NormalThreshold(Round):
    """A user with t ≤ k groups supports each with ⌊UNIT/√t⌋; a group passes if support + N(0, scale²) ≥ ``threshold``.

    Guarantee: a user's weights have a squared L2 norm of at most UNIT², whatever t is.

    References: Gopi et al. 2020, Differentially private set union; Swanberg et al. 2023, DP-SIPS, for two rounds.
    """

    scale: float
    threshold: int
    l2_squared: int = UNIT**2

    @classmethod
    def way(cls, groups: int, epsilon: Decimal, delta: Decimal, rounds: int = 2) -> Way:
        """The least noise and the lowest thresholds for (ε, δ)."""
        return Way(epsilon, delta, groups, _normal_rounds(groups, epsilon, delta, rounds))

    def weight(self, groups: int) -> int:
        """⌊UNIT/√t⌋, exactly; t·weight² ≤ UNIT²."""
        return _weight(groups)

    def passing(self, supports: Sequence[int]) -> list[int]:
        tested = [place for place, support in enumerate(supports) if support > 0]
        values = [supports[place] for place in tested]
        substitute = seam.current()
        if substitute is not None:
            shown = [value >= self.threshold for value in substitute("normal", values, Fraction(self.scale))]
        else:
            shown = reached(values, self.scale, self.threshold)
        return [place for place, passes in zip(tested, shown, strict=True) if passes]


def _weight(groups: int) -> int:
    """⌊UNIT/√t⌋."""
    return math.isqrt(UNIT**2 // groups)


@lru_cache(maxsize=256)
def _normal_rounds(groups: int, epsilon: Decimal, delta: Decimal, rounds: int) -> tuple[NormalThreshold, ...]:
    if rounds == 1:
        # Noise and threshold may each use all of δ: a user pays for the first with groups that others are in, for the second with
        # groups that nobody else is in. That holds where δ is a convex function of 1/σ², hence the second bound.
        root = math.sqrt((math.sqrt(1 + float(epsilon) ** 2) + 1) / 2) / float(epsilon)
        multiplier = max(normal_multiplier(epsilon, delta), root * (1 + 2.0**-30))
        return (_round(multiplier, groups, float(delta)),)
    multiplier = normal_multiplier(epsilon, _WORK.multiply(delta, _GAUSSIAN))
    parts = ((FIRST, _FIRST), (1 - FIRST, _SECOND))
    return tuple(
        _round(multiplier / math.sqrt(share) * (1 + 2.0**-40), groups, float(delta) * float(part))
        for share, part in parts
    )


def _round(multiplier: float, groups: int, delta: float) -> NormalThreshold:
    """A user alone in t groups is shown in any of them with probability at most δ: t·P(N ≥ τ − weight) ≤ δ for every t ≤ k."""
    scale = multiplier * UNIT
    return NormalThreshold(
        scale, max(_weight(t) + math.ceil(scale * quantile(delta / t * (1 - 2.0**-40))) for t in range(1, groups + 1))
    )


@lru_cache(maxsize=256)
def _reach(scale: Fraction, groups: int, delta: Decimal) -> int:
    """The least K with P(noise = K) = q^K·(1−q)/(1+q−2q^(K+1)) ≤ δ/k, q = e^(−1/scale): guessed in doubles, settled in 60 digits."""
    inverse, single = float(1 / scale), float(delta) / groups
    guess = math.log((math.expm1(inverse) + 2 * single) / (single * (math.exp(inverse) + 1))) / inverse
    reach = max(1, math.floor(guess) - 1)
    while not _small(reach, scale, groups, delta):
        reach += 1
    return reach


def _small(reach: int, scale: Fraction, groups: int, delta: Decimal) -> bool:
    work = _WORK
    rate = work.divide(Decimal(scale.denominator), Decimal(scale.numerator))

    def power(n: int) -> Decimal:
        return work.exp(work.multiply(rate, Decimal(-n)))

    top = work.multiply(power(reach), work.subtract(1, power(1)))
    bottom = work.subtract(work.add(1, power(1)), work.multiply(2, power(reach + 1)))
    chance = work.divide(work.multiply(top, Decimal(groups)), bottom)
    return work.multiply(chance, work.add(1, _MARGIN)) <= delta
