"""The share of rows, or of users, for which a condition is true: the mean of a column that the condition makes, of zeros and ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from evenhand.guarantee import EvenhandError, Relation, UsageError
from evenhand.noise import IntegerNoise
from evenhand.statistics.mean import Mean
from evenhand.statistics.per_user_mean import PerUserMean
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.tables import Bounds, Table
from evenhand.tables.expressions import Integers
from evenhand.tables.views import rows
from evenhand.tables.views.binding import as_written


@dataclass(frozen=True)
class Share(Statistic):
    """The share of rows for which a condition is true, or of users who have such a row; null counts as false.

    By group it is the share of the group's rows, or of the users who have rows in the group. It is the mean of a column of zeros and ones: no ε is spent on
    bounds, and of users nothing needs a bound. The same holds for boolean columns, whole numbers with ``bounds=(0, 1)`` and expressions whose ends
    are known from constants.

    Interval: as of a mean; of users without groups, the noise alone.

    Proof: mean-pair, per-user-mean.

    Args:
        condition: an expression in ``eh._``, or SQL text.
        of: ``"rows"`` or ``"users"``.
    """

    name = "share"

    condition: object = field(repr=False)  # an Ibis expression may print rows
    of: Literal["rows", "users"] = "rows"

    def __post_init__(self) -> None:
        if self.of not in ("rows", "users"):
            raise UsageError(
                f"share(of={self.of!r}): expected of='rows', or of='users' for the share of users who have such a row."
            )

    def on(self, table: Table) -> tuple[Table, Statistic]:
        column = f"{rows.RESERVED}share_{len(table.columns)}"
        kind = ShareOfRows if self.of == "rows" else ShareOfUsers
        made = rows.indicator(table, column, self.condition)
        return made, kind(column, (0, 1), condition=as_written(self.condition))

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls(f"{column} > {sum(bounds) / 2}")

    @property
    def words(self) -> str:
        return f"share of {self.of} with {as_written(self.condition)}"

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        raise self._unprepared()

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        raise self._unprepared()

    def reach(self, relation: Relation) -> int:
        raise self._unprepared()

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        raise self._unprepared()

    def _unprepared(self) -> EvenhandError:
        return EvenhandError(
            "a share was asked of a table that has no column for it yet; this is a defect in Evenhand, please report it."
        )


@dataclass(frozen=True)
class ShareOfRows(Mean):
    """The mean of a column of zeros and ones that a condition made.

    Args:
        condition: as it was written.
    """

    name = "share"
    planned_as = None
    condition: str = ""

    @property
    def words(self) -> str:
        return f"share of rows with {self.condition}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": self.name, "condition": self.condition, "of": "rows"}


@dataclass(frozen=True)
class ShareOfUsers(PerUserMean):
    """The average over users of the greatest of their zeros and ones.

    Args:
        condition: as it was written.
    """

    name = "share"
    of: Literal["mean", "total", "max"] = "max"
    condition: str = ""

    @property
    def words(self) -> str:
        return f"share of users who have a row with {self.condition}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": self.name, "condition": self.condition, "of": "users"}
