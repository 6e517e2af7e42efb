"""A table with a user column: what every release starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import DataError, Guarantee, Relation, UsageError, suggest

if TYPE_CHECKING:
    from decimal import Decimal

    from evenhand.tables.engines import Engine


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that belong to users, on some engine. Made by :func:`evenhand.read`.

    Args:
        expression: the rows, as an Ibis table expression.
        engine: what runs expressions over these rows.
        user: the columns that together name one person.
        relation: which neighbouring tables must look alike.
        public: columns treated as public under ``Relation.VALUES``.
        population: a name for the people in the table, when several tables are about the same people.
        text: columns that were read as text because their source carries no types (CSV, JSON, Python objects).
        positional: whether a column's place in a line tells it apart from others (CSV).
        snapshot: changes when the underlying file changes; None if that can't be known.
    """

    expression: Any = field(repr=False)
    engine: Engine = field(repr=False)
    user: tuple[str, ...]
    relation: Relation
    public: tuple[str, ...] = ()
    population: str | None = None
    text: frozenset[str] = field(default=frozenset(), repr=False)
    snapshot: str | None = field(default=None, repr=False)
    positional: bool = field(default=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.expression.columns)

    @property
    def unit(self) -> tuple[str, ...]:
        """What the ledger is keyed by: the population if it was named, else the user columns."""
        return (self.population,) if self.population else self.user

    @property
    def user_names(self) -> tuple[str, ...]:
        """What the user columns are called inside queries, where they can't collide with other columns."""
        return tuple(f"evenhand_user_{index}" for index in range(len(self.user)))

    def user_keys(self, rows: Any) -> dict[str, Any]:
        """The user columns of some rows, under their names inside queries."""
        return {name: rows[column] for name, column in zip(self.user_names, self.user, strict=True)}

    def guarantee(self, epsilon: Decimal, delta: Decimal) -> Guarantee:
        """The guarantee of a release from this table."""
        return Guarantee(epsilon, delta, self.relation, self.unit, self.public)

    def require(self, column: str, role: str = "column") -> str:
        """Check that a column exists; else say which ones do."""
        if not isinstance(column, str):
            raise UsageError(f"{role} {column!r} is not a column name; expected one of {list(self.columns)}.")
        if column not in self.columns:
            raise DataError(
                f"there is no {role} {column!r} in the table; its columns are {list(self.columns)}."
                f"{suggest(column, self.columns)}"
            )
        return column

    def require_groupable(self, by: Sequence[str]) -> None:
        """Check that grouping or filtering by these columns keeps the guarantee."""
        for column in by:
            self.require(column, "group column")
            private = column not in self.public and column not in self.user
            if self.relation is not Relation.PRESENCE and private:
                raise UsageError(
                    f"by={column!r} would reveal a private column: with protects={self.relation.value!r} only public "
                    f"columns may form groups. Declare it with eh.read(..., public=[{column!r}]) if it is public, "
                    "or protect presence."
                )

    def require_before(self, names: Sequence[str], private: str) -> None:
        """Check that no byte of a private column can change other columns of its row: in a CSV, they stand before it."""
        after = [name for name in (*self.user, *names) if self.columns.index(name) > self.columns.index(private)]
        if self.positional and after:
            raise UsageError(
                f"the columns {after} stand after {private!r} in the file: a delimiter in a private value would move them. "
                "Convert the file to Parquet first: evenhand convert table.csv table.parquet --numbers ..."
            )

    def __repr__(self) -> str:
        types = ", ".join(
            f"{name}: {'text' if name in self.text else dtype}" for name, dtype in self.expression.schema().items()
        )
        public = f", public={list(self.public)}" if self.public else ""
        return (
            f"Table(user={list(self.user)}, protects={self.relation.value!r}{public}, "
            f"engine={self.engine.name!r}, columns=[{types}])"
        )
