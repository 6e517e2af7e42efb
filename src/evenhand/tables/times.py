"""Dates and times that every engine can hold.

Arrow and Parquet store any integer as a time. DuckDB refuses, in the middle of a query, those that its own types do not
reach, and after some of them every query of the process. So points in time and durations become microseconds, and what lies beyond
becomes the nearest that can be held: by the type of a column alone, whatever it holds.
"""

from __future__ import annotations

from evenhand.tables.expressions import ArrowColumn, ArrowTable, ArrowType

MOST = 9_223_000_000_000_000_000
"""Microseconds from 1970, either way, that every engine holds; what is left to 2^63 is years, more than any time zone shifts."""
_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def in_range(table: ArrowTable) -> ArrowTable:
    """An Arrow table whose columns of times and durations hold what DuckDB can hold; other columns are not copied."""
    for place, field in enumerate(table.schema):
        column = _column(table.column(place), field.type)
        if column is not None:
            table = table.set_column(place, field.name, column)
    return table


def _column(column: ArrowColumn, kind: ArrowType) -> ArrowColumn | None:
    """A column within range; None if its type needs nothing."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _column(column.cast(kind.value_type), kind.value_type)
    if types.is_time(kind):
        return _clipped(column, kind, 0, 86_400 * _A_SECOND[kind.unit] - 1, 1, kind)
    if types.is_timestamp(kind) and kind.unit != "ns":
        return _microseconds(column, kind, pa.timestamp("us", kind.tz))
    if types.is_duration(kind) and kind.unit != "ns":
        return _microseconds(column, kind, pa.duration("us"))
    return None


def _microseconds(column: ArrowColumn, kind: ArrowType, becomes: ArrowType) -> ArrowColumn:
    factor = 10**6 // _A_SECOND[kind.unit]
    return _clipped(column, kind, -(MOST // factor), MOST // factor, factor, becomes)


def _clipped(column: ArrowColumn, kind: ArrowType, low: int, high: int, factor: int, becomes: ArrowType) -> ArrowColumn:
    import pyarrow as pa
    import pyarrow.compute as pc

    stored = pa.int32() if kind.bit_width == 32 else pa.int64()
    raised = pc.max_element_wise(column.cast(stored), pa.scalar(low, stored), skip_nulls=False)
    clipped = pc.min_element_wise(raised, pa.scalar(high, stored), skip_nulls=False)
    return pc.multiply(clipped, pa.scalar(factor, stored)).cast(becomes)
