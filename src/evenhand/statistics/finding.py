"""Finding several quantiles in several groups, with all the ε that is left once users are bounded.

Noisy weights of cells, a few times: even cells at first, then others, the finer the likelier a quantile is there. A user's weight is
in one cell each time, however many cells and quantiles there are. All measurements together say how much weight lies below each
edge (`prefix_weights.py`), and so, for any probability, where a quantile is (`rank_posterior.py`): answers and intervals come from one
structure. A single quantile of all rows is chosen in the end, by rank, among the points that are still likely: for one number that is more precise
than cells, and the choice says where its rank is for the interval. Groups share the first measurements: what is known about all of them is where a group is looked at first.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.guarantee import Relation, split
from evenhand.profiles import Array
from evenhand.release import Measurement, Receipt
from evenhand.statistics.busy_ranks import Far, Measured, Moved, far_weight, moves
from evenhand.statistics.prefix_weights import PARTS, Cells, Edges, Prefixes
from evenhand.statistics.rank_posterior import (
    Prior,
    expected,
    in_order,
    largest,
    located,
    next_edges,
    preference,
    reached,
)
from evenhand.tables import Secret

SHARES = (Fraction(20, 100), Fraction(35, 100), Fraction(45, 100))
"""Of ε, for each measurement. Later ones look closer, so they decide. A single quantile is chosen in place of the last one."""

POOLED_SHARES, OWN_SHARES = (Fraction(5, 100), Fraction(10, 100)), (Fraction(35, 100), Fraction(50, 100))
"""The same where there are groups: of all together, then of each."""

_ALL_OVER = tuple(Fraction(k, 20) for k in (1, 5, 10, 15, 19))
"""Looked at besides what is asked, over all groups: the quantiles of one group may be anywhere among the rows of all."""


@dataclass(frozen=True)
class Points:
    """What was released, by quantile.

    Args:
        edges: points, by group.
        reached: the probability that the quantile lies below each of them, given the noise and what bounding may have done.
        by_noise: the same for the noise alone.
        largest: by group, the points that at least a twentieth of the rows lie at or below, and at or above, as far as that is sure.
        places: the answers, as likely too low as too high; a single quantile was chosen.
        moved: where each quantile was looked for.
        measured: noisy weights of cells, of all groups or of each.
    """

    edges: Edges
    reached: dict[Fraction, Array]
    by_noise: dict[Fraction, Array]
    largest: list[tuple[int, int]]
    places: dict[Fraction, list[int]]
    moved: Mapping[Fraction, Moved]
    measured: Sequence[Cells]

    def of(self, q: Fraction) -> list[tuple[Edges, Array, Array, tuple[int, int], int]]:
        """Of one quantile, by group: edges, both probabilities, the largest points and the answer."""
        return list(zip(self.edges, self.reached[q], self.by_noise[q], self.largest, self.places[q], strict=True))


Measure = Callable[[Sequence[int], Far | None], Measured]
"""Given about where the quantiles are, and the weight of users far above the bound if it was asked for: what bounding does to the quantiles' ranks."""


