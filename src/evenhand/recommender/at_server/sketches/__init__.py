"""The server's half of each sketch: derive queries in bulk, add up what the reports say, and read it."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.reading import Floats, Reading
from evenhand.recommender.at_server.stream import QUERY, keystream
from evenhand.recommender.messages import SKETCHES, Task, load_half
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting

if TYPE_CHECKING:
    from evenhand.recommender.at_server.sketches.maxsense import MaxSense


Bits = NDArray[np.bool_]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Opinions = NDArray[np.int8]
"""People x items: 1 for a like, -1 for a dislike, 0 where not rated."""
F = TypeVar("F", bound=Callable[..., object])
Sums = dict[str, NDArray[Any]]
"""Totals by name: those of disjoint reports add up to the total of all."""


def remembers_last(derive: F) -> F:
    """Keep the queries derived last: a simulation looks at them to answer them, and folds them next."""

    @functools.wraps(derive)
    def remembering(sketch: ServerSketch, numbers: Ints) -> object:
        last = sketch.__dict__.get("_last")
        if last is None or not np.array_equal(last[0], numbers):
            last = sketch.__dict__["_last"] = (numbers.copy(), derive(sketch, numbers))
        return last[1]

    return cast(F, remembering)


class RatedSets:
    """The public rated items of every token, for tasks with ``public_rated``: their numbers, for each serial in turn."""

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
        ordered = [np.unique(np.asarray(row, np.int64)) for row in rows]
        self.sizes = np.array([len(row) for row in ordered], np.int64)
        self.starts = np.concatenate(([0], np.cumsum(self.sizes)))
        self.items = np.concatenate(ordered) if ordered else np.zeros(0, np.int64)


class Population(Protocol):
    """People as a simulation meets them: a fresh one for each query of a call. `simulation` has two populations."""

    def opinions(self, count: int, cap: int | None) -> Opinions:
        """What so many people think; of more than ``cap`` ratings a random choice, as at home."""

    def like_any(self, sketch: MaxSense, numbers: Ints) -> Bits:
        """Whether they like any item of the sets of these queries: queries x questions."""

    def rate_alike(self, low: Ints, high: Ints, known: bool) -> Bits:
        """Whether they rated both items of each pair, and the same; ``known`` if they are known to have rated both."""

    def lean_alike(self, first: Bytes, second: Bytes, cap: int) -> Bits:
        """Whether their ratings have inner products of one sign with two ±1 vectors each, given as packed bits."""


class ServerSketch(ABC):
    """Adds up what reports say about items, and reads the totals; forecasts and simulates that, too.

    A query asked ``asked`` times, with ``ones`` of the answers to each question being 1, is added in one
    step: individual reports and a pool's counters go the same way.
    """

    batch: ClassVar[int] = 4096
    """How many queries are derived at a time: as many as the cache holds."""

    def __init__(self, task: Task, rated: RatedSets | None) -> None:
        if task.public_rated != (rated is not None):
            raise UsageError("Rated sets are needed for tasks with public_rated, and only for them.")
        self.task, self.rated, self.size = task, rated, len(task.items)
        if rated is not None:
            known = (rated.items >= 0) & (rated.items < self.size)
            if len(rated.sizes) != task.tokens or not known.all():
                raise UsageError(
                    f"The rated sets have {len(rated.sizes)} rows; expected one for each of {task.tokens} tokens, of "
                    f"item numbers from 0 to {self.size - 1}."
                )

    def add(self, sums: Sums, numbers: Ints, asked: Ints, ones: Ints) -> None:
        """Add the answers to some queries to ``sums``; ``ones`` has a column per question."""
        for at in range(0, len(numbers), self.batch):
            part = slice(at, at + self.batch)
            self.add_batch(sums, numbers[part], asked[part], ones[part])

    def stream(self, numbers: NDArray[Any], size: int) -> Bytes:
        """The first ``size`` bytes of each query's public stream."""
        return keystream(self.task.query_key, QUERY, numbers, size)

    @abstractmethod
    def zeros(self) -> Sums:
        """The sums of no reports."""

    @abstractmethod
    def encode(self, number: int) -> bytes:
        """The query as the bytes whose SHA-256 both sides compare."""

    @abstractmethod
    def reading(self, sums: Sums, clusters: int | None) -> Reading:
        """What the sums say about each item, in as many dimensions as ``clusters`` need, or as stand out."""

    @abstractmethod
    def add_batch(self, sums: Sums, numbers: Ints, asked: Ints, ones: Ints) -> None:
        """`add` for one batch."""

    @classmethod
    @abstractmethod
    def places(cls, setting: Setting, tastes: Tastes, users: float) -> Floats:
        """The forecast: where each class of items is read to lie, a row each, in standard deviations of one item."""

    @abstractmethod
    def truths(self, numbers: Ints, people: Population) -> Bits:
        """The simulation: a fresh person's bits for each query, before they are flipped; a column per question."""


def half_of(sketch: str) -> type[ServerSketch]:
    """The server's half of a sketch, by its name in the list."""
    return load_half(SKETCHES[sketch].server)


def sketch_for(task: Task, rated: RatedSets | None = None) -> ServerSketch:
    """The server's half of the task's sketch; ``rated`` is for tasks that treat the rated items as public."""
    return half_of(task.sketch)(task, rated)
