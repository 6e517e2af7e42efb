"""``eh.read``: from anything tabular to a `Table`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.guarantee import DataError, Relation, UsageError
from evenhand.tables import files
from evenhand.tables.delimited import quote_name
from evenhand.tables.engines import Engine, IbisEngine, RelationEngine, duckdb_backend, engine_for, fresh_name, turns
from evenhand.tables.frames import to_arrow, utf8_columns
from evenhand.tables.table import Table

_ENGINES = ("duckdb", "spark")
_RESERVED = "evenhand_"
"""How the columns that queries add to a table's own begin."""


def read(
    source: Any,
    user: str | Sequence[str],
    *,
    protects: str | Relation = Relation.PRESENCE,
    public: Sequence[str] = (),
    population: str | None = None,
    engine: str | None = None,
    columns: Sequence[str] | None = None,
    quoted_newlines: bool = False,
) -> Table:
    """Open a table in which each row belongs to a user.

    Nothing is read beyond the schema until a release runs. Names and types come from the schema, a CSV's header line or
    ``columns``, never from rows.

    Args:
        source: a path or glob (Parquet, CSV, JSON), a pandas or polars frame, an Arrow table, a DuckDB relation,
            an Ibis table, or a Spark DataFrame.
        user: the column, or columns, that name a person.
        protects: ``"presence"`` hides whether a user is there at all; ``"values"`` hides a user's values but
            treats who is there and how many rows each user has as public; ``"labels"`` is for learning.
        public: columns that are public under ``"values"``; only they may form groups there.
        population: a name for the people, so that tables with differently named user columns share one ledger.
        engine: ``"duckdb"`` (default) or ``"spark"``, for paths.
        columns: the columns of a JSON file, which has no header to name them.
        quoted_newlines: whether quoted fields of a CSV may hold line feeds. Otherwise each line is a record, and no line can
            change what another becomes. With it, one quote that is never closed can swallow the rows of other users,
            and then the guarantee does not hold: say so only of a file whose quotes you know to be balanced.

    Edge cases: rows whose user is null are dropped. Columns without types (CSV, JSON, Python objects in a frame) are read as
    text and cast when used; text that is no number counts as null. Bytes that are not UTF-8 are left out of text. What
    happens to malformed lines: docs/files.md. Under ``"values"`` and ``"labels"`` a CSV needs its user and public columns
    first, and JSON is refused: ``evenhand convert`` makes Parquet of them.

    Example:
        >>> ratings = eh.read("ratings.parquet", user="userId")
    """
    relation = Relation.parse(protects)
    users, known = _names(user, "user"), _names(public, "public")
    if not users:
        raise UsageError(
            "no user column was given; expected user='userId', the column that says which person a row belongs to."
        )
    declared = files.Declared(
        users, relation, known, None if columns is None else _names(columns, "columns"), bool(quoted_newlines)
    )
    if isinstance(source, str | Path):
        opened = _open_files(source, _engine(engine) or "duckdb", declared)
    else:
        opened = _open_object(source, _engine(engine), declared)
    table = Table(
        opened.expression, opened.engine, users, relation, known, population, opened.text, opened.snapshot,
        positional=opened.positional,
    )  # fmt: skip
    reserved = [name for name in table.columns if name.casefold().startswith(_RESERVED)]
    if reserved:
        raise DataError(
            f"the columns {reserved} begin with {_RESERVED!r}, which is kept for columns inside queries; rename them."
        )
    for column in users:
        table.require(column, "user column")
        if opened.expression.schema()[column].is_json():
            raise DataError(
                f"the user column {column!r} holds JSON, whose equal values may be spelled differently; expected ids of a plain "
                "type. Cast it to text first."
            )
    for column in table.public:
        table.require(column, "public column")
    return table


@dataclass(frozen=True)
class _Opened:
    """What a source turned out to be."""

    expression: Any
    engine: Engine
    text: frozenset[str] = frozenset()
    snapshot: str | None = None
    positional: bool = False


