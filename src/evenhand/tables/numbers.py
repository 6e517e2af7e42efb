"""Values as numbers, by one rule on every engine.

- ±inf and values outside the bounds are clamped; NaN counts as null.
- Under presence a null is dropped. Under values and labels nothing may depend on which values are null, so a null
  becomes the public middle of the bounds and still counts.
- Text (from CSV and JSON) is a number if it is not too long and matches one plain pattern, else null: the engines' own casts
  differ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenhand.guarantee import DataError, Relation
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.grid import Grid
from evenhand.tables.table import Table

if TYPE_CHECKING:
    from evenhand.tables.engines import Engine

# An engine's own sign for the end of a text follows: Java's $ also matches before a final line separator, and Spark then refuses the cast.
# Only one way to match each digit: Java tries all ways before it gives up.
NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,3})?"
INFINITE = r"^[+-]?(inf|infinity)"
SPACE = " \t\n\r\v\f"
"""What is stripped before that, on every engine."""
LONGEST = 2000
"""Characters of a number, stripped: text that is longer is none, so that no engine works on one value for long."""


def number(table: Table, column: str, rows: Rows | None = None) -> Column:
    """A column as doubles, null where it holds no number. Refuses columns that are not numeric by type."""
    table.require(column, "value column")
    value = (table.expression if rows is None else rows)[column]
    dtype = value.type()
    if column in table.text:
        return parsed(table.engine, value.cast("string"))
    if dtype.is_decimal() and (dtype.precision is None or dtype.precision > 15):
        return table.engine.double(value)
    if dtype.is_null() or (dtype.is_unknown() and "NULL" in str(dtype)):  # a column that holds nothing but nulls
        return value.cast("float64")
    if dtype.is_numeric() or dtype.is_boolean():
        return (value.cast("int8") if dtype.is_boolean() else value).cast("float64")
    others = [name for name, kind in table.expression.schema().items() if kind.is_numeric() and name not in table.user]
    cast = f" Text that spells numbers: table.derive(n=eh._[{column!r}].cast('float64'))." if dtype.is_string() else ""
    raise DataError(
        f"the column {column!r} holds {dtype}, not numbers; expected a numeric column. Numeric columns are {others}.{cast}"
    )


def parsed(engine: Engine, value: Column) -> Column:
    """Text as doubles, null where it is no number."""
    import ibis

    whole = value.strip()
    text = (whole.length() <= LONGEST).ifelse(whole, ibis.null("string")).lower()
    # The pattern is tested before the cast runs, so no engine sees text it might refuse or read its own way.
    plain = engine.parsed(text.re_search(NUMBER + engine.end_of_text).ifelse(text, ibis.null("string")))
    infinite = text.startswith("-").ifelse(-math.inf, math.inf)
    return ibis.coalesce(plain, text.re_search(INFINITE + engine.end_of_text).ifelse(infinite, ibis.null("float64")))


def is_number(table: Table, value: Column) -> Column:
    """Not true for null and NaN alike: a filter drops both."""
    return table.engine.is_number(value)


def on_grid(table: Table, value: Column, grid: Grid) -> Column:
    """A non-null double as whole grid steps above the bottom, still a double: clamp, scale, shift, round half up.

    `Grid.steps_above` is the same in Python.
    """
    import ibis

    def double(constant: float) -> Column:
        return ibis.literal(constant, "float64")

    clamped = ibis.least(ibis.greatest(value, double(grid.low)), double(grid.high))
    return table.engine.floor(table.engine.scaled(clamped, grid.factor) + double(grid.offset))


def middle(grid: Grid) -> float:
    """The public constant that stands for a null when counts are public."""
    return grid.low + (grid.high - grid.low) / 2


def fill_or_drop(table: Table, rows: Rows, column: str, grid: Grid) -> tuple[Rows, Column]:
    """Apply the null rule of the table's relation; returns the rows and the column's steps above the grid's bottom."""
    value = number(table, column, rows)
    if table.relation is Relation.PRESENCE:
        kept = rows.filter(is_number(table, value))
        return kept, on_grid(table, number(table, column, kept), grid)
    import ibis

    filled = is_number(table, value).ifelse(value, ibis.literal(middle(grid), "float64"))
    return rows, on_grid(table, filled, grid)
