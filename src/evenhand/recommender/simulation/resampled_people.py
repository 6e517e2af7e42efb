"""People resampled from a real table of ratings: everyone in it stands for many.

What comes out describes a larger population that looks like the table, not the table's people: an experiment for
whoever holds the table, and no private release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.sketches import Bits, Ints, Opinions
from evenhand.recommender.at_server.sketches.maxsense import MaxSense
from evenhand.recommender.simulation.people import People


class ResampledPeople(People):
    """A person of the table, drawn at random, for every report."""

    def __init__(self, opinions: Opinions, seed: int = 0) -> None:
        super().__init__(seed)
        if not len(opinions):
            raise UsageError("The table has no people to resample.")
        self.table = opinions

    def opinions(self, count: int, cap: int | None) -> Opinions:
        """Rows of the table, with at most ``cap`` ratings each, chosen at random as at home."""
        kept = self.table[self._who(count)]
        if cap is None:
            return kept
        over = np.flatnonzero((kept != 0).sum(axis=1) > cap)
        if len(over):
            keys = np.where(kept[over] != 0, self.random.random((len(over), kept.shape[1]), np.float32), 2)
            last = np.partition(keys, cap - 1, axis=1)[:, cap - 1, None]
            kept[over] *= keys <= last
        return kept

    def like_any(self, sketch: MaxSense, numbers: Ints) -> Bits:
        kept = self.opinions(len(numbers), sketch.task.rated)
        return np.asarray((kept[np.arange(len(numbers))[:, None, None], sketch.sets(numbers)] == 1).any(axis=2))

    def rate_alike(self, low: Ints, high: Ints) -> Bits:
        who = self._who(len(low))
        first, second = self.table[who, low], self.table[who, high]
        return np.asarray((first != 0) & (first == second))

    def lean_alike(self, first: NDArray[np.uint8], second: NDArray[np.uint8], cap: int) -> Bits:
        """By two inner products; a coin decides where one is 0."""
        kept = self.opinions(len(first), cap).astype(np.float32)
        signs = []
        for vectors in (first, second):
            bits = np.unpackbits(vectors, axis=1, count=kept.shape[1], bitorder="little")
            product = ((2.0 * bits.astype(np.float32) - 1) * kept).sum(axis=1)
            coin = self.random.integers(0, 2, len(product)) * 2 - 1
            signs.append(np.where(product == 0, coin, product) > 0)
        return np.asarray(signs[0] == signs[1])

    def _who(self, count: int) -> Ints:
        return self.random.integers(0, len(self.table), count)
