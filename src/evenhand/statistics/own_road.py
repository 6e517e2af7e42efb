"""Statistics that are no sums over rows, and the roads that they take from a request to a draft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.guarantee import EvenhandError, Relation
from evenhand.noise import IntegerNoise
from evenhand.statistics.draft import Draft
from evenhand.statistics.keys import Keys
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.tables.expressions import Integers


class OwnRoad(Statistic):
    """A statistic that has no integers per row; its road does everything."""

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {}

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ()

    def reach(self, relation: Relation) -> int:
        return 0

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        raise EvenhandError(
            f"{self.name} is not read from sums by group; this is a defect in Evenhand, please report it."
        )


@dataclass(frozen=True)
class Road(ABC):
    """How such a statistic is released; made of what the road per row is made of (see `per_row.PerRow`)."""

    request: Request
    parts: Mapping[str, Statistic]
    by: tuple[str, ...]
    keys: Keys | None
    other: str | None = None
    groups_per_user: int | None = None
    listed: bool = False

    @property
    def part(self) -> Statistic:
        """What is asked for."""
        (part,) = self.parts.values()
        return part

    @property
    def name(self) -> str:
        """The column of its numbers in a frame."""
        return next(iter(self.parts))

    @property
    def label(self) -> str:
        """The release in words."""
        return f"{self.part.words} by {', '.join(self.by)}" if self.by else self.part.words

    @property
    def query(self) -> dict[str, Any]:
        """The public parameters, for the ledger; of the keys only how many."""
        if not self.by:
            return self.part.query
        count = "selected privately" if self.keys is None else len(self.keys.rows)
        return {**self.part.query, "by": list(self.by), "keys": count}

    @abstractmethod
    def draft(self) -> Draft:
        """Work the release out from public facts."""
