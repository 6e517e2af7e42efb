"""The one pass over the rows: ``GROUP BY user`` with integer sums, inside the engine."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.guarantee import Relation
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.grid import Grid
from evenhand.tables.numbers import fill_or_drop, is_number, number, on_grid
from evenhand.tables.sampling import sampled_sums
from evenhand.tables.saturation import CEILING, MOST_ROWS, exact_sum, saturating_sum
from evenhand.tables.table import Table

__all__ = ["CEILING", "MOST_ROWS", "exact_sum", "known", "per_user", "saturating_sum", "summed", "valid_rows"]


def per_user(table: Table, columns: Sequence[tuple[str, Grid]] = (), limit: int | None = None) -> Rows:
    """One row per user: ``rows``, and for each column ``above_i``, the sum of its grid integers above the bottom.

    Under presence, rows that lack a number in any of the columns are dropped (and users with no other row).
    Otherwise nulls count as the middle. Users that are null are dropped. The users themselves are not part of the result.

    Args:
        table: the rows.
        columns: value columns with their grids.
        limit: keep at most this many random rows per user.
    """
    if limit is not None:  # rows are drawn anew each time
        return summed(table, *valid_rows(table, columns), limit)
    asked = ("per user", table.expression.op(), table.user, table.relation, table.text, tuple(columns))
    return table.engine.remembered(asked, lambda: summed(table, *valid_rows(table, columns)))


def summed(table: Table, rows: Rows, values: Sequence[Column], limit: int | None = None) -> Rows:
    """`per_user` of rows and values that are at hand; values are whole numbers, 0 or more."""
    above = {f"above_{index}": value for index, value in enumerate(values)}
    if limit is not None and above:
        counted = sampled_sums(table, rows, above, limit)
    else:
        sums = {name: saturating_sum(value) for name, value in above.items()}
        counted = rows.group_by(**table.user_keys(rows)).aggregate(rows=rows.count(), **sums)
    return counted.filter(*(known(table, counted[name]) for name in table.user_names)).drop(*table.user_names)


def valid_rows(table: Table, columns: Sequence[tuple[str, Grid]]) -> tuple[Rows, list[Column]]:
    """The rows that count, and the columns in steps above their grids' bottoms, by the null rule of the table's relation."""
    rows = table.expression
    if len(columns) == 1:
        rows, value = fill_or_drop(table, rows, *columns[0])
        return rows, [value]
    if table.relation is Relation.PRESENCE:
        rows = rows.filter(*(is_number(table, number(table, name, rows)) for name, _ in columns)) if columns else rows
        return rows, [on_grid(table, number(table, name, rows), grid) for name, grid in columns]
    return rows, [fill_or_drop(table, rows, name, grid)[1] for name, grid in columns]


def known(table: Table, key: Column) -> Column:
    """Whether a user id or group key is neither null nor NaN."""
    if key.type().is_floating():
        return is_number(table, key.cast("float64"))
    return (table.engine.without_nan(key) if key.type().is_decimal() else key).notnull()
