"""A table without its rows: all that is public about it, to be sent to another process that prices questions about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.tables import Table
from evenhand.tables.engines.duckdb import DuckDBEngine

if TYPE_CHECKING:
    from ibis import Schema


@dataclass(frozen=True)
class Shape:
    """What is public about a table.

    Args:
        schema: its columns with their types.
        said: everything else that is known of it, as fields of `Table`.
    """

    schema: Schema
    said: Mapping[str, Any]

    @classmethod
    def of(cls, table: Table) -> Shape | None:
        """The shape of a table that DuckDB holds; None for other engines, whose rules a process without them does not know."""
        if not isinstance(table.engine, DuckDBEngine):
            return None
        said = {name: given for name, given in vars(table).items() if name not in ("expression", "engine", "holds")}
        return cls(table.expression.schema(), said)

    def opened(self) -> Table:
        """An empty table of this shape, in a DuckDB of its own."""
        import ibis

        backend = ibis.duckdb.connect(threads=1, memory_limit="256MB")
        rows = backend.create_table("empty", schema=self.schema)
        engine = DuckDBEngine(rows, backend)
        return replace(Table(rows, engine, self.said["user"], self.said["relation"]), **self.said)
