"""MaxSense and Multi-MaxSense on the server: a score per item, the share of ones among queries that sense it."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.recommender.at_server.reading import Floats, Reading
from evenhand.recommender.at_server.sketches import Bits, Ints, Population, ServerSketch, Sums, remembers_last
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting, strength

_SHORT_WORDS_UP_TO = 4096  # larger catalogues draw from 32-bit words


class MaxSense(ServerSketch):
    """Counts, for each item, how often it was sensed and how often the answer was then 1.

    The paper clusters the number of ones alone; dividing by how often the item was sensed removes the luck of
    the draw of queries, which about halves the variance.

    A set is drawn with replacement, and an item drawn twice counts twice. Given one draw, the others are independent
    of it, so the expected share of ones depends on nothing but how often the item is liked: no bias is left for more
    users to meet.
    """

    @remembers_last
    def sets(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The sensed items of each query, in order: queries x questions x items."""
        word = np.dtype("<u2" if self.size <= _SHORT_WORDS_UP_TO else "<u4")
        taken = self.stream(numbers, self.task.set_size * word.itemsize)
        drawn: Any = np.ascontiguousarray(taken).view(word).astype(f"u{2 * word.itemsize}")
        drawn *= drawn.dtype.type(self.size)
        drawn >>= drawn.dtype.type(8 * word.itemsize)
        return cast(NDArray[Any], drawn[:, None, :])

    def zeros(self) -> Sums:
        return {"sensed": np.zeros(self.size, np.int64), "ones": np.zeros(self.size, np.int64)}

    def encode(self, number: int) -> bytes:
        """Set after set, each item as four bytes."""
        return bytes(self.sets(np.array([number])).astype("<u4"))

    def add_batch(self, sums: Sums, numbers: Ints, asked: Ints, ones: Ints) -> None:
        sets = self.sets(numbers)
        if np.all(asked == 1):  # single reports: one histogram over (answer, item)
            keys = sets.astype(np.intp)
            keys += (ones * self.size)[:, :, None]
            by_answer = np.bincount(keys.ravel(), minlength=2 * self.size)
            sums["sensed"] += by_answer[: self.size] + by_answer[self.size :]
            sums["ones"] += by_answer[self.size :]
            return
        items = sets.ravel()
        for name, weights in (("sensed", np.broadcast_to(asked[:, None], ones.shape)), ("ones", ones)):
            each = np.repeat(weights.ravel(), sets.shape[2])
            sums[name] += np.rint(np.bincount(items, each, self.size)).astype(np.int64)

    def reading(self, sums: Sums, clusters: int | None) -> Reading:
        """The share of ones for each item, and the like rates that explain them."""
        sensed, ones = sums["sensed"], sums["ones"]
        overall = ones.sum() / max(1, sensed.sum())
        share = np.where(sensed > 0, ones / np.maximum(1, sensed), overall)
        noise = float(np.sqrt(max(overall * (1 - overall), 1e-12) * (1 / np.maximum(1, sensed)).mean()))
        spread = float(np.var(share)) > noise**2 * (1 + 3 * np.sqrt(2 / self.size))
        return Reading(share[:, None], noise, None, self._like_rates(share, overall), int(spread))

    def _like_rates(self, share: Floats, overall: float) -> Floats:
        """Undo the flips, then the sensing of other items beside.

        A query that draws item i answers 1 - (1 - liked_i)(1 - other), `other` being whether another draw is
        liked; on average over items it answers 1 - (1 - q)^m with q the share of (person, item) likes.
        """
        flip = 1 / (np.exp(float(self.task.question_epsilon)) + 1)
        truth, average = ((value - flip) / (1 - 2 * flip) for value in (share, overall))
        quiet = min(max(1 - average, 1e-6), 1.0)
        likes = 1 - quiet ** (1 / self.task.set_size)
        per_person = likes + (truth - average) * (1 - likes) / quiet
        return np.asarray(per_person * self.size / self.task.rated)

    @classmethod
    def places(cls, setting: Setting, tastes: Tastes, users: float) -> Floats:
        """Each class's expected share of ones, which is an average: the central limit theorem gives its noise."""
        contrast = strength(float(setting.epsilon) / setting.questions)
        like, people = np.array(tastes.like), np.array(tastes.people)
        rates = tastes.like_rates * setting.rated / setting.items
        quiet = people @ (1 - rates) ** setting.set_size
        ones = 0.5 + contrast * (0.5 - quiet)
        means = contrast * setting.rated / setting.items * ((people * (1 - rates) ** (setting.set_size - 1)) @ like)
        sensed = users * setting.questions * setting.set_size / setting.items
        return np.asarray(means / math.sqrt(ones * (1 - ones) / sensed))[:, None]

    def truths(self, numbers: Ints, people: Population) -> Bits:
        return people.like_any(self, numbers)


class MultiMaxSense(MaxSense):
    """Several MaxSense questions at once; their sets share no item, so the answers are nearly independent."""

    batch = 1024

    @remembers_last
    def sets(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Cut from a random order of the catalogue; the items of each set ascend."""
        keys = np.ascontiguousarray(self.stream(numbers, 4 * self.size)).view("<u4").astype(np.uint64)
        # Key and item in one number: sorting orders by key, then by item.
        packed = keys << np.uint64(32) | np.arange(self.size, dtype=np.uint64)
        packed.sort(axis=1)
        taken = packed[:, : self.task.questions * self.task.set_size] & np.uint64(0xFFFFFFFF)
        sets = taken.reshape(len(numbers), self.task.questions, self.task.set_size)
        sets.sort(axis=2)
        return sets
