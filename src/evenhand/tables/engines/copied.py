"""A copy of a table that nobody changes, inside DuckDB: what is worked out per user from it is worked out once.

A keeper's server asks one table thousands of times. The per-user summaries that its questions begin with, and the exact
integers read from them, are functions of the copy and of public parameters, so they are kept: as tables of the engine, and as
`Secret`. Noise is fresh each time. What is kept depends on which questions were asked and on numbers that were released (a bound
that was chosen), never on a row: a summary is kept whatever is in it, and let go by number, not by size.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from evenhand.tables.engines.base import Drop, Engine, fresh_name
from evenhand.tables.engines.duckdb import DuckDBEngine
from evenhand.tables.engines.duckdb_databases import settled
from evenhand.tables.engines.duckdb_files import column_types
from evenhand.tables.expressions import ArrowTable, Backend, Operation, Rows
from evenhand.tables.secret import Secret
from evenhand.tables.table import Table

_COPIES = "evenhand_copies"
T = TypeVar("T")

SUMMARIES = 32
RESULTS = 4096


@dataclass
class _Summary:
    """A kept table, and how many questions read it now."""

    rows: Rows
    drop: Drop
    readers: int = 0


class CopiedEngine(DuckDBEngine):
    """DuckDB over a table in memory that stays as it is as long as the database lives."""

    def __init__(self, engine: DuckDBEngine, expression: Rows) -> None:
        name = fresh_name()
        with engine._statement(expression):
            engine.quietly(lambda: _store(engine, name, expression))
        self._apart = False
        self._open(_stored(engine.backend, name), engine.backend)
        self.bytewise = engine.bytewise
        self.named(engine.name_of(engine.rows.op()))

    def _open(self, rows: Rows, backend: Backend) -> None:
        super().__init__(rows, backend)
        self._steady = frozenset(self._sources)
        self._summaries: OrderedDict[Operation, _Summary] = OrderedDict()
        self._results: OrderedDict[Operation, Secret[ArrowTable]] = OrderedDict()
        self._expressions: dict[Hashable, Any] = {}

    def beside(self) -> CopiedEngine:
        """The same copy over a connection of its own, with summaries of its own: statements there and here don't wait for each other."""
        import ibis

        with self._turn:
            backend = settled(ibis.duckdb.from_connection(self.backend.con.cursor()))
        other = object.__new__(CopiedEngine)
        other._apart = True
        other._open(_stored(backend, self.rows.op().name), backend)
        other._sources = tuple(_stored(backend, source.name).op() for source in self._sources)
        other._steady = frozenset(other._sources)
        other._names = {new: self.name_of(old) for old, new in zip(self._sources, other._sources, strict=True)}
        other.bytewise = self.bytewise
        return other

    def turns(self) -> threading.RLock:
        return Engine.turns(self) if self._apart else super().turns()

    def lock(self) -> None:
        """From now on the connection reads no file, writes none, and keeps its settings."""
        with self._turn:
            if not self.backend.con.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
                self.run("SET enable_external_access = false")
                self.run("SET lock_configuration = true")

    @contextmanager
    def kept(self, expression: Rows, lasting: bool = False) -> Iterator[Rows]:
        if not lasting or not self._is_over(expression, set(self._sources)):
            with super().kept(expression) as rows:
                yield rows
            return
        with self._turn:
            summary = self._summaries.get(expression.op()) or self._summarised(expression)
            self._summaries.move_to_end(expression.op())
            summary.readers += 1
        try:
            yield summary.rows
        finally:
            with self._turn:
                summary.readers -= 1

    def held(self, expression: Rows) -> AbstractContextManager[Rows]:
        kept = expression.op() in self._summaries
        return self.kept(expression, lasting=True) if kept else nullcontext(expression)

    def fetch(self, expression: Rows) -> Secret[ArrowTable]:
        found = self._results.get(expression.op())
        if found is not None:
            return found
        with self._turn:
            over = {summary.rows.op() for summary in self._summaries.values()}
        found = super().fetch(expression)
        if self._is_over(expression, over):
            with self._turn:
                self._results[expression.op()] = found
                while len(self._results) > RESULTS:
                    self._results.popitem(last=False)
        return found

    def remembered(self, asked: Hashable, build: Callable[[], T]) -> T:
        # Every count asks the same of the same summary, and Ibis takes a millisecond to put an expression together.
        try:
            found: T | None = self._expressions.get(asked)
        except TypeError:  # a strategy or statistic from outside may hold what has no hash
            return build()
        if found is None:
            found = build()
            if len(self._expressions) >= RESULTS:
                self._expressions.clear()
            self._expressions[asked] = found
        return found

    def _summarised(self, expression: Rows) -> _Summary:
        name = fresh_name()
        with self._statement(expression), self._scanned_once(expression) as once:
            drop = self.quietly(lambda: self.store(name, once))
            found = _Summary(self.quietly(lambda: self.stored(name, once)), drop)
        unused = [op for op, one in self._summaries.items() if not one.readers]
        for op in unused[: max(0, len(self._summaries) + 1 - SUMMARIES)]:
            self.quietly(self._summaries.pop(op).drop)
        self._summaries[expression.op()] = found
        return found

    def _is_over(self, expression: Rows, tables: set[Operation]) -> bool:
        """Whether an expression is a function of these tables and of nothing else."""
        import ibis.expr.operations as ops

        # Functions of the dialect are deterministic, though Ibis takes every one that it does not know for impure.
        nodes = expression.op().find((ops.PhysicalTable, ops.SQLQueryResult, ops.RandomScalar, ops.RandomUUID))
        return all(node in tables for node in nodes)


