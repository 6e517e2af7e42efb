"""DuckDB: files, frames, Ibis tables on a DuckDB connection, and DuckDB relations."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.tables.engines.base import DUCKDB_TURNS, IbisEngine, fresh_name
from evenhand.tables.engines.duckdb_sources import refuse_unstable_sql


class DuckDBEngine(IbisEngine):
    """A DuckDB connection that Ibis drives."""

    def check_source(self) -> None:
        super().check_source()
        sql = str(self.backend.compile(self._source.to_expr()))
        with self._turn:
            refuse_unstable_sql(sql, lambda query: self.backend.con.sql(query).fetchall())

    def spelled(self, value: Any) -> Any:
        return _encode()(value.cast("string"))

    def _to_arrow(self, expression: Any) -> Any:
        # Straight from DuckDB: Ibis' own way to Arrow imports pandas first, half a second at the start.
        return self.backend.con.sql(str(self.backend.compile(expression))).to_arrow_table()

    def _run(self, sql: str) -> None:
        self.backend.con.execute(sql).fetchall()  # an open result would keep the connection busy

    def _publish(self, name: str, public: Any) -> Callable[[], Any]:
        self.backend.con.register(name, public)
        return partial(self.backend.con.unregister, name)

    def _reseed(self) -> None:
        self._run(_seed_statement())


class RelationEngine(IbisEngine):
    """A DuckDB relation: it belongs to a connection that it doesn't hand out, so every statement goes through it."""

    name = "duckdb"

    def __init__(self, relation: Any) -> None:
        import ibis
        from ibis.backends.sql.datatypes import DuckDBType

        self._relation = relation
        self._rows = fresh_name()
        types = {
            name: DuckDBType.from_string(str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)
        }
        self.rows = ibis.table(types, name=self._rows)
        self._source = self.rows.op()
        self._identity = None
        self._held = {}
        self._unowned = []
        self._opened = None
        self._turn = DUCKDB_TURNS

    def check_source(self) -> None:
        with self._turn:
            refuse_unstable_sql(self._relation.sql_query(), lambda query: self._query(query).fetchall())
            if not self._query("SELECT current_setting('enable_external_access')").fetchall()[0][0]:
                raise UsageError(
                    "the relation's connection has no external access, so public keys can't be handed to it. Give an Ibis table of "
                    "that connection instead: ibis.duckdb.from_connection(connection).table(...)."
                )

    def spelled(self, value: Any) -> Any:
        return _encode()(value.cast("string"))

    def _to_arrow(self, expression: Any) -> Any:
        return self._query(_sql(expression)).to_arrow_table()

    def _keep(self, name: str, expression: Any) -> Callable[[], Any]:
        self._run(f"CREATE TEMPORARY TABLE {name} AS {_sql(expression)}")
        return partial(self._run, f"DROP TABLE {name}")

    def _publish(self, name: str, public: Any) -> Callable[[], Any]:
        import pyarrow.parquet as pq

        # Through a file: the connection is out of reach, and it may not see Python's variables (Ibis switches that off).
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "public.parquet"
            pq.write_table(public, path)
            quoted = str(path).replace("'", "''")
            self._run(f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM read_parquet('{quoted}')")
        return partial(self._run, f"DROP TABLE {name}")

    def _table(self, name: str, like: Any) -> Any:
        import ibis

        schema = like.schema() if callable(like.schema) else ibis.memtable(like.schema.empty_table()).schema()
        return ibis.table(schema, name=name)

    def _run(self, sql: str) -> None:
        done = self._query(sql)
        if done is not None:
            done.fetchall()

    def _query(self, sql: str) -> Any:
        return self._relation.query(self._rows, sql)

    def _reseed(self) -> None:
        self._run(_seed_statement())


def _sql(expression: Any) -> str:
    import ibis

    return str(ibis.to_sql(expression, dialect="duckdb"))


def _seed_statement() -> str:
    return f"SELECT setseed({secrets.randbits(53) / 2**52 - 1})"


@lru_cache(maxsize=1)
def _encode() -> Any:
    """DuckDB's ``encode``: the bytes of a text, whatever they are and whatever its collation takes for equal."""
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(name="encode", signature=((dt.string,), dt.binary))
    def encode(text): ...  # type: ignore[no-untyped-def]

    return encode


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
