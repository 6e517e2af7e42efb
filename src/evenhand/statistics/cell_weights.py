"""What is believed about the weights of cells, group by group: a normal distribution.

A cell that is divided gives each part what the prior says, give or take, as a Dirichlet process does; a measurement of some cells is
worked in by least squares. Rank, answer and interval are read from the weights below edges.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from evenhand.profiles import Array

Edges = npt.NDArray[np.int64]

_NORMAL = NormalDist()

_UNEVEN = 0.5
"""Variance of how a cell's weight is divided, as a multiple of that for a single lump: a Dirichlet process with α = 1."""


_SURE, _MOST = 4.0, 30.0
"""Standard deviations: a quantile lies between the ends so surely, at least; and nothing is surer than that."""


_ELSEWHERE = 0.02
"""Prior: the part of a group's rows that may lie anywhere, wherever those of all groups are."""

_DIGITS = 1e-12
"""Of a variance: what is left of it after a measurement, at least."""

_INSIDE = 8
"""Places in each cell where a quantile is looked for."""


@dataclass(frozen=True)
class Scale:
    """How points are spread beforehand: the part of them below some; straight lines between.

    Args:
        points: in increasing order, from 0 to the number of points.
        below: from 0 to 1.
    """

    points: Array
    below: Array

    @classmethod
    def beforehand(cls, points: int, zero: int) -> Scale:
        """Half of it evenly, half evenly in the logarithm of the distance from zero: bounds may be far too wide."""
        far = np.geomspace(1, max(points, 2), 512)
        every = np.concatenate([np.linspace(0, points, 513), zero + far, zero - far, [zero]])
        every = np.unique(np.rint(every[(every >= 0) & (every <= points)]))
        logs = np.sign(every - zero) * np.log1p(np.abs(every - zero))
        return cls(every, (every / points + (logs - logs[0]) / (logs[-1] - logs[0])) / 2)

    def beside(self, points: Edges, below: Array) -> Scale:
        """That of measured weights, and a little of this one."""
        every = np.union1d(self.points, points)
        before, everything = np.interp(every, self.points, self.below), max(float(below[-1]), 1.0)
        seen = np.interp(every, points, np.maximum.accumulate(below.clip(0, everything)) / everything)
        return Scale(every, (seen + _ELSEWHERE * before) / (seen[-1] + _ELSEWHERE))

    def of(self, points: Edges | Array) -> Array:
        """The part below these points."""
        return np.asarray(np.interp(points, self.points, self.below))

    def places(self, parts: Array) -> Array:
        """The points that these parts are below."""
        return np.asarray(np.interp(parts, self.below, self.points))


