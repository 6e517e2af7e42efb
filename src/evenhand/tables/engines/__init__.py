"""Where the rows are: one class per engine. One Ibis expression serves them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand.tables.engines.base import Engine, IbisEngine, fresh_name, one_reading, quietly, turns
from evenhand.tables.engines.duckdb import DuckDBEngine, RelationEngine, duckdb_backend
from evenhand.tables.engines.postgres import PostgresEngine
from evenhand.tables.engines.spark import SparkEngine

__all__ = [
    "DuckDBEngine",
    "Engine",
    "IbisEngine",
    "RelationEngine",
    "duckdb_backend",
    "engine_for",
    "fresh_name",
    "one_reading",
    "quietly",
    "turns",
]

_ENGINES: dict[str, type[IbisEngine]] = {"duckdb": DuckDBEngine, "postgres": PostgresEngine, "pyspark": SparkEngine}


def engine_for(source: Any, backend: Any, identity: Callable[[], str | None] | None = None) -> IbisEngine:
    """The engine that runs expressions over ``source``, an Ibis table of ``backend``."""
    return _ENGINES.get(backend.name, IbisEngine)(source, backend, identity)
