"""Multi-MaxSense: the MaxSense question about several disjoint sets of items, with ε shared among them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.sketches.base import HomeSketch


class MultiMaxSense(HomeSketch[list[list[int]]]):
    """Senses Q disjoint sets of Nθ/w items each; bit q is whether any item of set q was liked.

    Reference: banerjee, figure 3.
    """

    def query(self, serial: int, rated: list[int]) -> list[list[int]]:
        """Every item gets a word from the stream; sorted by word, then by number, they are cut into sets."""
        keys = self.stream(serial).words(self.size)
        order = sorted(range(self.size), key=lambda item: (keys[item], item))
        size = self.task.set_size
        return [sorted(order[at * size : (at + 1) * size]) for at in range(self.task.questions)]

    def encode(self, query: list[list[int]]) -> bytes:
        """Set after set, each item as four bytes, ascending within a set."""
        return b"".join(struct.pack(f"<{len(items)}I", *items) for items in query)

    def bits(self, query: list[list[int]], ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        """For each set, whether any of its items was liked."""
        return [any(ratings.get(item, False) for item in items) for items in query]
