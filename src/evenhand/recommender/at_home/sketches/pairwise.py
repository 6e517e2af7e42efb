"""Pairwise-Preference: did you rate both of these two items, and the same?"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.sketches import HomeSketch

Pair = tuple[int, int]


class Pairwise(HomeSketch[Pair | None]):
    """Asks about two different items of the catalogue, or of the rated ones where those are public.

    Edge cases:
        Where the rated items are public and fewer than two, there is nothing to ask: the answer is a fair
        coin, which the server leaves out.

    Reference: banerjee, figure 1, with the bit that its analysis needs: both rated, and equal.
    """

    def query(self, serial: int, rated: list[int]) -> Pair | None:
        """Two different items, or None if there are none to ask about."""
        choice = rated if self.task.public_rated else range(self.size)
        if len(choice) < 2:
            return None
        first, second = self.stream(serial).words(2)
        i, j = first * len(choice) >> 32, second * (len(choice) - 1) >> 32
        j += j >= i
        return choice[min(i, j)], choice[max(i, j)]

    def encode(self, query: Pair | None) -> bytes:
        """The two items as four bytes each, the smaller number first; nothing where nothing is asked."""
        return struct.pack("<2I", *query) if query else b""

    def bits(self, query: Pair | None, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        if query is None:
            return [coins.below(2) == 1]
        first, second = (ratings.get(item) for item in query)
        return [first is not None and first == second]
