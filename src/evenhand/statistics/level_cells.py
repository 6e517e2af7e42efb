"""Rows by the round numbers between which their value lies, in the engine: the cells of `profiles/extent.py`.

The cell is found with one multiplication, one division and comparisons of doubles, which IEEE 754 fixes to the last bit, so it is the same on
every engine. Whatever the arithmetic does, a row is in exactly one cell, and that carries the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from evenhand.bounding import Norm
from evenhand.guarantee import Relation
from evenhand.profiles.extent import CELLS, DECADES, LEVELS, MANTISSAS
from evenhand.release import Measurement
from evenhand.statistics.keys import ID, UNGROUPED
from evenhand.statistics.user_values import total_of_rows
from evenhand.statistics.weighted_rows import FULL, WEIGHT, WeightedRows, fetch_groups
from evenhand.tables import Bounds, Grid, OpenBounds, Table
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.numbers import is_number, number
from evenhand.tables.summaries import known, saturating_sum, valid_rows

_TOLERANCE = 1 + 1e-12
"""A round number, multiplied and divided, may end a little above itself."""

_FAR = 10 * LEVELS[-1]
_POWERS = [10.0**decade for decade in range(len(DECADES) + 1)]


@contextmanager
def numbers_of_rows(copy: Table, column: str) -> Iterator[Rows]:
    """The rows that count, with their user and their value; kept, since as text a number is long to read: once is enough.

    Under presence rows without a number are dropped. Under values they have a null, which counts as the centre of the cells: bounds are not
    known yet, so there is no middle.
    """
    import ibis

    rows = copy.expression
    value = number(copy, column, rows)
    if copy.relation is Relation.PRESENCE:
        rows = rows.filter(is_number(copy, value))
        value = number(copy, column, rows)
    else:
        value = is_number(copy, value).fill_null(False).ifelse(value, ibis.null("float64"))
    with copy.engine.kept(_of_known_users(copy, rows.select(**copy.user_keys(rows), value=value))) as numbers:
        yield numbers


@contextmanager
def totals_of_users(copy: Table, column: str, bounds: Bounds) -> Iterator[Rows]:
    """Every user as one row, with the total of their values: integers on a grid, so the order of rows does not matter."""
    import ibis

    reach = max(abs(bound) for bound in bounds)
    grid = Grid.about((-reach, reach), origin=0.0)
    rows, (steps,) = valid_rows(copy, ((column, grid),))
    summed = rows.group_by(**copy.user_keys(rows)).aggregate(total=total_of_rows(steps.cast("int64") + grid.bottom))
    value = summed.total.cast("float64") * ibis.literal(1 / grid.factor, "float64")
    with copy.engine.kept(_of_known_users(copy, summed.select(*copy.user_names, value=value))) as totals:
        yield totals


@contextmanager
def cells_around(copy: Table, rows: Rows, centre: float, beside: Sequence[str]) -> Iterator[Rows]:
    """Some columns of rows beside the number of the cell of ``value - centre``, 0 to ``CELLS − 1``, in the column `ID`."""
    import ibis

    value = rows["value"].fill_null(centre)
    # Finite for all finite values, since a centre is at most 1e15; clamped, since Postgres raises where a product is too large for a double.
    distance = value - ibis.literal(centre, "float64") if centre else value
    steps = ibis.least(distance.abs(), ibis.literal(_FAR, "float64")) * ibis.literal(1 / LEVELS[0], "float64")
    decade = _search(steps, [_whole(10 * place) for place in range(len(DECADES))])
    power = _search(steps, [ibis.literal(power, "float64") for power in _POWERS[:-1]])
    # Kept: written out as one expression it is long, and the engine would take longer to read it than to run it.
    with copy.engine.kept(rows.select(*beside, below=distance < 0, steps=steps, decade=decade, power=power)) as found:
        part, within = found["steps"] / found["power"], _whole(0)
        for place, mantissa in enumerate(MANTISSAS):
            within = (part > float(mantissa) * _TOLERANCE).ifelse(_whole(place + 1), within)
        beyond = found["steps"] > _POWERS[-1] * _TOLERANCE
        away = beyond.ifelse(_whole(len(LEVELS)), found["decade"] + within)
        middle = _whole(CELLS // 2)
        yield found.select(*beside, **{ID: found["below"].ifelse(middle - away, middle + away)})


@contextmanager
def weighted_once(copy: Table, rows: Rows) -> Iterator[Rows]:
    """Rows with a value and the weight of their user: `FULL` for all rows of a user together, at most. Kept, since they are asked more than once."""
    drawn = WeightedRows(copy, UNGROUPED, (), drawn=rows)
    with copy.engine.kept(drawn.weighted(drawn.norms((Norm.ROWS,)), Norm.ROWS, FULL)) as weighted:
        yield weighted


def users_by_cell(copy: Table, placed: Rows) -> Measurement:
    """Users by where their values lie: the weight of each user's rows in each cell.

    Guarantee: a user's rows weigh ``⌊FULL/rows⌋`` each, so one user moves the vector by at most `FULL` in L1 norm under presence, and
    by twice that under values, where only the cells of a user's rows change (docs/proofs/found-bounds.md).

    Args:
        copy: the table.
        placed: rows with their weight and the number of their cell.
    """
    moves = FULL * copy.relation.moves
    return Measurement(
        lambda: fetch_groups(copy, placed, CELLS, {WEIGHT: placed[WEIGHT]}).map(lambda sums: sums[WEIGHT]),
        moves,
        moves**2,
    )


OPEN = "values lie beyond ± 10^15, where none are looked for"

TOTALS = tuple(2.0**-30 * 4.0 ** (place / 3) for place in range(121))
"""Where cells of users' totals end, on either side of zero: as wide as those of contributions (`profiles/buckets.py`), from 10^-9 to 10^15."""


