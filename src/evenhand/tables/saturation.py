"""Integer sums that never raise: the engines differ in what they do on overflow, and an error would depend on the data."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from evenhand.tables.table import Table

CEILING = 2**53
"""Sums of one user saturate here: above every bound in grid steps, and the end of the integers that doubles hold."""

MOST_ROWS = 2**32
"""Row counts of one user saturate here, so that rows times a grid bound stays inside 64 bits."""


def saturating_sum(table: Table, nonnegative: Any) -> Any:
    """The sum of nonnegative whole numbers, integers or doubles, at most `CEILING`, without ever raising.

    DuckDB adds doubles, which spares a cast a row: below 2^53 no addition rounds, and no partial sum that has reached 2^53
    falls below it again, so the smaller of the sum and 2^53 is the same in any order. It adds 64-bit integers in 128 bits.
    Spark raises when 64 bits overflow, so it gets ``try_sum``, which yields null instead.
    """
    import ibis

    if table.engine.name == "duckdb":
        if nonnegative.type().is_floating():
            return ibis.least(nonnegative.sum(), ibis.literal(float(CEILING), "float64")).cast("int64")
        return ibis.least(nonnegative.sum(), CEILING)
    whole = nonnegative.cast("int64")
    total = _try_sum()(whole).fill_null(CEILING) if table.engine.name == "spark" else whole.sum()
    return ibis.least(total, CEILING)


def exact_sum(table: Table, integers: Any) -> Any:
    """The sum of 64-bit integers in 128 bits: DuckDB widens by itself, elsewhere decimals do."""
    if table.engine.name == "duckdb":
        return integers.sum().cast("decimal(38, 0)").fill_null(0)
    return integers.cast("decimal(38, 0)").sum().fill_null(0)


@lru_cache(maxsize=1)
def _try_sum() -> Any:
    import ibis

    @ibis.udf.agg.builtin(name="try_sum")  # type: ignore[untyped-decorator]
    def try_sum(value: int) -> int: ...  # type: ignore[empty-body]

    return try_sum
