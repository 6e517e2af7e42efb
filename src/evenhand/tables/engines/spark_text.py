"""Text on Spark, by the rules of ``lines.py``: strings may hold any bytes there."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.tables.lines import MOST_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Characters of UTF-8 as bytes, by the table of the Unicode standard (well-formed byte sequences), then bytes that belong to none.
_MORE = "[\x80-\xbf]"
_TWO = f"[\xc2-\xdf]{_MORE}"
_THREE = f"(?:\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef]{_MORE}|\xed[\x80-\x9f]){_MORE}"
_FOUR = f"(?:\xf0[\x90-\xbf]|[\xf1-\xf3]{_MORE}|\xf4[\x80-\x8f]){_MORE}{_MORE}"
_STRAY = (
    f"(?!{_TWO}|{_THREE}|{_FOUR})[\xc0-\xff]"
    f"|(?<!(?={_TWO}|{_THREE}|{_FOUR})[\xc2-\xf4])(?<!(?={_THREE}|{_FOUR})[\xe0-\xf4]{_MORE})"
    f"(?<!(?={_FOUR})[\xf0-\xf4]{_MORE}{_MORE}){_MORE}"
)


def readable(column: Column) -> Column:
    """A string column without bytes that are not UTF-8."""
    from pyspark.sql import functions as sql

    as_characters = sql.decode(column.cast("binary"), "ISO-8859-1")
    mended = sql.encode(sql.regexp_replace(as_characters, _STRAY, ""), "ISO-8859-1").cast("string")
    return sql.when(sql.is_valid_utf8(column), column).otherwise(mended)


def readable_frame(frame: DataFrame) -> DataFrame:
    """A Spark frame whose columns of text are UTF-8, and under no collation: they are compared by their bytes."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType

    columns = []
    for field in frame.schema.fields:
        column = sql.col("`" + field.name.replace("`", "``") + "`")
        text = type(field.dataType) is StringType
        columns.append(readable(column.cast("string")).alias(field.name) if text else column)
    return frame.select(*columns)


def collated(frame: DataFrame) -> frozenset[str]:
    """The columns of text with a collation that may take different texts for equal."""
    from pyspark.sql.types import StringType

    fields = ((field.name, field.dataType) for field in frame.schema.fields)
    return frozenset(name for name, kind in fields if isinstance(kind, StringType) and kind != StringType())


def lines(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The lines of text files as a Spark frame with one column, ``line``."""
    from pyspark.sql import functions as sql

    lines = session.read.option("lineSep", "\n").text(list(paths)).select("value").toDF("line")
    line = sql.col("line")
    length = sql.octet_length(line) - sql.endswith(line, sql.lit("\r")).cast("int")
    # On bytes: Spark counts the characters of text that is not UTF-8 its own way.
    cut = sql.substring(line.cast("binary"), sql.lit(1), sql.least(length, sql.lit(MOST_BYTES))).cast("string")
    whole = length == sql.octet_length(line)
    return readable_frame(lines.select(sql.when(whole & (length <= MOST_BYTES), line).otherwise(cut).alias("line")))


def json_rows(lines: DataFrame, names: Sequence[str]) -> DataFrame:
    """Lines of JSON as a Spark frame of the named columns of text."""
    from pyspark import cloudpickle
    from pyspark.sql.types import StringType, StructField, StructType

    from evenhand.tables import json_lines

    # The workers of a cluster need not have Evenhand: the function travels with all that it uses.
    cloudpickle.register_pickle_by_value(json_lines)  # type: ignore[no-untyped-call]
    schema = StructType([StructField(name, StringType()) for name in names])
    return lines.mapInArrow(functools.partial(json_lines.batches, names=tuple(names)), schema)