def find(
    receipt: Receipt,
    weights: Secret[list[int]],
    points: int,
    groups: int,
    quantiles: Sequence[Fraction],
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
    believed: Mapping[Fraction, Moved] | None = None,
    measure: Measure | None = None,
    apart: Secret[list[int]] | None = None,
) -> Points:
    """Find quantiles in each group.

    Args:
        receipt: pays.
        weights: of rows at each point, group after group; at most ``capacity`` of it is one user's.
        points: of each group.
        groups: how many.
        quantiles: which ones.
        capacity: the weight of one user over all groups.
        relation: which neighbours count.
        epsilon: for everything but what ``measure`` pays.
        believed: what bounding does to the rank of each quantile; left out if nothing is known.
        measure: asks what it does, once more is known.
        apart: over all groups, the weights of all but the users far above the bound, and theirs as one number more.
    """
    wanted = sorted(set(quantiles))
    moved = dict(believed or {q: Moved(q, 0.0, 0.0, False) for q in wanted})
    own = Look(receipt, weights, points, groups, capacity, relation)
    if groups > 1:
        summed = weights.map(lambda given: [sum(given[point::points]) for point in range(points)])
        pooled = Look(receipt, summed, points, 1, capacity, relation)
        shares = [*POOLED_SHARES, *OWN_SHARES]
    else:
        pooled, shares = own, list(SHARES)
    if apart is not None:
        pooled = replace(pooled, weights=apart, apart=True)
    *before, last = paid_for(epsilon, shares)
    first = before[: len(POOLED_SHARES)]
    seen = pooled.even(first[0])
    around = {q: Moved(q, 0.0, 0.0, False) for q in _ALL_OVER} if groups > 1 else {}
    seen.append(pooled.at(next_edges(Prefixes.of(seen), around | moved), first[1]))
    far = far_weight(seen)
    if measure is not None:
        told = measure([located(Prefixes.of(seen), moved[q])[0] for q in wanted], far)
        moved = dict(told.moved)
        seen += [] if told.cells is None else [told.cells]
    prior: Prior | None = None
    if groups > 1:
        prior = Prior.of(Prefixes.of(seen))
        edges = np.repeat(prior.edges(moved), groups, axis=0)
        seen = [*own.known(), own.at(edges, before[-1])]
    prefixes = Prefixes.of(seen)
    if len(wanted) > 1 or groups > 1:
        seen.append(own.at(next_edges(prefixes, moved), last))
        prefixes = Prefixes.of(seen)
        places = [located(prefixes, moved[q], prior) for q in wanted]
        in_rows = [list(itertools.accumulate(row, max)) for row in zip(*places, strict=True)]
        answers = dict(zip(wanted, map(list, zip(*in_rows, strict=True)), strict=True))
    else:
        ((q, one),) = moved.items()
        chosen, scale = own.chosen(one.rank, prefixes.edges, expected(prefixes, one, None, bounded=False), last)
        prefixes = Prefixes.of(seen, prefixes.told(chosen, float(one.rank), 2 * scale**2))
        answers = {q: chosen}
    both, noise = (in_order({q: reached(prefixes, moved[q], bounded) for q in wanted}) for bounded in (True, False))
    return Points(prefixes.edges, both, noise, largest(prefixes), answers, moved, seen)


def paid_for(epsilon: Decimal, shares: Sequence[Fraction]) -> list[Decimal]:
    """ε in parts that add up to it."""
    parts, rest, left = list[Decimal](), epsilon, Fraction(1)
    for share in shares[:-1]:
        part, rest = split(rest, share / left)
        left -= share
        parts.append(part)
    return [*parts, rest]


def least_share(epsilon: Decimal) -> Decimal:
    """The smallest part of ε that is ever used at once."""
    return min(*paid_for(epsilon, SHARES), *paid_for(epsilon, (*POOLED_SHARES, *OWN_SHARES)))


def running(weights: Sequence[int]) -> list[int]:
    """The weight before each point, and all of it."""
    return [0, *itertools.accumulate(weights)]


def by_cell(before: Sequence[int], edges: Sequence[Sequence[int]], points: int) -> list[int]:
    """The weight in each cell of each group, from that before each point."""
    return [
        before[start + high] - before[start + low]
        for start, row in zip(itertools.count(0, points), edges, strict=False)
        for low, high in itertools.pairwise(row)
    ]


def scores(weights: Sequence[int], rank: Fraction) -> list[int]:
    """Of each point: for a rank a/b, minus b times the distance of the rank from those that the point covers; zero for the true quantile, even
    where many rows share a value."""
    a, b = rank.numerator, rank.denominator
    before = running(weights)
    offsets = [b * below - a * before[-1] for below in before]
    return [-max(0, below, -upto) for below, upto in itertools.pairwise(offsets)]


def score_moves(rank: Fraction, relation: Relation) -> int:
    """How far one user of weight 1 moves a score (docs/proofs/quantiles.md)."""
    a, b = rank.numerator, rank.denominator
    return max(a, b - a) if relation is Relation.PRESENCE else b


