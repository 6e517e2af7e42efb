"""People drawn from the block model, each with exactly w random ratings: their bits, exact in law.

Nobody's ratings are drawn item by item. Given a query, a person's bit depends only on how many of the rated items
fall into each kind of item that the query tells apart, and those numbers are multivariate hypergeometric.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.sketches import ServerSketch
from evenhand.recommender.at_server.sketches.pairwise import Pairwise
from evenhand.recommender.at_server.sketches.projection import Projection
from evenhand.recommender.at_server.sketches.sensing import Sensing
from evenhand.recommender.simulation.people import Bits, People
from evenhand.recommender.tastes import Tastes

_MOST_KINDS = 1 << 22


class BlockPeople(People):
    """A fresh person for every report.

    Args:
        tastes: the block model.
        items: the number of items.
        rated: how many each person rates, no more than the task's public cap.
    """

    def __init__(self, tastes: Tastes, items: int, rated: int, seed: int = 0) -> None:
        super().__init__(seed)
        self.tastes, self.items, self.rated = tastes, items, rated
        self.labels = tastes.labels(items)
        self._like = np.array(tastes.like)
        self._quiet: dict[int, NDArray[np.float64]] = {}

    def truths(self, sketch: ServerSketch, numbers: NDArray[np.int64]) -> Bits:
        """The true bits of one fresh person for each query."""
        if sketch.task.public_rated:
            raise UsageError("People with public rated items can't be simulated: their queries depend on them.")
        edges = np.cumsum(self.tastes.people)[:-1]
        classes = np.searchsorted(edges, self.random.random(len(numbers)), side="right")
        match sketch:
            case Sensing():
                return self._sensing(sketch, numbers, classes)
            case Pairwise():
                return self._pairwise(sketch, numbers, classes)
            case Projection():
                return self._projection(sketch, numbers, classes)
        raise UsageError(f"sketch={sketch.task.sketch!r} can't be simulated.")

    def _sensing(self, sketch: Sensing, numbers: NDArray[np.int64], classes: NDArray[np.int64]) -> Bits:
        sets = sketch.sets(numbers)
        base = sets.shape[2] + 1
        powers = np.float32(base) ** self.labels.astype(np.float32)
        bits = np.empty(sets.shape[:2], bool)
        for question in range(sets.shape[1]):
            # A set's kind: how many different items of each class it has, as one number in base m + 1. Such
            # numbers stay below 2^24, so that adding them up by a product of 32-bit floats is exact.
            ordered = np.sort(sets[:, question].astype(np.uint16), axis=1)
            worth = np.take(powers, ordered)
            worth[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0
            kinds = (worth @ np.ones(base - 1, np.float32)).astype(np.int64)
            bits[:, question] = self.random.random(len(sets)) >= self._quiet_chance(kinds, classes, base)
        return bits

    def _quiet_chance(self, kinds: NDArray[np.int64], classes: NDArray[np.int64], base: int) -> Any:
        """The chance that a person of each class likes nothing in a set of each kind, looked up or computed."""
        if base not in self._quiet:
            self._quiet[base] = self._empty_table(base)
        table = self._quiet[base]
        missing = np.unique(kinds[np.isnan(table[kinds, 0])])
        if len(missing):
            table[missing] = self._compute_quiet(missing, base)
        return table[kinds, classes]

    def _empty_table(self, base: int) -> NDArray[np.float64]:
        if base**self.tastes.clusters > _MOST_KINDS:
            raise UsageError("Too many classes for sets of this size: simulate fewer classes or a smaller theta.")
        return np.full((base**self.tastes.clusters, len(self.tastes.people)), np.nan)

    def _compute_quiet(self, kinds: NDArray[np.int64], base: int) -> NDArray[np.float64]:
        """Reveal the set's items one by one: with r of w ratings placed among the n items so far, the next is rated
        with probability (w - r)/(N - n), and then not liked with probability 1 - b. ``chance[.., r]`` is the
        probability of r ratings and no like.
        """
        quiet = np.empty((len(kinds), len(self._like)))
        for person, like in enumerate(self._like):
            chance = np.zeros((len(kinds), self.rated + 1))
            chance[:, 0] = 1
            revealed = np.zeros(len(kinds))
            for label, b in enumerate(like):
                wanted = kinds // base**label % base
                for step in range(int(wanted.max(initial=0))):
                    going = wanted > step
                    left = (self.rated - np.arange(self.rated + 1)) / (self.items - revealed[going])[:, None]
                    rated = np.clip(left, 0, 1)
                    before = chance[going]
                    after = before * (1 - rated)
                    after[:, 1:] += (before * rated)[:, :-1] * (1 - b)
                    chance[going] = after
                    revealed[going] += 1
            quiet[:, person] = chance.sum(axis=1)
        return quiet

    def _pairwise(self, sketch: Pairwise, numbers: NDArray[np.int64], classes: NDArray[np.int64]) -> Bits:
        low, high, _ = sketch.pairs(numbers)
        both = self.rated * (self.rated - 1) / (self.items * (self.items - 1))
        first, second = (self._like[classes, self.labels[item]] for item in (low, high))
        alike = first * second + (1 - first) * (1 - second)
        return np.asarray(self.random.random(len(numbers)) < both * alike)[:, None]

    def _projection(self, sketch: Projection, numbers: NDArray[np.int64], classes: NDArray[np.int64]) -> Bits:
        """With A the sum of h1 x over items where the signs agree, and B where they differ, h1·x = A + B and
        h2·x = A - B: the signs are equal if |A| > |B|, opposite if |A| < |B|, and a coin decides a tie.
        """
        up, other = sketch.signs(numbers)
        agree, differ = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
        left_items = np.full(len(numbers), self.items)
        left_rated = np.full(len(numbers), self.rated)
        for label in range(self.tastes.clusters):
            mask = np.packbits(self.labels == label, bitorder="little")
            likes = self._like[classes, label]
            for total, cells in ((agree, ~(up ^ other)), (differ, up ^ other)):
                for signs, chance in ((up, likes), (~up, 1 - likes)):
                    here = np.bitwise_count(cells & signs & mask).sum(axis=1, dtype=np.int64)
                    rated = self.random.hypergeometric(here, left_items - here, left_rated)
                    left_items -= here
                    left_rated -= rated
                    total += 2 * self.random.binomial(rated, chance) - rated
        lead = np.abs(agree) - np.abs(differ)
        coin = self.random.integers(0, 2, len(lead), dtype=np.int64)
        return np.asarray(np.where(lead == 0, coin == 1, lead > 0))[:, None]
