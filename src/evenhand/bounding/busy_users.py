"""How many rows one user may count for when quantiles are asked, and what that does to ranks: by the posterior over contributions.

Three things move the rank of an answer, as a share of all rows:

- noise: in proportion to h/(ε·n_h);
- chance: the weighted rows are others than all rows, and users differ at random;
- busy users who differ from the others: how far ``1{x ≤ v}`` goes with log(rows) from user to user, a correlation r, times how much less
  busy the weighted rows are than all rows, in standard deviations of log(rows).

The last one can be measured: users who are cut and users who are not have each their share of rows below v. What is measured is believed
as far as its error allows, from a prior; the rank that is searched for is then moved by what is believed. Bound and share of ε
for this are chosen together, by the least expected error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from evenhand.population import Array, Population, Support
from evenhand.population.priors import TRIMMED

USERS_DIFFER = 0.1
"""Prior: the share of the variance of ``1{x ≤ v}`` that lies between users."""

DIFFER = (0.01, 0.1, 0.3)
"""The same for each part of `PRIOR`: users who are alike can't differ by how busy they are."""

TAIL_DOUBT = 0.5
"""Relative standard deviation of how much busier all rows are than the weighted ones, besides what the posterior says: r is taken to be
the same for the busiest, and there are few of them."""

_CAUTION = 1.5  # an interval allows for so many times the variance by chance: how far users differ is a prior
_CURVED = 0.01  # prior: r that no line through log(rows) shows, times χ (docs/proofs/chi-square-bias.md)
_ANYWHERE = 0.1  # squared rank error of an answer that noise alone decides
_LEAST_RANK = 0.02  # where kinds of users are compared: nearer to an end one of them has nobody
_LEAST_PART = 0.05  # of the weight that either kind of users must have, to be compared
_DOUBTS = np.exp(1.2 * TAIL_DOUBT * np.array([-1.0, 0.0, 1.0]))  # three equally likely factors, about
_NEAREST, _FEW, _FARTHEST = 8, 0.02, 2**15
"""A user is far above the bound from so many times on, at least; at more, if users beyond are believed to have more than this part of the weight; at most."""

_MEASURED, _CELLS = 0.18, 1
"""Of ε, for the round that tells kinds of users apart, and its cells on either side of a quantile: about (`statistics/rank_search.py`)."""
_LEAST_STEP = Fraction(1, 500)  # between the ranks of two quantiles
_ELSEWHERE = 0.3  # by which r may differ at another rank, for each unit of rank
_MOST = 0.7  # of the way to either end that a rank is moved


@dataclass(frozen=True)
class MovedRank:
    """Where a quantile is looked for among the weighted rows.

    Args:
        rank: there.
        below: how far below that its rank may be in truth, with 95% on both sides together, as a share of the rows.
        above: how far above.
        measured: whether it was measured.
    """

    rank: Fraction
    below: float = 0.0
    above: float = 0.0
    measured: bool = False


@dataclass(frozen=True)
class Family:
    """Plausible numbers of users by number of rows.

    Args:
        sizes: numbers of rows.
        users: by member and size.
        weights: of the members; they add up to 1.
    """

    sizes: Array
    users: Array
    weights: Array

    @classmethod
    def of_support(cls, support: Support) -> Family:
        """Known exactly."""
        return cls(support.sizes, support.users[None, :], np.ones(1))

    @classmethod
    def of_posterior(cls, believed: Population) -> Family:
        """As a noisy histogram lets it be believed."""
        sizes, users = believed.listed()
        users[users.sum(axis=1) <= 0, 0] = 1.0
        some = believed.weights > 0
        return cls(sizes, users[some], believed.weights[some])

    def trimmed(self) -> Family:
        """The same without the members with the most rows, as far as they are believed in little together: as for counts, no bound guards
        against a giant, and one that tried would drown what everybody else says."""
        order = np.argsort(self.users @ self.sizes)
        weights = self.weights[order]
        kept = np.clip(TRIMMED - (np.cumsum(weights) - weights), 0.0, weights)
        some = kept > 0
        return Family(self.sizes, self.users[order][some], kept[some] / kept.sum())


