"""People resampled from a real table of ratings: everyone in it stands for many.

What comes out describes a larger population that looks like the table, not the table's people: an experiment for
whoever holds the table, and no private release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.sketches import ServerSketch
from evenhand.recommender.at_server.sketches.pairwise import Pairwise
from evenhand.recommender.at_server.sketches.projection import Projection
from evenhand.recommender.at_server.sketches.sensing import Sensing
from evenhand.recommender.simulation.people import Bits, People


class ResampledPeople(People):
    """A person of the table, drawn at random, for every report.

    Args:
        opinions: people x items: 1 for a like, -1 for a dislike, 0 where not rated.
    """

    def __init__(self, opinions: NDArray[np.int8], seed: int = 0) -> None:
        super().__init__(seed)
        if not len(opinions):
            raise UsageError("The table has no people to resample.")
        self.opinions = opinions

    def truths(self, sketch: ServerSketch, numbers: NDArray[np.int64]) -> Bits:
        """The true bits of a person drawn from the table for each query."""
        who = self.random.integers(0, len(self.opinions), len(numbers))
        match sketch:
            case Sensing():
                kept = self._subsampled(who, sketch.task.rated)
                sets = sketch.sets(numbers)
                people = np.arange(len(numbers))[:, None, None]
                return np.asarray((kept[people, sets] == 1).any(axis=2))
            case Pairwise() if not sketch.task.public_rated:
                low, high, _ = sketch.pairs(numbers)
                first, second = self.opinions[who, low], self.opinions[who, high]
                return np.asarray((first != 0) & (first == second))[:, None]
            case Projection():
                kept = self._subsampled(who, sketch.task.rated).astype(np.float32)
                signs = []
                for vectors in sketch.signs(numbers):
                    bits = np.unpackbits(vectors, axis=1, count=sketch.size, bitorder="little")
                    product = ((2.0 * bits.astype(np.float32) - 1) * kept).sum(axis=1)
                    coin = self.random.integers(0, 2, len(product)) * 2 - 1
                    signs.append(np.where(product == 0, coin, product) > 0)
                return np.asarray(signs[0] == signs[1])[:, None]
        raise UsageError("People with public rated items can't be simulated: their queries depend on them.")

    def _subsampled(self, who: NDArray[np.int64], cap: int) -> NDArray[np.int8]:
        """Everyone's opinions, at most ``cap`` each, chosen at random as at home."""
        kept = self.opinions[who]
        over = np.flatnonzero((kept != 0).sum(axis=1) > cap)
        if len(over):
            keys = np.where(kept[over] != 0, self.random.random((len(over), kept.shape[1]), np.float32), 2)
            last = np.partition(keys, cap - 1, axis=1)[:, cap - 1, None]
            kept[over] *= keys <= last
        return kept
