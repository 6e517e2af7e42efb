"""The best bounds for means by group: on a user's distances from the centres, and on a user's rows, over all groups together.

How far a user with s rows lies from the centres is s times a distance per row. So the norms of all users are forecast from two
noisy histograms: of rows, which shows the heavy users, and of distances per row, which differ little among users with many rows and
so are seen with a small part of ε. The bound minimises ``noise² + κ·(cut/G)² + Σ cut²/G``, the mean squared error of a group's sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.population import Array, Buckets, Population, Support
from evenhand.population.occupied import CAUTIOUS, highest_occupied, last_occupied

KAPPA = 2.0
"""How unevenly what is cut spreads over groups: G·Σp², 1 for groups of equal size, about 3 for popular things."""

UNSEEN = (np.array([0.05, 0.1, 0.25]), np.array([0.3, 0.4, 0.3]))
"""A prior: distances per row as parts of the range, and how likely each is, where none stands out from the noise."""

_EDGES = 4.0 ** (np.arange(-24, 1) / 3)  # distances per row, as parts of the range: down to 2^-16, a grid step
_STEPS = Buckets((0, *np.rint(_EDGES * 2**16).astype(int).tolist()), 2**16)
_WANTED = 80.0  # users in units of the noise's scale that are asked for their distance: so many show a shape
_HEAVY = 0.4  # of all users, those with most rows are asked at least: their distances are cut, and they hold most rows
_BUSY, _FEWEST = 0.15, 12.0
"""Of all users, those with most rows, whose distances are counted apart: they may lie further out than others (pay), and they are cut. Where
they are so many scales of the noise."""
_VISIBLE = 2.0  # scales of the noise above which a bucket counts: one empty bucket in fifteen does, which widens a bound a little
_CAPS = 160  # bounds that are compared
_LEAST_CAP, _LARGEST_CAP = 1e-4, 1.1  # of the largest norm: from nearly everybody cut to nobody
_HARDLY = 1 / 4  # of what is cut that a rough mean feels: numerator and denominator lose alike


@dataclass(frozen=True)
class Distances:
    """A histogram of distances per row to buy, from users with at least so many rows; ``scale`` is that of its noise.

    Those with at least ``busy`` rows are counted apart, in buckets of their own; none if that is infinite.
    """

    rows: float
    scale: float
    edges: Array
    busy: float = math.inf

    @classmethod
    def of(cls, support: Support, scale: float) -> Distances:
        """Ask the users with most rows: their distances have the least sampling error, and bounds affect them most."""
        wanted, few = max(_WANTED * scale, _HEAVY * support.people), _BUSY * support.people
        least = support.sizes if support.lowest is None else support.lowest
        start, busy = (float(least[max(support._place(users), 0)]) for users in (wanted, few))
        return cls(start, scale, _EDGES, busy if busy > start and few > _FEWEST * scale else math.inf)

    @property
    def buckets(self) -> int:
        """The number of buckets, the open one at the top included."""
        return len(self.edges) + 1

    @property
    def size(self) -> int:
        """The number of all counts."""
        return self.buckets * (1 if math.isinf(self.busy) else 2)

    def classes(self, counts: npt.ArrayLike) -> list[tuple[float, Array]]:
        """From how many rows on, and the counts."""
        each = np.asarray(counts, dtype=np.float64).reshape(-1, self.buckets)
        return list(zip((0.0, self.busy), each, strict=False))

    def norms(self, support: Support, counts: npt.ArrayLike) -> Support | None:
        """Users by norm, from their rows and the distances that stand out; None if none does."""
        seen = [(start, self.seen(own)) for start, own in self.classes(counts)]
        known = [distances for _, distances in seen if distances is not None]
        if not known:
            return None
        rows, norms = support.spread_out(), list[Support]()
        ends = [start for start, _ in seen[1:]] + [math.inf]
        for (start, distances), end in zip(seen, ends, strict=True):
            own = (rows.sizes >= start) & (rows.sizes < end)
            if own.any():
                norms.append(norms_of(Support(rows.sizes[own], rows.users[own]), distances or known[-1]))
        sizes, place = np.unique(np.concatenate([one.sizes for one in norms]), return_inverse=True)
        users = np.bincount(place, weights=np.concatenate([one.users for one in norms]))
        return Support(sizes, users.astype(np.float64))

    def laws(self, counts: npt.ArrayLike) -> list[tuple[float, Population]]:
        """From how many rows on, and the distances of such users, with those too few to stand out."""
        return [(start, self.law(own)) for start, own in self.classes(counts)]

    def seen(self, counts: npt.ArrayLike) -> tuple[Array, Array] | None:
        """Distances that stand out from the noise, with how many users have each; None if none does."""
        noisy = self._without_open(counts)
        top, _ = highest_occupied(noisy[None, :], self.edges, self.scale, 1.0, CAUTIOUS)
        _, found = last_occupied(noisy[None, :], self.edges, self.scale)  # a false alarm would cut nearly everybody
        seen = np.where((noisy > _VISIBLE * self.scale) & (np.arange(len(noisy)) <= top[0]), noisy, 0.0)
        if not found[0] or not seen.any():
            return None
        there = seen > 0
        return self.edges[there] * (1 + 4 ** (-1 / 3)) / 2, seen[there]

    def law(self, counts: npt.ArrayLike) -> Population:
        """The same in steps of 2^-16 of the range, with those too few to stand out: the tail of what is cut."""
        return Population.behind(_STEPS, np.concatenate([[0.0], self._without_open(counts), [0.0]]), self.scale)

    def _without_open(self, counts: npt.ArrayLike) -> Array:
        """The open bucket at the top holds what rounding moves above 1."""
        noisy = np.asarray(counts, dtype=np.float64)
        return np.append(noisy[:-2], noisy[-2] + noisy[-1])


def norms_of(support: Support, distances: tuple[Array, Array]) -> Support:
    """Users by norm, from their rows and the distances per row that were seen, with how many users have each."""
    rows, (middle, people) = support.spread_out(), distances
    norms = np.outer(rows.sizes, middle).ravel()
    users = np.outer(rows.users, people / people.sum()).ravel()
    sizes, place = np.unique(norms, return_inverse=True)
    return Support(sizes, np.bincount(place, weights=users).astype(np.float64))


def best_residual_bound(norms: Support, noise: float, groups: int, spread: float) -> float:
    """The bound on a user's distances over all groups.

    Args:
        norms: users by norm.
        noise: the standard deviation of a group's noise under a bound of 1.
        groups: how many there are.
        spread: by how much a cut norm stands for more in the groups together: 1 for L1, √k for L2 norms of users in k groups.
    """
    largest = float(norms.sizes[-1])
    bounds = np.geomspace(largest * _LEAST_CAP, largest * _LARGEST_CAP, _CAPS)
    total, squares = _cut(norms, bounds)
    error = (noise * bounds) ** 2 + KAPPA * (spread * total / groups) ** 2 + squares / groups
    return float(bounds[error.argmin()])


def best_rows_bound(rows: Support, noise: float, groups: int, spread: float) -> float:
    """The bound on a user's rows over all groups; arguments as above."""
    rows = rows.spread_out()
    total, _ = _cut(rows, rows.sizes)
    error = (noise * rows.sizes) ** 2 + KAPPA * (spread * total / groups) ** 2
    return float(rows.sizes[error.argmin()])


