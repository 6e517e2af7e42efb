"""Files and frames as tables of DuckDB."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.tables import files, json_lines, lines
from evenhand.tables.delimited import Layout, patterns
from evenhand.tables.engines.base import fresh_name
from evenhand.tables.expressions import ArrowTable, Backend, DataType, Rows
from evenhand.tables.files import Declared, FileSource
from evenhand.tables.frames import utf8_columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


def file_rows(backend: Backend, source: FileSource, declared: Declared) -> Rows:
    """The files as an Ibis table; its columns are text unless the files are Parquet."""
    import pyarrow as pa

    paths, name = list(source.paths), fresh_name()
    if source.format == "parquet":
        # Strings in Parquet may hold any bytes; those that are not UTF-8 are left out, as everywhere.
        return files.attempt(source, lambda: backend.read_parquet(paths, table_name=name, utf8_validation="ignore"))
    # Nothing that a stream holds on to may lead to the backend: DuckDB's connection would never be let go.
    if source.format == "json":
        names = declared.columns or ()
        schema = pa.schema([(column, pa.string()) for column in names])
        backend.con.register(name, lines.Stream(schema, functools.partial(json_lines.read, source.paths, names)))
        return view_rows(backend, name)
    layout = files.read_layout(source)
    leading = files.leading(source, layout, declared)
    if declared.quoted_newlines:
        columns = dict.fromkeys(layout.names, "VARCHAR")
        options = {"auto_detect": False, "columns": columns, "header": True, "delim": layout.delimiter}
        # A malformed record is dropped by rule: raising would depend on the data and quote it.
        options |= {"quote": '"', "escape": '"', "ignore_errors": True}
        return files.attempt(source, lambda: backend.read_csv(paths, table_name=name, **options))
    view = fresh_name()
    read_lines = functools.partial(lines.line_batches, source.paths)
    backend.con.register(view, lines.Stream(pa.schema([("line", pa.string())]), read_lines))
    backend.raw_sql(f"CREATE TEMPORARY VIEW {name} AS {_line_rows(layout, view, declared.user, leading)}")
    return view_rows(backend, name)


def _line_rows(layout: Layout, lines: str, user: Sequence[str], leading: int) -> str:
    """SQL: the rows of a view with one column of text, ``line``, by the rules of ``delimited.py``."""
    delimiter, field, quoted = (_literal(text) for text in (layout.delimiter, *patterns(layout.delimiter)))
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
        columns.append(f"{value} AS {_quoted(name)}")
    header = " AND ".join(  # also in the middle of a file: files that were put together
        f"fields[{index + 1}] IS NOT DISTINCT FROM {_literal(layout.fields[index])}" for index in layout.places(user)
    )
    return f"SELECT {', '.join(columns)} FROM (SELECT {fields} AS fields FROM {lines}) WHERE NOT ({header or 'false'})"


def arrow_rows(backend: Backend, arrow: ArrowTable) -> Rows:
    """An Arrow table as an Ibis table; text without bytes that are not UTF-8, which neither Arrow nor DuckDB checks here."""
    rows, name = fresh_name(), fresh_name()
    backend.con.register(rows, arrow)
    columns = ", ".join(
        f"decode(encode({_quoted(column)}), 'ignore') AS {_quoted(column)}" for column in utf8_columns(arrow)
    )
    replaced = f"REPLACE ({columns})" if columns else ""
    backend.raw_sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * {replaced} FROM {rows}")
    return view_rows(backend, name)


def view_rows(backend: Backend, name: str) -> Rows:
    """A table or view of Evenhand's own as an Ibis table: by what DuckDB knows of it, since Ibis would describe it in a statement."""
    from ibis.expr.operations import DatabaseTable, Namespace

    return DatabaseTable(name, column_types(backend.con.table(name)), backend, Namespace()).to_expr()


def column_types(relation: DuckDBPyRelation) -> dict[str, DataType]:
    """The columns of a relation, as Ibis calls their types."""
    return {name: _ibis_type(str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)}


@functools.lru_cache(maxsize=256)
def _ibis_type(kind: str) -> DataType:
    from ibis.backends.sql.datatypes import DuckDBType

    return DuckDBType.from_string(kind)


def _quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
