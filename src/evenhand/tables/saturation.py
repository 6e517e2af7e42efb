"""Integer sums that never raise: the engines differ in what they do on overflow, and an error would depend on the data."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from evenhand.tables.table import Table

CEILING = 2**62
"""Sums saturate here: far above what public parameters can reach with 2^32 rows of one user."""

MOST_ROWS = 2**32
"""Row counts of one user saturate here, so that rows times a grid bound stays inside 64 bits."""


def saturating_sum(table: Table, nonnegative: Any) -> Any:
    """The sum of nonnegative integers, at most `CEILING`, without ever raising.

    DuckDB sums 64-bit integers in 128 bits. Spark raises on overflow, so it gets ``try_sum``, which yields null instead.
    """
    import ibis

    total = _try_sum()(nonnegative).fill_null(CEILING) if table.engine.name == "spark" else nonnegative.sum()
    return ibis.least(total, CEILING)


def exact_sum(integers: Any) -> Any:
    """The sum of bounded integers over users, in 128 bits on every engine."""
    return integers.cast("decimal(38, 0)").sum().fill_null(0)


@lru_cache(maxsize=1)
def _try_sum() -> Any:
    import ibis

    @ibis.udf.agg.builtin(name="try_sum")  # type: ignore[untyped-decorator]
    def try_sum(value: int) -> int: ...  # type: ignore[empty-body]

    return try_sum
