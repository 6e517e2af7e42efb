"""The best bound over groups, and the noise that goes with it: forecast in what is lost, not in norms.

What counts is the root mean squared error over G groups: noise² + mean of bias². A user of norm v cut to T loses the part
1 − T/v of all they add, whatever the norm: one row in each of 400 groups has L2 norm 20; cut to 6, 280 rows are lost. What is
lost is not spread evenly over the groups: the mean of the squared bias is κ·(lost/G)², with κ = G·Σp² for groups of sizes p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.population import Population
from evenhand.profiles import Array, Support

_MANY = 40
"""A prior: with so many groups sizes are half as uneven as with very many. Few groups are made to be alike (days, departments); among
thousands (films, shops) a few hold most."""


def concentration(groups: int) -> float:
    """κ, as assumed: 1 if all groups are of one size; between 1 and 2 for two groups, 2 to 7 for thousands of films or books.

    A prior: it is never read off the table.
    """
    return 1 + 2 * groups / (groups + _MANY)


_CANDIDATES = 240  # bounds that are compared, a few percent apart
_LEAST = (
    0.05  # the smallest bound, in norms of the lightest users: less makes no difference where noise drowns everything
)
_POINTS = 8  # of a bucket, that stand for its users


@dataclass(frozen=True)
class GroupBound:
    """A bound on a norm over groups.

    Args:
        gaussian: whether it bounds the L2 norm, with Gaussian noise.
        amount: the bound.
        noise: forecast standard deviation of the noise in each group, in the unit of the norm.
        lost: forecast of what is lost over all groups together.
    """

    gaussian: bool
    amount: float
    noise: float
    lost: float

    def error(self, groups: int) -> float:
        """Forecast root mean squared error over the groups."""
        return math.hypot(self.noise, math.sqrt(concentration(groups)) * self.lost / groups)


@dataclass(frozen=True)
class GroupCurve:
    """The forecast over a range of bounds, for one kind of noise: `GroupBound` for each; ``total`` is what users add together."""

    gaussian: bool
    bounds: Array
    noise: Array
    lost: Array
    total: float

    def error(self, groups: int) -> Array:
        """Forecast root mean squared error over the groups."""
        result: Array = np.hypot(self.noise, math.sqrt(concentration(groups)) * self.lost / groups)
        return result

    def best(self, groups: int) -> GroupBound:
        """The bound with the smallest error."""
        return self.at(int(self.error(groups).argmin()))

    def at(self, place: int) -> GroupBound:
        """One of the bounds."""
        return GroupBound(self.gaussian, float(self.bounds[place]), float(self.noise[place]), float(self.lost[place]))


def best_bound(l1: Support, l2: Support | None, groups: int, laplace: float, gaussian: float | None) -> GroupBound:
    """The bound, and the noise, with the smallest forecast error of a group.

    Guarantee: reads public facts and bought ones only.

    Args:
        l1: users by L1 norm: by how much they add.
        l2: users by L2 norm; None if Gaussian noise is out of the question.
        groups: how many.
        laplace: standard deviation of Laplace noise for an L1 bound of 1.
        gaussian: standard deviation of Gaussian noise for an L2 bound of 1.
    """
    first, *others = (curve.best(groups) for curve in group_curves(l1, l2, groups, laplace, gaussian))
    return min([first, *others], key=lambda bound: bound.error(groups))


def group_curves(
    l1: Support, l2: Support | None, groups: int, laplace: float, gaussian: float | None
) -> tuple[GroupCurve, ...]:
    """What `best_bound` chooses from: every bound, for Laplace noise and, where it may be, for Gaussian noise."""
    sizes, users = finely(l1)
    curve = _curve(sizes, users, sizes, laplace, False)
    if l2 is None or gaussian is None:
        return (curve,)
    norms, people = finely(l2)
    # Who has a large L2 norm adds much: users are taken to be in the same order by both norms.
    order = (np.cumsum(people) - people / 2) / people.sum()
    added = np.interp(order, np.cumsum(users) / users.sum(), sizes)
    return curve, _curve(norms, people, np.clip(added, norms, norms * math.sqrt(groups)), gaussian, True)


def l2_of_rows(support: Support, groups: int, unit: float = 1) -> Support:
    """The L2 norms of users of whom only the number of rows is known, if their rows spread over the groups as all rows do together.

    Args:
        support: users by L1 norm.
        groups: how many.
        unit: what one row adds to the L1 norm.
    """
    part = np.sqrt(np.minimum(unit / support.sizes + concentration(groups) / groups, 1.0))
    return Support(support.sizes * part, support.users)


def roots(support: Support) -> Support:
    """Users by L2 norm, from users by number of groups: who counts once in each of m groups has L2 norm √m."""
    lowest = None if support.lowest is None else np.sqrt(support.lowest)
    return Support(np.sqrt(support.sizes), support.users, lowest)


def _curve(norms: Array, users: Array, added: Array, per_step: float, gaussian: bool) -> GroupCurve:
    """The forecast for many bounds."""
    bounds = np.geomspace(_LEAST * norms[0], norms[-1], _CANDIDATES)
    mass = users * added
    total = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    relative = np.append(np.cumsum((mass / norms)[::-1])[::-1], 0.0)
    above = np.searchsorted(norms, bounds, side="right")
    lost = np.maximum(total[above] - bounds * relative[above], 0.0)
    return GroupCurve(gaussian, bounds, per_step * bounds, lost, float(total[0]))


def finely(support: Support) -> tuple[Array, Array]:
    """The users of each bucket evenly over its logarithm: a bound may lie between two edges."""
    if support.lowest is None:
        return support.sizes, support.users
    # A size is the middle of its bucket's integers, lowest to highest.
    low, high = np.maximum(support.lowest - 0.5, 1e-9), 2 * support.sizes - support.lowest
    single = high <= support.lowest
    low = np.where(single, support.sizes, low)
    parts = (np.arange(_POINTS) + 0.5) / _POINTS
    sizes = low[:, None] * (high / low)[:, None] ** parts[None, :]
    return sizes.ravel(), np.repeat(support.users / _POINTS, _POINTS)


_LISTED = 1000  # groups that are listed one by one; smaller ones differ little from their neighbours
_STEEPEST = 3.0  # with a steeper law the largest group holds nearly everything, more than any κ that is assumed
_TYPICAL = {"small": 0.9, "middling": 0.5, "large": 0.1}  # ranks of the groups that a forecast shows


@dataclass(frozen=True)
class GroupSizes:
    """Groups by the part of all rows that they hold: ``groups[k]`` of them ``parts[k]`` each, the largest first.

    Args:
        parts: what one group holds of all rows.
        groups: how many groups are of this size.
        words: where they come from.
    """

    parts: Array
    groups: Array
    words: str

    @classmethod
    def assumed(cls, count: int) -> GroupSizes:
        """The j-th largest group has rows in proportion to j^−a, with the a whose κ is the one that bounds are chosen for."""
        first = np.unique(
            np.concatenate([np.arange(1, min(count, _LISTED) + 1), np.geomspace(1, count, _LISTED)]).astype(int)
        )
        groups = np.diff(np.append(first, count + 1)).astype(np.float64)
        rank = np.sqrt(first * (first + groups - 1))
        low, high, goal = 0.0, _STEEPEST, concentration(count)
        for _ in range(60):
            middle = (low + high) / 2
            parts = _normalised(rank**-middle, groups)
            low, high = (middle, high) if count * float(groups @ parts**2) < goal else (low, middle)
        words = f"group sizes are assumed to fall like rank^−{low:.2g}"
        return cls(_normalised(rank**-low, groups), groups, words if count > 1 else "one group")

    @classmethod
    def given(cls, sizes: Sequence[float]) -> GroupSizes:
        """Groups whose sizes are public, or a public guess; only their proportions count."""
        found = np.sort(np.asarray(sizes, dtype=np.float64).ravel())[::-1]
        if not found.size or not np.isfinite(found).all() or not (found > 0).all():
            raise UsageError(
                f"groups={list(sizes)[:5]}: expected how many groups there are, such as groups=300, or the size of each, all above 0."
            )
        different, count = np.unique(-found, return_counts=True)
        groups = count.astype(np.float64)
        return cls(_normalised(-different, groups), groups, "group sizes are as given")

    @property
    def count(self) -> int:
        """How many groups."""
        return round(float(self.groups.sum()))

    def typical(self) -> dict[str, int]:
        """Where a small, a middling and a large group stand: a tenth of the groups are smaller, half, and all but a tenth."""
        upto = np.cumsum(self.groups)
        return {name: int(np.searchsorted(upto, max(rank * self.count, 0.5))) for name, rank in _TYPICAL.items()}

    def visited(self, rows: Array) -> Array:
        """In how many groups a user with so many rows is, if rows fall into groups by their size; on average."""
        return np.concatenate(
            [_inside(self.parts, some).T @ self.groups for some in np.array_split(rows, len(rows) // 64 + 1)]
        )

    def users(self, support: Support, limit: int | None = None) -> Array:
        """How many users a group of each size has; with a limit, of how many users it is among the so many groups that they support."""
        weight = support.users
        if limit is not None:
            weight = weight * np.minimum(1.0, limit / np.maximum(self.visited(support.sizes), 1.0))
        return np.concatenate(
            [_inside(some, support.sizes) @ weight for some in np.array_split(self.parts, len(self.parts) // 64 + 1)]
        )


def _inside(parts: Array, rows: Array) -> Array:
    """The probability that a user with so many rows has one in a group of this size."""
    with np.errstate(divide="ignore"):  # one group holds everything
        result: Array = -np.expm1(rows[None, :] * np.log1p(-np.minimum(parts, 1.0))[:, None])
    return result


def _normalised(sizes: Array, groups: Array) -> Array:
    result: Array = sizes / float(groups @ sizes)
    return result


_TABLES = 60  # that stand for all
_SIZES = 64


@dataclass(frozen=True)
class Sizes:
    """Plausible lists of users by number of rows: ``users[c]`` of each size under possibility c, with its weight.

    ``visible`` says whether anybody stood out from the noise.
    """

    sizes: Array
    users: Array
    weights: Array
    visible: bool = True

    @classmethod
    def exact(cls, support: Support) -> Sizes:
        """Of public counts: at most a few dozen sizes, enough for a forecast."""
        if len(support.sizes) <= _SIZES:
            return cls(support.sizes, support.users[None, :], np.ones(1))
        edges = np.geomspace(support.sizes[0], support.sizes[-1] * 1.0001, _SIZES)
        place = np.searchsorted(edges, support.sizes, side="right")
        users = np.bincount(place, weights=support.users).astype(np.float64)
        rows = np.bincount(place, weights=support.users * support.sizes)
        some = users > 0
        return cls(rows[some] / users[some], users[some][None, :], np.ones(1))

    @classmethod
    def of(cls, people: Population) -> Sizes:
        """A few tables for all."""
        some = people.few(_TABLES, people.users @ people.sizes**1.5)
        sizes, users = some.listed()
        there = users @ sizes >= 0.5
        if not there.any():  # nobody, as far as one can see: any list will do
            return cls(np.ones(1), np.ones((1, 1)), np.ones(1), False)
        return cls(sizes, users[there], some.weights[there] / some.weights[there].sum(), people.visible)

    @property
    def rows(self) -> Array:
        """Of each possibility."""
        return self.users @ self.sizes

    def activity(self) -> Array:
        """Logarithm of the rows of a user of each size, in standard deviations from the mean over users."""
        people, logs = self.weights @ self.users, np.log(self.sizes)
        logs = logs - people @ logs / people.sum()
        deviation = math.sqrt(float(people @ logs**2 / people.sum()))
        return logs / deviation if deviation > 0.05 else np.zeros_like(logs)