@dataclass(frozen=True)
class BusyUsers:
    """Users who are cut by a bound, against all others.

    Args:
        bound: rows that a user counts for, at most.
        weight: of all rows together.
        cut: the part of it that users who are cut have.
        apart: how much busier these are than the others, in standard deviations of log(rows).
        lost: how much busier all rows are than the weighted ones, in the same unit.
        lost_variance: of that.
        losses: equally likely values of it.
        chances: variance of the share below v, as a multiple of q(1−q): among users who are not cut, and among those who are.
        random: the same for the difference between weighted and all rows: where users are alike, and where all rows of a user are.
        curved: prior variance of what no line through log(rows) shows.
        far: from how many times the bound on a user is far above it.
        beyond: who is there, as far as the profile says.
    """

    bound: float
    weight: float
    cut: float
    apart: float
    lost: float
    lost_variance: float
    losses: tuple[float, ...]
    chances: tuple[float, float]
    random: tuple[float, float]
    curved: float
    far: int
    beyond: FarUsers

    @classmethod
    def of(cls, family: Family, bound: float) -> BusyUsers:
        sizes, users, beliefs = family.sizes, family.users, family.weights
        mean, activity = beliefs @ users, np.log(sizes)
        capped = np.minimum(sizes, bound)
        weights, is_cut = mean * capped, sizes > bound
        weight = float(weights.sum())
        centre = float(mean @ activity / mean.sum())
        spread = math.sqrt(float(mean @ (activity - centre) ** 2 / mean.sum()))
        parts, middles, chances = [], [], []
        for kind in (~is_cut, is_cut):
            part = float(weights[kind].sum())
            parts.append(part / weight)
            middles.append(float(weights[kind] @ activity[kind]) / max(part, 1e-9))
            own = USERS_DIFFER + (1 - USERS_DIFFER) / sizes[kind]
            chances.append(float(capped[kind] ** 2 * own @ mean[kind]) / max(part, 1e-9) ** 2)
        kept, rows = users @ capped, users @ sizes
        far = _NEAREST
        while far < _FARTHEST and float(weights[sizes > far * bound].sum()) > _FEW * weight:
            far *= 2
        there, by_rows = sizes > far * bound, (users * sizes @ activity, kept, users * capped @ activity)
        users_at = (float(mean.sum()), centre, spread)
        can_measure = min(parts) >= _LEAST_PART
        beyond = FarUsers(bound, far * bound, users @ there, beliefs, rows, *by_rows, users_at, can_measure)
        lost = beyond.lost()
        shares, of_rows = capped / kept[:, None], sizes / rows[:, None]
        apart = (shares - of_rows) ** 2 * users
        chi_square = np.maximum((shares**2 / of_rows * users).sum(axis=1) - 1, 0.0)
        usual, unit = float(beliefs @ lost), max(spread, 1e-12)
        return cls(
            bound,
            weight,
            parts[1],
            (middles[1] - middles[0]) / unit if can_measure else 0.0,
            usual / unit,
            (float(beliefs @ (lost - usual) ** 2) + (TAIL_DOUBT * usual) ** 2) / unit**2,
            _doubted(lost / unit, beliefs),
            (chances[0], chances[1]),
            (float(beliefs @ (apart / sizes).sum(axis=1)), float(beliefs @ apart.sum(axis=1))),
            _CURVED**2 * float(beliefs @ chi_square),
            far,
            beyond,
        )

    def given(self, measured: float, deviation: float) -> BusyUsers:
        """What is believed once the number of users far above the bound was measured, with noise of this standard deviation."""
        lost, weights = self.beyond.given(measured, deviation)
        return replace(self, losses=_doubted(lost, weights))

    @property
    def cuts(self) -> bool:
        """Whether anything may be lost."""
        return max(self.losses) > 0

    @property
    def can_measure(self) -> bool:
        """Whether both kinds of users are many enough to be compared."""
        return self.apart > 0

    def error(self, q: float, deviation: float, below: int, above: int) -> float:
        """The standard error of r as measured at the q-quantile, with noise of this standard deviation in each of so many weights below and above."""
        variance = 0.0
        for part, chance in zip((1 - self.cut, self.cut), self.chances, strict=True):
            noise = (deviation / (part * self.weight)) ** 2 * (below * (1 - q) ** 2 + above * q**2)
            variance += chance * q * (1 - q) + noise
        return math.sqrt(variance / (q * (1 - q))) / self.apart

    def measured(self, below: Sequence[float] | Array, above: Sequence[float] | Array) -> float:
        """r from the noisy weights below and above a point, of users who are not cut and of those who are."""
        shares = [
            float(min(max(low / (low + high), 0.0), 1.0)) if low + high > 0 else 0.5
            for low, high in zip(below, above, strict=True)
        ]
        q = min(max(sum(shares) / 2, _LEAST_RANK), 1 - _LEAST_RANK)
        return (shares[1] - shares[0]) / (self.apart * math.sqrt(q * (1 - q)))

    def moved(self, q: float, belief: Belief) -> Shift:
        """How far the rank of the q-quantile among weighted rows is from q, given a belief about r."""
        alike, own = self.random
        chance = math.sqrt(_CAUTION * (alike + USERS_DIFFER * (own - alike)) + self.curved)
        return Shift.of(belief, np.asarray(self.losses), math.sqrt(q * (1 - q)), chance)

    def unmoved(self, quantiles: Sequence[Fraction]) -> dict[Fraction, MovedRank]:
        """Without a measurement ranks stay, and the prior says how far they may be off."""
        shifts = {q: self.moved(float(q), Belief.beforehand()) for q in quantiles}
        return {q: MovedRank(q, shift.below, shift.above) for q, shift in shifts.items()}

    def moved_ranks(self, quantiles: Sequence[Fraction], kinds: Array, deviation: float) -> dict[Fraction, MovedRank]:
        """Where each quantile is to be looked for among the weighted rows.

        Args:
            quantiles: in increasing order.
            kinds: noisy weights between about where they are, in rows: of users who are not cut, and of those who are.
            deviation: the standard deviation of the noise in each.
        """
        below = np.concatenate([np.zeros((2, 1)), np.cumsum(kinds, axis=1)], axis=1)
        everything = max(float(kinds.sum()), 1.0)
        shifts, weighted, ranks = list[Shift](), [0.0], [0.0]
        for place, q in enumerate(quantiles, 1):
            # What is measured holds where it was: at this rank among the weighted rows, and that rank among all rows.
            weighted.append(min(max(float(below[:, place].sum()) / everything, weighted[-1] + 1e-3), 1 - 1e-3))
            belief = Belief.beforehand()
            if self.can_measure:
                there = min(max(weighted[-1], _LEAST_RANK), 1 - _LEAST_RANK)
                error = math.hypot(
                    self.error(there, deviation, place, kinds.shape[1] - place), _ELSEWHERE * abs(there - float(q))
                )
                belief = Belief.after(self.measured(below[:, place], below[:, -1] - below[:, place]), error)
            shifts.append(self.moved(float(q), belief))
            ranks.append(min(max(weighted[-1] - self.moved(weighted[-1], belief).by, ranks[-1] + 1e-3), 1 - 1e-3))
        looked_for = [float(q) for q in quantiles]
        if self.can_measure:
            looked_for = np.interp(looked_for, [*ranks, 1.0], [*weighted, 1.0]).tolist()
        result, least = dict[Fraction, MovedRank](), Fraction(0)
        for left, q, shift, wanted in zip(
            range(len(quantiles) - 1, -1, -1), quantiles, shifts, looked_for, strict=False
        ):
            limited = float(q) + min(max(wanted - float(q), -_MOST * float(q)), _MOST * (1 - float(q)))
            rank = max(Fraction(limited).limit_denominator(1000), least + _LEAST_STEP)
            least = min(rank, 1 - _LEAST_STEP * (left + 1))
            off = float(least) - wanted  # what the limits above took back may be there as well
            result[q] = MovedRank(least, shift.below + max(off, 0.0), shift.above + max(-off, 0.0), self.can_measure)
        return result

    def expected(
        self, quantiles: Sequence[float], epsilon: float, deviations: Sequence[float], groups: int = 1
    ) -> float:
        """Expected logarithm of the squared rank error, relative to q(1−q), summed over the quantiles.

        Of the logarithm, so that a bound is judged by how many times its error is the best one's, whether busy users differ or not: in a
        mean the few tables where they differ much would decide for all.

        Args:
            quantiles: which ones.
            epsilon: for everything.
            deviations: of the noise in the rank of each quantile, where one user has weight 1 and ε is 1.
            groups: each is taken to have an equal part of the rows.
        """
        total, alike, own = 0.0, *self.random
        for q, deviation in zip(quantiles, deviations, strict=True):
            scale = deviation * self.bound * groups / (epsilon * self.weight)
            noise = min(scale**2, _ANYWHERE) + _ANYWHERE * math.erfc(min(q, 1 - q) / scale / math.sqrt(2))
            measured = math.sqrt(2) * self.bound / (epsilon * _MEASURED)
            known = self.error(q, measured, _CELLS, _CELLS) ** -2 if self.can_measure else 0.0
            for (weight, r), differ in zip(PRIOR, DIFFER, strict=True):
                by_chance = alike + differ * (own - alike) + self.curved
                busy = self.lost**2 / (r**-2 + known) + self.lost_variance * r**2
                total += weight * math.log(noise / (q * (1 - q)) + by_chance + busy)
        return total


