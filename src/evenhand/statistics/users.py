"""The number of distinct users in each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.statistics.keys import ID
from evenhand.statistics.parts import CountPart
from evenhand.statistics.weighted_rows import WeightedRows


@dataclass(frozen=True)
class UsersPart(CountPart):
    """Each user counts once in each of their groups."""

    @property
    def words(self) -> str:
        return "number of users"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": "users"}


class DistinctRows(WeightedRows):
    """One row for each user and group, however many rows there are; so a user's norm is a number of groups."""

    def rows(self) -> Any:
        if self.drawn is not None:
            return self.drawn
        rows = super().rows()
        return rows.select(*self.table.user_names, ID).distinct()
