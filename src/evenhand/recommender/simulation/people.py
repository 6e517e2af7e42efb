"""Simulated people, as a campaign meets them: each answers one query, truthfully until the coin is tossed."""

from __future__ import annotations

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.at_server.reports import Batch
from evenhand.recommender.at_server.sketches import Bits, Ints, Population, ServerSketch
from evenhand.recommender.tuning import strength

_POOL_BATCH = 1 << 18  # a pool's counters are added as a whole: seldom enough not to matter


class People(Population):
    """A population that answers queries, with a generator that is neither secure nor meant to be."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def truths(self, sketch: ServerSketch, numbers: Ints) -> Bits:
        """The true bits of one person for each query: a row each, a column per question."""
        return sketch.truths(numbers, self)

    def alike(self, low: Ints, high: Ints) -> Bits:
        """As in `Population`; for people whose rated items are part of a task, which those drawn from a file are not."""
        raise UsageError(
            "People drawn from a file can't be simulated with public rated items, as their queries depend on them; use people of assumed tastes."
        )

    def reports(self, sketch: ServerSketch, first: int, last: int) -> Batch:
        """The reports of the tokens with serials ``first`` to ``last - 1``, each of another person."""
        task = sketch.task
        serials = np.arange(first, last, dtype=np.uint32)
        bits = self.truths(sketch, serials.astype(np.int64) % task.pool)
        bits ^= self.random.random(bits.shape) >= (1 + strength(float(task.question_epsilon))) / 2
        weights = np.uint32(1) << np.arange(task.questions, dtype=np.uint32)
        return Batch(serials, (bits * weights).sum(axis=1, dtype=np.uint32), None)

    def answer(self, fold: Fold, first: int, last: int) -> None:
        """Let people with serials ``first`` to ``last - 1`` answer, and fold what they say."""
        own = fold.task.pool == fold.task.tokens
        batch = fold.sketch.batch if own else _POOL_BATCH
        for at in range(first, last, batch):
            fold.add(self.reports(fold.sketch, at, min(at + batch, last)))
