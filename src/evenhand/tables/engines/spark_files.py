"""Files as tables of Spark."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.tables import files
from evenhand.tables.delimited import Layout, patterns
from evenhand.tables.engines import spark_text
from evenhand.tables.files import Declared, FileSource
from evenhand.tables.times import MOST

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


def file_rows(session: SparkSession, source: FileSource, declared: Declared) -> DataFrame:
    """The files as a Spark frame; its columns are text unless the files are Parquet."""
    paths = list(source.paths)
    if source.format == "parquet":
        typed = files.attempt(source, lambda: _times_in_range(session, _parquet_rows(session, paths), paths))
        return spark_text.readable_frame(typed)
    if source.format == "json":
        text = files.attempt(source, lambda: spark_text.lines(session, paths))
        return spark_text.json_rows(text, declared.columns or ())
    layout = files.read_layout(source)
    leading = files.leading(source, layout, declared)
    if declared.quoted_newlines:
        schema = ", ".join("`" + column.replace("`", "``") + "` STRING" for column in layout.names)
        options = {"header": "true", "sep": layout.delimiter, "quote": '"', "escape": '"', "multiLine": "true"}
        reader = session.read.schema(schema).options(**options, mode="DROPMALFORMED")
        return files.attempt(source, lambda: spark_text.readable_frame(reader.csv(paths)))
    text = files.attempt(source, lambda: spark_text.lines(session, paths))
    return _line_rows(layout, text, declared.user, leading)


def _line_rows(layout: Layout, lines: DataFrame, user: Sequence[str], leading: int) -> DataFrame:
    """The rows of a frame with one column of text, ``line``, by the rules of ``delimited.py``."""
    from pyspark.sql import functions as sql

    field, quoted = patterns(layout.delimiter, possessive=True)

    def unquoted(text: Column) -> Column:
        inside = sql.replace(sql.substring(text, sql.lit(2), sql.length(text) - 3), sql.lit('""'), sql.lit('"'))
        whole = sql.regexp_extract(text, quoted, 0) == text
        return sql.when(whole, inside).otherwise(sql.substring(text, sql.lit(1), sql.length(text) - 1))

    line = sql.col("line")
    found = sql.regexp_extract_all(sql.concat(line, sql.lit(layout.delimiter)), sql.lit(field), sql.lit(0))
    fields = sql.when(sql.contains(line, sql.lit('"')), sql.transform(found, unquoted)).otherwise(
        sql.split(line, f"[{layout.delimiter}]", -1)
    )
    rows = lines.select(fields.alias("fields"))
    complete = sql.size("fields") == len(layout.fields)
    columns = []
    for index, name in enumerate(layout.names):
        value = sql.nullif(sql.get("fields", index), sql.lit(""))
        columns.append((value if index < leading else sql.when(complete, value)).alias(name))
    header = [sql.get("fields", index).eqNullSafe(layout.fields[index]) for index in layout.places(user)]
    return rows.filter(~functools.reduce(operator.and_, header, sql.lit(True) if header else sql.lit(False))).select(
        *columns
    )


def _parquet_rows(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Parquet files as a Spark DataFrame.

    Spark refuses a whole file because of one column of a type it does not know (UUIDs, nanosecond timestamps, times of
    day). Their stored form serves as well for telling users apart, so such columns are read as bytes or integers,
    and others that it can't read are left out.
    """
    from pyspark.errors import AnalysisException

    try:
        return session.read.parquet(*paths)
    except AnalysisException:
        return session.read.schema(_stored_types(paths[0])).parquet(*paths)


def _stored_types(path: str) -> StructType:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    fields = []
    for column in pq.read_schema(path):
        try:
            if column.type == pa.uuid():
                stored: DataType = BinaryType()
            elif pa.types.is_time64(column.type) or column.type in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
                stored = LongType()
            else:
                stored = from_arrow_type(column.type)
        except PySparkTypeError:  # a type that it does not know
            continue
        fields.append(StructField(column.name, stored))
    return StructType(fields)


def _times_in_range(session: SparkSession, frame: DataFrame, paths: Sequence[str]) -> DataFrame:
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
