"""MaxSense: is any of these items one that you liked?"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.sketches.base import HomeSketch

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
        """Whether any sensed item was liked."""
        return [any(ratings.get(item, False) for item in query)]
