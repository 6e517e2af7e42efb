"""The client's half of each sketch: derive the query, and say the true bits it asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.at_home.stream import Stream
from evenhand.recommender.messages import SKETCHES, Task, load_half


def sketch_for(task: Task) -> HomeSketch[Any]:
    half: type[HomeSketch[Any]] = load_half(SKETCHES[task.sketch].home)
    return half(task)


__all__ = ["HomeSketch", "sketch_for"]


Q = TypeVar("Q")


class HomeSketch(ABC, Generic[Q]):
    """Turns a query and one person's ratings into the bits that are then randomised.

    The bits returned by `bits` are the truth and never leave the device.

    Guarantee:
        Privacy does not rest on a sketch: `answer` makes one bit per question of whatever `bits` returns or raises,
        and flips each.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.size = len(task.items)

    def stream(self, serial: int) -> Stream:
        """The public stream of the token's query."""
        return Stream(self.task.query_key, self.task.query_number(serial))

    @abstractmethod
    def query(self, serial: int, rated: list[int]) -> Q:
        """The token's query; ``rated``, ascending, matters only where the task treats it as public."""

    @abstractmethod
    def encode(self, query: Q) -> bytes:
        """The query as the bytes whose SHA-256 both sides compare."""

    @abstractmethod
    def bits(self, query: Q, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
        """The true answer to each question; ``ratings`` says for each rated item whether it was liked."""