def bound_for_quantiles(
    family: Family, quantiles: Sequence[float], epsilon: float, deviations: Sequence[float], groups: int = 1
) -> BusyUsers:
    """The bound with the smallest expected rank error."""
    likely, largest = family.trimmed(), max(float(family.sizes[-1]), 1.0)
    bounds = 2.0 ** np.arange(0, math.ceil(math.log2(largest)) + 1)
    best = min(
        bounds, key=lambda one: BusyUsers.of(likely, float(one)).expected(quantiles, epsilon, deviations, groups)
    )
    return BusyUsers.of(family, float(best))


def _doubted(lost: Array, weights: Array) -> tuple[float, ...]:
    """Equally likely values, with `TAIL_DOUBT`."""
    return tuple((equally_likely(lost, weights, 20)[:, None] * _DOUBTS).ravel().tolist())


_CROWD = 0.1
"""Prior: that there is a crowd of busy users whom no curve through the profile knows."""
_PEOPLE = np.geomspace(0.5, 16.0, 11)  # of the crowd, in standard deviations of the noise: fewer can't be seen
_FEWEST = 10.0  # people: fewer are no crowd but giants, whom no interval holds
_ROWS, _ROWS_WEIGHTS = np.array([2.0, 8.0, 32.0]), np.array([0.5, 0.3, 0.2])
"""Rows of each, as multiples of those from which a user is far above the bound; prior."""
_TOLERANCE = 0.35  # by which the users far above the bound may be more or fewer than a member says

