"""What bounding users' distances from the centres does to means by group.

A user with s rows lies s times a distance per row from the centres; what exceeds the bound is cut. Rows and distances are known from noisy
histograms, those too few to be seen included, and where in its bucket everybody lies is not: each combination gives an amount.

In which direction is known for some of it: a distance larger than the centre's from an end of the range lies on the other side. So in a
column with a long tail (pay, spending, visits), whose centres are near the lower bound, nearly all that is cut lies above. For the rest, by chance each user's
cut has either sign, and on average heavy users' cuts have `ONE_SIDED` of their length in common, in every group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.bounding.lost_by_group import FARTHEST, HETEROGENEITY, NOT_KNOWN, Lost, likely_root_mean_square
from evenhand.population import Array, Buckets, Population, Support, evenly
from evenhand.population.occupied import CAUTIOUS, highest_occupied, last_occupied

ONE_SIDED = 0.8
"""A prior: which part of what is cut from all users together is left after opposite directions cancel, where the sign is not known. Those who are cut are the
busiest, and may be of one kind (machines)."""

BUSIER = {1.0: 0.55, 2.0: 0.25, 3.0: 0.2}
"""A prior: how many times more is cut on the side that is known than if busy users lay as far out as others; who stays long often earns more."""

_MOST = 3.0  # times the usual that a group is believed to lose
_INSIDE = np.array([1 / 6, 1 / 2, 5 / 6])  # where in its bucket everybody may lie
_CURVES = 24  # of rows and of distances that stand for all
_AMOUNTS = 41
_APART = np.exp(HETEROGENEITY * np.array([-1.7320508, 0.0, 1.7320508]) - HETEROGENEITY**2 / 2)  # Gauss–Hermite
_FACTORS = np.outer([*BUSIER], _APART).ravel()
_FACTOR_WEIGHTS = np.outer([*BUSIER.values()], [1 / 6, 2 / 3, 1 / 6]).ravel()


@dataclass(frozen=True)
class Moved:
    """How far bounding moved the mean of each group, as parts of the range.

    Args:
        amounts: by group, increasing, what to add where it is known on which side users were cut: as likely one as the other.
        deviation: by group, of what has either sign.
    """

    amounts: Array
    deviation: Array


@dataclass(frozen=True)
class CutDistances:
    """What is cut, in parts of the range times rows.

    Args:
        amounts: in all groups together, without signs: as likely one as the other.
        rows: of all users, in each of these cases.
        part: of all distances, that is cut: as likely more as less.
        per_group: Σ of squared cuts of users, each divided by the user's number of groups.
        lengths: distances per row of those who are cut.
        parts: of all that is cut, which part is theirs.
    """

    amounts: Array
    rows: Array
    part: float
    per_group: float
    lengths: Array
    parts: Array

    @classmethod
    @np.errstate(all="ignore")  # a warning would show what was released
    def of(
        cls,
        rows: Population,
        distances: Sequence[tuple[float, Population]] | None,
        bound: float,
        unit: float,
    ) -> CutDistances:
        """What a bound cuts off from users who have so many rows.

        Args:
            rows: users by number of rows, in ``unit`` to a row.
            distances: from how many rows on, and users by distance per row, in ``unit`` to the range; a prior if None.
            bound: on rows × distance.
            unit: how many steps are one row, and one range.
        """
        users, user_weights, many = _law(rows, unit)
        spread = np.mean([1 / one.groups(many) for one in NOT_KNOWN], axis=0)
        laws = [_lengths(None, unit)] if distances is None else [_lengths(law, unit) for _, law in distances]
        starts = [0.0] if distances is None else [start for start, _ in distances]
        total = squares = far = np.zeros((1, 1, len(users), 1))
        weights, parts = user_weights[:, None], list[Array]()
        for (shares, share_weights, lengths), start, end in zip(laws, starts, [*starts[1:], math.inf], strict=True):
            own = np.where((many[1] >= start) & (many[1] < end), users, 0.0)
            # By place inside the buckets of rows and of distances, then by bucket of each.
            away = many[:, None, :, None] * lengths[:, None, :]
            cut = np.maximum(away - bound, 0.0)
            total = _each_with_each(total, own @ cut @ shares.T)
            far = _each_with_each(far, own @ away @ shares.T)
            squares = _each_with_each(squares, own @ (cut**2 * spread[:, None, :, None]) @ shares.T)
            weights = np.multiply.outer(weights, share_weights).reshape(len(users), -1)
            parts.append((user_weights @ own @ cut.mean(axis=0) * (share_weights @ shares)).ravel())
        every, mass = np.broadcast_to(weights, total.shape).ravel(), np.concatenate(parts)
        chosen = evenly(total.ravel(), every, _AMOUNTS)
        everybody = np.broadcast_to((many @ users.T)[:, None, :, None], total.shape).ravel()
        return cls(
            total.ravel()[chosen],
            everybody[chosen],
            float(np.median((total / np.maximum(far, 1e-300)).ravel()[chosen])),
            likely_root_mean_square(np.sqrt(squares.ravel()), every) ** 2,
            np.concatenate([lengths.ravel() for _, _, lengths in laws]),
            mass / max(float(mass.sum()), 1e-300),
        )

    def side(self, centres: Array) -> Array:
        """For groups with such centres, as parts of the range: which part of what is cut surely lies above, less what lies below."""
        above, below = (
            np.clip(self.lengths / np.maximum(end[:, None], 1e-9) - 1, 0.0, 1.0) for end in (centres, 1 - centres)
        )
        side: Array = (above - below) @ self.parts
        return side

    def by_group(self, rows: Array, centres: Array, spread: float = 1.0) -> Moved:
        """For groups with so many rows around such centres, as parts of the range.

        ``spread`` says by how much a cut norm stands for more in all groups together: 1 for L1, √k for L2 norms of users in k groups.
        """
        present, side = np.maximum(rows, 1.0), self.side(centres)
        whole = float(present.sum())
        # If there are more rows than the profile says, they lost the same part.
        believed = np.clip(self.rows, 1e-9, whole)
        each = spread * self.amounts / believed
        different = np.outer(each, _FACTORS).ravel()
        usual = different[evenly(different, np.tile(_FACTOR_WEIGHTS, len(each)), _AMOUNTS)]
        # Of groups, one with larger values has more of those that are cut.
        ends = np.where(side > 0, centres, 1 - centres)
        larger = np.clip(ends * whole / max(float(present @ ends), 1e-9), 1 / _MOST, _MOST)
        amounts = np.sort(np.clip(np.outer(side * larger, usual), -1.0, 1.0), axis=1)
        # Where nearly all is cut the centres are hardly put right, so that all may lie on one side of them.
        common = ONE_SIDED + (1 - ONE_SIDED) * self.part**2
        unknown = common * (1 - np.abs(side)) * likely_root_mean_square(each, np.ones(len(each)))
        by_chance = self.per_group / (np.median(believed) * present)
        return Moved(amounts, np.minimum(np.sqrt(by_chance + unknown**2), FARTHEST))


def _lengths(law: Population | None, unit: float) -> tuple[Array, Array, Array]:
    """The part of the users at each distance, by curve; the weights of the curves; and the distances."""
    if law is None:
        return np.eye(len(UNSEEN[0])), UNSEEN[1], UNSEEN[0][None, :]
    shares, weights, lengths = _law(law, unit)
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9), weights, np.minimum(lengths, 1.0)


def _each_with_each(first: Array, second: Array) -> Array:
    """Sums over the curves of two classes, along the last axis."""
    both: Array = first[..., :, None] + second[..., None, :]
    return both.reshape(*both.shape[:-2], -1)


def _law(law: Population, unit: float) -> tuple[Array, Array, Array]:
    """Users by table and bucket, the weights of the tables, and by place inside them where the buckets' users are."""
    some = law.few(_CURVES, law.users @ law.sizes) if len(law.weights) > _CURVES else law
    low = np.maximum(law.lows - np.where(law.highs > law.lows, 0.5, 0.0), 1e-9)
    places: Array = low * (law.highs / low) ** _INSIDE[:, None] / unit
    return some.users, some.weights, places


def part_lost(rows: Population, bound: float) -> float:
    """Which part of all rows users above a bound on their rows lose."""
    lost = Lost.of(rows, NOT_KNOWN, bound, False)
    return likely_root_mean_square(lost.total / np.maximum(lost.total + lost.kept, 1e-9), lost.weights)


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