def _names(given: str | Sequence[str] | None, role: str) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"{role}={given!r} is not a column name or a list of them.")
    if len(set(names)) < len(names):
        raise UsageError(f"{role}={given!r} names a column twice; name each once.")
    return names


def _engine(given: str | None) -> str | None:
    if given is not None and given not in _ENGINES:
        raise UsageError(f"engine={given!r} is not known; expected one of {list(_ENGINES)}.")
    return given


def _open_files(source: str | Path, engine: str, declared: files.Declared) -> _Opened:
    found = files.find(source)
    if engine == "spark":
        from evenhand.tables.spark import spark_backend

        backend = spark_backend()
        expression = files.on_spark(found, declared, backend)
    else:
        backend = duckdb_backend()
        with turns(backend):
            expression = files.on_duckdb(found, declared)
    text = frozenset() if found.format == "parquet" else frozenset(expression.columns)
    runner = engine_for(expression, backend, lambda: found.snapshot)
    return _Opened(expression, runner, text, found.snapshot, positional=found.format == "csv")


def _open_object(source: Any, engine: str | None, declared: files.Declared) -> _Opened:
    """Dispatch on what was given, without importing what isn't there."""
    root = type(source).__module__.partition(".")[0]
    if engine == "spark" and root != "pyspark":
        raise UsageError("engine='spark' runs paths and Spark DataFrames; give a path, or leave engine out.")
    if declared.columns is not None or declared.quoted_newlines:
        raise UsageError("columns= and quoted_newlines= are for files; leave them out.")
    snapshot = f"object-{id(source)}-{os.getpid()}"
    if root == "ibis":
        import ibis.expr.types as ir

        if isinstance(source, ir.Table):
            backend = source._find_backend(use_default=True)
            backend._register_in_memory_tables(source)  # memtables have no home until a backend takes them in
            return _Opened(source, _checked(engine_for(source, backend)), snapshot=snapshot)
    if root == "pyspark" and hasattr(source, "createOrReplaceTempView"):
        from evenhand.tables.spark import spark_backend
        from evenhand.tables.spark_text import readable_frame

        backend = spark_backend(source.sparkSession)
        name = fresh_name()
        readable_frame(source).createOrReplaceTempView(name)
        table = backend.table(name)
        return _Opened(table, _checked(engine_for(table, backend)), snapshot=snapshot)
    if root in ("duckdb", "_duckdb") and hasattr(source, "query"):
        relation = RelationEngine(source)
        return _Opened(relation.rows, _checked(relation), snapshot=snapshot)
    frame = to_arrow(source)
    if frame is None:
        raise UsageError(
            f"a source of type {type(source).__name__} can't be read; expected a path or glob, a pandas or polars frame, "
            "an Arrow table, a DuckDB relation, an Ibis table or a Spark DataFrame."
        )
    arrow, text = frame
    with turns(duckdb_backend()):
        table = _on_duckdb(arrow)
    return _Opened(table, engine_for(table, duckdb_backend()), text, snapshot)


def _checked(engine: IbisEngine) -> IbisEngine:
    """An engine whose source is a function of stored rows; others are refused."""
    engine.check_source()
    return engine


def _on_duckdb(arrow: Any) -> Any:
    """An Arrow table as an Ibis table; text without bytes that are not UTF-8, which neither Arrow nor DuckDB checks here."""
    backend = duckdb_backend()
    rows, name = fresh_name(), fresh_name()
    backend.con.register(rows, arrow)
    columns = ", ".join(
        f"decode(encode({quote_name(column)}), 'ignore') AS {quote_name(column)}" for column in utf8_columns(arrow)
    )
    replaced = f"REPLACE ({columns})" if columns else ""
    backend.raw_sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * {replaced} FROM {rows}")
    return backend.table(name)
