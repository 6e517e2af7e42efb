"""Dates and times that every engine can hold.

Arrow and Parquet store any integer as a time. DuckDB refuses, in the middle of a query, those that its own types do not
reach, and after some of them every query of the process. So points in time and durations become microseconds, and what lies beyond
becomes the nearest that can be held: by the type of a column alone, whatever it holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

MOST = 9_223_000_000_000_000_000
"""Microseconds from 1970, either way, that every engine holds; what is left to 2^63 is years, more than any time zone shifts."""
_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def in_range(table: Any) -> Any:
    """An Arrow table whose columns of times and durations hold what DuckDB can hold; other columns are not copied."""
    for place, field in enumerate(table.schema):
        column = _column(table.column(place), field.type)
        if column is not None:
            table = table.set_column(place, field.name, column)
    return table


def _column(column: Any, kind: Any) -> Any:
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


def _microseconds(column: Any, kind: Any, becomes: Any) -> Any:
    factor = 10**6 // _A_SECOND[kind.unit]
    return _clipped(column, kind, -(MOST // factor), MOST // factor, factor, becomes)


def _clipped(column: Any, kind: Any, low: int, high: int, factor: int, becomes: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    stored = pa.int32() if kind.bit_width == 32 else pa.int64()
    raised = pc.max_element_wise(column.cast(stored), pa.scalar(low, stored), skip_nulls=False)
    clipped = pc.min_element_wise(raised, pa.scalar(high, stored), skip_nulls=False)
    return pc.multiply(clipped, pa.scalar(factor, stored)).cast(becomes)


def spark_rows(session: Any, frame: Any, paths: Sequence[str]) -> Any:
    """Parquet files as a Spark frame whose milliseconds are within range: Spark, too, raises where they are not.

    They are read as the integers that are stored, if all files say that they are milliseconds.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import LongType, StructField, StructType, TimestampNTZType, TimestampType

    points = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType | TimestampNTZType)}
    found = points & _milliseconds(paths) if points else points
    if not found:
        return frame
    stored = [StructField(field.name, LongType()) if field.name in found else field for field in frame.schema]
    columns = []
    for field in frame.schema:
        name = "`" + field.name.replace("`", "``") + "`"
        number = f"greatest(least({name}, {MOST // 1000}L), {-(MOST // 1000)}L) * 1000L"
        if field.name not in found:
            column = sql.col(name)
        elif isinstance(field.dataType, TimestampType):
            column = sql.expr(f"if({name} is null, null, timestamp_micros({number}))")
        else:
            begin = "timestamp_ntz'1970-01-01 00:00:00'"
            column = sql.expr(f"if({name} is null, null, timestampadd(MICROSECOND, {number}, {begin}))")
        columns.append(column.alias(field.name))
    return session.read.schema(StructType(stored)).parquet(*paths).select(*columns)


def _milliseconds(paths: Sequence[str]) -> set[str]:
    """The columns that are milliseconds from 1970 in all of these Parquet files; of remote files, none."""
    import pyarrow.parquet as pq

    found: list[set[str]] = []
    for path in paths:
        if not os.path.isfile(path):
            return set()
        schema = pq.read_metadata(path).schema
        columns = [schema.column(place) for place in range(len(schema))]
        found.append(
            {
                column.path
                for column in columns
                if column.physical_type == "INT64"
                and column.logical_type.type == "TIMESTAMP"
                and "milliseconds" in str(column.logical_type)
            }
        )
    return set.intersection(*found)
