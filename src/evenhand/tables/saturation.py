"""Integer sums that never raise: the engines differ in what they do on overflow, and an error would depend on the data."""

from __future__ import annotations

from evenhand.tables.expressions import Column, Integers
from evenhand.tables.table import Table

CEILING = 2**53
"""Sums of one user saturate here: above every bound in grid steps, and the end of the integers that doubles hold."""

MOST_ROWS = 2**32
"""Row counts of one user saturate here, so that rows times a grid bound stays inside 64 bits."""


def saturating_sum(nonnegative: Column) -> Integers:
    """The sum of nonnegative whole numbers, at most `CEILING`, without ever raising.

    Engines add them as doubles, which is fast and knows no overflow: below 2^53 no addition rounds, and no partial sum that
    has reached 2^53 falls below it again. So the smaller of the sum and 2^53 is the same in any order.
    """
    import ibis

    return ibis.least(nonnegative.cast("float64").sum(), ibis.literal(float(CEILING), "float64")).cast("int64")


def exact_sum(table: Table, integers: Integers) -> Column:
    """The sum of 64-bit integers, in 128 bits."""
    return table.engine.exact_sum(integers)
