"""A table without its rows: all that is public about it, to be sent to another process that prices questions about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evenhand.tables import Part, Table
from evenhand.tables.engines.duckdb import DuckDBEngine
from evenhand.tables.engines.scans import scans
from evenhand.tables.expressions import Backend

if TYPE_CHECKING:
    from ibis import Schema


@dataclass(frozen=True)
class Shape:
    """What is public about a table.

    Args:
        schema: its columns with their types.
        said: everything else that is known of it, as fields of `Table`.
        name: what its source is called.
        parts: the parts that may be joined to it: the shape of their rows, and what else is known of them, as fields of `Part`.
    """

    schema: Schema
    said: Mapping[str, Any]
    name: str = ""
    parts: Mapping[str, tuple[Shape, Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> Shape | None:
        """The shape of a table that DuckDB holds; None for other engines, whose rules a process without them does not know."""
        if not isinstance(table.engine, DuckDBEngine):
            return None
        said = {
            name: given for name, given in vars(table).items() if name not in ("expression", "engine", "holds", "parts")
        }
        parts = {}
        for name, part in table.parts.items():
            shape = cls.of(part.rows)
            if shape is not None:
                parts[name] = shape, {"name": part.name, "stored": part.stored, "keys": part.keys}
        names = [
            table.engine.name_of(source) for source in table.engine._sources if scans(table.expression.op(), source)
        ]
        return cls(table.expression.schema(), said, "".join(names[:1]), parts)

    def opened(self) -> Table:
        """An empty table of this shape, in a DuckDB of its own."""
        import ibis

        backend = ibis.duckdb.connect(threads=1, memory_limit="256MB")
        parts = {
            name: Part(shape._table(backend, f"empty_{place}"), **said)
            for place, (name, (shape, said)) in enumerate(self.parts.items())
        }
        return replace(self._table(backend, "empty"), parts=parts)

    def _table(self, backend: Backend, name: str) -> Table:
        rows = backend.create_table(name, schema=self.schema)
        engine = DuckDBEngine(rows, backend)
        engine.named(self.name)
        return replace(Table(rows, engine, self.said["user"], self.said["relation"]), **self.said)
