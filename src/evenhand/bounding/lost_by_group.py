"""How what a bound took from all groups together falls on each of them: a model, and a correction that follows from it.

What was lost in all is known as far as the bought profile tells (`lost_over_groups.py`). Which groups lost it is not. The model: a group
loses in proportion to its released size, but

- groups differ in their heavy users' share, by a factor with standard deviation `HETEROGENEITY`, or more where few are heavy (`RARE`), and
- heavy users are few and each is in few groups, so that a group has more or fewer of them by chance.

Both are taken to be log-normal. All of it is post-processing: it reads released numbers and priors only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evenhand.bounding.over_groups import concentration, finely
from evenhand.population import Population, Support
from evenhand.profiles import Array, Histogram

HETEROGENEITY = 0.4
"""A prior: how much groups differ in their heavy users' share of what they hold, as a standard deviation over the mean."""

RARE = 0.15
"""A prior: the same over the root of the part that is lost, where that is more. Those who move between schools, towns or wards are in some of them and not
in others: on 25 real tables, users by group, groups differ by 0.03 to 0.5 where a quarter or more is lost, by 0.6 to 1.8 at a tenth, and by 1 to 3 at a hundredth."""

UNEVEN = 0.3
"""A prior: by how much sizes of groups differ at least, over their mean, where noise hides how much they do."""

SURE = 0.15
"""The correction of a group is this quantile of its loss: it should lower the error where the model is a little wrong, too. And heavy
users may prefer small groups, so that groups larger than the average get less than their share of it: ∝ √size. On seven real tables a
quarter, with or without the root, has 1% less error, and in the worst case a fifth more."""

_MISFIT = 0.05  # a prior: by which the profile may miss the total that was released, besides noise; within a bucket users lie anywhere

REFUTED = 1e-3
"""If all outcomes together explain the released total so badly, against one that meets it, the profile was wrong: as a number that is off
by 3.7 standard deviations."""

_EDGES = np.array([0.0, 0.025, 0.1, 0.3, 0.5, 0.7, 0.9, 0.975, 1.0])
"""Outcomes are put together into classes between these quantiles of what was lost in all. These and the following are points of sums that
stand for integrals; they say nothing about tables."""
_Z = np.array([NormalDist().inv_cdf(part) for part in (0.01, 0.06, 0.2, 0.5, 0.8, 0.94, 0.99)])
_Z_WEIGHTS = np.array([0.035, 0.095, 0.22, 0.3, 0.22, 0.095, 0.035])
_AROUND, _AROUND_WEIGHTS = np.array([-math.sqrt(3), 0.0, math.sqrt(3)]), np.array([1 / 6, 2 / 3, 1 / 6])
_LEVELS = np.concatenate([[0.004, 0.012, 0.022], np.arange(0.04, 0.97, 0.04), [0.978, 0.988, 0.996]])
_LEVEL_WEIGHTS = np.diff(np.concatenate([[0.0], (_LEVELS[1:] + _LEVELS[:-1]) / 2, [1.0]]))
_MOST_APART = 2.0  # by which groups differ at most
_CHANCE = 1e4  # variance over squared mean: more is a group without heavy users, whatever the number
_MOST = 50.0  # a prior: the bound leaves at least a fiftieth; what takes more has long said that it can't tell
_MOST_REPEATED = 3.0  # times its noise that a loss repeats: where more is lost than that the release can't tell anyway
_SMALLEST = 0.02  # of the mean size that any group has at least, so that none is believed to lose nothing


@dataclass(frozen=True)
class GroupLosses:
    """What each group may have lost.

    Args:
        amounts: for each group, quantiles of what it lost.
        weights: of the quantiles, the same for all groups.
        sure: what each group lost at least, probably.
        mostly: for each group, how probable it is that it lost more than it kept.
        refuted: whether the groups hold far more than the profile says, so that it was wrong.
    """

    amounts: Array
    weights: Array
    sure: Array
    mostly: Array
    refuted: bool = False


def losses_by_group(lost: Lost, released: Array, deviation: float) -> GroupLosses:
    """Spread what was lost over the groups.

    Args:
        lost: in all groups together, in the unit of the norm.
        released: the groups' noisy sizes in that unit, as they were measured.
        deviation: of their noise.
    """
    groups = len(released)
    believed, refuted = _with_total(lost, float(released.sum()), deviation * math.sqrt(groups))
    kept, part = _sizes(released, deviation)
    whole = float(kept.sum())
    shares = kept / whole
    weights, total, squares, per_group = _classes(believed, _MOST * whole)
    amounts, beliefs = [], []
    for weight, mean_lost, square, inside in zip(weights, total, squares, per_group, strict=True):
        mean = shares * mean_lost
        # A user of m groups is in this one with probability m·share, at most 1, and loses 1/m there, at least the share.
        chance = shares * np.maximum(shares * square, inside)
        apart = min(max(HETEROGENEITY, RARE / math.sqrt(max(mean_lost / (whole + mean_lost), 1e-9))), _MOST_APART)
        variation = np.log1p(apart**2 + np.minimum(chance, _CHANCE * mean**2) / np.maximum(mean**2, 1e-200))
        factors = np.exp(np.sqrt(variation)[:, None] * _Z - variation[:, None] / 2)
        amounts.append(mean[:, None] * factors)
        beliefs.append(weight * _Z_WEIGHTS)
    lost_by_group, belief = np.concatenate(amounts, axis=1), np.concatenate(beliefs)
    # The loss goes with the size, whose noise it repeats.
    repeated = part * min(float(weights @ total) / whole, _MOST_REPEATED)
    blur = deviation * math.sqrt((1 + repeated) ** 2 - 1)
    blurred = (lost_by_group[:, :, None] + blur * _AROUND).reshape(groups, -1)
    levels = np.append(_LEVELS, SURE)
    quantiles = _quantiles(blurred, (belief[:, None] * _AROUND_WEIGHTS).ravel(), levels)
    mostly = (lost_by_group > np.maximum(kept, deviation)[:, None]) @ belief / belief.sum()
    sure = np.maximum(quantiles[:, -1], 0.0) * np.sqrt(np.minimum(1 / (groups * shares), 1.0))
    return GroupLosses(quantiles[:, :-1], _LEVEL_WEIGHTS, sure, mostly, refuted)


