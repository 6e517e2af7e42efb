"""Rows as small integers, a user's rows together, and the bounded integer vectors that users add up to.

What a user adds depends on that user's rows alone, to the last bit: margins and sums are integers that doubles hold
exactly, in whatever order a library adds them, and the rest are single operations that IEEE 754 rounds one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.slopes import CURVE, Shorts, Slopes

BOX = 2**14
"""Steps of a feature from the middle of its bounds to either end."""

UNIT = 2**11
"""Steps of a standardised feature for one spread, and of the constant column for 1."""

FULL = 2**18
"""The largest norm of what a user adds to a vector."""

COEFFICIENT_BITS = 18
"""Coefficients are multiples of 2^−18 where gradients are computed."""

_COARSE = 16
"""Features in units of so many steps are exact enough for second derivatives, and their products add up exactly."""

SQUARE = (UNIT // _COARSE) ** 2
"""Steps of a second moment of 1."""

CURVED = CURVE * SQUARE
"""Steps of a second derivative along standardised features."""

WHOLE = 2**12
"""Steps of 1 in the matrix that whitens features."""

_BLOCK = 8192  # rows that fit a processor's cache
_SMALL_BLOCK = 128  # rows, where a user has a number for each pair of coefficients
_HELD = 2**24  # numbers up to which the features are also held as doubles


class RowBlock(NamedTuple):
    """Some users, and their rows in parts of at most so many: more than one part for a user with many rows."""

    users: slice
    parts: tuple[slice, ...]


@dataclass(eq=False, repr=False)
class UserRows:
    """Features (a constant column last if there is an intercept), targets, and the number of rows of each user."""

    features: Shorts
    targets: Shorts
    counts: Integers

    def __post_init__(self) -> None:
        self._ends = np.cumsum(self.counts)
        self._blocks = list(self._split(_BLOCK))
        self._doubles: Floats | None = None

    def weights(self, h: float) -> Floats:
        """``min(h, s)/s`` for each user."""
        return np.minimum(h / self.counts, 1.0)

    def standardise(self, centre: Floats, ratio: Floats) -> None:
        """Replace features x by the integer part of ``(x − centre)·ratio``, in place."""
        self._replace(len(centre), lambda x: (x - centre) * ratio)

    def whiten(self, means: Floats, matrix: Floats) -> None:
        """Replace features x by the integer part of ``(x − means)·matrix/WHOLE``, in place; all are integers, and the products exact."""
        about = np.clip(np.rint(means), -(2.0**15), 2.0**15)
        small = np.clip(np.rint(matrix), -(2.0**15), 2.0**15)
        self._replace(len(means), lambda x: ((x - about) @ small) / WHOLE)

    def _replace(self, width: int, moved: Callable[[Shorts], Floats]) -> None:
        for block in self._blocks:
            for rows in block.parts:
                found = np.trunc(moved(self.features[rows, :width]))
                self.features[rows, :width] = np.clip(found, -(2**15 - 1), 2**15 - 1)
        if self.features.size <= _HELD:
            self._doubles = self.features.astype(np.float64)

    def gradients(self, f: Floats, slopes: Slopes) -> Iterator[tuple[slice, Floats]]:
        """``Σ slope·x`` of each user, exactly, block by block; with several scores one after the other."""
        steps = coefficient_steps(f if slopes.scores == 1 else f.reshape(slopes.scores, -1).T)
        return self._sums(lambda rows, X: (slopes.at(X @ steps, self.targets[rows]), X))

    def curvatures(self, f: Floats, slopes: Slopes) -> Iterator[tuple[slice, Floats]]:
        """``Σ curvature·x·xᵀ`` of each user, the upper triangle row by row, for one score; exact up to 2^16 rows of one user."""
        steps = coefficient_steps(f)
        blocks = self._split(_SMALL_BLOCK)
        return self._sums(lambda rows, X: (slopes.curved(X @ steps, self.targets[rows]), _pairs(X)), blocks)

    def second_moments(self, width: int) -> Iterator[tuple[slice, Floats]]:
        """The average of ``x·xᵀ`` of each user, the upper triangle row by row, rounded, of the first columns."""
        return self._averages(lambda X: _pairs(X[:, :width]), self._split(_SMALL_BLOCK))

    def moments(self, power: int, centre: Floats) -> Iterator[tuple[slice, Floats]]:
        """The average of ``(x − centre)^power`` of each user, rounded, without the constant column."""
        return self._averages(lambda X: (X[:, : len(centre)] - centre) ** power)

    def sums_of_targets(self) -> Iterator[tuple[slice, Floats]]:
        """The sum of targets of each user."""
        found = self._sums(lambda rows, X: (self.targets[rows].astype(np.float64), np.ones((len(X), 1))))
        return ((users, sums[:, 0]) for users, sums in found)

    def _averages(
        self, of: Callable[[Floats], Floats], blocks: Iterable[RowBlock] | None = None
    ) -> Iterator[tuple[slice, Floats]]:
        for users, sums in self._sums(lambda rows, X: (np.ones(len(X)), of(X)), blocks):
            yield users, np.rint(sums / self.counts[users, None])

    def _sums(
        self, terms: Callable[[slice, Floats], tuple[Floats, Floats]], blocks: Iterable[RowBlock] | None = None
    ) -> Iterator[tuple[slice, Floats]]:
        for block in self._blocks if blocks is None else blocks:
            yield block.users, self._per_user(block, terms)

    def _per_user(self, block: RowBlock, terms: Callable[[slice, Floats], tuple[Floats, Floats]]) -> Floats:
        """Σ factor·row over the rows of each user of a block, for each column of factors."""
        total: Floats | None = None
        ends = self._ends[block.users]
        for rows in block.parts:
            factors, matrix = terms(rows, self._rows(rows))
            bounds = np.r_[rows.start, np.minimum(ends, rows.stop)] - rows.start
            places = np.arange(len(factors))
            each = (
                sparse.csr_array((factor, places, bounds), shape=(len(ends), len(factors))) @ matrix
                for factor in (factors[:, None] if factors.ndim == 1 else factors).T
            )
            found = np.hstack(list(each))
            total = found if total is None else total + found
        assert total is not None
        return np.asarray(total)

    def _rows(self, rows: slice) -> Floats:
        return self.features[rows].astype(np.float64) if self._doubles is None else self._doubles[rows]

    def _split(self, most: int) -> Iterator[RowBlock]:
        user, row = 0, 0
        while user < len(self._ends):
            last = max(int(np.searchsorted(self._ends, row + most, side="right")), user + 1)
            stop = int(self._ends[last - 1])
            yield RowBlock(slice(user, last), tuple(slice(a, min(a + most, stop)) for a in range(row, stop, most)))
            user, row = last, stop


def box_grid(box: FeatureMap) -> tuple[Floats, Floats, Floats, Floats]:
    """The lowest value of each feature, the least that is told from it, the highest, and a grid step.

    What is not told from the lowest is far less than a step; without it no quotient underflows, which Postgres would raise for.
    """
    return box.lowest, box.lowest + box.smallest, box.highest, box.scale / BOX


def box_steps(X: Floats, box: FeatureMap) -> Shorts:
    """Features from the middle of their bounds to either end in `BOX` steps, rounded down, NaN as the middle; the constant last."""
    steps = np.full((len(X), box.size), UNIT, dtype=np.int16)
    width = len(box.centre)
    lowest, least, highest, step = box_grid(box)
    for start in range(0, len(X), _BLOCK):
        rows = slice(start, start + _BLOCK)
        inside = np.clip(np.where(np.isnan(X[rows]), box.centre, X[rows]), least, highest)
        steps[rows, :width] = np.floor(np.minimum((inside - lowest) / step, 2 * BOX)) - BOX
    return steps


def _pairs(X: Floats) -> Floats:
    """Products of coarse features, each pair once."""
    coarse = np.rint(X / _COARSE)
    return np.hstack([coarse[:, place:] * coarse[:, place, None] for place in range(X.shape[1])])


def coefficient_steps(f: Floats) -> Floats:
    """Coefficients as integers so small that margins are integers below 2^53, whatever the features."""
    bits = 53 - 15 - len(f).bit_length()
    return np.clip(np.rint(f * 2.0**COEFFICIENT_BITS), -(2.0**bits), 2.0**bits)


def clamped(vectors: Floats, factors: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Each vector times its factor, rounded, and shortened where it is longer than `FULL`; and which were not longer.

    Integers, and the sum of their squares is at most ``FULL²``, exactly. A single number beyond a limit (at least
    4 · FULL for up to 8,191 numbers) counts as the limit, so that squares add up exactly before anything is shortened.
    """
    limit = 2.0 ** ((53 - int(vectors.shape[1]).bit_length()) // 2)
    found = np.clip(np.rint(vectors * factors[:, None]), -limit, limit)
    squares = np.einsum("ij,ij->i", found, found)
    long = squares > FULL**2
    # 2^-50 is more than the square root, the quotient and the product can be rounded up by.
    found[long] = np.trunc(found[long] * (FULL * (1 - 2.0**-50) / np.sqrt(squares[long]))[:, None])
    return found, ~long
