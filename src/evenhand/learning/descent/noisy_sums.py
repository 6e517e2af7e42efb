"""Sums over users with noise: what a descent asks of the rows, each with a share of (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.guarantee import Relation
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import UserRows
from evenhand.noise.steps import noise_multiplier
from evenhand.release import Receipt
from evenhand.tables import Secret

UserVectors = Callable[[UserRows], Iterator[Floats]]
"""Integer vectors of users, block by block: whole numbers below 2^40, held as doubles."""


@dataclass(frozen=True)
class VectorShares:
    """The shares of all the vectors that a fit asks for, in order, and how much noise each gets.

    Everything here is public, and known before anything is debited.
    """

    epsilon: Decimal
    delta: Decimal
    relation: Relation
    shares: tuple[Fraction, ...]

    def sd(self, place: int, l2_squared: int) -> float:
        """The standard deviation of the noise in each number of a vector."""
        multiplier = noise_multiplier(self.epsilon, self.delta, self.relation, self.shares[place])
        return float(multiplier) * math.sqrt(l2_squared)

    def sd_of_all(self) -> float:
        """The noise, in units of one user's norm, that a vector would get with all shares."""
        return float(noise_multiplier(self.epsilon, self.delta, self.relation))

    def opened(self, rows: Secret[UserRows], receipt: Receipt) -> NoisySums:
        """Start asking, with what a receipt has paid for."""
        return NoisySums(self, rows, receipt.vectors(self.shares, self.relation, self.epsilon, self.delta))


class NoisySums:
    """Answers the vectors of a plan one after the other."""

    def __init__(
        self, plan: VectorShares, rows: Secret[UserRows], noisy: Callable[[Secret[list[int]], int], list[int]]
    ) -> None:
        self.plan, self._rows, self._noisy, self._place = plan, rows, noisy, 0

    def standardise(self, centre: Floats, ratio: Floats) -> None:
        """Replace the features by standardised ones, from released numbers."""
        self._rows.map(lambda rows: rows.standardise(centre, ratio))

    def whiten(self, means: Floats, matrix: Floats) -> None:
        """Replace standardised features by linear functions of them, from released numbers."""
        self._rows.map(lambda rows: rows.whiten(means, matrix))

    @property
    def sd(self) -> float:
        """The noise of the next vector, in units of one user's norm."""
        return self.plan.sd(self._place, 1)

    def ask(self, per_user: UserVectors, size: int, l2_squared: int) -> tuple[Floats, float]:
        """The noisy sum of vectors whose squared norm is at most ``l2_squared``, and the noise in each number."""
        sd = self.plan.sd(self._place, l2_squared)
        self._place += 1
        total = self._rows.map(lambda rows: _total(per_user(rows), size))
        return np.array([float(value) for value in self._noisy(total, l2_squared)]), sd


def _total(blocks: Iterator[Floats], size: int) -> list[int]:
    """Exact: the numbers of a block are whole, and few enough to be summed as doubles."""
    total = np.zeros(size, dtype=np.int64)
    for block in blocks:
        total += block.sum(axis=0).astype(np.int64)
    return [int(value) for value in total]
