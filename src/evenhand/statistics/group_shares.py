"""How a located mean by group divides its budget among its steps: each gets what its error needs, and the last sums get the rest.

Errors are flat around these shares (`benchmarks/accuracy/group_means.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.noise import LARGEST_SCALE, rho_for
from evenhand.release import Measurement, Noisy, Receipt

GROUPS_SHARE = Decimal("0.03")
"""Of ε, for the histogram of groups per user, which decides about the noise and about the other shares: a few noisy counts are enough."""

TOO_ROUGH = 0.06
"""The noise of a rough mean, with all that is left, as a part of the range, above which nothing is located: too few people. Users differ by about
a tenth of the range, so a centre that is off by more than about half of that locates nothing."""

_SHARPEST = 0.035  # noise of a rough mean that is good enough, as a part of the range: a third of how far users differ
_ROUGH = (
    0.05,
    0.2,
)  # shares for rough means, and for rows: at least this much, and at most, so that most is left for the sums
_FIRST = 0.12  # for distances from the rough centres: with them the centres are found anew
_EVIDENCE = 400.0  # users × ε that a histogram of distances should hold: ten in each of ten buckets stand out
_FIRST_DISTANCES, _DISTANCES = (
    (0.015, 0.06),
    (0.03, 0.12),
)  # shares for the two histograms: the second chooses the bound that stays
_FEW_GROUPS = 0.1  # over √G, for the histogram of rows: few groups share the cost of a bad bound
_LEAST_ROWS = 0.02  # the least share for it: with less noise hides everybody


@dataclass(frozen=True)
class Purse:
    """What is left for the steps, in shares of ε with Laplace noise or of ρ with Gaussian noise."""

    epsilon: Decimal
    delta: Decimal
    draw: Callable[[Measurement, Fraction], Noisy]

    @classmethod
    def of(cls, receipt: Receipt, epsilon: Decimal, delta: Decimal) -> Purse:
        """Everything that is left; with δ the noise is Gaussian."""
        return cls(epsilon, delta, receipt.numbers_by_share(epsilon, delta))

    @property
    def squared(self) -> bool:
        """Whether L2 norms are bounded."""
        return bool(self.delta)

    def deviation(self, share: float | Fraction, l1: float, l2: float) -> float:
        """The standard deviation of the noise that a share buys for a sensitivity."""
        if self.squared:
            return l2 / math.sqrt(2 * float(rho_for(self.epsilon, self.delta)) * float(share))
        return math.sqrt(2) * l1 / (float(self.epsilon) * float(share))

    def largest(self, share: Fraction) -> int:
        """The largest sensitivity whose noise fits 64 bits, in integers that are multiplied by no more than 4."""
        return max(1, int(LARGEST_SCALE / (4 * self.deviation(share, 1, 1))))


@dataclass(frozen=True)
class Shares:
    """The parts of what is left: they add up to 1.

    Args:
        rough: for rough means by group.
        rows_profile: for the histogram of users by rows, and ``rows`` for rows by group; 0 where rows are public.
        distances: for the two histograms of distances per row.
        sums: for the two releases of distances by group.
    """

    rough: Fraction
    rows_profile: Fraction
    rows: Fraction
    distances: tuple[Fraction, Fraction]
    sums: tuple[Fraction, Fraction]

    @classmethod
    def of(cls, purse: Purse, groups: int, typical: float, people: float, pairs: float, public: bool) -> Shares:
        """From public facts and released numbers.

        Args:
            purse: what is left.
            groups: how many groups.
            typical: groups of a typical user.
            people: how many users.
            pairs: of user and group, in all.
            public: whether rows are public.
        """
        power = 2 if purse.squared else 1  # noise falls with the share of ε, with the root of the share of ρ
        rough = _within((roughness(purse, groups, typical, pairs) / _SHARPEST) ** power, _ROUGH)
        evidence = (_EVIDENCE * purse.deviation(1, 1, 1) / max(people, 1.0)) ** power
        first, second = _within(evidence / 2, _FIRST_DISTANCES), _within(evidence, _DISTANCES)
        profile = Fraction(0) if public else _within(_FEW_GROUPS / math.sqrt(groups), (_LEAST_ROWS, 1.0))
        rows = Fraction(0) if public else rough
        used = rough + profile + rows + first + second
        return cls(rough, profile, rows, (first, second), (_exact(_FIRST), 1 - used - _exact(_FIRST)))


def roughness(purse: Purse, groups: int, typical: float, pairs: float) -> float:
    """The noise of a rough mean of a usual group, with all that is left, as a part of the range."""
    return purse.deviation(1, 2 * typical, math.sqrt(2 * typical)) / max(pairs / groups, 1.0)


def _within(share: float, limits: tuple[float, float]) -> Fraction:
    return _exact(min(max(share, limits[0]), limits[1]))


def _exact(share: float) -> Fraction:
    return Fraction(round(share * 10_000), 10_000)
