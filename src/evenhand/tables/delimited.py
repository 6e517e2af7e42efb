"""CSV: how a line becomes fields, on every engine.

A field ends at the next delimiter. A field that begins with a quote and is closed by a quote right before a delimiter or the
end of the line is what stands between them, and may hold delimiters; a doubled quote in it is one quote. Any other
quote is a character like others. So every line has fields, and they depend on that line alone. An empty field is null.

A line with another number of fields than the header has nulls in all its columns, and is dropped because its user is
null. Where who is there is public (values, labels), a line must count whatever its private fields hold: there the user
and public columns come first in the file, and are read from the left whatever follows.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.guarantee import Relation

_DELIMITERS = [",", ";", "\t", "|"]


@dataclass(frozen=True)
class Layout:
    """The columns of a CSV and how they are separated, from its header line alone.

    Args:
        fields: the fields of the header line as they stand there.
        delimiter: what separates fields.
    """

    fields: tuple[str, ...]
    delimiter: str

    @classmethod
    def of(cls, header: str) -> Layout:
        """Read a header line. The delimiter is whichever of comma, semicolon, tab and bar it uses most."""
        delimiter = max(_DELIMITERS, key=header.count)
        return cls(tuple(split(header, delimiter)), delimiter)

    def places(self, names: Sequence[str]) -> list[int]:
        """Where columns stand; those that there are not are left out (and refused where the table is made)."""
        return [self.names.index(name) for name in names if name in self.names]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; one without a name is called by its number."""
        return tuple(field.strip() or f"column{index}" for index, field in enumerate(self.fields))


def split(line: str, delimiter: str) -> list[str]:
    """The fields of a line."""
    if '"' not in line:
        return line.split(delimiter)
    field, quoted = (re.compile(pattern) for pattern in _patterns(delimiter, possessive=True))
    found = field.findall(line + delimiter)
    return [text[1:-2].replace('""', '"') if quoted.fullmatch(text) else text[:-1] for text in found]


def leading_columns(layout: Layout, relation: Relation, user: Sequence[str], public: Sequence[str]) -> int | None:
    """How many columns are read whatever follows them in a line; None if the public ones don't come first."""
    if relation is Relation.PRESENCE:
        return 0
    if relation is Relation.LABELS:  # everything but the label is public: see `Table.require_before`
        return len(layout.fields)
    known = {*user, *public}
    return len(known) if set(layout.names[: len(known)]) == known else None


def duckdb_rows(layout: Layout, lines: str, user: Sequence[str], leading: int) -> str:
    """SQL for DuckDB: the rows of a view with one column of text, ``line``."""
    delimiter, field, quoted = (_literal(text) for text in (layout.delimiter, *_patterns(layout.delimiter)))
    unquoted = (
        f"CASE WHEN regexp_full_match(field, {quoted}) "
        "THEN replace(substring(field, 2, length(field) - 3), '\"\"', '\"') ELSE substring(field, 1, length(field) - 1) END"
    )
    fields = (  # few lines hold quotes, and patterns cost six times as much
        f"CASE WHEN contains(line, '\"') "
        f"THEN list_transform(regexp_extract_all(line || {delimiter}, {field}), lambda field: {unquoted}) "
        f"ELSE string_split(line, {delimiter}) END"
    )
    columns = []
    for index, name in enumerate(layout.names):
        value = f"nullif(fields[{index + 1}], '')"
        if index >= leading:
            value = f"CASE WHEN len(fields) = {len(layout.fields)} THEN {value} END"
        columns.append(f"{value} AS {quote_name(name)}")
    header = " AND ".join(  # also in the middle of a file: files that were put together
        f"fields[{index + 1}] IS NOT DISTINCT FROM {_literal(layout.fields[index])}" for index in layout.places(user)
    )
    return f"SELECT {', '.join(columns)} FROM (SELECT {fields} AS fields FROM {lines}) WHERE NOT ({header or 'false'})"


def spark_rows(layout: Layout, lines: Any, user: Sequence[str], leading: int) -> Any:
    """The same on Spark, from a frame with one column of text, ``line``."""
    from pyspark.sql import functions as sql

    field, quoted = _patterns(layout.delimiter, possessive=True)

    def unquoted(text: Any) -> Any:
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


def quote_name(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _patterns(delimiter: str, *, possessive: bool = False) -> tuple[str, str]:
    """Of a field with the delimiter that ends it, and of a quoted one.

    After an opening quote there is one way to read what follows, so giving nothing back (possessive) changes no match; Java
    needs it, because it would otherwise use a frame of its stack for each doubled quote. DuckDB's patterns need no stack.
    """
    many = "*+" if possessive else "*"
    quoted = f'"[^"]{many}(?:""[^"]{many}){many}"[{delimiter}]'
    return f"{quoted}|[^{delimiter}]{many}[{delimiter}]", quoted
