"""Tables of DuckDB databases: a file, or a connection that somebody else opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard
from weakref import WeakValueDictionary

from evenhand.guarantee import DataError
from evenhand.tables.engines.duckdb_limits import limited
from evenhand.tables.engines.naming import choose_table
from evenhand.tables.expressions import Backend, Rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ENDINGS = (".duckdb", ".ddb")

_TABLES = (
    "SELECT schema_name, table_name, schema_name = current_schema() FROM "
    "(SELECT database_name, schema_name, table_name FROM duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal) "
    "WHERE database_name = current_database()"
)


def is_file(source: object) -> bool:
    """Whether this names a DuckDB file, told from its ending."""
    return isinstance(source, str | Path) and Path(source).suffix.lower() in ENDINGS


def is_connection(source: object) -> TypeGuard[DuckDBPyConnection]:
    """Whether this is a connection, told from its type."""
    return type(source).__name__ == "DuckDBPyConnection"


def settled(backend: Backend) -> Backend:
    """A connection of Evenhand's own, as its queries want it."""
    # Results don't depend on row order; telling DuckDB so lets it stream large files without buffering.
    backend.raw_sql("SET preserve_insertion_order = false")
    # Only where there is one: in Jupyter without ipywidgets DuckDB has none, and raises if it is told to have none.
    if backend.raw_sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        backend.raw_sql("SET enable_progress_bar = false")
    return limited(backend)


_open: WeakValueDictionary[tuple[int, int], Backend] = WeakValueDictionary()
"""By file. Tables of one file share a connection, so that they can be joined."""


def file_table(path: Path, table: str | None) -> tuple[Rows, Backend]:
    """A table of a file, opened for reading: DuckDB lets nobody write to the file meanwhile."""
    import ibis

    if not path.is_file():
        raise DataError(f"there is no file {str(path)!r}; expected a DuckDB database.")
    file = (path.stat().st_dev, path.stat().st_ino)
    try:
        backend = _open.get(file) or settled(ibis.duckdb.connect(path, read_only=True))
        _open[file] = backend
    except Exception as error:
        kind = type(error).__name__
        raise DataError(
            f"the DuckDB database {str(path)!r} can't be opened for reading ({kind}). If another program or another connection of "
            "this one writes to it, close that first, or give eh.read the connection itself; otherwise check that it is a DuckDB file."
        ) from None
    schema, name = choose_table(backend.raw_sql(_TABLES).fetchall(), table, str(path))
    return backend.table(name, database=(backend.current_catalog, schema)), backend


def is_stored(rows: Rows, query: Callable[[str], list[tuple[Any, ...]]]) -> bool:
    """Whether this is a table that DuckDB itself holds, and no view."""
    from ibis.expr.operations import DatabaseTable

    table = rows.op()
    if not isinstance(table, DatabaseTable):
        return False
    found = query(
        "SELECT database_name, schema_name, table_name, current_database(), current_schema() FROM duckdb_tables() JOIN duckdb_databases() "
        "USING (database_name) WHERE type = 'duckdb'"
    )
    place = table.namespace
    return any(
        (place.catalog or catalog, place.database or schema, table.name) == tuple(names)
        for *names, catalog, schema in found
    )


def connection_table(connection: DuckDBPyConnection, table: str | None) -> str:
    """The name of a table of a connection, as its SQL has it."""
    schema, name = choose_table(connection.execute(_TABLES).fetchall(), table, "the connection")
    catalog = connection.execute("SELECT current_database()").fetchall()[0][0]
    return ".".join('"' + part.replace('"', '""') + '"' for part in (catalog, schema, name))
