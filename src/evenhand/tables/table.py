"""A table with a user column: what every release starts from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evenhand.guarantee import DataError, Guarantee, Reach, Relation, UsageError, suggest, told
from evenhand.pages.notebook import Card
from evenhand.tables.columns import Column as Facts
from evenhand.tables.columns import description
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.spelling import group_key, user_key

if TYPE_CHECKING:
    from decimal import Decimal

    import pandas as pd

    from evenhand.tables.engines import Engine
    from evenhand.tables.parts import On, Part
    from evenhand.tables.public import PublicTable
    from evenhand.tables.views.operand import Range


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
        facts: what was stated about columns: bounds, keys, units.
        source: the name of the source, without any password; for the ledger.
        derived: the columns that views made, and what is known of their range.
        declared: of a view, the columns of its sources that were declared public: what a release from it promises about. None where these are
            ``public`` itself.
        holds: the public tables that were joined, which have to live as long as this one.
        growth: how many rows one row of its sources may have become, by joins and unions.
        per_person: how many rows one user may have, where a view settles that; None where it depends on the rows.
        reached: the parts that were joined, and how their rows are reached.
        places: what tells the sources of all rows from others, where that is known.
        parts: the parts that a keeper lets analysts join in SQL, by name.
    """

    expression: Rows = field(repr=False)
    engine: Engine = field(repr=False)
    user: tuple[str, ...]
    relation: Relation
    public: tuple[str, ...] = ()
    population: str | None = None
    text: frozenset[str] = field(default=frozenset(), repr=False)
    snapshot: str | None = field(default=None, repr=False)
    positional: bool = field(default=False, repr=False)
    facts: Mapping[str, Facts] = field(default_factory=dict, repr=False)
    source: str | None = field(default=None, repr=False)
    derived: Mapping[str, Range] = field(default_factory=dict, repr=False)
    declared: tuple[str, ...] | None = field(default=None, repr=False)
    holds: tuple[PublicTable, ...] = field(default=(), repr=False)
    growth: int = field(default=1, repr=False)
    per_person: int | None = field(default=None, repr=False)
    reached: tuple[Reach, ...] = field(default=(), repr=False)
    places: frozenset[str] = field(default=frozenset(), repr=False)
    parts: Mapping[str, Part] = field(default_factory=dict, repr=False)

    @property
    def one_row(self) -> bool:
        """Whether a view makes each user one row at most: a public fact, so that nothing is spent on learning how many rows users have."""
        return self.per_person == 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.expression.columns)

    @property
    def unit(self) -> tuple[str, ...]:
        """What the ledger is keyed by: the population if it was named, else the user columns."""
        return (self.population,) if self.population else self.user

    @property
    def promised(self) -> tuple[str, ...]:
        """The columns that a release treats as public, by their names in the source: a ledger knows them by these, whatever a view calls them."""
        return self.public if self.declared is None else self.declared

    @property
    def user_names(self) -> tuple[str, ...]:
        """What the user columns are called inside queries, where they can't collide with other columns."""
        return tuple(f"evenhand_user_{index}" for index in range(len(self.user)))

    def user_keys(self, rows: Rows) -> dict[str, Column]:
        """The user ids of some rows in the form in which users are told apart (`user_key`), under their names inside queries."""
        names = zip(self.user_names, self.user, strict=True)
        return {
            name: rows[name] if name in rows.columns else user_key(self.engine, rows[column]) for name, column in names
        }

    def describe(self) -> pd.DataFrame:
        """Each column with its type and what was stated about it: bounds, keys, unit. No row is read."""
        return description(self)

    @contextmanager
    def once(self, values: Iterable[str] = (), keys: Sequence[str] = ()) -> Iterator[Table]:
        """One reading of the table: a copy inside the engine that may be asked as often as a release needs.

        The copy holds the users under `user_names`, the columns ``values`` under their own names, and the group columns
        ``keys`` as group keys (see `spelling`) under `key_names`.
        """
        rows = self.expression
        grouped = {
            name: group_key(self.engine, rows[key]) for name, key in zip(key_names(len(keys)), keys, strict=True)
        }
        with self.engine.kept(rows.select(*dict.fromkeys(values), **self.user_keys(rows), **grouped)) as copy:
            yield replace(self, expression=copy)

    def where(self, *conditions: object) -> Table:
        """The rows for which all conditions are true, as a new table.

        Guarantee: as for the table itself. A condition is a function of one row, so it keeps users apart.

        Edge cases: a row is left out where a condition is null. Under ``"values"`` and ``"labels"`` conditions use public columns only. What may be
        used in expressions: docs/views.md; all else is refused before anything is read.

        Args:
            conditions: expressions in `evenhand._`, or SQL text.

        Example:
            >>> sales.where(eh._.amount > 0, "country = 'PL'")
        """
        from evenhand.tables.views import rows

        return rows.where(self, conditions)

    def derive(self, **columns: object) -> Table:
        """The rows with more columns, computed row by row, as a new table. A name that exists already is replaced.

        Guarantee: as for the table itself. Under ``"values"`` a new column is public only if everything that it is computed from is.

        Edge cases: where an operation has no result (a division by zero, text that is no number, an overflow), the result is null. User
        columns can't be redefined.

        Args:
            columns: names with expressions in `evenhand._`, or SQL text.

        Example:
            >>> sales.derive(week=eh._.day.truncate("W"), euros="cents / 100")
        """
        from evenhand.tables.views import rows

        return rows.derive(self, columns)

    def select(self, *names: str) -> Table:
        """The rows with these columns only, as a new table. The user columns always stay.

        Example:
            >>> sales.select("amount", "day")
        """
        from evenhand.tables.views import rows

        return rows.select(self, names)

    def per_user(self, **columns: object) -> Table:
        """One row for each user, with columns that sum up the user's rows, as a new table.

        Guarantee: as for the table itself. A user's row depends on that user's rows only, not on their order.

        Edge cases: ``count``, ``sum``, ``mean``, ``min``, ``max``, ``nunique``, ``any`` and ``all``, and what is computed from them. Nulls are left out. Sums
        are exact for whole numbers (null beyond 2^62); doubles beyond ±2^53 count as ±2^53, and fractions are cut to steps of 2^-52.

        Args:
            columns: names with expressions over aggregates in `evenhand._`, or SQL text.

        Example:
            >>> sales.per_user(total=eh._.amount.sum(), visits=eh._.day.nunique(), share="sum(amount) / count(*)")
        """
        from evenhand.tables.views import per_user

        return per_user.per_user(self, columns)

    def per(self, keys: str | Sequence[str], **columns: object) -> Table:
        """One row for each user and each unit of theirs (a basket, an order, a day), with columns that sum up its rows, as a new table.

        The rows still belong to users, each with all of theirs: statistics are then over units, and what a user adds is bounded over all of them.

        Guarantee: as for the table itself. A row depends on rows of one user only, not on their order.

        Edge cases: as in `per_user`. The user columns are keys whether they are named or not. Rows whose key is null are one unit of their user. Two
        users with one key have a unit each. Under ``"values"`` keys are public columns.

        Args:
            keys: the columns that name a unit.
            columns: names with expressions over aggregates in `evenhand._`, or SQL text.

        Example:
            >>> sales.per(["household", "basket"], total=eh._.amount.sum(), items=eh._.count())
        """
        from evenhand.tables.views import per_user

        return per_user.per(self, keys, columns)

    def window(self, order_by: str | Sequence[str] | None = None, **columns: object) -> Table:
        """The rows with more columns, computed from all rows of the same user, as a new table.

        With ``order_by``, aggregates run from the user's first row to the present one (``count()`` is its place), and ``lag``, ``lead`` give the
        value of an earlier or later row. Without it, aggregates are over all rows of the user.

        Guarantee: as for the table itself. Rows that are equal in ``order_by`` come in the order of all their other columns, so no result
        depends on how rows are stored.

        Edge cases: nulls come first. Under ``"values"`` the order uses public columns. Aggregates as in `per_user`, but for ``nunique``.

        Args:
            order_by: columns by which a user's rows are ordered.
            columns: names with expressions in `evenhand._`, or SQL text.

        Example:
            >>> sales.window(order_by="day", previous=eh._.amount.lag(), so_far=eh._.amount.sum())
        """
        from evenhand.tables.views import per_user

        return per_user.window(self, order_by, columns)

    def join(
        self,
        other: Table | Part | PublicTable,
        on: On | None = None,
        how: str = "inner",
        fan_out: int | None = None,
    ) -> Table:
        """The rows beside those of a public table, of a part, or of another table of the same users, as a new table.

        A public table and a part are joined by the columns ``on``, which both have. Another table of the same people is joined by the user, and by
        the columns ``on`` as well if there are any.

        Guarantee: as for the table itself, since every row of the result belongs to one user and depends on that user's rows only, and on the rows
        of parts that these reach. With a part, what is protected is a person with all of their rows, and every row of the part that only they reach
        (`evenhand.read_part`). Two tables of people must protect the same, and be about the same people: the same ``population``, or user columns
        of the same name.

        Edge cases: keys are compared by value if they are numbers, byte by byte if they are text; nulls meet nothing. Of a table of people, at most
        ``fan_out`` rows for each user (and ``on``) are used, and of a part at most ``fan_out`` for each row, the first in the order of all
        columns; a public table with more is refused. Joins with public tables and tables of people, and unions, together may make at most
        1,000 rows of one; what `per_user` made counts as one row per user. A join with a part makes at most 1,000,000 rows of all rows of a
        user: those of the user's first rows, in the order of all columns. A part needs ``protects="presence"``.
        Under ``"values"``, ``on`` names public columns, and what comes from a public table is public.

        Args:
            other: from `evenhand.read_public`, from `evenhand.read_part`, or from `evenhand.read` with the users of the same people.
            on: columns that both tables have; with a public table or a part, also a mapping from columns of this one to columns of the other.
            how: ``"inner"`` leaves out rows that meet none, ``"left"`` keeps them, with nulls.
            fan_out: how many rows of the other table one row may meet: 1,000 of a part, else 1 unless given.

        Example:
            >>> sales.join(products, on="product_id").join(households)
            >>> orders.join(eh.read_part("shop.duckdb", table="items"), on="order_id")
        """
        from evenhand.tables.views import joins

        return joins.join(self, other, on, how, fan_out)

    def union(self, other: Table) -> Table:
        """The rows of this table and of another one of the same people with the same columns, as a new table.

        Example:
            >>> web_sales.union(shop_sales)
        """
        from evenhand.tables.views import joins

        return joins.union(self, other)

    def guarantee(self, epsilon: Decimal, delta: Decimal) -> Guarantee:
        """The guarantee of a release from this table."""
        return Guarantee(epsilon, delta, self.relation, self.unit, self.promised, user=self.user, parts=self.reached)

    def require(self, column: str, role: str = "column") -> str:
        """Check that a column exists; else say which ones do."""
        if not isinstance(column, str):
            raise UsageError(f"{role} {told(column)} is not a column name; expected one of {list(self.columns)}.")
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

    def card(self) -> Card:
        """What a notebook shows: the columns and what is publicly known of them."""
        rows = [
            (
                name,
                "text" if name in self.text else str(dtype),
                "yes" if name in self.public else "",
                *self.facts.get(name, Facts()).cells(),
            )
            for name, dtype in self.expression.schema().items()
        ]
        named = [("protects", f"{self.relation.value} of {', '.join(self.user)}"), ("engine", self.engine.name)]
        return Card("Table", named, ("column", "type", "public", "unit", "bounds", "keys"), rows)

    def _repr_html_(self) -> str:
        return self.card().html()

    def __repr__(self) -> str:
        types = ", ".join(
            f"{name}: {'text' if name in self.text else dtype}" for name, dtype in self.expression.schema().items()
        )
        public = f", public={list(self.public)}" if self.public else ""
        return (
            f"Table(user={list(self.user)}, protects={self.relation.value!r}{public}, "
            f"engine={self.engine.name!r}, columns=[{types}])"
        )


def key_names(count: int) -> list[str]:
    """What the group columns are called in a copy of the rows."""
    return [f"evenhand_key_{index}" for index in range(count)]