def _store(engine: DuckDBEngine, name: str, expression: Rows) -> None:
    """Write a table into a database in memory, which all connections see; a temporary one would be seen by its own alone."""
    engine.run(f"ATTACH IF NOT EXISTS ':memory:' AS {_COPIES} (READ_WRITE)")
    engine.run(f"CREATE TABLE {_COPIES}.main.{name} AS {engine.sql(expression)}")


def _stored(backend: Backend, name: str) -> Rows:
    from ibis.expr.operations import DatabaseTable, Namespace

    types = column_types(backend.con.table(f"{_COPIES}.main.{name}"))
    return DatabaseTable(name, types, backend, Namespace(catalog=_COPIES, database="main")).to_expr()


def beside(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The same tables over connections of their own, where DuckDB holds a copy; others stay on theirs."""
    engines: dict[int, CopiedEngine] = {}
    found = dict(tables)
    for name, table in tables.items():
        old = table.engine
        if isinstance(old, CopiedEngine):
            new = engines.get(id(old)) or engines.setdefault(id(old), old.beside())
            there = dict(zip(old._sources, new._sources, strict=True))
            parts = {each: replace(part, rows=_moved(part.rows, new, there)) for each, part in table.parts.items()}
            found[name] = replace(_moved(table, new, there), parts=parts)
    return found


def _moved(table: Table, engine: CopiedEngine, there: Mapping[Operation, Operation]) -> Table:
    return replace(table, engine=engine, expression=table.expression.op().replace(there).to_expr())


def copied(table: Table) -> Table:
    """The table and its parts, copied into DuckDB if DuckDB reads it; tables of other engines stay where they are."""
    engine = table.engine
    if not isinstance(engine, DuckDBEngine) or engine.backend is None:
        return table
    copy: Engine = CopiedEngine(engine, table.expression)
    rows, parts = copy.rows, {}
    for name, part in table.parts.items():
        assert isinstance(part.rows.engine, DuckDBEngine), "it can be joined"
        beside = CopiedEngine(part.rows.engine, part.expression)
        copy = copy.joined(beside)
        parts[name] = replace(part.rows, expression=beside.rows)
    # A copy never changes, so profiles of it stay of use.
    snapshot = table.snapshot or fresh_name()
    held = {
        name: replace(table.parts[name], rows=replace(part, engine=copy, snapshot=snapshot))
        for name, part in parts.items()
    }
    return replace(table, expression=rows, engine=copy, snapshot=snapshot, parts=held)
