"""The weight below points of a grid, by least squares from noisy weights of cells.

Every measurement divides the points into cells, each time others: roughly at first, finely where a quantile may be once that is known
about. Together they say how much weight lies below each edge, and how precisely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.profiles import Array

Edges = npt.NDArray[np.int64]

_SEEN_NOWHERE = 0.001  # prior: the part of the rows that may be anywhere, whatever was seen
PARTS = 16
"""Even cells of the first measurement: with more of them, sums over cells are noisier; with fewer, a second look has more to do."""

_AT_ONCE = 64  # groups whose equations are solved together


@dataclass(frozen=True)
class Cells:
    """Noisy weights of cells, by group.

    Args:
        edges: the first point of each cell of a group, then the number of points; a cell may be empty.
        weights: of the cells.
        variance: of the noise in each.
        far: the weight of users far above the bound, if that was measured apart.
    """

    edges: Edges
    weights: Array
    variance: float
    far: float | None = None


@dataclass(frozen=True)
class Told:
    """About where a rank is, by group: the weight below a place between two edges is this part of all, give or take.

    Args:
        before: the edge before the place, as an index.
        part: of the cell after it that lies below the place.
        rank: the part of all weight.
        variance: of the weight below.
    """

    before: Edges
    part: Array
    rank: float
    variance: Array


@dataclass(frozen=True)
class Prefixes:
    """The weight below each edge of all measurements, by group.

    Args:
        edges: in increasing order, some of them several times.
        weights: below them; the last one is all weight of the group.
        variances: of these.
        with_all: their covariances with the last one.
        doubts: the standard deviations of the weights between two edges.
    """

    edges: Edges
    weights: Array
    variances: Array
    with_all: Array
    doubts: Array

    @classmethod
    def of(cls, measured: Sequence[Cells], told: Told | None = None) -> Prefixes:
        """By least squares."""
        edges = np.sort(np.concatenate([cells.edges for cells in measured], axis=1), axis=1)
        unit = max(cells.variance for cells in measured)
        parts = []
        for start in range(0, len(edges), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            cells = [(c.edges[some], c.weights[some], c.variance / unit) for c in measured]
            also = (
                None
                if told is None
                else Told(told.before[some], told.part[some], told.rank, told.variance[some] / unit)
            )
            parts.append(_solved(edges[some], cells, also))
        weights, variances, with_all, between = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(edges, weights, variances * unit, with_all * unit, np.sqrt(np.maximum(between, 0.0) * unit))

    @property
    def everything(self) -> Array:
        """All weight of each group; at least its standard deviation."""
        return np.asarray(np.maximum(self.weights[:, -1], np.sqrt(self.variances[:, -1])))

    @property
    def likely(self) -> Array:
        """What each cell is expected to weigh, as a part of all: half of the cells may be empty, and no weight is negative.

        The others are taken to have an exponential distribution, with the mean of all cells. So what may be noise counts for little where most
        cells weigh far more, and for what it is where none is seen clearly.
        """
        doubts = np.maximum(self.doubts, 1e-9 * self.everything[:, None])
        z = np.diff(self.weights, axis=1) / doubts
        mean = np.maximum(self.everything[:, None] / z.shape[1], doubts)
        empty, some = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / doubts, normal(z) / mean
        expected = np.where(z > -5, z + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / np.maximum(normal(z), 1e-9), 0.1)
        weights = expected * doubts * some / np.maximum(some + empty, 1e-300)
        widths = np.diff(self.edges, axis=1)
        weights = np.where(widths > 0, weights, 0.0) + 1e-9 * self.everything[:, None] * widths / self.edges[:, -1:]
        # The sum of many small errors is large: what lies in one of a few even parts is measured, and only divided within.
        part = np.minimum(self.edges[:, :-1] * PARTS // self.edges[:, -1:], PARTS - 1)
        seen = np.diff(rising(np.clip(self.weights / self.everything[:, None], 0.0, 1.0)), axis=1)
        seen += _SEEN_NOWHERE * widths / self.edges[:, -1:]
        inside = part[:, :, None] == np.arange(PARTS)
        share = (seen[:, :, None] * inside).sum(axis=1) / np.maximum((weights[:, :, None] * inside).sum(axis=1), 1e-300)
        weights = weights * np.take_along_axis(share, part, axis=1)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def told(self, places: Sequence[int], rank: float, variance: float) -> Told:
        """That a choice found this rank at these points. Where in its cell a point's rank is can't be seen: all of its weight may be on either side."""
        before = np.array(
            [np.searchsorted(row, place, side="right") - 1 for row, place in zip(self.edges, places, strict=True)]
        )
        group = np.arange(len(before))
        low, high = self.edges[group, before], self.edges[group, before + 1]
        inside = np.diff(rising(self.weights), axis=1)[group, before]
        first = (self.edges < low[:, None]).sum(axis=1)
        return Told(first, (np.array(places) + 0.5 - low) / (high - low), rank, variance + inside**2 / 12)

    def beyond(self, rank: float) -> tuple[Array, Array]:
        """How much more weight than this part of all lies below each edge, never falling; and its standard deviation."""
        more = self.weights - rank * self.weights[:, -1:]
        variance = self.variances - 2 * rank * self.with_all + rank**2 * self.variances[:, -1:]
        return rising(more), np.sqrt(np.maximum(variance, 0.0))


def rising(values: Array) -> Array:
    """Between the least and the largest increasing curve: either alone lies on one side."""
    most = np.maximum.accumulate(values, axis=-1)
    least = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((most + least) / 2)


def _solved(edges: Edges, measured: Sequence[tuple[Edges, Array, float]], told: Told | None) -> tuple[Array, ...]:
    """Weights, variances, covariances with the last weight, and variances between neighbours. A cell says how far two weights are apart; the first one is 0."""
    groups, size = edges.shape
    group = np.arange(groups)[:, None]
    # Equal edges are one unknown, the first of them; the others are tied to it, so that the equations have a solution.
    first = (edges[:, :, None] < edges[:, None, :]).sum(axis=1)
    precision, given = np.zeros((groups, size, size)), np.zeros((groups, size))
    for own, weights, variance in measured:
        place = (edges[:, :, None] < own[:, None, :]).sum(axis=1)
        low, high = place[:, :-1], place[:, 1:]
        for one, other, sign in ((low, low, 1), (high, high, 1), (low, high, -1), (high, low, -1)):
            np.add.at(precision, (group, one, other), sign / variance)
        np.add.at(given, (group, high), weights / variance)
        np.add.at(given, (group, low), -weights / variance)
    if told is not None:
        combined, all_of = np.zeros((groups, size)), np.arange(groups)
        after = (edges <= edges[all_of, told.before][:, None]).sum(axis=1)
        for place, factor in ((told.before, 1 - told.part), (after, told.part), (first[:, -1], -told.rank)):
            combined[all_of, place] += factor
        precision += combined[:, :, None] * combined[:, None, :] / told.variance[:, None, None]
    tied = first != np.arange(size)
    precision[:, np.arange(size), np.arange(size)] += tied
    covariance = np.zeros_like(precision)
    covariance[:, 1:, 1:] = np.linalg.inv(precision[:, 1:, 1:])
    weights = (covariance @ given[:, :, None])[:, :, 0]
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    with_all = np.take_along_axis(covariance, first[:, None, -1:], axis=2)[:, :, 0]
    weights, variances, with_all = (np.take_along_axis(one, first, axis=1) for one in (weights, variances, with_all))
    low, high = first[:, :-1], first[:, 1:]
    return weights, variances, with_all, variances[:, 1:] + variances[:, :-1] - 2 * covariance[group, low, high]


def normal(z: Array) -> Array:
    """The normal distribution function."""
    return np.asarray(_ERF(z / math.sqrt(2)) / 2 + 0.5, dtype=np.float64)


_ERF = np.vectorize(math.erf, otypes=[np.float64])
