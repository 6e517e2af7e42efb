"""The rough shape of a column's distribution over all groups: noisy counts on two levels of a tree over the points of a grid.

Every later choice of a point starts from this shape: in a group with few rows the answer is then drawn from where values are
usual, not from the empty stretches of wide bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import Relation
from evenhand.profiles import Array

_FINE = 256
COARSE = 16


@dataclass(frozen=True)
class Tree:
    """Public layout: points in up to 256 nodes of about equal size, and those in 16.

    Args:
        points: how many points the grid has.
    """

    levels: ClassVar[int] = 2
    """A row is in one node of each."""

    points: int

    @cached_property
    def fine(self) -> npt.NDArray[np.int64]:
        """The fine node of each point."""
        return np.arange(self.points, dtype=np.int64) * self._nodes // self.points

    @cached_property
    def _parents(self) -> npt.NDArray[np.int64]:
        return np.arange(self._nodes, dtype=np.int64) * COARSE // self._nodes

    @property
    def _nodes(self) -> int:
        return min(_FINE, self.points)

    def counts(self, weights: Sequence[int]) -> list[int]:
        """Weight in each node, coarse ones first, from the weights at the points of each group, one group after the other."""
        fine, coarse = [0] * self._nodes, [0] * COARSE
        nodes, parents = self.fine.tolist(), self._parents.tolist()
        for point in range(self.points):
            fine[nodes[point]] += sum(weights[point :: self.points])
        for node, parent in enumerate(parents):
            coarse[parent] += fine[node]
        return [*coarse, *fine]

    def shape(self, noisy: Sequence[int], deviation: float) -> Shape:
        """The shape behind noisy counts whose noise has this standard deviation.

        Each node's weight is divided among its children by their counts. What may be noise, two standard deviations, counts for
        nothing, and an eighth of one is added for the children's size: where nothing is visible, points are alike.
        """
        values = np.asarray(noisy, dtype=np.float64)
        coarse = _divided(values[:COARSE], np.bincount(self._parents, minlength=COARSE), deviation)
        sizes = np.bincount(self.fine, minlength=self._nodes).astype(np.float64)
        fine = np.empty(self._nodes)
        for parent in np.unique(self._parents):
            children = self._parents == parent
            fine[children] = coarse[parent] * _divided(values[COARSE:][children], sizes[children], deviation)
        total = max(float(values[:COARSE].sum()), deviation)
        return Shape(self, (fine / sizes)[self.fine], deviation / total, self._ranks(values) / total)

    def _ranks(self, noisy: Array) -> Array:
        """The weight before each fine node, and all of it, without bias: coarse nodes, then fine ones, from the nearer end."""
        ranks = np.empty(self._nodes + 1)
        coarse = np.concatenate([[0.0], np.cumsum(noisy[:COARSE])])
        for parent in range(COARSE):
            children = np.flatnonzero(self._parents == parent)
            if not len(children):
                continue
            inside = np.concatenate([[0.0], np.cumsum(noisy[COARSE:][children])])
            from_above = inside - inside[-1] + coarse[parent + 1] - coarse[parent]
            nearer = np.arange(len(inside)) * 2 <= len(children)
            ranks[children[0] : children[-1] + 2] = coarse[parent] + np.where(nearer, inside, from_above)
        return ranks


def moved(levels: int, capacity: int, relation: Relation) -> tuple[int, int]:
    """How far one user moves counts of weighted rows on so many levels, in L1 and in squared L2 norm."""
    return levels * relation.moves * capacity, levels * relation.moves * capacity**2


def _divided(counts: Array, sizes: npt.NDArray[np.float64] | npt.NDArray[np.int64], deviation: float) -> Array:
    """Shares of the children of one node."""
    parts = np.maximum(counts - 2 * deviation, 0.0) + deviation / 8 * sizes / float(sizes.mean())
    return np.asarray(parts / parts.sum())


@dataclass(frozen=True)
class Shape:
    """Released: about which share of the rows lies at each point; all shares are positive.

    Args:
        tree: the layout.
        shares: of the points.
        deviation: of the noise in one node's share.
        ranks: the share before each fine node, and 1, with noise and without bias; it need not increase.
    """

    tree: Tree
    shares: Array
    deviation: float
    ranks: Array

    @cached_property
    def below(self) -> Array:
        """The share before each point, and 1 at the end."""
        running = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.asarray(running / running[-1])

    def preference(self, q: float) -> Array:
        """The logarithm of how likely each point is as the q-quantile of a group, before its rows are looked at.

        Groups resemble the whole: the further a point's rank is from q, in log-odds d, the less likely, by (1 + d)^-1.5; a tail so
        heavy that few rows of a group outvote it.
        """
        ranks = np.clip((self.below[:-1] + self.below[1:]) / 2, 1e-9, 1 - 1e-9)
        distance = np.abs(np.log(ranks / (1 - ranks)) - np.log(q / (1 - q)))
        return np.asarray(np.log(self.shares) - 1.5 * np.log1p(distance))

    def place(self, q: float) -> int:
        """About how many points lie below the q-quantile."""
        ranks = self.ranks[1:-1]
        # Between the least and the largest increasing curve: either alone lies on one side.
        rising = (np.maximum.accumulate(ranks) + np.minimum.accumulate(ranks[::-1])[::-1]) / 2
        node = int(np.searchsorted(rising, q))
        return int(np.searchsorted(self.tree.fine, node + 0.5))

    def around(self, point: int) -> tuple[float, float]:
        """The share before the node that holds a point, and the share up to its end."""
        node = int(self.tree.fine[point])
        return float(self.ranks[node]), float(self.ranks[node + 1])

    def node(self, point: int) -> tuple[int, int]:
        """The first and the last point of the node that holds a point."""
        first, end = np.searchsorted(self.tree.fine, [self.tree.fine[point], self.tree.fine[point] + 1])
        return int(first), int(end) - 1

    def doubt(self, point: int) -> float:
        """The standard deviation of the share up to a node: it adds up nodes of both levels, from the nearer end."""
        node, nodes = int(self.tree.fine[point]), int(self.tree.fine[-1]) + 1
        children = max(nodes // COARSE, 1)
        below = node // children + node % children + 1
        above = (nodes - 1 - node) // children + children - node % children
        return self.deviation * math.sqrt(min(below, above))

    def part_below(self, point: int, q: float) -> float:
        """Which part of the rows at a point, taken for the q-quantile, lies below it in rank: matters where many rows share a value."""
        low, high = self.around(point)
        return min(max((q - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    def split_doubt(self, point: int) -> float:
        """The standard deviation of that, as a share of all rows: no more than what is seen to lie in the node."""
        first, last = self.node(point)
        return min(self.doubt(point), float(self.below[last + 1] - self.below[first]) / 2)
