"""Where quantiles lie, in all groups at once: noisy weights of cells that narrow down.

A round divides the points of a grid into cells and measures the weight of each. A user's weight is in these cells once, however many cells,
quantiles and groups there are. The next round's cells lie where the quantiles may be. A round need only be precise enough for its cells: while
they are heavy, little ε tells which of them holds the quantile. So ε is spent as cells get lighter, and most of it in the last two
rounds, whose cells weigh about as much as the noise.

The round before the last also tells users who are cut from others (`bounding/busy_users.py`). Groups share the first rounds: how all rows lie is where a
group is looked at first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from evenhand.bounding import BusyUsers, MovedRank
from evenhand.guarantee import Relation, exact_sum, split
from evenhand.profiles import Array
from evenhand.release import Measurement, Receipt
from evenhand.statistics.cell_weights import CellWeights, Edges, Scale
from evenhand.tables import Secret

_FIRST = np.linspace(0, 1, 17)[1:-1]
_NEXT = np.array([0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999])
_LAST = np.array([0.1, 0.5, 0.9])
"""Edges: where a quantile lies below with these chances, in the first, the next and the last round."""

_ENDS = np.array([0.02, 0.98])
"""The same with what is not known about busy users: the ends of an interval, in the next and the last round."""

_SURE = 2.5
"""Standard deviations: the nearest edges that a quantile lies below, or above, so surely are measured again in the next round."""

_CLEAR = 12
"""The weight of the cells that may hold a quantile, in standard deviations of the noise in its rank: so much a round asks for."""

_BEFORE_LAST = Fraction(25, 100)
"""Of what is left of ε, for the round before the last: no round gets more."""

_KINDS = Fraction(18, 100)
"""Of ε, for the round that tells kinds of users apart."""

_LEAST = Fraction(1, 200)
"""Of what is left of ε, for any round at least."""

_UNKNOWN = Fraction(1, 10)
"""For the first round, if nothing is known about how many users there are."""

_ROUNDS = 12


_POOLED = Fraction(10, 100)
"""Of ε, for all groups together, if there are several."""

_ALL_OVER = tuple(Fraction(k, 20) for k in (1, 5, 10, 15, 19))
"""Looked at besides what is asked, over all groups: the quantiles of one group may be anywhere among the rows of all."""


@dataclass(frozen=True)
class Placed:
    """Weights at the points where rows are.

    Args:
        places: the number of a group, times the points of each, plus a point; in increasing order.
        before: of users who are not cut, of those who are, and of those far above the bound, the weight at all places before each, and all of it.
    """

    places: Edges
    before: Sequence[Edges]

    @classmethod
    def of(cls, places: Edges, kinds: Sequence[Edges]) -> Placed:
        order = np.argsort(places)
        return cls(places[order], [np.concatenate([[0], np.cumsum(weights[order])]) for weights in kinds])

    def cells(self, edges: Edges, points: int) -> list[Edges]:
        """By kind, the weight in each cell of each group."""
        starts = np.searchsorted(self.places, np.arange(len(edges))[:, None] * points + edges)
        return [np.diff(before[starts], axis=1) for before in self.before]

    def numbers(self, edges: Edges, points: int, pooled: bool, apart: bool) -> list[int]:
        """The weight in each cell of each group, or of all groups together, with users who are cut apart if asked; then of all users far above
        the bound as one number, wherever it lies."""
        *kinds, far = (cells.sum(axis=0) if pooled else cells for cells in self.cells(edges, points))
        near = np.concatenate(kinds) if apart else np.sum(kinds, axis=0)
        return [*np.ravel(near).tolist(), int(far.sum())]


@dataclass(frozen=True)
class Found:
    """What was released.

    Args:
        weights: of cells.
        moved: where each quantile was looked for.
        scale: how points are spread inside cells.
    """

    weights: CellWeights
    moved: Mapping[Fraction, MovedRank]
    scale: Scale

    def reached(self, bounded: bool = True) -> dict[Fraction, Array]:
        """By quantile, how likely it lies below each edge, by group (`CellWeights.reached`); a larger one is never likelier to lie below a point."""
        result, most = dict[Fraction, Array](), np.full(self.weights.edges.shape, np.inf)
        for q, one in sorted(self.moved.items()):
            off = (one.below, one.above) if bounded else (0.0, 0.0)
            most = np.minimum(most, self.weights.reached(float(one.rank), *off))
            result[q] = most
        return result

    def points(self) -> dict[Fraction, list[int]]:
        """By quantile, the point in each group that is as likely too low as too high."""
        result, least = dict[Fraction, list[int]](), np.zeros(len(self.weights.edges))
        rise = 1e-9 * np.arange(self.weights.edges.shape[1])
        for q, reached in self.reached(bounded=False).items():
            places = [np.interp(0, *one) for one in zip(reached + rise, self.scale.of(self.weights.edges), strict=True)]
            least = np.maximum(least, np.floor(self.scale.places(np.array(places))))
            result[q] = np.minimum(least, self.weights.edges[:, -1] - 1).astype(int).tolist()
        return result


Ranks = Callable[[], dict[Fraction, MovedRank]]
"""Where each quantile is to be looked for, by what has been measured."""


@dataclass(frozen=True)
class Search:
    """What is searched.

    Args:
        receipt: pays.
        weights: of rows.
        points: of each group.
        zero: the point of the value 0, or the nearest.
        groups: how many.
        capacity: the weight of one user over all groups, at most.
        relation: which neighbours count.
        busy: what is known about users who are cut, if anything.
    """

    receipt: Receipt
    weights: Secret[Placed]
    points: int
    zero: int
    groups: int
    capacity: int
    relation: Relation
    busy: BusyUsers | None = None
    far: list[tuple[float, float]] = field(default_factory=list)
    """The weight of users far above the bound, as measured, with the variance."""

    def find(self, quantiles: Sequence[Fraction], epsilon: Decimal) -> Found:
        """Find these quantiles in each group with this ε."""
        wanted, scale = sorted(set(quantiles)), Scale.beforehand(self.points, self.zero)
        moved = {q: MovedRank(q) for q in wanted} if self.busy is None else self.busy.unmoved(wanted)
        everywhere = moved if self.groups == 1 else {q: MovedRank(q) for q in _ALL_OVER} | moved
        for_kinds, left = split(epsilon, _KINDS if self._apart else Fraction(0))
        pooled, left = (left, Decimal(0)) if self.groups == 1 else split(left, _POOLED)
        weights, rest = self._narrowed(self._beforehand(1), scale, everywhere, pooled)
        weights, ranks = self._by_kind(weights, scale, moved, for_kinds)
        if self.groups > 1:
            scale = scale.beside(weights.edges[0], weights.below[0])
            weights, rest = self._beforehand(self.groups), exact_sum([left, rest])
        weights, rest = self._narrowed(weights, scale, ranks(), rest)
        paid, rest = split(rest, _BEFORE_LAST)
        weights = self._round(weights, scale, self._edges(weights, scale, ranks(), _NEXT), paid)
        last = self._edges(weights, scale, ranks(), _LAST, again=False)
        weights = self._round(weights, scale, last, rest, last=True)
        return Found(weights, ranks(), scale)

    def _beforehand(self, groups: int) -> CellWeights:
        """All weight: public, or about what is expected."""
        if self.relation.counts_are_public:
            edges, points = np.tile(np.array([[0, self.points]]), (self.groups, 1)), self.points
            totals = self.receipt.public(
                self.weights.map(lambda given: np.sum(given.cells(edges, points), axis=0)), self.relation
            )
            some = totals[:, 0] if groups > 1 else totals.sum(keepdims=True)[0]
            return CellWeights.beforehand(self.points, some.astype(np.float64), self.capacity / 1000)
        expected = self._people * self.capacity / groups
        return CellWeights.beforehand(self.points, np.full(groups, expected), 10 * expected)

    @property
    def _people(self) -> float:
        """All weight, as about so many users with full weight."""
        return 1000.0 if self.busy is None else self.busy.weight / self.busy.bound

    def _narrowed(
        self, weights: CellWeights, scale: Scale, moved: Mapping[Fraction, MovedRank], epsilon: Decimal
    ) -> tuple[CellWeights, Decimal]:
        """As many rounds as tell something with little of ε; and what is left."""
        groups, left, fresh = len(weights.edges), epsilon, weights.mean.shape[1] == 1
        for number in range(_ROUNDS):
            if fresh and number == 0:
                edges = np.tile(np.rint(scale.places(_FIRST)).astype(np.int64), (groups, 1))
                content = float(np.median(weights.mean)) / self.capacity
            else:
                edges = self._edges(weights, scale, moved, _NEXT)
                content = self._content(weights, moved)
            deviation = math.sqrt((edges.shape[1] + 1) / 2)  # of a rank's noise, where ε is 1
            part = Fraction(min(_CLEAR * deviation / max(content, 1.0) / float(left), 1.0)).limit_denominator(10_000)
            if fresh and number == 0:
                told = self.busy is not None or self.relation.counts_are_public
                part = min(part, _BEFORE_LAST) if told else _UNKNOWN
            if part > _BEFORE_LAST or 2 * Fraction(left) < Fraction(epsilon):
                break
            paid, left = split(left, max(part, _LEAST))
            weights = self._round(weights, scale, edges, paid)
        return weights, left

    def _content(self, weights: CellWeights, moved: Mapping[Fraction, MovedRank]) -> float:
        """How many users' weight the cells hold that may hold a quantile and can be divided: a light one of all groups and quantiles."""
        found, (low, high) = [], [NormalDist().inv_cdf(float(end)) for end in _ENDS]
        for one in moved.values():
            reached = weights.reached(float(one.rank))
            may = (reached[:, 1:] > low) & (reached[:, :-1] < high)
            some = may & (np.diff(weights.edges, axis=1) > 1)
            held = (weights.mean * may).sum(axis=1) / self.capacity
            found.append(np.where(some.any(axis=1), held, math.inf))
        return float(np.quantile(np.concatenate(found), 0.25, method="lower"))

    def _edges(
        self,
        weights: CellWeights,
        scale: Scale,
        moved: Mapping[Fraction, MovedRank],
        chances: Array,
        again: bool = True,
    ) -> Edges:
        """Where the quantiles may be."""
        each = []
        for one in moved.values():
            rank = float(one.rank)
            each.append(weights.places(chances, scale, rank))
            each.append(weights.places(_ENDS, scale, rank, one.below, one.above))
            if again:
                reached = weights.reached(rank, one.below, one.above)
                outside = np.stack([(reached <= -_SURE).sum(axis=1) - 1, (reached < _SURE).sum(axis=1)], axis=1)
                each.append(np.take_along_axis(weights.edges, outside, axis=1).astype(np.float64))
        return np.sort(np.rint(np.concatenate(each, axis=1)).astype(np.int64), axis=1)

    def _full(self, edges: Edges) -> Edges:
        """With both ends."""
        return np.sort(np.pad(edges, ((0, 0), (1, 1)), constant_values=((0, 0), (0, self.points))), axis=1)

    def _round(
        self, weights: CellWeights, scale: Scale, edges: Edges, epsilon: Decimal, last: bool = False
    ) -> CellWeights:
        """Measure cells between these edges, and work them in."""
        kinds, variance = self.measured(edges, epsilon)
        found = weights.divided(edges, scale).given(self._full(edges), kinds[0], variance)
        return found if last else found.merged(self._full(edges))

    def measured(self, edges: Edges, epsilon: Decimal, apart: bool = False) -> tuple[Array, float]:
        """By kind of user, group and cell: noisy weights, and the variance of each."""
        full, pooled, points = self._full(edges), len(edges) < self.groups, self.points
        every = np.repeat(full, self.groups, axis=0) if pooled else full
        cells = Measurement(
            lambda: self.weights.map(lambda given: given.numbers(every, points, pooled, apart)),
            *moves(self.capacity, self.relation),
        )
        noisy = self.receipt.numbers(cells, epsilon)
        # Weights are integers: no less than their rounding is in doubt, however large ε is.
        variance, beyond = max(noisy.noise.variance, 1 / 12), float(noisy.values[-1])
        near = np.array(noisy.values[:-1], dtype=np.float64).reshape(1 + apart, len(edges), -1)
        if not self._tells_far:
            return near, variance
        self.far.append((beyond, variance))
        # Where users far above the bound have their rows is not seen: they are taken to lie as the others do.
        factor = 1 + min(max(beyond, 0.0) / max(float(near.sum()), 1.0), 1.0)
        return near * factor, variance * factor**2

    @property
    def _tells_far(self) -> bool:
        return self.busy is not None and not self.relation.counts_are_public

    @property
    def _apart(self) -> bool:
        return self.busy is not None and self.busy.can_measure

    def _by_kind(
        self, weights: CellWeights, scale: Scale, moved: Mapping[Fraction, MovedRank], epsilon: Decimal
    ) -> tuple[CellWeights, Ranks]:
        """A round that tells users who are cut from others, if they are enough; and where each quantile is to be looked for then."""
        busy, wanted, kinds, variance = self.busy, [*moved], np.zeros((2, 1, 1)), 1.0
        if self._apart:
            middles = [weights.places(np.array([0.5]), scale, float(one.rank)) for one in moved.values()]
            edges = np.rint(np.maximum.accumulate(np.concatenate(middles, axis=1), axis=1)).astype(np.int64)
            kinds, variance = self.measured(edges, epsilon, apart=True)
            weights = weights.divided(edges, scale).given(self._full(edges), kinds.sum(axis=0), 2 * variance)

        def ranks() -> dict[Fraction, MovedRank]:
            if busy is None:
                return {q: MovedRank(q) for q in wanted}
            told, unit = busy, busy.bound / self.capacity
            if self.far:
                precision = sum(1 / variance for _, variance in self.far)
                beyond = sum(far / variance for far, variance in self.far) / precision
                told = busy.given(beyond / self.capacity, precision**-0.5 / self.capacity)
            if not told.can_measure:
                return told.unmoved(wanted)
            return told.moved_ranks(wanted, kinds[:, 0] * unit, math.sqrt(variance) * unit)

        return weights, ranks


def moves(capacity: int, relation: Relation) -> tuple[int, int]:
    """How far one user moves weights of cells that share no row, in L1 and in squared L2 norm (docs/proofs/quantiles.md)."""
    return relation.moves * capacity, relation.moves * capacity**2


def least_share(epsilon: Decimal) -> Decimal:
    """The smallest part of ε that a round may get."""
    return split(epsilon, (1 - _KINDS) * _POOLED * _LEAST / 4)[0]


def rank_deviation(quantiles: Sequence[Fraction], q: Fraction) -> float:
    """The standard deviation of the weight below a quantile, where one user has weight 1 and ε is 1: of the cells of the last round."""
    each, place = len(_LAST) + len(_ENDS), sorted(quantiles).index(q) + 0.5
    below, above = each * place, each * (len(quantiles) - place)
    return math.sqrt(2 * ((1 - q) ** 2 * below + q**2 * above)) / float((1 - _KINDS) * (1 - _BEFORE_LAST))
