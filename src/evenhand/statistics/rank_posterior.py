"""Where a quantile is, as a distribution over the points of a grid: given noisy weights of cells, and what bounding may have done to ranks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from evenhand.profiles import Array
from evenhand.statistics.busy_ranks import Moved
from evenhand.statistics.prefix_weights import Edges, Prefixes, normal

_LOOKED_AT = np.array(
    [0.0005, 0.003, 0.02, 0.07, 0.17, 0.3, 0.43, 0.57, 0.7, 0.83, 0.93, 0.98, 0.997, 0.9995], dtype=np.float64
)
"""Edges of the next cells: where a quantile lies below with these probabilities."""

_ELSEWHERE = 0.01
"""Prior: the part of a group's rows that may lie anywhere between the bounds, wherever other groups are."""


@dataclass(frozen=True)
class Prior:
    """Where a group's quantiles are, before it is looked at: the rows of all groups.

    Args:
        points: edges.
        below: the part of all rows below them.
    """

    points: Array
    below: Array

    @classmethod
    def of(cls, prefixes: Prefixes) -> Prior:
        points = prefixes.edges[0].astype(np.float64)
        below = np.concatenate([[0.0], np.cumsum(prefixes.likely[0])])
        return cls(points, (1 - _ELSEWHERE) * below / below[-1] + _ELSEWHERE * points / points[-1])

    def masses(self, edges: Edges, rank: float) -> Array:
        """How likely a group's quantile is in each cell: groups resemble the whole, and the further a cell's rank among all rows is from the
        quantile's, in log-odds d, the less likely, by (1 + d)^-1.5; a tail so heavy that few rows of a group outvote it."""
        below = np.interp(edges, self.points, self.below)
        middle = np.clip((below[..., 1:] + below[..., :-1]) / 2, 1e-9, 1 - 1e-9)
        distance = np.abs(np.log(middle / (1 - middle)) - math.log(rank / (1 - rank)))
        return np.asarray(np.diff(below, axis=-1) * (1 + distance) ** -1.5)

    def edges(self, moved: Mapping[Fraction, Moved]) -> Edges:
        """Where to look first."""
        every = np.unique(np.linspace(0, self.points[-1], 257).astype(np.int64))
        steps = np.union1d(every, self.points.astype(np.int64))[None, :]
        return _edges(steps, [_sums(self.masses(steps, float(one.rank))) for one in moved.values()])


def reached(prefixes: Prefixes, moved: Moved, bounded: bool = True) -> Array:
    """The probability that a quantile lies below each edge: that the weight below it is more than its rank says. It needs no prior about where
    values are, so an interval of a group rests on its own rows."""
    probability = normal(_beyond(prefixes, moved, bounded))
    probability[:, 0], probability[:, -1] = 0.0, 1.0
    return probability


def expected(prefixes: Prefixes, moved: Moved, prior: Prior | None, bounded: bool = True) -> Array:
    """The same where a cell counts for what it is expected to weigh: a quantile is where rows are, not between them."""
    masses = prefixes.likely if prior is None else prior.masses(prefixes.edges, float(moved.rank))
    return _sums(masses * likelihood(_beyond(prefixes, moved, bounded)))


def _beyond(prefixes: Prefixes, moved: Moved, bounded: bool) -> Array:
    """How much more weight than a quantile each edge has below it, in standard deviations; never falling."""
    more, deviation = prefixes.beyond(float(moved.rank))
    if bounded:
        one = NormalDist().inv_cdf(0.975)
        off = np.where(more > 0, moved.above, moved.below) / one * prefixes.everything[:, None]
        deviation = np.hypot(deviation, off)
    return np.asarray(np.maximum.accumulate(more / np.maximum(deviation, 1e-9), axis=1))


def likelihood(z: Array) -> Array:
    """Of the cells between edges that have so many standard deviations more weight below them than a quantile: the average over the ranks in a cell."""
    steps = np.diff(z, axis=1)
    density = np.exp(-((z[:, 1:] + z[:, :-1]) ** 2) / 8) / math.sqrt(2 * math.pi)
    average = np.where(steps > 1e-3, np.diff(normal(z), axis=1) / np.maximum(steps, 1e-3), density)
    return np.asarray(np.maximum(average, 1e-12))


def in_order(found: Mapping[Fraction, Array]) -> dict[Fraction, Array]:
    """The larger of two quantiles is never likelier to lie below a point."""
    return dict(zip(found, itertools.accumulate(found.values(), np.minimum), strict=True))


def preference(edges: Edges, below: Array) -> Array:
    """The logarithm of how likely each point is, against the likeliest; at least that of one in a billion."""
    widths = np.diff(edges)
    density = np.diff(below)[widths > 0] / widths[widths > 0]
    return np.repeat(np.log(np.maximum(density / density.max(), 1e-9)), widths[widths > 0])


def next_edges(prefixes: Prefixes, moved: Mapping[Fraction, Moved]) -> Edges:
    """The edges of the next cells."""
    return _edges(prefixes.edges, [reached(prefixes, one) for one in moved.values()])


def located(prefixes: Prefixes, moved: Moved, prior: Prior | None = None) -> list[int]:
    """The point in each group that is as likely too low as too high."""
    below = expected(prefixes, moved, prior, bounded=False)  # what bounding does is in the rank already
    return [int(quantile(row, one, 0.5)) for row, one in zip(prefixes.edges, below, strict=True)]


def largest(prefixes: Prefixes) -> list[tuple[int, int]]:
    """By group, the points that at least a twentieth of the rows lie at or below, and at or above, with a probability of 95%."""
    low, high = (reached(prefixes, Moved(rank, 0.0, 0.0, False)) for rank in (Fraction(1, 20), Fraction(19, 20)))
    group, last = np.arange(len(low)), low.shape[1] - 1
    below = prefixes.edges[group, (low < 0.95).sum(axis=1).clip(max=last)] - 1
    above = prefixes.edges[group, np.maximum((high <= 0.05).sum(axis=1) - 1, 0)]
    return list(zip(below.tolist(), above.tolist(), strict=True))


def quantile(edges: Edges, below: Array, probability: float | Array) -> Array:
    """The point that the quantile lies below with this probability; inside a cell all points are alike."""
    return np.asarray(np.interp(probability, below + 1e-12 * np.arange(len(below)), edges))


def _edges(edges: Edges, found: Sequence[Array]) -> Edges:
    rows = [
        [
            0,
            *itertools.chain.from_iterable(np.rint(quantile(row, below[group], _LOOKED_AT)) for below in found),
            row[-1],
        ]
        for group, row in enumerate(edges)
    ]
    return np.sort(np.array(rows, dtype=np.int64), axis=1)


def _sums(masses: Array) -> Array:
    total = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
    return np.asarray(total / total[:, -1:])