@dataclass(frozen=True)
class CellWeights:
    """By group: edges in increasing order, some of them several times, the expected weights between them, and their covariance."""

    edges: Edges
    mean: Array
    covariance: Array

    @classmethod
    def beforehand(cls, points: int, weights: Array, deviation: float) -> CellWeights:
        """All weight of each group, give or take."""
        edges = np.tile(np.array([0, points], dtype=np.int64), (len(weights), 1))
        variances = np.maximum(deviation**2, _DIGITS * weights**2)
        return cls(edges, weights[:, None], variances[:, None, None])

    def divided(self, edges: Edges, scale: Scale) -> CellWeights:
        """With more edges."""
        union = np.sort(np.concatenate([self.edges, edges], axis=1), axis=1)
        parent = (self.edges[:, None, 1:-1] <= union[:, :-1, None]).sum(axis=2)
        inside = (parent[:, :, None] == np.arange(self.mean.shape[1])).astype(np.float64)
        mass = np.diff(scale.of(union), axis=1)
        whole = np.take_along_axis((mass[:, None, :] @ inside)[:, 0], parent, axis=1)
        share = np.divide(mass, whole, out=np.zeros_like(mass), where=whole > 0)
        down = inside * share[:, :, None]
        squares = self.mean**2 + np.diagonal(self.covariance, axis1=1, axis2=2)
        spread = _UNEVEN * np.take_along_axis(squares, parent, axis=1)
        same = parent[:, :, None] == parent[:, None, :]
        within = spread[:, :, None] * (
            np.eye(share.shape[1]) * share[:, :, None] - same * share[:, :, None] * share[:, None, :]
        )
        return CellWeights(
            union, (down @ self.mean[:, :, None])[:, :, 0], down @ self.covariance @ down.transpose(0, 2, 1) + within
        )

    def given(self, edges: Edges, weights: Array, variance: float) -> CellWeights:
        """Once weights between some of the edges were measured, with noise of this variance: by least squares."""
        parts = self._inside(edges)
        crossed = self.covariance @ parts.transpose(0, 2, 1)
        errors = parts @ crossed
        # Doubles hold 16 digits: nothing is known better than to 12 of those that were there before.
        lost = _DIGITS * float(np.abs(self.covariance).max())
        variance = max(variance, lost)
        values, vectors = np.linalg.eigh((errors + errors.transpose(0, 2, 1)) / 2)
        weighted = crossed @ vectors / np.maximum(values + variance, variance)[:, None, :]
        gain = weighted @ vectors.transpose(0, 2, 1)
        off = weights - (parts @ self.mean[:, :, None])[:, :, 0]
        mean = self.mean + (gain @ off[:, :, None])[:, :, 0]
        kept = np.eye(self.mean.shape[1]) - gain @ parts
        covariance = kept @ self.covariance @ kept.transpose(0, 2, 1) + variance * gain @ gain.transpose(0, 2, 1)
        return CellWeights(self.edges, mean, covariance + lost * np.eye(self.mean.shape[1]))

    def merged(self, edges: Edges) -> CellWeights:
        """With these edges alone, which it has."""
        holds = self._inside(edges)
        mean = (holds @ self.mean[:, :, None])[:, :, 0]
        return CellWeights(edges, mean, holds @ self.covariance @ holds.transpose(0, 2, 1))

    def _inside(self, edges: Edges) -> Array:
        """Which cells lie in which of these: 1 or 0. Of equal edges all but one bound nothing."""
        low, high = self.edges[:, None, :-1], self.edges[:, None, 1:]
        return ((low >= edges[:, :-1, None]) & (high <= edges[:, 1:, None]) & (low < high)).astype(np.float64)

    @property
    def below(self) -> Array:
        """The expected weight below each edge."""
        return np.concatenate([np.zeros((len(self.mean), 1)), np.cumsum(self.mean, axis=1)], axis=1)

    def reached(self, rank: float, low: float = 0.0, high: float = 0.0) -> Array:
        """How likely a quantile lies below each edge: the standard normal variable that lies below this number as likely.

        Args:
            rank: the part of all weight that lies below it.
            low: how far below that its rank may be, at two standard deviations, as a part of all weight.
            high: how far above.
        """
        return self._deviations(*self._more(rank), low, high)

    def places(self, chances: Array, scale: Scale, rank: float, low: float = 0.0, high: float = 0.0) -> Array:
        """By group, the points that a quantile lies below with these chances. Inside a cell its weight lies where the prior says, give or take."""
        more, variance = self._more(rank)
        part = np.linspace(0, 1, _INSIDE + 1)[:-1]
        inside = _UNEVEN * self.mean[:, :, None] ** 2 * part * (1 - part)
        finer = self._deviations(_between(more, part), _between(variance, part, inside), low, high)
        edges = _between(scale.of(self.edges), part)
        rise, wanted = 1e-9 * np.arange(finer.shape[1]), [_NORMAL.inv_cdf(float(chance)) for chance in chances]
        found = [np.interp(wanted, row, one) for row, one in zip(finer + rise, edges, strict=True)]
        return scale.places(np.array(found))

    def _more(self, rank: float) -> tuple[Array, Array]:
        """How much more weight than this part of all lies below each edge, and the variance of that."""
        own, with_all = self._sums
        variance = own - 2 * rank * with_all + rank**2 * with_all[:, -1:]
        return self.below - rank * self.below[:, -1:], np.maximum(variance, 0.0)

    @functools.cached_property
    def _sums(self) -> tuple[Array, Array]:
        """The variances of the weights below edges, and their covariances with all weight."""
        sums = np.pad(self.covariance.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
        return np.diagonal(sums, axis1=1, axis2=2), sums[:, :, -1]

    def _deviations(self, more: Array, variance: Array, low: float, high: float) -> Array:
        """In standard deviations, never falling."""
        doubt = np.sqrt(np.maximum(self.covariance.sum(axis=(1, 2)), 0.0))
        everything = np.maximum(self.below[:, -1], doubt)[:, None]
        variance = variance + (np.where(more > 0, high, low) / 2 * everything) ** 2
        z = more / np.maximum(np.sqrt(variance), 1e-9)
        found = (np.maximum.accumulate(z, axis=1) + np.minimum.accumulate(z[:, ::-1], axis=1)[:, ::-1]) / 2
        found[:, 0], found[:, -1] = np.minimum(found[:, 0], -_SURE), np.maximum(found[:, -1], _SURE)
        return np.asarray(found.clip(-_MOST, _MOST))


def _between(values: Array, part: Array, beside: Array | float = 0.0) -> Array:
    """At edges and at these parts of the way to the next one."""
    steps = values[:, :-1, None] + part * np.diff(values, axis=1)[:, :, None] + beside
    return np.concatenate([steps.reshape(len(values), -1), values[:, -1:]], axis=1)
