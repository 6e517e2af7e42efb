"""Matrix factorisation without privacy, by alternating least squares: what a recommender that sees everything does.

Minimises, over a vector per person and per item, the sum over all pairs of (1 + weight · liked) (liked - x·y)², plus
``penalty`` times the squared lengths of all vectors.

Reference: Hu, Koren and Volinsky, Collaborative Filtering for Implicit Feedback Datasets (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.recommender.at_server.sketches import Bits

Floats = NDArray[np.float64]

_AT_ONCE = 4096  # people whose equations are solved together


@dataclass(frozen=True)
class Factorisation:
    """A vector for each item."""

    items: Floats
    weight: float
    penalty: float

    def people(self, likes: Bits) -> Floats:
        """The best vector for each of these people, who need not be among those it was learnt from."""
        return _solve(likes, self.items, self.weight, self.penalty)

    def scores(self, likes: Bits) -> Floats:
        """How well each item fits each person; larger is better."""
        return np.asarray(self.people(likes) @ self.items.T)


def factorise(
    likes: Bits, dimensions: int, weight: float = 1.0, penalty: float = 10.0, rounds: int = 12, seed: int = 0
) -> Factorisation:
    """Learn from people x items, a like being true. The defaults are the best of a grid on MovieLens-100k."""
    found = np.random.default_rng(seed).normal(0, 0.1, (likes.shape[1], dimensions))
    for _ in range(rounds):
        people = _solve(likes, found, weight, penalty)
        found = _solve(likes.T, people, weight, penalty)
    return Factorisation(found, weight, penalty)


def _solve(likes: Bits, others: Floats, weight: float, penalty: float) -> Floats:
    """For each row of ``likes`` its best vector, the other side's vectors being fixed: one ridge regression each."""
    size = others.shape[1]
    products = (others[:, :, None] * others[:, None, :]).reshape(len(others), size * size)
    common = others.T @ others + penalty * np.eye(size)
    found = np.empty((len(likes), size))
    for at in range(0, len(likes), _AT_ONCE):
        some = likes[at : at + _AT_ONCE].astype(np.float64)
        left = common + weight * (some @ products).reshape(-1, size, size)
        right = (1 + weight) * (some @ others)
        found[at : at + _AT_ONCE] = np.linalg.solve(left, right[:, :, None])[:, :, 0]
    return found
