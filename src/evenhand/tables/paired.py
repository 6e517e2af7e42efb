"""One row for each user and key, formed by the statement that reads the table.

Hidden names, L2 norms, users by group and means by group all need to know what a user has in each group. Forming these pairs costs several times
what any later pass over them does, so it is done once, straight from the source, and everything else asks the result. What is
linear in the weight of a user needs nothing but the number of rows of a pair and the sums of its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TypeAlias

from evenhand.guarantee import Relation
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.grid import Grid
from evenhand.tables.numbers import is_number, middle, number, on_grid
from evenhand.tables.saturation import saturating_sum
from evenhand.tables.spelling import group_key
from evenhand.tables.table import Table, key_names

Values: TypeAlias = tuple[tuple[str, Grid], ...]
"""Value columns with their grids; none where rows are only counted."""

MOST_ROWS = 2**30
"""Rows of one pair saturate here: with 16 bits of a value and 16 of a weight, what a pair adds fits 62 bits."""

ROWS = "evenhand_rows"


@dataclass(frozen=True, eq=False, kw_only=True)
class PairedTable(Table):
    """One reading of a table, with one row for each user and key; made by `paired`.

    Args:
        summed: the value columns that were summed: by place, a number of rows that hold a number in each of them, and their sums.
    """

    summed: tuple[Values, ...]

    def of(self, rows: Rows, values: Values) -> dict[str, Integers]:
        """What some pairs hold of these columns: `ROWS`, ``value_i``, the sum of a column's grid integers, and ``size_i``, that of their sizes."""
        place = self.summed.index(values)
        count = rows[_rows(place)]
        found = {ROWS: count}
        for index, (_, grid) in enumerate(values):
            value = rows[_above(place, index)] + count * grid.bottom if grid.bottom else rows[_above(place, index)]
            mixed = grid.bottom < 0 < grid.top
            found |= {f"value_{index}": value, f"size_{index}": rows[_size(place, index)] if mixed else value.abs()}
        return found


@contextmanager
def paired(table: Table, by: Sequence[str], wanted: Sequence[Values]) -> Iterator[PairedTable]:
    """Read the table once, as pairs of user and key; ``wanted`` are the value columns whose sums are needed together."""
    import ibis

    summed, rows = tuple(dict.fromkeys(wanted)), table.expression
    keys = {name: group_key(table.engine, rows[key]) for name, key in zip(key_names(len(by)), by, strict=True)}
    sums: dict[str, Column] = {}
    for place, columns in enumerate(summed):
        sums |= _sums(table, rows, place, columns)
    pairs = rows.group_by(**table.user_keys(rows), **keys).aggregate(**sums)
    pairs = pairs.mutate(**{_rows(place): ibis.least(pairs[_rows(place)], MOST_ROWS) for place, _ in enumerate(summed)})
    for place, columns in enumerate(summed):
        pairs = pairs.mutate(**_within(pairs, place, columns))
    inherited = {field.name: getattr(table, field.name) for field in fields(Table) if field.name != "expression"}
    with table.engine.kept(pairs) as kept:
        # An engine may store what was grouped by without its type (SQLite does).
        lost = [name for name in keys if kept.schema()[name].is_null()]
        typed = kept.mutate(**{name: kept[name].cast(pairs.schema()[name]) for name in lost}) if lost else kept
        yield PairedTable(expression=typed, summed=summed, **inherited)


def _sums(table: Table, rows: Rows, place: int, columns: Values) -> dict[str, Column]:
    """Of each pair, by the null rule of the relation: rows that lack a number in any of the columns add nothing, or the middle."""
    import ibis

    if not columns:
        return {_rows(place): rows.count()}
    zero = ibis.literal(0.0, "float64")
    numbers = [number(table, name, rows) for name, _ in columns]
    valid = [is_number(table, value) for value in numbers]
    counts = table.relation is Relation.PRESENCE
    every = valid[0]
    for one in valid[1:]:
        every = every & one
    found: dict[str, Column] = {
        _rows(place): every.ifelse(ibis.literal(1.0, "float64"), zero).sum().cast("int64") if counts else rows.count()
    }
    for index, ((_, grid), value, holds) in enumerate(zip(columns, numbers, valid, strict=True)):
        # Filled before it is put on the grid: some engines raise on NaN there.
        steps = on_grid(table, holds.ifelse(value, ibis.literal(middle(grid), "float64")), grid)
        steps = every.ifelse(steps, zero) if counts else steps
        found[_above(place, index)] = saturating_sum(steps)
        if grid.bottom < 0 < grid.top:
            size = (steps + ibis.literal(float(grid.bottom), "float64")).abs()
            found[_size(place, index)] = saturating_sum(every.ifelse(size, zero) if counts else size)
    return found


def _within(pairs: Rows, place: int, columns: Values) -> dict[str, Column]:
    """What holds for every row, held to for a pair whose rows saturate: 0 ≤ above ≤ rows × width, and |sum| ≤ sum of sizes."""
    import ibis

    found: dict[str, Column] = {}
    count = pairs[_rows(place)]
    for index, (_, grid) in enumerate(columns):
        above = ibis.least(pairs[_above(place, index)], count * grid.width)
        found[_above(place, index)] = above
        if grid.bottom < 0 < grid.top:
            found[_size(place, index)] = ibis.greatest(pairs[_size(place, index)], (above + count * grid.bottom).abs())
    return found


def _rows(place: int) -> str:
    return f"evenhand_rows_{place}"


def _above(place: int, index: int) -> str:
    return f"evenhand_above_{place}_{index}"


def _size(place: int, index: int) -> str:
    return f"evenhand_size_{place}_{index}"