@dataclass(frozen=True)
class Look:
    """Measures weights of cells.

    Args:
        receipt: pays.
        weights: at each point, group after group; then, if they come ``apart``, of users far above the bound.
        points: of each group.
        groups: how many.
        capacity: the weight of one user over all groups.
        relation: which neighbours count.
        apart: whether users far above the bound are in none of the cells but in one of their own.
    """

    receipt: Receipt
    weights: Secret[list[int]]
    points: int
    groups: int
    capacity: int
    relation: Relation
    apart: bool = False

    @property
    def _end(self) -> int:
        return self.points * self.groups + 1

    @functools.cached_property
    def before(self) -> Secret[list[int]]:
        """The weight before each point; behind the last one, if it comes apart, that of users far above the bound."""
        size = self.points * self.groups
        return self.weights.map(lambda given: [*running(given[:size]), *given[size:]])

    def even(self, epsilon: Decimal) -> list[Cells]:
        """Of even cells."""
        edges = np.arange(PARTS + 1, dtype=np.int64) * self.points // PARTS
        return [*self.known(), self.at(np.repeat(edges[None, :], self.groups, axis=0), epsilon)]

    def at(self, edges: Edges, epsilon: Decimal) -> Cells:
        """Of cells between these edges."""
        rows = edges.tolist()
        cells = Measurement(
            lambda: self.before.map(lambda given: [*by_cell(given, rows, self.points), *given[self._end :]]),
            *moves(self.capacity, self.relation),
        )
        noisy = self.receipt.numbers(cells, epsilon)
        # Weights are integers: no less than their rounding is in doubt, however large ε is.
        variance, values = max(noisy.noise.variance, 1 / 12), np.array(noisy.values, dtype=np.float64)
        if not self.apart:
            return Cells(edges, values.reshape(len(rows), -1), variance)
        # Where users far above the bound have their rows is not seen: they are taken to lie as the others do.
        near, far = values[:-1].reshape(len(rows), -1), float(values[-1])
        factor = 1 + min(max(far, 0.0) / max(float(near.sum()), 1.0), 1.0)
        return Cells(edges, near * factor, variance * factor**2, far)

    def chosen(self, rank: Fraction, edges: Edges, below: Array, epsilon: Decimal) -> tuple[list[int], float]:
        """A point of each group whose rank is about this one, by rank and by how likely it is already; and the scale of its rank error, in weight."""
        sensitivity = self.capacity * score_moves(rank, self.relation)
        worth = 2 * float(sensitivity / Fraction(epsilon))  # of a factor e of likelihood
        likely = [[int(worth * one) for one in preference(*row)] for row in zip(edges, below, strict=True)]

        def scored(given: list[int]) -> list[list[int]]:
            return [
                [
                    score + more
                    for score, more in zip(scores(given[start : start + self.points], rank), prior, strict=True)
                ]
                for start, prior in zip(itertools.count(0, self.points), likely, strict=False)
            ]

        found = self.receipt.choices(self.weights.map(scored), [sensitivity] * self.groups, epsilon)
        return found.places, worth / rank.denominator

    def known(self) -> list[Cells]:
        """All weight of each group, where it is public."""
        if not self.relation.counts_are_public:
            return []
        edges = np.repeat(np.array([[0, self.points]], dtype=np.int64), self.groups, axis=0)
        rows = edges.tolist()
        totals = self.receipt.public(self.before.map(lambda given: by_cell(given, rows, self.points)), self.relation)
        return [Cells(edges, np.array(totals, dtype=np.float64)[:, None], float(self.capacity) ** 2 * 1e-6)]


@functools.cache
def rank_deviations(ranks: tuple[float, ...]) -> tuple[float, ...]:
    """The standard deviation of the weight below each quantile, where one user has weight 1 and ε is 1: of rows that lie evenly, a thousand users."""
    points, users = 4096, 1000.0
    if len(set(ranks)) == 1:
        return tuple(math.sqrt(8) * max(rank, 1 - rank) / float(SHARES[-1]) for rank in ranks)
    moved = {Fraction(rank).limit_denominator(1000): Moved(Fraction(rank), 0.0, 0.0, False) for rank in ranks}
    edges, seen = np.arange(PARTS + 1, dtype=np.int64)[None, :] * points // PARTS, list[Cells]()
    for share in SHARES:
        seen.append(Cells(edges, np.diff(edges, axis=1) * (users / points), 2 / float(share) ** 2))
        prefixes = Prefixes.of(seen)
        edges = next_edges(prefixes, moved)
    result = []
    for rank in ranks:
        more, deviation = prefixes.beyond(rank)
        result.append(float(deviation[0][int(np.argmin(np.abs(more[0])))]))
    return tuple(result)
