"""Running expressions where the data is. One Ibis expression serves every engine."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

from evenhand.guarantee import DataError, EngineError, EvenhandError
from evenhand.tables.secret import Secret
from evenhand.tables.spark import unlogged

T = TypeVar("T")
_names = (f"evenhand_{os.getpid()}_{number}" for number in itertools.count())


class Engine(Protocol):
    """Something that evaluates Ibis expressions over one source."""

    name: str

    def fetch(self, expression: Any) -> Secret[Any]:
        """Evaluate to an Arrow table, wrapped so that nothing prints it."""

    def kept(self, expression: Any) -> AbstractContextManager[Any]:
        """Evaluate once and keep the (small, per-user) result in the engine for a while; yields an expression over it."""


class IbisEngine:
    """Any backend that Ibis drives."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.name: str = {"pyspark": "spark"}.get(backend.name, backend.name)

    def fetch(self, expression: Any) -> Secret[Any]:
        return Secret(quietly(self.name, lambda: self.backend.to_pyarrow(expression)))

    @contextmanager
    def kept(self, expression: Any) -> Iterator[Any]:
        name, sql = fresh_name(), str(self.backend.compile(expression))
        if self.name == "spark":
            rows = quietly(self.name, lambda: self.backend._session.sql(sql).persist())
            rows.createOrReplaceTempView(name)
            release: Callable[[], Any] = rows.unpersist
        else:
            quietly(self.name, lambda: self.backend.raw_sql(f"CREATE TEMPORARY TABLE {name} AS {sql}"))
            release = partial(self.backend.raw_sql, f"DROP TABLE {name}")
        try:
            yield self.backend.table(name)
        finally:
            quietly(self.name, release)


class RelationEngine:
    """A DuckDB relation: it belongs to a connection that it doesn't hand out, so queries go through it."""

    name = "duckdb"
    rows_name = "evenhand_rows"

    def __init__(self, relation: Any) -> None:
        self.relation = relation

    def fetch(self, expression: Any) -> Secret[Any]:
        import ibis

        if expression.op().find(ibis.expr.operations.DatabaseTable):
            return IbisEngine(duckdb_backend()).fetch(expression)  # over a kept result, not over the relation
        sql = str(ibis.to_sql(expression, dialect="duckdb"))
        return Secret(quietly(self.name, lambda: self.relation.query(self.rows_name, sql).to_arrow_table()))

    @contextmanager
    def kept(self, expression: Any) -> Iterator[Any]:
        # The relation's connection is not ours to write to; the result moves to our own.
        backend, name = duckdb_backend(), fresh_name()
        backend.con.register(name, self.fetch(expression).reveal())
        try:
            yield backend.table(name)
        finally:
            backend.con.unregister(name)


def quietly(engine: str, work: Callable[[], T]) -> T:
    """Run engine work; turn its failures into errors that hold nothing from the rows.

    Engines quote the offending value in their messages, so only the kind of failure is passed on, and the
    original exception is not chained.
    """
    try:
        with unlogged() if engine == "spark" else nullcontext():
            return work()
    except EvenhandError:
        raise
    except MemoryError:
        failure = "it ran out of memory"
    except Exception as error:
        failure = f"it reported {type(error).__name__}"
    raise EngineError(
        f"the {engine} engine could not evaluate the query: {failure}. The message is withheld because it may quote "
        "rows. Check that the source is still readable and unchanged, and that the engine has enough memory and disk."
    )


@lru_cache(maxsize=1)
def duckdb_backend() -> Any:
    """One DuckDB connection for everything that Evenhand reads itself."""
    import ibis

    backend = ibis.duckdb.connect()
    # Results don't depend on row order; telling DuckDB so lets it stream large files without buffering.
    backend.raw_sql("SET preserve_insertion_order = false")
    backend.raw_sql("SET enable_progress_bar = false")
    return backend


def fresh_name() -> str:
    """A name that no other view of this process has."""
    return next(_names)


def first_column_error(kind: str, columns: tuple[str, ...]) -> DataError:
    """An unreadable in-memory frame, without quoting its values."""
    return DataError(
        f"the table can't be converted to typed columns ({kind}); expected each of the columns "
        f"{list(columns)} to hold one type. Convert mixed columns first, for example with astype(str)."
    )
