"""Where the rows are: one class per engine, and the list of them. One Ibis expression serves them all."""

from __future__ import annotations

from evenhand.guarantee import UsageError
from evenhand.tables.engines.base import Engine, one_reading
from evenhand.tables.engines.duckdb import DuckDBEngine
from evenhand.tables.engines.duckdb_limits import limit_duckdb
from evenhand.tables.engines.ibis_tables import is_ibis
from evenhand.tables.engines.postgres import PostgresEngine
from evenhand.tables.engines.spark import SparkEngine

__all__ = [
    "DEFAULT",
    "Engine",
    "engine_for_database",
    "engine_for_files",
    "engine_for_object",
    "limit_duckdb",
    "one_reading",
    "register",
]

DEFAULT = DuckDBEngine
"""What reads files if no engine is named, and frames in memory."""
_ENGINES: list[type[Engine]] = [DuckDBEngine, SparkEngine, PostgresEngine]


def register(engine: type[Engine]) -> type[Engine]:
    """Add an engine for `evenhand.read`. `Engine` says what it has to promise."""
    if any(engine.name == known.name for known in _ENGINES):
        raise UsageError(f"there is an engine called {engine.name!r} already; expected another name.")
    _ENGINES.append(engine)
    return engine


def engine_for_files(name: str | None) -> type[Engine]:
    """The engine of that name, which reads files."""
    readers = {engine.name: engine for engine in _ENGINES if engine.compressions is not None}
    if name is not None and name not in readers:
        raise UsageError(f"engine={name!r} is not known; expected one of {list(readers)}.")
    return DEFAULT if name is None else readers[name]


def engine_for_database(source: object) -> type[Engine] | None:
    """The engine of which a source is a database, told from its name or type; None if it is none."""
    return next((engine for engine in _ENGINES if engine.holds_tables(source)), None)


def engine_for_object(source: object) -> type[Engine] | None:
    """The engine that takes an object, told from its type; None for a frame in memory, or if there is none."""
    any_ibis = Engine if is_ibis(source) else None
    return next((engine for engine in _ENGINES if engine.takes(source)), any_ibis)
