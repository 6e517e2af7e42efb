"""Selection by number of supporters: for users in one group, no private mechanism shows more."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

from evenhand.guarantee import fixed_context
from evenhand.noise.passing import Round, Way

BITS = 320
"""Of a probability: far below the smallest δ."""

_LARGEST_EPSILON = 40  # for one group; more would change nothing that one could see
_DOWN = fixed_context(120, ROUND_FLOOR)


@dataclass(frozen=True)
class TruncatedGeometric(Round):
    """Each user supports up to k groups with 1; a group of n supporters passes with the largest probability π(n) that privacy allows.

    π(0) = 0 and π(n+1) = min(e^(ε/k)·π(n) + δ/k, 1 − e^(−ε/k)·(1 − π(n) − δ/k), 1), in integers rounded toward privacy.
    Where rounding to whole supporters costs nothing that is truncated geometric noise against a threshold, hence the name.

    Guarantee: (ε, δ) for users who support at most k groups.

    Reference: Desfontaines, Voss and Gipson 2020, Differentially private partition selection.

    Args:
        l2_squared: k.
        factor: at most e^(ε/k).
        step: at most δ/k, in units of 2^−BITS.
    """

    l2_squared: int
    factor: Fraction
    step: int

    @classmethod
    def way(cls, groups: int, epsilon: Decimal, delta: Decimal) -> Way:
        """The largest probabilities for (ε, δ): each of k groups gets ε/k and δ/k."""
        factor = growth(epsilon, groups)
        step = math.floor(Fraction(delta) / groups * 2**BITS)
        return Way(epsilon, delta, groups, (cls(groups, factor, step),))

    @cached_property
    def needed(self) -> float:
        """Of the real-valued formula δ'·(e^(nε') − 1)/(e^ε' − 1) = ½: it need not be a whole number."""
        excess = float(self.factor - 1)
        chance = self.step * 2.0**-BITS
        rate = math.log1p(excess)
        if rate < 1e-12:
            return 0.5 / chance
        return max(1.0, math.log1p(excess / (2 * chance)) / rate)

    def weight(self, groups: int) -> int:
        return 1

    @property
    def like(self) -> tuple[str, Fraction]:
        return "laplace", Fraction(1 / max(math.log(self.factor), 1e-12))

    def coins(self, supports: Sequence[int]) -> list[bool]:
        chances = law(self.factor, self.step)
        return [n >= len(chances) or secrets.randbits(BITS) < chances[n] for n in supports]


def growth(epsilon: Decimal, groups: int) -> Fraction:
    """A rational from 1 to e^(ε/k), hardly below that."""
    single = min(_DOWN.divide(epsilon, Decimal(groups)), Decimal(_LARGEST_EPSILON))
    # The exponential rounds to nearest whatever the context says; 10^-100 is far above what it can be off.
    below = _DOWN.multiply(_DOWN.exp(single), _DOWN.subtract(Decimal(1), Decimal("1e-100")))
    return max(Fraction(1), Fraction(math.floor(Fraction(below) * 2**BITS), 2**BITS))


@lru_cache(maxsize=16)
def law(factor: Fraction, step: int) -> tuple[int, ...]:
    """π(0), π(1), … as long as it is below 1, in units of 2^−BITS."""
    whole, chances = 1 << BITS, [0]
    up, down = factor.numerator, factor.denominator
    while chances[-1] < whole:
        last = chances[-1]
        up_to = last * up // down + step
        left = max(whole - last - step, 0)
        chances.append(min(up_to, whole + (-left * down // up), whole))
    return tuple(chances[:-1])
