"""Tables without a user column, whose rows belong to users through a key: items of orders, lines of receipts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from evenhand.guarantee import Relation, UsageError
from evenhand.tables.public import PublicTable
from evenhand.tables.reading import Stated, called, open_source
from evenhand.tables.table import Table

if TYPE_CHECKING:
    from evenhand.tables.expressions import Rows

_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls its row numbers in Parquet: two files would have the same column by that name."""

On: TypeAlias = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """A table that is joined to the rows of a part, once these are joined to those of users.

    Args:
        other: the table.
        on: the columns by which.
        how: ``"inner"`` or ``"left"``.
        fan_out: how many of its rows one row may meet.
    """

    other: Part | PublicTable
    on: On
    how: str
    fan_out: int | None


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that belong to whoever reaches them by a key. Made by :func:`evenhand.read_part`.

    Nothing can be asked of a part by itself: nobody is bounded there. Join it to the table whose rows say whose they are.

    Args:
        rows: the rows, as a table without users.
        name: what to call it; a guarantee and a ledger know it by this.
        stored: its columns as they were read.
        keys: the only columns by which it may be joined, by those of its owner; None for any.
        steps: what is joined to its rows, further down the levels.
    """

    rows: Table = field(repr=False)
    name: str
    stored: tuple[str, ...]
    keys: Mapping[str, str] | None = None
    steps: tuple[Step, ...] = field(default=(), repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its own columns."""
        return self.rows.columns

    @property
    def expression(self) -> Rows:
        """The rows, as an Ibis table expression."""
        return self.rows.expression

    def where(self, *conditions: object) -> Part:
        """The rows for which all conditions are true, as `Table.where`."""
        return self._changed(self.rows.where(*conditions))

    def derive(self, **columns: object) -> Part:
        """The rows with more columns, as `Table.derive`."""
        return self._changed(self.rows.derive(**columns))

    def select(self, *names: str) -> Part:
        """The rows with these columns only."""
        return self._changed(self.rows.select(*names))

    def join(self, other: Part | PublicTable, on: On, how: str = "inner", fan_out: int | None = None) -> Part:
        """The rows beside those of another part that belong to them, or of a public table.

        As if the other table were joined once this one is: ``orders.join(items.join(returns, on="item_id"), on="order_id")`` is
        ``orders.join(items, on="order_id").join(returns, on="item_id")``.

        Args:
            other: from `evenhand.read_part` or `evenhand.read_public`.
            on: columns that both tables have; or a mapping from columns of this one to columns of the other.
            how: ``"inner"`` or ``"left"``.
            fan_out: how many rows of the other table one row may meet: 1,000 of a part, 1 of a public table unless given.
        """
        if not isinstance(other, Part | PublicTable):
            raise UsageError(
                f"a part is joined with a {type(other).__name__}; expected another part (eh.read_part) or a public table (eh.read_public). "
                "A table of people comes first: orders.join(items, on='order_id')."
            )
        known = {*self.columns, *(name for step in self.steps for name in step.other.columns)}
        for name in [on] if isinstance(on, str) else on:
            if name not in known:
                self.rows.require(name, "join column")
        return replace(self, steps=(*self.steps, Step(other, on, how, fan_out)))

    def _changed(self, rows: Table) -> Part:
        if self.steps:
            raise UsageError(
                "a part is changed before other tables are joined to it, or after it is joined to its owner; write "
                "orders.join(items.join(returns, on='item_id'), on='order_id').where(...)."
            )
        return replace(self, rows=rows)

    def __repr__(self) -> str:
        types = ", ".join(f"{name}: {dtype}" for name, dtype in self.expression.schema().items())
        return f"Part({self.name!r}, engine={self.rows.engine.name!r}, columns=[{types}])"


def read_part(
    source: object,
    *,
    table: str | None = None,
    name: str | None = None,
    keys: On | None = None,
    engine: str | None = None,
    columns: Stated = None,
    quoted_newlines: bool = False,
) -> Part:
    """Open a table without users, whose rows belong to users through a key: join it to the table that has both.

    Guarantee: a release from the joined table protects a person with all of their rows, and every row of the part that only they reach. A row
    that several people reach (an item of an order of two) is not protected for each of them alone: it goes only once no row of those who
    remain reaches it, and so on down the levels. `Release.guarantee` says so, and names the columns.

    Args:
        source: as in `evenhand.read`.
        table: which table of a database.
        name: what to call it; unless given, the name of the table or file. A ledger knows a part by its name, and lets its rows be
            reached by one set of columns only.
        keys: the only columns by which it may be joined, as ``on`` in `Table.join`; any unless given.
        engine: as in `evenhand.read`.
        columns: as in `evenhand.read`.
        quoted_newlines: as in `evenhand.read`.

    Edge cases: nulls meet nothing, and neither do keys that the other table does not have: with ``how="left"`` rows of users stay, with nulls. Columns
    that hold pandas' row numbers (``__index_level_0__``) are left out.

    Example:
        >>> items = eh.read_part("shop.duckdb", table="items")
        >>> orders.join(items, on="order_id")
    """
    opened, marks, stated = open_source(source, (), Relation.PRESENCE, (), table, engine, columns, quoted_newlines)
    named = name if name is not None else called(source, table)
    if not isinstance(named, str) or not named.isprintable() or not 0 < len(named) <= 200:
        raise UsageError(f"name={named!r}: expected a name of 1 to 200 printable characters.")
    opened.named(named)
    rows = Table(opened.rows, opened, (), Relation.PRESENCE, facts=stated, **marks)
    for column in stated:
        rows.require(column, "column with facts")
    own = [column for column in rows.columns if not _INDEX.fullmatch(column)]
    rows = rows.select(*own) if len(own) < len(rows.columns) else rows
    allowed = None if keys is None else dict(key_pairs(keys))
    for key in (allowed or {}).values():
        rows.require(key, "key column")
    return Part(rows, named, rows.columns, allowed)


def key_pairs(on: On | None) -> list[tuple[str, str]]:
    """The columns that are compared, of the one table and of the other."""
    pairs = (
        [(on, on)]
        if isinstance(on, str)
        else list(on.items())
        if isinstance(on, Mapping)
        else [(each, each) for each in on or ()]
    )
    if not all(isinstance(name, str) for pair in pairs for name in pair):
        raise UsageError(
            f"on={on!r}: expected a column name, a list of them, or a mapping from one table's to the other's."
        )
    return pairs