@contextmanager
def exact_totals(copy: Table, column: str, given: OpenBounds = (None, None)) -> Iterator[Rows]:
    """One row per user with their ``rows``, the ``total`` of their values, whatever bounds these have, and the number of its ``cell``, 0 to ``2·len(TOTALS)``.

    Every value is cut into a whole number and a whole number of 2^-30, whose sums are exact, gains and losses apart; what is below 10^-9 counts as zero and what is
    beyond 2·10^15 as that. So the total of a user is a function of the user's rows, in whatever order. Values are clamped at an end that was ``given``.
    """
    import ibis

    with numbers_of_rows(copy, column) as numbers:
        names, zero, value = list(copy.user_names), ibis.literal(0.0, "float64"), numbers["value"]
        value = value if given[0] is None else ibis.greatest(value, ibis.literal(given[0], "float64"))
        value = value if given[1] is None else ibis.least(value, ibis.literal(given[1], "float64"))
        sizes = {"gains": ibis.greatest(value, zero), "losses": ibis.greatest(-value, zero)}
        sums: dict[str, Column] = {}
        for name, size in sizes.items():
            size = ibis.least(size, ibis.literal(2 * LEVELS[-1], "float64"))
            whole = size.floor().cast("float64")
            rest = ((size - whole) * ibis.literal(2.0**30, "float64") + 0.5).floor()
            sums |= {name: saturating_sum(whole), f"{name}_rest": saturating_sum(rest)}
        summed = numbers.group_by(names).aggregate(rows=numbers.count().cast("int64"), **sums)
        rest = (summed.gains_rest - summed.losses_rest).cast("float64") * ibis.literal(2.0**-30, "float64")
        total = (summed.gains - summed.losses).cast("float64") + rest
        with copy.engine.kept(summed.select(rows=summed.rows, total=total)) as totals:
            away = _place(totals.total.abs(), 0, len(TOTALS))
            cell = (totals.total < 0).ifelse(_whole(len(TOTALS)) - away, _whole(len(TOTALS)) + away)
            with copy.engine.kept(totals.mutate(cell=cell)) as found:
                yield found


def _place(size: Column, first: int, last: int) -> Integers:
    """How many cells of totals end below a size, by nested comparisons."""
    if first == last:
        return _whole(first)
    middle = (first + last) // 2
    return (size > TOTALS[middle]).ifelse(_place(size, middle + 1, last), _place(size, first, middle))


def _whole(constant: int) -> Integers:
    import ibis

    return ibis.literal(constant, "int64")


def _of_known_users(copy: Table, rows: Rows) -> Rows:
    return rows.filter(*(known(copy, rows[name]) for name in copy.user_names))


def _search(steps: Column, results: Sequence[Column]) -> Column:
    """The result for the decade that a number of steps lies in, by nested comparisons."""

    def search(first: int, last: int) -> Column:
        if first == last:
            return results[first]
        split = (first + last + 1) // 2
        return (steps > _POWERS[split] * _TOLERANCE).ifelse(search(split, last), search(first, split - 1))

    return search(0, len(results) - 1)
