"""How many users have how many rows: exactly, or as far as a noisy histogram shows them.

Notation of the sums: ``n`` rows in all, ``w = min(h, s)``, ``n_h = Σ w``. The error of a weighted mean with weights q' = w/n_h
against the row mean (weights r = s/n) is bounded by ρτ·χ with χ² = Σ q'²/r − 1 (`docs/proofs/chi-square-bias.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.population.buckets import Buckets
from evenhand.population.occupied import CAUTIOUS, highest_occupied

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Support:
    """How many users have how many rows: ``users[k]`` of them ``sizes[k]`` each, sizes increasing and positive.

    Read from a histogram, a size stands for a bucket, and ``lowest`` says where the bucket begins.
    """

    sizes: Array
    users: Array
    lowest: Array | None = None

    @property
    def people(self) -> float:
        """The number of users."""
        return float(self.users.sum())

    @property
    def rows(self) -> float:
        """The number of rows."""
        return float(self.users @ self.sizes)

    def spread_out(self) -> Support:
        """Each bucket's users at a quarter and three quarters of it: at its middle alone a bound there would seem to cut nobody."""
        if self.lowest is None:
            return self
        quarter = (self.sizes - self.lowest) / 2
        sizes, place = np.unique(np.concatenate([self.sizes - quarter, self.sizes + quarter]), return_inverse=True)
        return Support(sizes, np.bincount(place, weights=np.tile(self.users / 2, 2)).astype(np.float64))

    def largest(self, rank: float) -> float:
        """The size of the user at this rank from the top (1 is the largest); 0 if there are fewer users."""
        k = self._place(rank)
        return float(self.sizes[k]) if k >= 0 else 0.0

    def heaviest(self, users: float) -> tuple[int, float]:
        """The least number of rows of the ``users`` users with most rows, and how many users have that many."""
        k = max(self._place(users), 0)
        least = self.sizes if self.lowest is None else self.lowest
        return max(1, math.floor(least[k])), float(self.users[k:].sum())

    def _place(self, rank: float) -> int:
        from_top = np.cumsum(self.users[::-1])
        return len(self.sizes) - 1 - int(np.searchsorted(from_top, rank - 1e-9))


@dataclass(frozen=True)
class Sums:
    """Prefix sums over a support, so that every bound costs O(log) instead of a pass over the users."""

    support: Support
    below: Array
    above: Array
    inverse_above: Array

    @classmethod
    def of(cls, support: Support) -> Sums:
        """Sum once, from the bottom and from the top."""
        s, u = support.sizes, support.users
        below = np.concatenate([[0.0], np.cumsum(u * s)])
        above = np.concatenate([np.cumsum(u[::-1])[::-1], [0.0]])
        inverse = np.concatenate([np.cumsum((u / s)[::-1])[::-1], [0.0]])
        return cls(support, below, above, inverse)

    def at(self, h: Array) -> tuple[Array, Array, Array]:
        """For each ``h``: rows of users at or below it, number of users above, Σ 1/s over those."""
        k = np.searchsorted(self.support.sizes, h, side="right")
        return self.below[k], self.above[k], self.inverse_above[k]

    def kept(self, h: Array) -> Array:
        """n_h = Σ min(h, s)."""
        below, above, _ = self.at(h)
        return below + above * h

    def chi_square(self, h: Array) -> Array:
        """χ²(h) = n·Σ min(h,s)²/s / n_h² − 1, zero when nothing is cut."""
        below, above, inverse = self.at(h)
        kept = below + above * h
        return np.maximum(self.support.rows * (below + inverse * h * h) / kept**2 - 1, 0.0)

    def total_variation(self, h: Array) -> Array:
        """TV(h) = Σ max(0, s/n − w/n_h): the weight that the bound moves from busy users to the others.

        A user loses weight where s/w > n/n_h, that is above the size h·n/n_h.
        """
        kept, rows = self.kept(h), self.support.rows
        below, above, _ = self.at(h * rows / kept)
        return np.maximum((rows - below) / rows - above * h / kept, 0.0)


def support_of_counts(rows: npt.ArrayLike) -> Support:
    """The exact support of a list of row counts, one per user; users without rows don't count."""
    sizes, users = np.unique(np.asarray(rows, dtype=np.float64), return_counts=True)
    return Support(sizes[sizes > 0], users[sizes > 0].astype(np.float64))


def support_of_histogram(buckets: Buckets, counts: npt.ArrayLike, scale: float) -> Support:
    """A plausible support behind a noisy histogram: nothing above the highest occupied bucket, nothing negative.

    Cutting negative counts off would invent users, so what remains is scaled back to the noisy total.
    """
    noisy = np.asarray(counts, dtype=np.float64)[1:-1]
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    top, found = highest_occupied(noisy[None, :], edges, scale, buckets.unit, CAUTIOUS)
    if not found[0]:
        return Support(np.array([float(buckets.unit)]), np.array([max(float(noisy[0]), 1.0)]))
    last = int(top[0]) + 1
    noisy, edges = noisy[:last], edges[:last]
    positive = np.maximum(noisy, 0.0)
    users = positive * min(max(noisy.sum(), 1.0) / positive.sum(), 1.0)
    below = np.concatenate([[0.0], edges[:-1]])
    return Support(((below + 1 + edges) / 2)[users > 0], users[users > 0], (below + 1)[users > 0])
