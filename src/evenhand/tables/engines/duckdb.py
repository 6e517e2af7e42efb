"""DuckDB: files, frames, Ibis tables on a DuckDB connection, and DuckDB relations."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from evenhand.guarantee import UsageError
from evenhand.tables.engines import duckdb_databases
from evenhand.tables.engines.base import Drop, Engine, fresh_name
from evenhand.tables.engines.collations import folded_in_duckdb
from evenhand.tables.engines.compiled import compiled, written_through
from evenhand.tables.engines.dialect import function
from evenhand.tables.engines.duckdb_files import arrow_rows, column_types, file_rows, view_rows
from evenhand.tables.engines.duckdb_limits import watch
from evenhand.tables.engines.duckdb_sources import refuse_unstable_sql
from evenhand.tables.expressions import ArrowTable, Backend, Column, Integers, Rows
from evenhand.tables.files import Declared, FileSource

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


_TURNS = threading.RLock()
"""For all of DuckDB: whether a relation and a backend share a connection can't be told."""
_BUCKETS = 65_536  # their counts fit a processor's cache
_LARGEST_HEAP = 1_000_000  # DuckDB refuses larger ones


class DuckDBEngine(Engine):
    """A DuckDB connection that Ibis drives."""

    name = ibis_name = "duckdb"
    tested = True
    inside = True
    compressions = (".gz", ".zst")
    _settled = False
    """Whether nobody else sets a collation on the connection, or writes to the database, while it is open."""

    @classmethod
    def takes(cls, source: object) -> bool:
        return _is_relation(source) or super().takes(source)

    @classmethod
    def open(cls, source: DuckDBPyRelation | Rows) -> Engine:
        return RelationEngine(source) if _is_relation(source) else super().open(source)

    @classmethod
    def open_files(cls, source: FileSource, declared: Declared) -> Engine:
        with _TURNS:
            rows = file_rows(duckdb_backend(), source, declared)
        return _bytewise(cls(rows, duckdb_backend(), lambda: source.snapshot))

    @classmethod
    def holds_tables(cls, source: object) -> bool:
        return duckdb_databases.is_file(source) or duckdb_databases.is_connection(source)

    @classmethod
    def open_table(cls, source: str | Path | DuckDBPyConnection, table: str | None) -> Engine:
        with _TURNS:
            if duckdb_databases.is_connection(source):
                return RelationEngine(source.table(duckdb_databases.connection_table(source, table)))
            engine = cls(*duckdb_databases.file_table(Path(str(source)).expanduser(), table))
            engine._settled = True
            return engine

    @classmethod
    def open_arrow(cls, arrow: ArrowTable) -> Engine:
        """An engine over an Arrow table."""
        with _TURNS:
            rows = arrow_rows(duckdb_backend(), arrow)
        return _bytewise(cls(rows, duckdb_backend()))

    def folded(self) -> frozenset[str]:
        if self.bytewise:
            return frozenset()
        text = [name for name, dtype in self.rows.schema().items() if dtype.is_string()]
        with self._turn:
            found = self.quietly(lambda: folded_in_duckdb(self.sql(self.rows), text, self._answer))
        self.bytewise = self._settled and not found
        return found

    def _answer(self, query: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.backend.con.sql(query).fetchall()
        return found

    def turns(self) -> threading.RLock:
        return _TURNS

    def check_source(self) -> None:
        super().check_source()
        with self._turn:
            refuse_unstable_sql(self.sql(self.rows), self._answer)
            if duckdb_databases.is_stored(self.rows, self._answer):  # a statement is one transaction
                self._steady = frozenset(self._sources)

    def spelled(self, value: Column) -> Column:
        # The bytes of a text, whatever they are and whatever its collation takes for equal.
        return function("encode", "string", returns="binary")(value.cast("string"))

    def text(self, spelling: Column) -> Column:
        return function("decode", "binary", returns="string")(spelling)

    def is_number(self, value: Column) -> Column:
        # DuckDB 2.0 answers `isnan` out of a Parquet file's statistics, which leave NaN out by specification, and sees
        # through all arithmetic and monotone functions. `nextafter` keeps NaN, adds none, and is opaque to it.
        # The null of a null needs no second test.
        return ~function("nextafter", "float64", "float64", returns="float64")(value, 1.0).isnan()

    def utc(self, moment: Column) -> Column:
        import ibis

        dtype = moment.type()
        if dtype.timezone is None:
            return super().utc(moment)
        # By its microseconds: a cast would follow the time zone of the session.
        finite = function("isfinite", dtype, returns="boolean")(moment).ifelse(moment, ibis.null(dtype))
        return function("make_timestamp", "int64", returns="timestamp")(
            function("epoch_us", dtype, returns="int64")(finite)
        )

    def floor(self, value: Column) -> Column:
        # Ibis' own adds a cast to integers, one more step per row.
        return function("floor", "float64", returns="float64")(value)

    def exact_sum(self, integers: Integers) -> Column:
        return integers.sum().cast("decimal(38, 0)").fill_null(0)  # sums are 128 bits wide already

    def bucket(self, keys: Sequence[Column]) -> Column | None:
        import ibis

        hashed = function("hash", *(key.type() for key in keys), returns="uint64")(*keys)
        return hashed % ibis.literal(_BUCKETS, "uint64")

    def histogram(self, rows: Rows, value: Integers, edges: Sequence[int]) -> Rows:
        import ibis

        if not value.type().is_int64():
            return super().histogram(rows, value, edges)
        # One function for sixty comparisons: an eighth of the time, and of the time to plan it.
        count = function("histogram", "int64", "array<int64>", returns="map<int64, int64>", aggregate=True)
        counted = rows.aggregate(found=count(value.fill_null(edges[0]), ibis.literal(list(edges), "array<int64>")))
        return counted.select(place=counted.found.keys().unnest(), users=counted.found.values().unnest())

    def sampled_sums(self, drawn: Rows, users: Sequence[str], names: Sequence[str], limit: int) -> Rows:
        if len(names) > 1 or limit >= _LARGEST_HEAP:
            return super().sampled_sums(drawn, users, names, limit)
        # A bounded heap per user instead of a sort: no window, memory h values per user.
        (name,) = names
        arg_min = function("arg_min", "float64", "float64", "int64", returns="array<float64>", aggregate=True)
        smallest = arg_min(drawn[name], drawn.evenhand_draw, limit)
        kept = drawn.group_by(users).aggregate(evenhand_kept=smallest)
        values = kept.evenhand_kept
        return kept.mutate(rows=values.length(), **{name: values.sums().cast("int64")}).drop("evenhand_kept")

    def sql(self, expression: Rows) -> str:
        return compiled(expression, type(self.backend), partial(written_through, self.backend))

    def evaluate(self, expression: Rows) -> ArrowTable:
        # Straight from DuckDB: Ibis' own way to Arrow imports pandas first, half a second at the start.
        sql = self.sql(expression)
        with self._watched():
            return self.backend.con.sql(sql).to_arrow_table()

    def run(self, sql: str) -> None:
        with self._watched():
            self.backend.con.execute(sql).fetchall()  # an open result would keep the connection busy

    def interrupt(self) -> None:
        self.backend.con.interrupt()

    def publish(self, name: str, public: ArrowTable) -> Drop:
        # As a table: DuckDB knows the range of its columns then, and joins with it take two thirds of the time.
        given = f"{name}_given"
        self.backend.con.register(given, public)
        try:
            self.run(f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {given}")
        finally:
            self.backend.con.unregister(given)
        return partial(self.run, f"DROP TABLE {name}")

    def stored(self, name: str, like: Rows | ArrowTable) -> Rows:
        return view_rows(self.backend, name)

    def _watched(self) -> AbstractContextManager[None]:
        """Around each statement: it ends with its time."""
        stopper = watch(self.backend)
        return nullcontext() if stopper is None else stopper.over()

    def reseed(self) -> None:
        self.run(f"SELECT setseed({secrets.randbits(53) / 2**52 - 1})")


class RelationEngine(DuckDBEngine):
    """A DuckDB relation: it belongs to a connection that it doesn't hand out, so every statement goes through it."""

    def __init__(self, relation: DuckDBPyRelation) -> None:
        import ibis

        self._relation = relation
        self._name = fresh_name()
        super().__init__(ibis.table(column_types(relation), name=self._name), None)

    def check_source(self) -> None:
        with self._turn:
            refuse_unstable_sql(self._relation.sql_query(), self._answer)
            if not self._query("SELECT current_setting('enable_external_access')").fetchall()[0][0]:
                raise UsageError(
                    "the relation's connection has no external access, so public keys can't be handed to it. Give an Ibis table of "
                    "that connection instead: ibis.duckdb.from_connection(connection).table(...)."
                )

    def evaluate(self, expression: Rows) -> ArrowTable:
        return self._query(self.sql(expression)).to_arrow_table()

    def publish(self, name: str, public: ArrowTable) -> Drop:
        import pyarrow.parquet as pq

        # Through a file: the connection is out of reach, and it may not see Python's variables (Ibis switches that off).
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "public.parquet"
            pq.write_table(public, path)
            quoted = str(path).replace("'", "''")
            self.run(f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM read_parquet('{quoted}')")
        return partial(self.run, f"DROP TABLE {name}")

    def stored(self, name: str, like: Rows | ArrowTable) -> Rows:
        import ibis

        schema = like.schema() if callable(like.schema) else ibis.memtable(like.schema.empty_table()).schema()
        return ibis.table(schema, name=name)

    def sql(self, expression: Rows) -> str:
        import ibis

        return compiled(expression, RelationEngine, lambda rows: str(ibis.to_sql(rows, dialect="duckdb")))

    def run(self, sql: str) -> None:
        done = self._relation.query(self._name, sql)
        if done is not None:
            done.fetchall()

    def _answer(self, query: str) -> list[tuple[Any, ...]]:
        return self._query(query).fetchall()

    def _query(self, sql: str) -> DuckDBPyRelation:
        found = self._relation.query(self._name, sql)
        assert found is not None, "a query has a result"
        return found


def _bytewise(engine: DuckDBEngine) -> DuckDBEngine:
    """An engine over files or Arrow, on Evenhand's own connection: nothing there has a collation."""
    engine.bytewise = True
    return engine


def _is_relation(source: object) -> TypeGuard[DuckDBPyRelation]:
    return type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(source, "sql_query")


@lru_cache(maxsize=1)
def duckdb_backend() -> Backend:
    """One DuckDB connection for everything that Evenhand reads itself."""
    import ibis

    return duckdb_databases.settled(ibis.duckdb.connect())
