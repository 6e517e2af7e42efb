"""An order of rows that leaves nothing to chance: by the keys that were given, then by every column.

Rows that this order can't tell apart are equal in every column, so it does not matter which of them comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand.tables.expressions import Column, Rows
from evenhand.tables.spelling import group_key

if TYPE_CHECKING:
    from evenhand.tables.table import Table


def total_order(table: Table, keys: Sequence[str] = ()) -> list[Column]:
    """Sort keys over the rows of a table. Public columns come before private ones, so that private values decide between rows only where
    all that is public of them is equal. User columns are left out: all rows of a user have one spelling of them.
    """
    needed = [name for name in table.columns if name not in table.user]
    others = [name for name in needed if name in table.public] + [name for name in needed if name not in table.public]
    return sort_keys(table, table.expression, dict.fromkeys((*keys, *others)))


def sort_keys(table: Table, rows: Rows, names: Iterable[str]) -> list[Column]:
    """Columns as sort keys: nulls first, text by its bytes, numbers by value (engines sort -0.0 and 0.0, or 1.0 and 1.00, as one by themselves)."""
    columns = (rows[name] for name in names)
    keys = (column if column.type().is_numeric() else group_key(table.engine, column) for column in columns)
    return [key.asc(nulls_first=True) for key in keys]


def user_window(table: Table, keys: Sequence[str] = ()) -> list[Column]:
    """What the rows of one user, and of equal ``keys``, have in common."""
    rows = table.expression
    return [*table.user_keys(rows).values(), *(group_key(table.engine, rows[key]) for key in keys)]