def _with_total(lost: Lost, released: float, deviation: float) -> tuple[Lost, bool]:
    """Outcomes are the more likely the better they explain the total that was released; and whether none does, since it is far more.

    Then there are more users than the profile says: they are taken to lose the same part of what they have.
    """
    spread = np.sqrt(deviation**2 + (_MISFIT * lost.kept) ** 2) + 1e-9
    likely = lost.weights * np.exp(-np.minimum(((released - lost.kept) / spread) ** 2 / 2, 600.0))
    if likely.sum() < REFUTED and released > float(lost.weights @ lost.kept):
        return lost.of_total(released), True
    if not likely.sum() > 0:
        return lost, False
    return Lost(likely / likely.sum(), lost.total, lost.kept, lost.squares, lost.per_group), False


def _sizes(released: Array, deviation: float) -> tuple[Array, float]:
    """What each group kept: pulled towards the mean as far as noise is larger than groups differ; and how far each counts by itself."""
    mean = max(float(released.mean()), deviation / math.sqrt(len(released)), 1e-9)
    between = max(float(released.var()) - deviation**2, (UNEVEN * mean) ** 2)
    part = between / (between + deviation**2)
    return np.maximum(mean + part * (released - mean), _SMALLEST * mean), part


def _classes(lost: Lost, most: float) -> tuple[Array, Array, Array, Array]:
    """Outcomes in classes by what was lost in all: weights and means."""
    order = np.argsort(lost.total)
    weights = lost.weights[order]
    place = np.searchsorted(_EDGES, np.cumsum(weights) - weights / 2, side="right") - 1
    mass = np.bincount(place, weights=weights, minlength=len(_EDGES)).astype(np.float64)
    means = (
        np.bincount(place, weights=weights * one[order], minlength=len(_EDGES))[mass > 0] / mass[mass > 0]
        for one in (np.minimum(lost.total, most), lost.squares, lost.per_group)
    )
    total, squares, per_group = means
    return mass[mass > 0], total, squares, per_group


def _quantiles(values: Array, weights: Array, levels: Array) -> Array:
    """Quantiles of weighted values, row by row."""
    order = np.argsort(values, axis=1)
    ordered, mass = np.take_along_axis(values, order, axis=1), weights[order]
    reached = np.cumsum(mass, axis=1)
    reached = (reached - mass / 2) / reached[:, -1:]
    return np.stack([np.interp(levels, reached[row], ordered[row]) for row in range(len(values))])


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


USERS_DIFFER = 0.1
"""τ, a prior: the standard deviation of users' means. Ratings from ½ to 5 have 0.45, a tenth of their range."""

BUSY_DIFFER = 1 / 40
"""ρτ, a prior: how far busy users differ from others. Ratings, purchases and book ratings show up to a fortieth of the range."""

_LIKELY = 0.9
"""The quantile at which the largest outcomes count: as for totals (`TRIMMED`), nothing guards against a single giant."""

FARTHEST = 0.5
"""Of the range, by which a bound may move an average at most: further, the interval is as wide as the range."""

GROUPS = 2.0
"""A prior: the harmonic mean of a user's number of groups. In more groups a user has fewer rows in each."""


@dataclass(frozen=True)
class MovedWeight:
    """What a bound on the rows of users does to averages by group.

    Args:
        among_few: Σ(q' − r)² over all users.
        chi: χ.
    """

    among_few: float
    chi: float

    @classmethod
    def of(cls, rows: Population, bound: float) -> MovedWeight:
        """If a user's rows of all groups together may count as ``bound``; rows as they are public, or as plausible."""
        sizes, weights = rows.sizes, np.minimum(rows.sizes, bound)
        terms = (sizes, weights, sizes**2, weights**2, sizes * weights, weights**2 / sizes)
        sums, beliefs = [rows.users @ term for term in terms], rows.weights
        real, bounded = np.maximum(sums[0], 1e-9), np.maximum(sums[1], 1e-9)
        few = sums[3] / bounded**2 - 2 * sums[4] / (bounded * real) + sums[2] / real**2
        chi = np.sqrt(np.maximum(real * sums[5] / bounded**2 - 1, 0.0))
        among_few = likely_root_mean_square(np.sqrt(np.maximum(few, 0.0)), beliefs) ** 2
        return cls(among_few, likely_root_mean_square(chi, beliefs))

    def deviation(self, shares: Array) -> Array:
        """For groups with these shares of all rows: how far the bound moves their average, as a part of the range."""
        few = USERS_DIFFER**2 * self.among_few / (GROUPS * np.maximum(shares, 1e-9))
        result: Array = np.minimum(np.sqrt(few + (BUSY_DIFFER * self.chi) ** 2), FARTHEST)
        return result


def likely_root_mean_square(values: Array, weights: Array) -> float:
    """Over plausible outcomes; the largest count as if they were at a quantile, so that one giant does not decide."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    limit = values[order][min(int(np.searchsorted(reached, _LIKELY * reached[-1])), len(values) - 1)]
    return float(np.sqrt(weights @ np.minimum(values, limit) ** 2 / weights.sum()))