_HIDDEN_CROWDS_FARTHEST = 0.15
"""How far a rank moves for each standard deviation that is lost, at most: r of 0.3 at the median. A crowd moves no rank by more than its part of all rows."""


@dataclass(frozen=True)
class FarUsers:
    """Users far above a bound, by member of a family; and how busy rows are, in logarithms of their user's number of rows.

    Args:
        bound: rows that a user counts for.
        least: rows from which a user is far above it.
        users: far above the bound.
        weights: of the members.
        rows: of all users together.
        busy: the sum of the logarithms over all rows.
        kept: weighted rows.
        kept_busy: the sum over these.
        activity: how many users there are, and the mean and standard deviation of their logarithms.
        measured: whether users can be compared by how busy they are, so that the unit is that standard deviation.
    """

    bound: float
    least: float
    users: Array
    weights: Array
    rows: Array
    busy: Array
    kept: Array
    kept_busy: Array
    activity: tuple[float, float, float]
    measured: bool

    def lost(self, people: Array | float = 0.0, rows: Array | float = 1.0) -> Array:
        """How much busier all rows are than the weighted ones, with so many people more, of so many rows each."""
        activity = np.log(rows)
        every = (self.busy + people * rows * activity) / (self.rows + people * rows)
        weighted = (self.kept_busy + people * self.bound * activity) / (self.kept + people * self.bound)
        return np.asarray(every - weighted)

    def _unit(self, people: Array, rows: Array) -> Array:
        """The standard deviation of the logarithms; with the crowd, unless r is measured without it: where all others are alike, it would be next to nothing."""
        users, middle, spread = self.activity
        part = 0.0 * people if self.measured else people / (users + people)
        return np.asarray(np.sqrt((1 - part) * (spread**2 + part * (np.log(rows) - middle) ** 2)))

    def given(self, measured: float, deviation: float) -> tuple[Array, Array]:
        """The same in standard deviations, with weights, by member and crowd, once the number of users far above the bound was measured.

        Args:
            measured: with noise.
            deviation: the standard deviation of the noise.
        """
        people = np.concatenate([[0.0], np.repeat(_PEOPLE * deviation, len(_ROWS))])[:, None]
        rows = np.concatenate([[1.0], np.tile(_ROWS * self.least, len(_PEOPLE))])[:, None]
        prior = np.concatenate([[1 - _CROWD], np.tile(_CROWD / len(_PEOPLE) * _ROWS_WEIGHTS, len(_PEOPLE))])[:, None]
        prior = np.where((people > 0) & (people < _FEWEST), 0.0, prior)
        variance = deviation**2 + people + self.users + (_TOLERANCE * self.users) ** 2
        # Near the middle as a normal variable, far out as a Laplace variable.
        logs = -np.sqrt(1 + 2 * (measured - self.users - people) ** 2 / variance) - np.log(variance) / 2
        beforehand = prior * self.weights
        logs = np.where(beforehand > 0, logs + np.log(np.maximum(beforehand, 1e-300)), -np.inf)
        weights = np.exp(logs - logs.max())
        lost = self.lost(people, rows) / np.maximum(self._unit(people, rows), 1e-12)
        theirs = people * rows / (self.rows + people * rows)
        without = self.lost() / max(self.activity[2], 1e-12)
        return np.minimum(lost, without + theirs / _HIDDEN_CROWDS_FARTHEST).ravel(), (weights / weights.sum()).ravel()


