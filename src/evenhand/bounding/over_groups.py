"""The best bound over groups, and the noise that goes with it: forecast in what is lost, not in norms.

What counts is the root mean squared error over G groups: noise² + mean of bias². A user of norm v cut to T loses the part
1 − T/v of all they add, whatever the norm: one row in each of 400 groups has L2 norm 20; cut to 6, 280 rows are lost. What is
lost is not spread evenly over the groups: the mean of the squared bias is κ·(lost/G)², with κ = G·Σp² for groups of sizes p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
