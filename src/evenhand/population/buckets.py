"""Public bucket edges for what one user contributes, for a contribution profile.

Edges grow by the factor 4^(1/3) ≈ 1.59; each user is in one bucket. The factor is a compromise found by simulation
(`benchmarks/accuracy`): a cap is an edge, so coarser buckets need more noise for users just above an edge, while
finer ones spread the same users over more noisy buckets and hide the tail. Edges are integers computed with
integer arithmetic, so that every engine sorts every user into the same bucket.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import UsageError

LARGEST_ROWS = 2**40
# No edge, hence no chosen cap, beyond what a strategy accepts: an error then would depend on the rows.
LARGEST_TOTAL = 2**52
_FINEST = 30  # buckets below one row's largest value: 4^(30/3), a million times smaller, for bounds set far too wide


@dataclass(frozen=True)
class Buckets:
    """Bucket ``i`` holds the users with ``edges[i-1] < x <= edges[i]``; the first is ``x <= 0``, the last is open.

    Guarantee: a user falls into exactly one bucket, so adding or removing a user changes one count by one
    (L1 sensitivity 1), and changing a user's values moves one unit between two buckets (sensitivity 2).

    Args:
        edges: strictly increasing public integers, the first of them 0.
        unit: what one row is worth at most; an edge.

    Example:
        >>> Buckets((0, 1, 2, 4)).index(np.array([0, 1, 3, 9]))
        array([0, 1, 3, 4])
    """

    edges: tuple[int, ...]
    unit: int = 1

    def __post_init__(self) -> None:
        edges = self.edges
        if not edges or edges[0] != 0 or any(a >= b for a, b in pairwise(edges)):
            raise UsageError(
                f"edges={edges[:4]}... can't be bucket edges; expected strictly increasing integers that start with 0."
            )

    @property
    def size(self) -> int:
        """The number of buckets, the open one at the top included."""
        return len(self.edges) + 1

    def index(self, x: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """The bucket of each contribution: how many edges lie strictly below it."""
        return np.searchsorted(np.array(self.edges, dtype=np.int64), x, side="left")

    def histogram(self, x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Users per bucket, exact: private data until noise is added."""
        return np.bincount(self.index(x), minlength=self.size).astype(np.int64)


@functools.lru_cache(maxsize=64)
def row_buckets(largest: int = LARGEST_ROWS) -> Buckets:
    """Buckets for the number of rows of a user."""
    return Buckets(_raster(1, 0, largest), 1)


_EACH = 6  # up to here each number has a bucket of its own


@functools.lru_cache(maxsize=64)
def norm_buckets(largest: int | None = None) -> Buckets:
    """Buckets for the norm of a user's rows over groups: as `row_buckets`, with one for each small number.

    Over many groups a good bound is small, and between 3 and 4 lies a third of the noise.

    Args:
        largest: what no user exceeds, as a public fact: nobody is in more groups than there are. It has a bucket of its own,
            since often many users are in all of them.
    """
    edges = {*_raster(1, 0, LARGEST_ROWS), *range(_EACH + 1)}
    if largest is not None:
        edges = {edge for edge in edges if edge < largest} | {largest - 1, largest}
    return Buckets(tuple(sorted(edges)), 1)


@functools.lru_cache(maxsize=64)
def total_buckets(unit: int, largest: int = LARGEST_TOTAL, least: int = 0) -> Buckets:
    """Buckets for the absolute value of a user's sum, in grid units.

    Args:
        unit: the largest absolute value of one row, in grid units: the edges start a million times below it.
        largest: where the open bucket begins, at the latest.
        least: the smallest absolute value of one row, as a public fact: whoever has a row has so much, so there is no edge below it.
    """
    if not 1 <= unit <= largest:
        raise UsageError(f"unit={unit} is out of range; expected an integer between 1 and {largest}.")
    return Buckets(tuple(edge for edge in _raster(unit, -_FINEST, largest) if not 0 < edge < least), unit)


def _raster(unit: int, first: int, largest: int) -> tuple[int, ...]:
    """0 and the integer parts of unit·4^(i/3), i = first, first+1, ..., up to largest."""
    edges, i = {0}, first
    while True:
        cube = unit**3 * 4**i if i >= 0 else unit**3 // 4**-i
        edge = _cube_root(cube)
        if edge > largest:
            return tuple(sorted(edges))
        edges.add(edge)
        i += 1


def _cube_root(x: int) -> int:
    """The integer part of the cube root (Newton's method on integers, from above)."""
    if x < 2:
        return x
    root = 1 << -(-x.bit_length() // 3)
    while True:
        better = (2 * root + x // (root * root)) // 3
        if better >= root:
            return root
        root = better
