"""What weighted empirical risk minimisation promises: Theorems 4 and 5, and the weights that their trade-off asks for.

Users j = 1, 2, ... have s_j of n rows; with the bound h a row of user j weighs c = min(h, s_j)/(s_j·n_h), n_h = Σ min(h, s_j), so that
max_j Σ c = h/n_h and Σ c² = Σ min(h, s_j)²/s_j / n_h². The loss is convex and L-Lipschitz in θ, and ‖θ‖ ≤ B.
The paper hides constants in O(...): the functions take ``constant`` with default 1, to compare settings, not to quote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.bounding import smooth_bound
from evenhand.guarantee import UsageError
from evenhand.profiles import Sums, Support, support_of_counts


@dataclass(frozen=True)
class Weighted:
    """Users by number of rows, weighted with the bound h.

    Args:
        support: of a profile; `of` makes one of rows per user.
        h: the largest weight of a user, in rows.
    """

    support: Support
    h: float

    @classmethod
    def of(cls, counts: npt.ArrayLike, h: float) -> Weighted:
        """Rows of each user; users without rows don't count."""
        given = np.asarray(counts, dtype=np.float64)
        if not (given >= 0).all() or not np.isfinite(given).all() or not given.any() or not h > 0:
            raise UsageError(f"h={h:g}: expected rows per user, 0 or more and not all 0, and a positive bound h.")
        return cls(support_of_counts(given), h)

    @property
    def users(self) -> float:
        """m, the users with rows."""
        return self.support.people

    @property
    def rows(self) -> float:
        """n."""
        return self.support.rows

    @property
    def largest(self) -> float:
        """max_j Σ c over the rows of user j."""
        return min(self.h, float(self.support.sizes.max())) / self._kept

    @property
    def squares(self) -> float:
        """Σ c²; 1/n when nothing is bounded."""
        sums, at = Sums.of(self.support), np.array([self.h])
        below, _, inverse = sums.at(at)
        return float((below + inverse * at**2)[0]) / self._kept**2

    @property
    def _kept(self) -> float:
        return float(Sums.of(self.support).kept(np.array([self.h]))[0])


def theorem_4(
    weighted: Weighted,
    epsilon: float,
    delta: float,
    dimension: int,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    constant: float = 1.0,
) -> float:
    """Theorem 4: the expected excess risk is O(L·B·√d·√(ln⁴(m/δ)·(max_j Σ c)²/ε² + ln d·ln n·Σ c²)).

    Args:
        weighted: rows per user and bound.
        epsilon, delta: of the learner.
        dimension: d, at least 2 (ln d is printed without a 1 added).
        lipschitz, radius: L and B.
        constant: hidden in O(...).
    """
    if not (epsilon > 0 and 0 < delta < 1 and dimension >= 2):
        raise UsageError(
            f"epsilon={epsilon:g}, delta={delta:g}, dimension={dimension}: expected epsilon > 0, 0 < delta < 1 and two dimensions or more."
        )
    noise = math.log(weighted.users / delta) ** 4 * weighted.largest**2 / epsilon**2
    sampling = math.log(dimension) * math.log(weighted.rows) * weighted.squares
    return constant * lipschitz * radius * math.sqrt(dimension * (noise + sampling))


def theorem_5(
    weighted: Weighted, gamma: float, dimension: int, lipschitz: float = 1.0, radius: float = 1.0, constant: float = 1.0
) -> float:
    """Theorem 5: with probability 1 − γ no θ has a weighted empirical risk further than O(L·B·√(d·ln(d/γ)·ln n·Σ c²)) from its risk."""
    if not (0 < gamma < 1 and dimension >= 1):
        raise UsageError(
            f"gamma={gamma:g}, dimension={dimension}: expected 0 < gamma < 1 and a dimension of 1 or more."
        )
    inside = dimension * math.log(dimension / gamma) * math.log(weighted.rows) * weighted.squares
    return constant * lipschitz * radius * math.sqrt(inside)


def trade_off(weighted: Weighted, A: float) -> float:
    """(max_j Σ c)² + A·Σ c², which sections 3 and 4 minimise. Theorem 4's A is ln d·ln n·ε²/ln⁴(m/δ).

    The paper's text has the roles the wrong way round: the first term is what privacy costs, the second what sampling does.
    """
    return weighted.largest**2 + A * weighted.squares


def best_weights(support: Support, A: float) -> Weighted:
    """The exact minimiser of the trade-off: that of section 3 with A in place of σ²ε²/(2B²)."""
    return Weighted(support, smooth_bound(support, A, 1.0, math.sqrt(2)))


def published_weights(support: Support, epsilon: float, delta: float, dimension: int) -> Weighted:
    """The weights that make Theorem 4's bound least: its trade-off with A = ln d·ln n·ε²/ln⁴(m/δ), and 2 for a d of 1, whose logarithm is 0."""
    sampling = math.log(max(dimension, 2)) * math.log(max(support.rows, 2.0))
    return best_weights(support, sampling * epsilon**2 / math.log(max(support.people, 2.0) / delta) ** 4)
