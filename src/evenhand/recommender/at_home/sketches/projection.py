"""Projection: do your tastes lean the same way along two random directions?"""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.sketches import HomeSketch


class Projection(HomeSketch[tuple[bytes, bytes]]):
    """With public ±1 vectors h1, h2 and ratings x (like 1, dislike -1, unrated 0), the bit says whether
    sign(h1·x) = sign(h2·x); the sign of 0 is a fair coin.

    The server's average of the bit times h1 h2ᵀ shows which items are liked together, so it sees tastes that
    mirror each other, to which a first moment such as MaxSense's is blind.
    """

    def query(self, serial: int, rated: list[int]) -> tuple[bytes, bytes]:
        """The two vectors as bits: item i is bit i mod 8 of byte i div 8, set for +1."""
        width = (self.size + 7) // 8
        taken = self.stream(serial).take(2 * width)
        return self._without_padding(taken[:width]), self._without_padding(taken[width:])

    def _without_padding(self, signs: bytes) -> bytes:
        spare = -self.size % 8
        return signs[:-1] + bytes((signs[-1] & (0xFF >> spare),))

    def encode(self, query: tuple[bytes, bytes]) -> bytes:
        """The two vectors' bytes, unused bits cleared."""
        return b"".join(query)

    def bits(self, query: tuple[bytes, bytes], ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        first, second = (self._leans_up(signs, ratings, coins) for signs in query)
        return [first == second]

    @staticmethod
    def _leans_up(signs: bytes, ratings: Mapping[int, bool], coins: Coins) -> bool:
        product = sum(
            1 if (signs[item >> 3] >> (item & 7) & 1 == 1) == liked else -1 for item, liked in ratings.items()
        )
        return product > 0 if product else coins.below(2) == 1