def _cut(norms: Support, bounds: Array) -> tuple[Array, Array]:
    """What each bound cuts off: in all, and the sum of squares."""
    beyond = np.searchsorted(norms.sizes, bounds, side="right")
    count, first, second = (
        np.append(np.cumsum((norms.users * norms.sizes**power)[::-1])[::-1], 0.0)[beyond] for power in (0, 1, 2)
    )
    total = np.maximum(first - bounds * count, 0.0)
    return total, np.maximum(second - 2 * bounds * first + bounds**2 * count, 0.0)


def typical_groups(groups_per_user: Support) -> float:
    """The number of groups of the user behind a typical pair of user and group."""
    sizes, users = groups_per_user.sizes, groups_per_user.users
    return float(users @ sizes**2) / max(float(users @ sizes), 1.0)


def best_groups_bound(groups_per_user: Support, noise: float, groups: int, squared: bool) -> float:
    """How many groups a user counts in at most, when rough means are released; what is cut hardly moves a ratio."""
    sizes = np.minimum(groups_per_user.sizes, groups)
    bounds = np.unique(np.append(sizes, 1.0))
    total, _ = _cut(Support(sizes, groups_per_user.users), bounds)
    norms = np.sqrt(bounds) if squared else bounds
    return float(bounds[((noise * norms) ** 2 + (_HARDLY * total / groups) ** 2).argmin()])
