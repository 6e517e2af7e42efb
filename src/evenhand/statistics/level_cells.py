"""Rows by the round numbers between which their value lies, in the engine: the cells of `profiles/extent.py`.

The cell is found with one multiplication, one division and comparisons of doubles, which IEEE 754 fixes to the last bit, so it is the same on
every engine. Whatever the arithmetic does, a row is in exactly one cell, and that carries the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from evenhand.guarantee import Relation
from evenhand.profiles.extent import CELLS, DECADES, LEVELS, MANTISSAS
from evenhand.statistics.keys import ID
from evenhand.statistics.user_values import total_of_rows
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.numbers import is_number, number
from evenhand.tables.summaries import known, valid_rows

_TOLERANCE = 1 + 1e-12
"""A round number, multiplied and divided, may end a little above itself."""

_FAR = 10 * LEVELS[-1]
_POWERS = [10.0**decade for decade in range(len(DECADES) + 1)]


@contextmanager
def cells_of_rows(copy: Table, column: str) -> Iterator[Rows]:
    """The rows that count, with their user and the number of their cell; kept, since they are asked more than once.

    Under presence rows without a number are dropped. Under values they count as zero: bounds are not known yet, so there is no middle.
    """
    import ibis

    rows = copy.expression
    value = number(copy, column, rows)
    if copy.relation is Relation.PRESENCE:
        rows = rows.filter(is_number(copy, value))
        value = number(copy, column, rows)
    else:
        value = is_number(copy, value).fill_null(False).ifelse(value, ibis.literal(0.0, "float64"))
    # As text, a number is long to read: once is enough.
    named = _of_known_users(copy, rows.select(**copy.user_keys(rows), value=value))
    with copy.engine.kept(named) as numbers, copy.engine.kept(_placed(copy, numbers)) as placed:
        yield placed


@contextmanager
def cells_of_totals(copy: Table, column: str, bounds: Bounds) -> Iterator[Rows]:
    """Every user as one row, with the cell of the total of their values: integers on a grid, so the order of rows does not matter."""
    import ibis

    reach = max(abs(bound) for bound in bounds)
    grid = Grid.about((-reach, reach), origin=0.0)
    rows, (steps,) = valid_rows(copy, ((column, grid),))
    summed = rows.group_by(**copy.user_keys(rows)).aggregate(total=total_of_rows(steps.cast("int64") + grid.bottom))
    value = summed.total.cast("float64") * ibis.literal(1 / grid.factor, "float64")
    with (
        copy.engine.kept(_of_known_users(copy, summed.select(*copy.user_names, value=value))) as totals,
        copy.engine.kept(_placed(copy, totals)) as placed,
    ):
        yield placed


def _of_known_users(copy: Table, rows: Rows) -> Rows:
    return rows.filter(*(known(copy, rows[name]) for name in copy.user_names))


def _placed(copy: Table, rows: Rows) -> Rows:
    return rows.select(*copy.user_names, **{ID: cell_of(rows["value"])})


def cell_of(value: Column) -> Integers:
    """The number of a value's cell, 0 to ``CELLS − 1``."""
    import ibis

    def whole(constant: int) -> Integers:
        return ibis.literal(constant, "int64")

    # Clamped first: Postgres raises where a product is too large for a double.
    size = ibis.least(value.abs(), ibis.literal(_FAR, "float64"))
    steps = size * ibis.literal(1 / LEVELS[0], "float64")
    decade = _search(steps, [whole(10 * place) for place in range(len(DECADES))])
    part = steps / _search(steps, [ibis.literal(power, "float64") for power in _POWERS[:-1]])
    within = whole(0)
    for place, mantissa in enumerate(MANTISSAS):
        within = (part > float(mantissa) * _TOLERANCE).ifelse(whole(place + 1), within)
    distance = (steps > _POWERS[-1] * _TOLERANCE).ifelse(whole(len(LEVELS)), decade + within)
    return (value < 0).ifelse(whole(CELLS // 2) - distance, whole(CELLS // 2) + distance)


def _search(steps: Column, results: Sequence[Column]) -> Column:
    """The result for the decade that a number of steps lies in, by nested comparisons."""

    def search(first: int, last: int) -> Column:
        if first == last:
            return results[first]
        split = (first + last + 1) // 2
        return (steps > _POWERS[split] * _TOLERANCE).ifelse(search(split, last), search(first, split - 1))

    return search(0, len(results) - 1)
