"""One value per user, or per user and group: the mean or the total of their rows, as a whole number of grid steps.

Both are the same on every engine: rows are integers before they are added, sums saturate instead of rounding
(`tables/saturation.py`), and the one division is a division of doubles, which IEEE 754 fixes to the last bit. Whatever comes
out is clamped to the public grid before it is weighted, and the clamp carries the guarantee (docs/proofs/per-user-mean.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from evenhand.bounding.contribution import clamp
from evenhand.statistics.keys import ID
from evenhand.statistics.weighted_rows import WeightedRows
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.saturation import saturating_sum
from evenhand.tables.summaries import known, valid_rows

_ROW_BITS = 44
"""One row counts for at most 2^44 steps in a total, so that 2^9 such rows of a user add up exactly."""

_ROWS_PER_BOUND_BITS = 10
"""At least 2^10 times the larger bound: what one row may hold, since a refund may undo it in the total."""


@dataclass(frozen=True)
class UserValue:
    """What is made of one user's rows.

    Args:
        column: of the values.
        bounds: of a value for a mean, of the user's total for a total.
        of: the mean, the total or the greatest of the rows.
        bits: how fine the grid is.
    """

    column: str
    bounds: Bounds
    of: Literal["mean", "total", "max"]
    bits: int

    @property
    def grid(self) -> Grid:
        """Of the value of a user, seen from the lower bound."""
        low, high = self.bounds
        grid = Grid.about(self.bounds, origin=low, bits=self.bits)
        if self.of != "total":
            return grid
        # A total is a sum of steps from zero: coarser where the bounds are far from zero, so that a row fits.
        return Grid(low, high, low, min(grid.exponent, self._finest))

    @property
    def rows_grid(self) -> Grid:
        """Of the value of a row. Rows of a total are seen from zero, and beyond the bounds: only their total is bounded."""
        if self.of != "total":
            return self.grid
        reach = float(2**_ROW_BITS / self.grid.steps_per_unit)
        return Grid(-reach, reach, 0.0, self.grid.exponent)

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        """What is read of each row."""
        return ((self.column, self.rows_grid),)

    @property
    def _finest(self) -> int:
        return Grid.about(self.bounds, origin=0.0, bits=_ROW_BITS - _ROWS_PER_BOUND_BITS).exponent

    @property
    def bottom(self) -> int:
        """The lower bound in steps of a row's grid."""
        if self.of != "total":
            return 0
        return math.floor(Fraction(self.bounds[0]) * self.grid.steps_per_unit + Fraction(1, 2))

    def made_of(self, steps: Integers) -> Integers:
        """An aggregate over the rows of one user, each a whole number of steps on `rows_grid`."""
        return _MADE[self.of](steps)

    def above(self, value: Integers) -> Integers:
        """Steps of a user's value above the lower bound, clamped: between 0 and ``grid.width`` for every user."""
        return clamp(value - self.bottom, 0, self.grid.width)


def mean_of_rows(steps: Integers) -> Integers:
    """The mean of nonnegative whole numbers, rounded half up: exact while their sum and number stay below 2^53 together."""
    import ibis

    rows = steps.count().cast("float64")
    half = (rows / ibis.literal(2.0, "float64")).floor().cast("float64")
    return ((saturating_sum(steps).cast("float64") + half) / rows).floor().cast("int64")


def total_of_rows(steps: Integers) -> Integers:
    """The sum of whole numbers of either sign: gains and losses saturate apart, so the order of rows does not matter."""
    import ibis

    zero = ibis.literal(0, "int64")
    return saturating_sum(ibis.greatest(steps, zero)) - saturating_sum(ibis.greatest(-steps, zero))


def greatest_of_rows(steps: Integers) -> Integers:
    """The greatest of whole numbers."""
    return steps.max()


_MADE: dict[str, Callable[[Integers], Integers]] = {
    "mean": mean_of_rows,
    "total": total_of_rows,
    "max": greatest_of_rows,
}


def one_row_per_user(table: Table, value: UserValue) -> Rows:
    """Every user as one row: ``rows`` is 1, ``above_0`` the user's value in steps above the lower bound."""
    import ibis

    rows, (steps,) = valid_rows(table, value.columns)
    summed = rows.group_by(**table.user_keys(rows)).aggregate(
        value=value.made_of(steps.cast("int64") + value.rows_grid.bottom)
    )
    users = summed.filter(*(known(table, summed[name]) for name in table.user_names))
    return users.select(rows=ibis.literal(1, "int64"), above_0=value.above(users.value))


class UserValueRows(WeightedRows, ABC):
    """One row for each user and group, with one value of all rows that the user has there; so a user's norm is a number of groups."""

    @staticmethod
    @abstractmethod
    def value(steps: Integers) -> Integers:
        """The value of a user's rows in a group, as an aggregate over them."""

    @contextmanager
    def fixed(self) -> Iterator[WeightedRows]:
        """Always kept: norms and sums both need what was grouped."""
        with self.table.engine.kept(self.rows()) as drawn:
            yield replace(self, drawn=drawn)

    def rows(self) -> Rows:
        if self.drawn is not None:
            return self.drawn
        rows = super().rows()
        return rows.group_by([*self.table.user_names, ID]).aggregate(value_0=self.value(rows.value_0))


class UserMeanRows(UserValueRows):
    """The mean of the rows."""

    @staticmethod
    def value(steps: Integers) -> Integers:
        return mean_of_rows(steps)


class UserTotalRows(UserValueRows):
    """The total of the rows."""

    @staticmethod
    def value(steps: Integers) -> Integers:
        return total_of_rows(steps)


class UserMaxRows(UserValueRows):
    """The greatest of the rows."""

    @staticmethod
    def value(steps: Integers) -> Integers:
        return greatest_of_rows(steps)
