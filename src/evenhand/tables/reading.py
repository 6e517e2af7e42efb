"""``eh.read``: from anything tabular to a `Table`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenhand.guarantee import DataError, Relation, UsageError
from evenhand.tables import files
from evenhand.tables.engines import Engine, RelationEngine, duckdb_backend, engine_for, fresh_name
from evenhand.tables.table import Table

_ENGINES = ("duckdb", "spark")


def read(
    source: Any,
    user: str | Sequence[str],
    *,
    protects: str | Relation = Relation.PRESENCE,
    public: Sequence[str] = (),
    population: str | None = None,
    engine: str | None = None,
) -> Table:
    """Open a table in which each row belongs to a user.

    Nothing is read beyond the schema until a release runs.

    Args:
        source: a path or glob (Parquet, CSV, JSON), a pandas or polars frame, an Arrow table, a DuckDB relation,
            an Ibis table, or a Spark DataFrame.
        user: the column, or columns, that name a person.
        protects: ``"presence"`` hides whether a user is there at all; ``"values"`` hides a user's values but
            treats who is there and how many rows each user has as public; ``"labels"`` is for learning.
        public: columns that are public under ``"values"``; only they may form groups there.
        population: a name for the people, so that tables with differently named user columns share one ledger.
        engine: ``"duckdb"`` (default) or ``"spark"``, for paths.

    Edge cases: rows whose user is null are dropped. CSV and JSON columns are read as text and cast when used; text
    that is no number counts as null.

    Example:
        >>> ratings = eh.read("ratings.parquet", user="userId")
    """
    relation = Relation.parse(protects)
    columns = _names(user, "user")
    if not columns:
        raise UsageError(
            "no user column was given; expected user='userId', the column that says which person a row belongs to."
        )
    expression, runner, text, snapshot = _open(source, engine)
    table = Table(expression, runner, columns, relation, _names(public, "public"), population, text, snapshot)
    for column in columns:
        table.require(column, "user column")
    for column in table.public:
        table.require(column, "public column")
    return table


def _names(given: str | Sequence[str] | None, role: str) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"{role}={given!r} is not a column name or a list of them.")
    if len(set(names)) < len(names):
        raise UsageError(f"{role}={given!r} names a column twice; name each once.")
    return names


def _open(source: Any, engine: str | None) -> tuple[Any, Engine, frozenset[str], str | None]:
    """Dispatch on what was given, without importing what isn't there."""
    if engine is not None and engine not in _ENGINES:
        raise UsageError(f"engine={engine!r} is not known; expected one of {list(_ENGINES)}.")
    if isinstance(source, str | Path):
        return _open_files(source, engine or "duckdb")
    if engine == "spark" and _root(source) != "pyspark":
        raise UsageError("engine='spark' runs paths and Spark DataFrames; give a path, or leave engine out.")
    opened = _open_object(source)
    if opened is None:
        raise UsageError(
            f"a source of type {type(source).__name__} can't be read; expected a path or glob, a pandas or polars frame, "
            "an Arrow table, a DuckDB relation, an Ibis table or a Spark DataFrame."
        )
    expression, runner = opened
    return expression, runner, frozenset(), f"object-{id(source)}-{os.getpid()}"


def _open_files(source: str | Path, engine: str) -> tuple[Any, Engine, frozenset[str], str | None]:
    found = files.find(source)
    if engine == "spark":
        from evenhand.tables.spark import spark_backend

        backend = spark_backend()
        expression, text = files.on_spark(found, backend)
    else:
        backend = duckdb_backend()
        expression, text = files.on_duckdb(found)
    return expression, engine_for(expression, backend, lambda: found.snapshot), text, found.snapshot


def _open_object(source: Any) -> tuple[Any, Engine] | None:
    root = _root(source)
    if root == "ibis":
        import ibis.expr.types as ir

        if isinstance(source, ir.Table):
            backend = source._find_backend(use_default=True)
            backend._register_in_memory_tables(source)  # memtables have no home until a backend takes them in
            engine = engine_for(source, backend)
            engine.check_source()
            return source, engine
    if root == "pyspark" and hasattr(source, "createOrReplaceTempView"):
        from evenhand.tables.spark import spark_backend

        backend = spark_backend(source.sparkSession)
        name = fresh_name()
        source.createOrReplaceTempView(name)
        table = backend.table(name)
        runner = engine_for(table, backend)
        runner.check_source()
        return table, runner
    if root in ("duckdb", "_duckdb") and hasattr(source, "query"):
        relation = RelationEngine(source)
        relation.check_source()
        return relation.rows, relation
    arrow = _to_arrow(source)
    if arrow is None:
        return None
    backend = duckdb_backend()
    name = fresh_name()
    backend.con.register(name, arrow)
    table = backend.table(name)
    return table, engine_for(table, backend)


def _to_arrow(source: Any) -> Any:
    """In-memory frames as an Arrow table, without copying where the layout allows."""
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    root = _root(source)
    if root == "pandas" and hasattr(source, "columns"):
        names = tuple(str(name) for name in source.columns)
        if len(set(names)) < len(names):
            raise DataError("the frame names a column more than once; rename the columns.")
        return _converted(lambda: pa.Table.from_pandas(source, preserve_index=False))
    if root == "polars" and hasattr(source, "with_columns"):
        return _converted(lambda: (source.collect() if hasattr(source, "collect") else source).to_arrow())
    return None


def _converted(convert: Callable[[], Any]) -> Any:
    """Run a conversion; its own error may quote values, so it is replaced and not chained."""
    try:
        return convert()
    except Exception as error:
        kind = type(error).__name__
    raise DataError(
        f"the frame can't be converted to typed columns ({kind}); expected each column to hold one type. Convert mixed "
        "columns first, for example with astype(str)."
    )


def _root(source: Any) -> str:
    return type(source).__module__.partition(".")[0]
