"""What a bound on users' norms takes from all groups together, as plausible outcomes with weights.

The posterior over L1 norms says how many users contribute how much. An L2 norm is modelled from it, not extrapolated by itself: a user
who adds v in rows worth u, spread over groups with concentration c, has ``v₂ = v·√(u/v + c)``. So a light user's rows lie in as many groups
as there are rows and a heavy user's L2 norm grows in proportion to v, a bend that the curves of the posterior do not have. u and c
are fitted to the noisy histogram of L2 norms where there is one. They also say in how many groups a user is, 1/(u/v + c): the
fewer, the more the losses of groups differ by chance. All of it is post-processing of released numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.bounding.over_groups import concentration, finely
from evenhand.population import Array, Population, Support
from evenhand.profiles import Histogram

_POINTS = (np.arange(4) + 0.5) / 4  # of a bucket, that stand for its users
_TOLERANCE = 0.15  # a prior: by which users per bucket of L2 norms may miss what L1 norms say: one breadth for all is a rough model
_FITTED = 4  # breadths that are kept; more differ little


@dataclass(frozen=True)
class Breadth:
    """How what a user adds spreads over groups.

    Args:
        weight: how much it is believed in.
        unit: what one row adds.
        concentration: Σ of the squared shares of a heavy user's groups: 1 if all is in one group.
    """

    weight: float
    unit: float
    concentration: float

    def groups(self, added: Array) -> Array:
        """In how many groups a user is who adds so much."""
        result: Array = 1 / np.minimum(self.unit / added + self.concentration, 1.0)
        return result

    def l2(self, added: Array) -> Array:
        """Their L2 norm."""
        result: Array = added / np.sqrt(self.groups(added))
        return result

    def added(self, l2: Array) -> Array:
        """How much a user with this L2 norm adds."""
        root = np.sqrt(self.unit**2 + 4 * self.concentration * l2**2)
        result: Array = np.maximum(2 * l2**2 / (self.unit + root), l2)
        return result


ONCE_EACH = (Breadth(1.0, 1.0, 0.0),)
"""A user counts once in each of v groups."""

NOT_KNOWN = (Breadth(0.5, 1.0, 1.0), Breadth(0.5, 1.0, 0.05))
"""A prior, where nothing was bought that tells: half of all tables are like home towns, one group per user, half like films,
with about twenty groups of a heavy user that count."""


def breadth_of_rows(groups: int, unit: float) -> tuple[Breadth, ...]:
    """If users' rows spread over the groups as all rows do together: for profiles that count rows only."""
    return (Breadth(1.0, unit, min(concentration(groups) / groups, 1.0)),)


def fitted_breadths(l1: Support, l2: Histogram, groups: int) -> tuple[Breadth, ...]:
    """The breadths that explain a noisy histogram of L2 norms best, given users by L1 norm."""
    sizes, users = finely(l1)
    noisy, edges = np.asarray(l2.counts, dtype=np.float64)[1:], np.array(l2.buckets.edges, dtype=np.float64)
    unit, scale = l2.buckets.unit, 1 / l2.epsilon
    units = [1.0] if unit == 1 else (unit * np.geomspace(1e-5, 1, 16)).tolist()
    # In a panel everybody has one row in each group, however many: nothing is concentrated.
    found = [Breadth(1.0, one, c) for one in units for c in (0.0, *np.geomspace(1 / groups, 1, 10).tolist())]
    evidence = []
    for breadth in found:
        places = np.searchsorted(edges, np.maximum(breadth.l2(sizes) * (1 - 1e-6), 0.5)) - 1
        expected = np.bincount(np.clip(places, 0, len(noisy) - 1), weights=users, minlength=len(noisy))
        spread = np.sqrt(scale**2 + (_TOLERANCE * expected) ** 2 / 2 + expected / 2)
        evidence.append(-float((np.abs(noisy - expected) / spread + np.log(spread)).sum()))
    best = np.argsort(evidence)[::-1][:_FITTED]
    weights = np.exp(np.array(evidence)[best] - max(evidence))
    return tuple(
        Breadth(weight, found[place].unit, found[place].concentration)
        for place, weight in zip(best.tolist(), (weights / weights.sum()).tolist(), strict=True)
    )


@dataclass(frozen=True)
class Lost:
    """Plausible outcomes of what was lost, in the unit of the norm.

    Args:
        weights: of the outcomes; they add up to 1.
        total: what was lost in all groups together.
        kept: what was left.
        squares: Σ of the squared losses of single users.
        per_group: the same, each divided by the user's number of groups.
    """

    weights: Array
    total: Array
    kept: Array
    squares: Array
    per_group: Array

    @classmethod
    def of(
        cls, people: Population, breadths: Sequence[Breadth], bound: float, gaussian: bool, of_l2: bool = False
    ) -> Lost:
        """What a bound on the L1 norm, or the L2 norm, takes; ``of_l2``, if the tables are themselves of L2 norms."""
        outcomes = []
        low, high = np.maximum(people.lows - 0.5, 1e-9), np.maximum(people.highs, people.sizes)
        low = np.where(people.highs <= people.lows, people.sizes, low)
        sizes = low[:, None] * (high / low)[:, None] ** _POINTS
        for breadth in breadths:
            added = breadth.added(sizes) if of_l2 else sizes
            norm = breadth.l2(added) if gaussian else added
            lost = added * np.maximum(1 - bound / norm, 0.0)
            each = (lost, added - lost, lost**2, lost**2 / breadth.groups(added))
            outcomes.append((people.weights * breadth.weight, *(people.users @ one.mean(axis=1) for one in each)))
        weights, total, kept, squares, inside = (np.concatenate(column) for column in zip(*outcomes, strict=True))
        return cls(weights / weights.sum(), total, kept, squares, inside)

    def of_total(self, kept: float) -> Lost:
        """If ``kept`` was left of some groups, or of more users, who lost the same part of what they have."""
        times = kept / np.maximum(self.kept, 1e-9)
        return Lost(self.weights, self.total * times, self.kept * times, self.squares * times, self.per_group * times)
