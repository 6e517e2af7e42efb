"""A sketch from outside, the client's half: did you like this one item? Plain randomised response."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.sketches import HomeSketch


class OneItem(HomeSketch[int]):
    """Asks about an item that the public stream picks."""

    def query(self, serial: int, rated: list[int]) -> int:
        (word,) = self.stream(serial).words(1)
        return word * self.size >> 32

    def encode(self, query: int) -> bytes:
        return query.to_bytes(4, "little")

    def bits(self, query: int, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        return [ratings.get(query, False)]


class RawRatings(OneItem):
    """Broken: returns all ratings as they are, neither one bit nor truth values."""

    def bits(self, query: int, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        return [2 + liked for liked in ratings.values()]  # type: ignore[misc]


class OneMore(OneItem):
    """Broken: answers a question that was not asked, too."""

    def bits(self, query: int, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        return [ratings.get(item, False) for item in (query, (query + 1) % self.size)]


class Fails(OneItem):
    """Broken: has an answer for some people only."""

    def bits(self, query: int, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        return [ratings[query]]


class Warns(OneItem):
    """Broken: tells who likes the item by a warning."""

    def bits(self, query: int, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        import warnings

        if ratings.get(query):
            warnings.warn("liked", stacklevel=1)
        return [True]
