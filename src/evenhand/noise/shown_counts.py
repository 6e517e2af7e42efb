"""Selection whose noisy numbers of supporters are the answer: names and numbers cost once, for users in few groups."""

from __future__ import annotations

import math
import secrets
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from evenhand.noise import seam
from evenhand.noise.counted import BITS, growth
from evenhand.noise.integers import Laplace, round_up
from evenhand.noise.passing import Round, Way


@dataclass(frozen=True)
class ShownCounts(Round):
    """Each user supports up to k groups with 1; a group of n supporters is shown as n + X, if that is more than ``reach``.

    X is a whole number from −reach to reach with P(X = x) ∝ e^(−ε|x|/k), rounded toward privacy.

    Guarantee: (ε, δ) for names and numbers together, for users who support at most k groups.

    Reference: Desfontaines, Voss and Gipson 2020, Differentially private partition selection, Section 4.

    Args:
        l2_squared: k.
        factor: at most e^(ε/k).
        reach: the least for which P(X = reach) is at most δ/k.
    """

    l2_squared: int
    factor: Fraction
    reach: int

    @classmethod
    def way(cls, groups: int, epsilon: Decimal, delta: Decimal, largest: int) -> Way | None:
        """The least noise for (ε, δ), of which each of k groups gets ε/k and δ/k; None if more than ``largest`` supporters would be needed."""
        factor, allowed, reach = growth(epsilon, groups), Fraction(delta) / groups, 1
        while chances(factor, reach)[0] > allowed * sum(chances(factor, reach)):
            reach *= 2
            if reach > 2 * largest:
                return None
        low = reach // 2
        while reach - low > 1:
            middle = (low + reach) // 2
            enough = chances(factor, middle)[0] <= allowed * sum(chances(factor, middle))
            low, reach = (low, middle) if enough else (middle, reach)
        return Way(epsilon, delta, groups, (cls(groups, factor, reach),))

    @property
    def needed(self) -> float:
        return self.reach + 1.0

    def weight(self, groups: int) -> int:
        return 1

    @property
    def like(self) -> tuple[str, Fraction]:
        return "laplace", self.noise.scale

    @property
    def noise(self) -> Laplace:
        """Of the numbers, truncation left out: that only makes the noise smaller."""
        return Laplace(round_up(Fraction(1 / max(math.log(self.factor), 1e-12))))

    def coins(self, supports: Sequence[int]) -> list[bool]:
        return [value > self.reach for value in self.noisy(supports)]

    def counts(self, supports: Sequence[int]) -> dict[int, int]:
        """The noisy numbers of supporters that are large enough to be shown, by place."""
        tested = [place for place, support in enumerate(supports) if support > 0]
        found = self.noisy([supports[place] for place in tested])
        return {place: value for place, value in zip(tested, found, strict=True) if value > self.reach}

    def noisy(self, supports: Sequence[int]) -> list[int]:
        """The numbers with their noise."""
        substitute = seam.current()
        if substitute is not None:
            return substitute(self.like[0], supports, self.like[1])
        ends = list(accumulate(chances(self.factor, self.reach)))
        return [n + bisect_right(ends, secrets.randbelow(ends[-1])) - self.reach for n in supports]


@lru_cache(maxsize=4)
def chances(factor: Fraction, reach: int) -> tuple[int, ...]:
    """Whole numbers in proportion to P(X = −reach), …, P(X = reach): each at most ``factor`` times its neighbours."""
    side = [1 << BITS]
    for _ in range(reach):
        side.append(side[-1] * factor.numerator // factor.denominator)
    return (*side[:-1], *reversed(side))
