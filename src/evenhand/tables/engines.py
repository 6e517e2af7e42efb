"""Running expressions where the data is. One Ibis expression serves every engine."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

from evenhand.guarantee import EngineError, EvenhandError
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

    def hold(self, owner: object, public: Any) -> Any:
        """Make a public Arrow table available for joins as long as ``owner`` lives; returns an expression over it."""


class IbisEngine:
    """Any backend that Ibis drives."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._held: dict[int, Any] = {}
        self.name: str = {"pyspark": "spark"}.get(backend.name, backend.name)

    def fetch(self, expression: Any) -> Secret[Any]:
        if self.name == "duckdb":
            # Straight from DuckDB: Ibis' own way to Arrow imports pandas first, half a second at the start.
            sql = str(self.backend.compile(expression))
            return Secret(quietly(self.name, lambda: self.backend.con.sql(sql).to_arrow_table()))
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

    def hold(self, owner: object, public: Any) -> Any:
        if id(owner) not in self._held:
            name = fresh_name()
            if self.name == "spark":
                frame = self.backend._session.createDataFrame(public.to_pandas(), schema=_spark_schema(public))
                frame.createOrReplaceTempView(name)
                drop: Callable[[], Any] = partial(self.backend._session.catalog.dropTempView, name)
            elif self.name == "duckdb":
                self.backend.con.register(name, public)
                drop = partial(self.backend.con.unregister, name)
            else:
                self.backend.create_table(name, public, temp=True)
                drop = partial(self.backend.drop_table, name)
            self._held[id(owner)] = self.backend.table(name)
            weakref.finalize(owner, _forget, self._held, id(owner), drop)
        return self._held[id(owner)]


class RelationEngine:
    """A DuckDB relation: it belongs to a connection that it doesn't hand out, so queries go through it.

    DuckDB resolves unknown table names among the Python globals of the module that runs the query. What has to be
    joined with the relation is therefore put there for as long as it is needed.
    """

    name = "duckdb"
    rows_name = "evenhand_rows"

    def __init__(self, relation: Any) -> None:
        self.relation = relation
        self._held: dict[int, Any] = {}

    def fetch(self, expression: Any) -> Secret[Any]:
        import ibis

        sql = str(ibis.to_sql(expression, dialect="duckdb"))
        return Secret(quietly(self.name, lambda: self.relation.query(self.rows_name, sql).to_arrow_table()))

    @contextmanager
    def kept(self, expression: Any) -> Iterator[Any]:
        name, table = self._publish(self.fetch(expression).reveal())
        try:
            yield table
        finally:
            del globals()[name]

    def hold(self, owner: object, public: Any) -> Any:
        if id(owner) not in self._held:
            name, self._held[id(owner)] = self._publish(public)
            weakref.finalize(owner, _forget, self._held, id(owner), partial(globals().pop, name))
        return self._held[id(owner)]

    def _publish(self, table: Any) -> tuple[str, Any]:
        import ibis

        name = fresh_name()
        globals()[name] = table
        return name, ibis.table(ibis.memtable(table.schema.empty_table()).schema(), name=name)


def _forget(held: dict[int, Any], key: int, drop: Callable[[], Any]) -> None:
    """Let go of a public table whose owner is gone."""
    held.pop(key, None)
    with suppress(Exception):  # the engine may be gone too
        drop()


def _spark_schema(table: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)


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
    # Only where there is one: in Jupyter without ipywidgets DuckDB has none, and raises if it is told to have none.
    if backend.raw_sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        backend.raw_sql("SET enable_progress_bar = false")
    return backend


def fresh_name() -> str:
    """A name that no other view of this process has."""
    return next(_names)
