"""MaxSense: is any of these items one that you liked? Multi-MaxSense asks that about several disjoint sets."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.sketches import HomeSketch

SHORT_WORDS_UP_TO = 4096
"""Catalogues up to this size draw from 16-bit words, larger ones from 32-bit words."""


class MaxSense(HomeSketch[list[int]]):
    """Senses Nθ/w items, drawn independently with replacement; the bit is whether any of them was liked.

    Reference: banerjee, figure 2; drawing with replacement is explained in ``docs/recommender/privacy.md``.
    """

    def query(self, serial: int, rated: list[int]) -> list[int]:
        """The sensed items, in the order in which they are drawn; an item may be drawn twice."""
        size = 2 if self.size <= SHORT_WORDS_UP_TO else 4
        words = self.stream(serial).words(self.task.set_size, size)
        return [word * self.size >> 8 * size for word in words]

    def encode(self, query: list[int]) -> bytes:
        """Each item as four bytes."""
        return struct.pack(f"<{len(query)}I", *query)

    def bits(self, query: list[int], ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        return [any(ratings.get(item, False) for item in query)]


class MultiMaxSense(HomeSketch[list[list[int]]]):
    """Senses Q disjoint sets of Nθ/w items each, with ε shared among them; bit q is whether any of set q was liked.

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
        return [any(ratings.get(item, False) for item in items) for items in query]