PRIOR = ((0.4, 0.01), (0.35, 0.07), (0.25, 0.2))
"""Prior of r, weights and standard deviations. Where a part p of the variance of ``1{x ≤ v}`` lies between users whose means correlate with their activity by ρ, r
is about ρ√p. Real tables showed ρ from 0.02 to 0.34 and p from a few percent to a third: mostly next to nothing, often 0.07, at times
0.2."""

CONFIDENCE = 0.95

_STEPS = np.linspace(-3.0, 3.0, 25)
_STEP_WEIGHTS = np.exp(-(_STEPS**2) / 2) / np.exp(-(_STEPS**2) / 2).sum()
"""A normal distribution as a list."""


@dataclass(frozen=True)
class Belief:
    """A distribution of r: values with weights, which add up to 1."""

    values: Array
    weights: Array

    @classmethod
    def of(cls, parts: tuple[tuple[float, float, float], ...]) -> Belief:
        """A mixture of normal distributions: their weights, means and standard deviations."""
        values = np.concatenate([mean + deviation * _STEPS for _, mean, deviation in parts])
        weights = np.concatenate([weight * _STEP_WEIGHTS for weight, _, _ in parts])
        return cls(values, weights / weights.sum())

    @classmethod
    @functools.cache
    def beforehand(cls) -> Belief:
        """Where nothing was measured."""
        return cls.of(tuple((weight, 0.0, deviation) for weight, deviation in PRIOR))

    @classmethod
    def after(cls, value: float, error: float) -> Belief:
        """Given a measurement with a normal error: the rule of Bayes for each part of `PRIOR`."""
        variances = [deviation**2 + error**2 for _, deviation in PRIOR]
        logs = [
            math.log(weight) - value**2 / 2 / variance - math.log(variance) / 2
            for (weight, _), variance in zip(PRIOR, variances, strict=True)
        ]
        return cls.of(
            tuple(
                (math.exp(one - max(logs)), value * deviation**2 / variance, deviation * error / math.sqrt(variance))
                for one, (_, deviation), variance in zip(logs, PRIOR, variances, strict=True)
            )
        )

    @property
    def mean(self) -> float:
        """What is expected."""
        return float(self.weights @ self.values)


@dataclass(frozen=True)
class Shift:
    """How far the rank of a quantile among weighted rows is from its rank among all rows, as a share of the rows.

    Args:
        by: as likely too little as too much.
        below: how far below that it may lie, with `CONFIDENCE` on both sides together.
        above: how far above.
    """

    by: float
    below: float
    above: float

    @classmethod
    def of(cls, belief: Belief, lost: Array, spread: float, chance: float) -> Shift:
        """−r·lost·spread, and chance besides.

        Args:
            belief: about r.
            lost: equally likely amounts by which all rows are busier than the weighted ones, in standard deviations of log(rows).
            spread: √(q(1−q)).
            chance: the standard deviation of what moves a rank besides, as a multiple of ``spread``.
        """
        systematic = -(belief.values[:, None] * lost).ravel()
        likely = equally_likely(systematic, np.repeat(belief.weights, len(lost)), 100)
        values = (likely[:, None] + chance * _STEPS).ravel() * spread
        order = np.argsort(values)
        reached = np.cumsum(np.tile(_STEP_WEIGHTS / len(likely), len(likely))[order])
        places = np.searchsorted(reached, np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]) * reached[-1])
        low, high = values[order][np.minimum(places, len(values) - 1)].tolist()
        by = float(np.median(likely)) * spread
        return cls(by, max(by - low, 0.0), max(high - by, 0.0))


def equally_likely(values: Array, weights: Array, number: int) -> Array:
    """So many equally likely values that stand for a weighted list."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, (np.arange(number) + 0.5) / number * reached[-1])
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])
