"""Selection by weighted support and normal noise, for users in several groups: in one round, or in two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from evenhand.noise.normal import MARGIN, hockey_stick, normal_multiplier, quantile, reached, smallest, upper_tail
from evenhand.noise.passing import Round, Way

UNIT = 2**16
"""The weight of a user who supports one group only."""

FIRST = 1 / 32  # of μ², for the first of two rounds: it finds the groups that very many users are in
_FIRST, _SECOND = 1 / 64, 5 / 8  # of δ: for the threshold of each round
_CELLS = 400  # into which the privacy loss of the first round is divided


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
    def way(
        cls, groups: int, epsilon: Decimal, delta: Decimal, rounds: int = 2, numbers: Fraction = Fraction(0)
    ) -> Way:
        """The least noise and the lowest thresholds for (ε, δ), which also pays for normal noise with ``numbers`` of μ²."""
        looks, rho = (_one_round if rounds == 1 else _two_rounds)(groups, epsilon, delta, float(numbers))
        return Way(epsilon, delta, groups, rounds=looks, numbers=numbers, rho=rho)

    @property
    def needed(self) -> float:
        return float(self.threshold)

    def weight(self, groups: int) -> int:
        """⌊UNIT/√t⌋, exactly; t·weight² ≤ UNIT²."""
        return _weight(groups)

    @property
    def like(self) -> tuple[str, Fraction]:
        return "normal", Fraction(self.scale)

    def coins(self, supports: Sequence[int]) -> list[bool]:
        return reached(supports, self.scale, self.threshold)


Calibrated = tuple[tuple[NormalThreshold, ...], Fraction]
"""The rounds, and the ρ that is left for numbers."""


@lru_cache(maxsize=256)
def _one_round(groups: int, epsilon: Decimal, delta: Decimal, numbers: float) -> Calibrated:
    """Noise and threshold may each use (nearly) all of δ: a user pays for the one with groups that others are in, for the other
    with groups that nobody else is in. That holds where δ is a convex function of 1/σ², hence the second bound.
    """
    e = min(float(epsilon), 300.0) * (1 - MARGIN)
    convex = math.sqrt((math.sqrt(1 + float(epsilon) ** 2) + 1) / 2) / float(epsilon)
    multiplier = max(normal_multiplier(epsilon, delta), convex * (1 + MARGIN))
    lonely = float(delta) - _alone(numbers / multiplier**2, e)
    return (_round(_of_share(multiplier, 1 - numbers), groups, lonely),), _rho(multiplier, numbers)


@lru_cache(maxsize=256)
def _two_rounds(groups: int, epsilon: Decimal, delta: Decimal, numbers: float) -> Calibrated:
    first, second = float(delta) * _FIRST, float(delta) * _SECOND
    allowed = (float(delta) - first) * (1 - MARGIN)
    multiplier = smallest(lambda sigma: _loss(sigma, float(epsilon), second, numbers) <= allowed)
    one, other = (_of_share(multiplier, share * (1 - numbers)) for share in (FIRST, 1 - FIRST))
    return (_round(one, groups, first), _round(other, groups, second)), _rho(multiplier, numbers)


def _of_share(multiplier: float, share: float) -> float:
    """The noise of what has this share of μ² = 1/σ², or slightly more."""
    return multiplier if share == 1 else multiplier / math.sqrt(share) * (1 + MARGIN)


def _rho(multiplier: float, numbers: float) -> Fraction:
    return Fraction(numbers / (2 * multiplier**2) * (1 - MARGIN))


def _alone(square: float, epsilon: float) -> float:
    """The δ at ε of the numbers alone."""
    return hockey_stick(math.sqrt(square), epsilon) if square else 0.0


def _loss(sigma: float, epsilon: float, lonely: float, numbers: float) -> float:
    """An upper bound on the δ of two rounds, and of numbers after them, without the first one's threshold: E h(L), L ~ N(y₁/2, y₁).

    L is the privacy loss of the first round; h = max(G(y₂ + y₃), G(y₃) + ``lonely``) at ε − L, where G(y) is the δ of Gaussian noise, y₂
    the second round's share of μ² and y₃ that of the numbers. Where G is not convex up to y₂ + y₃, h = G(y₂ + y₃) + ``lonely``.
    The expectation is bounded by its upper sum over cells of L, since h grows with L.
    """
    epsilon = min(epsilon, 300.0) * (1 - MARGIN)
    third = numbers / sigma**2
    first = (1 - numbers) * FIRST / sigma**2
    rest = (1 - numbers) * (1 - FIRST) / sigma**2 + third
    convex = math.sqrt(rest + rest**2 / 4) * (1 + MARGIN)
    width = quantile(lonely * 1e-6)
    edges = [width * (2 * cell / _CELLS - 1) for cell in range(_CELLS + 1)]
    tails = [upper_tail(edge) for edge in edges]
    total = 2 * tails[-1]  # below the lowest edge, and above the highest, where nothing is assumed
    for cell, (low, high) in enumerate(pairwise(tails)):
        loss = first / 2 + edges[cell + 1] * math.sqrt(first)
        left = epsilon - loss - MARGIN * abs(loss)
        worst = hockey_stick(math.sqrt(rest), left)
        chance = low - high + MARGIN * low
        together = max(worst, _alone(third, left) + lonely) if left >= convex else worst + lonely
        total += chance * min(together, 1.0)
    return total


def _round(multiplier: float, groups: int, delta: float) -> NormalThreshold:
    """A user alone in t groups is shown in any of them with probability at most δ: t·P(N ≥ τ − weight) ≤ δ for every t ≤ k."""
    scale = multiplier * UNIT
    allowed = delta * (1 - MARGIN)
    return NormalThreshold(
        scale, max(_weight(t) + math.ceil(scale * quantile(allowed / t)) for t in range(1, groups + 1))
    )


def _weight(groups: int) -> int:
    return math.isqrt(UNIT**2 // groups)
