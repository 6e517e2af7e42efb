"""A sketch from outside, the server's half: the share of ones among those who were asked about an item."""

from __future__ import annotations

import math

import numpy as np

from evenhand.recommender.at_server.reading import Floats, Reading
from evenhand.recommender.at_server.sketches import Bits, Ints, Population, ServerSketch, Sums
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting, strength


class OneItem(ServerSketch):
    """Counts, for each item, who was asked about it and who said yes."""

    def items(self, numbers: Ints) -> Ints:
        words = np.ascontiguousarray(self.stream(numbers, 4)).view("<u4")[:, 0]
        return words.astype(np.int64) * self.size >> 32

    def encode(self, number: int) -> bytes:
        return int(self.items(np.array([number]))[0]).to_bytes(4, "little")

    def zeros(self) -> Sums:
        return {"asked": np.zeros(self.size, np.int64), "ones": np.zeros(self.size, np.int64)}

    def add_batch(self, sums: Sums, numbers: Ints, asked: Ints, ones: Ints) -> None:
        items = self.items(numbers)
        np.add.at(sums["asked"], items, asked)
        np.add.at(sums["ones"], items, ones[:, 0])

    def reading(self, sums: Sums, clusters: int | None) -> Reading:
        asked, contrast = np.maximum(1, sums["asked"]), strength(float(self.task.epsilon))
        share = sums["ones"] / asked
        noise = float(np.sqrt((0.25 / asked).mean()))
        liked = (share - (1 - contrast) / 2) / contrast * self.size / self.task.rated
        return Reading(share[:, None], noise, None, liked, int(share.std() > 2 * noise))

    @classmethod
    def places(cls, setting: Setting, tastes: Tastes, users: float) -> Floats:
        contrast, rated = strength(float(setting.epsilon)), setting.rated / setting.items
        ones = 0.5 + contrast * (rated * np.array(tastes.people) @ np.array(tastes.like) - 0.5)
        spread = math.sqrt(float((ones * (1 - ones)).mean()) * setting.items / users)
        return np.asarray(ones / spread)[:, None]

    def truths(self, numbers: Ints, people: Population) -> Bits:
        opinions = people.opinions(len(numbers), self.task.rated)
        return np.asarray(opinions[np.arange(len(numbers)), self.items(numbers)] == 1)[:, None]
