"""SQLite, through Ibis: ordinary tables of a connection.

A value in SQLite has a type of its own, whatever its column declares, and a column may compare text by a collation. So each
column is read by what its declaration asks for and nothing else: what is of another type is null, text is compared byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from evenhand.guarantee import DataError, UsageError
from evenhand.tables.engines.base import Drop, Engine
from evenhand.tables.engines.dialect import function
from evenhand.tables.engines.ibis_tables import ibis_backend
from evenhand.tables.expressions import ArrowTable, Backend, Column, Integers, Rows

_LARGEST = 2**62  # where sums saturate: beyond what is released
_LIMIT = 2**63


class SQLiteEngine(Engine):
    """A SQLite connection that Ibis drives: a statement is one transaction, NaN is stored as null."""

    name = ibis_name = "sqlite"
    objects = "Ibis tables of SQLite"
    views = False  # much is computed by Python functions of Ibis, which raise for some values

    def __init__(self, rows: Rows, backend: Backend) -> None:
        import ibis.expr.operations as ops

        super().__init__(rows, backend)
        self._sources = tuple(rows.op().find(ops.DatabaseTable))  # below what cleans their values
        connection = backend.con
        connection.create_aggregate("evenhand_sum", 1, _Sum)
        connection.create_function("evenhand_text", 1, _text, deterministic=True)
        connection.create_function("evenhand_number", 1, _number, deterministic=True)

    @classmethod
    def open(cls, source: Rows) -> Engine:
        import ibis.expr.operations as ops

        backend, table = ibis_backend(source), source.op()
        if not isinstance(table, ops.DatabaseTable):
            raise UsageError(
                "this is an expression over tables of SQLite; expected a table, as from connection.table(...). Filter and derive it with "
                "where() and derive() of what eh.read returns, or store its result as a table."
            )
        place = (table.namespace.database or "main").replace('"', '""')
        query = f'SELECT type, sql FROM "{place}".sqlite_master WHERE name = ?'
        found = backend.con.execute(query, (table.name,)).fetchall()
        if [kind for kind, _ in found] != ["table"] or found[0][1].upper().startswith("CREATE VIRTUAL"):
            raise UsageError(
                f"{table.name!r} is not an ordinary table of this database; expected one, not a view or a virtual table, which may give "
                "other rows each time. Store its result as a table first."
            )
        named = table.name.replace('"', '""')
        declared = {row[1]: row[2] for row in backend.con.execute(f'PRAGMA "{place}".table_info("{named}")')}
        unknown = [column for column in source.columns if column not in declared]
        if unknown:
            raise DataError(f"the columns {unknown} of {table.name!r} are not stored; expected stored columns only.")
        types = {column: _kind(declared[column]) for column in source.columns}
        raw = _table(backend, table.name, types, table.namespace)
        return cls(raw.select(**{column: _clean(raw[column]) for column in source.columns}), backend)

    def is_number(self, value: Column) -> Column:
        return value.notnull()

    def parsed(self, text: Column) -> Column:
        return function("evenhand_number", "string", returns="float64")(text)  # a cast is off by a bit at times

    def double(self, decimal: Column) -> Column:
        return self.parsed(decimal.cast("string"))

    def floor(self, value: Column) -> Column:
        return function("floor", "float64", returns="float64")(value)

    def exact_sum(self, integers: Integers) -> Column:
        # SQLite's own raises beyond 64 bits.
        return function("evenhand_sum", "int64", returns="int64", aggregate=True)(integers)

    def evaluate(self, expression: Rows) -> ArrowTable:
        import pyarrow as pa

        # Ibis' own way leads through pandas, where whole numbers beside a null become doubles.
        schema = expression.schema().to_pyarrow()
        found: list[tuple[Any, ...]] = self.backend.con.execute(self.sql(expression)).fetchall()
        columns = list(zip(*found, strict=True)) or [()] * len(schema)
        arrays = [
            pa.array((_as_type(value, field.type) for value in column), field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        return pa.table(arrays, schema=schema)

    def publish(self, name: str, public: ArrowTable) -> Drop:
        kinds = ", ".join(f"{field.name} {_declared(field.type)}" for field in public.schema)
        self.run(f"CREATE TEMPORARY TABLE {name} ({kinds})")
        self._insert(name, zip(*public.to_pydict().values(), strict=True), public.num_columns)
        return partial(self.run, f"DROP TABLE {name}")

    def stored(self, name: str, like: Rows | ArrowTable) -> Rows:
        import ibis
        import ibis.expr.operations as ops

        # With the types that were asked for: Ibis tells those of a temporary table from its rows, and there may be none.
        schema = like.schema() if callable(like.schema) else ibis.memtable(like.schema.empty_table()).schema()
        return _table(self.backend, name, dict(schema.items()), ops.Namespace(database="temp"))

    def run(self, sql: str) -> None:
        self.backend.con.execute(sql)

    def _insert(self, name: str, rows: Iterable[tuple[object, ...]], width: int) -> None:
        """Add rows to a temporary table, and leave no transaction open where there was none: it would keep writers out."""
        connection = self.backend.con
        began = connection.in_transaction
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", rows)
        if not began:
            connection.commit()


class _Sum:
    """A sum that saturates far above all that is released."""

    def __init__(self) -> None:
        self._total = 0

    def step(self, value: int | None) -> None:
        self._total += value or 0

    def finalize(self) -> int:
        return max(-_LARGEST, min(_LARGEST, self._total))


def _text(stored: bytes | None) -> str | None:
    """Text without what is not UTF-8."""
    return None if stored is None else stored.decode("utf-8", "ignore")


def _number(text: str | None) -> float | None:
    """The double nearest to a number in plain text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _kind(declared: str) -> str:
    """The type of a column, by SQLite's rules of affinity (sqlite.org/datatype3.html, 3.1); dates and times are text there."""
    words = declared.upper()
    if "INT" in words or "BOOL" in words:
        return "int64"
    if any(word in words for word in ("CHAR", "CLOB", "TEXT", "DATE", "TIME")):
        return "string"
    return "binary" if "BLOB" in words or not words else "float64"


def _clean(value: Column) -> Column:
    """A column where what is of another type is null, and text has no collation."""
    dtype = value.type()
    kind = function("typeof", dtype, returns="string")(value)
    if dtype.is_integer():
        return (kind == "integer").ifelse(value, None)
    if dtype.is_floating():
        return kind.isin(["integer", "real"]).ifelse(value.cast("float64"), None)
    if dtype.is_binary():
        return (kind == "blob").ifelse(value, None)
    decoded = function("evenhand_text", "binary", returns="string")(value.cast("binary"))
    return (kind == "text").ifelse(decoded, None)


def _table(backend: Backend, name: str, types: dict[str, Any], namespace: Any) -> Rows:  # noqa: ANN401 - Ibis' own
    """A table by the types that are known of it."""
    import ibis
    import ibis.expr.operations as ops

    return ops.DatabaseTable(name, ibis.schema(types), backend, namespace).to_expr()


def _declared(dtype: Any) -> str:  # noqa: ANN401 - Arrow's types are untyped
    """How a column of public rows is declared."""
    import pyarrow.types as kinds

    if kinds.is_binary(dtype) or kinds.is_large_binary(dtype):
        return "BLOB"
    return "BIGINT" if kinds.is_integer(dtype) else "DOUBLE" if kinds.is_floating(dtype) else "TEXT"


def _as_type(value: Any, dtype: Any) -> Any:  # noqa: ANN401 - a value of SQLite, and Arrow's types
    """A value of a result in its type; nothing raises because of one."""
    import pyarrow.types as kinds

    if value is None:
        return None
    if kinds.is_boolean(dtype):
        return bool(value)
    if kinds.is_integer(dtype):
        if isinstance(value, float):
            value = (
                0
                if math.isnan(value)
                else -_LIMIT
                if value < -_LIMIT
                else _LIMIT - 1
                if value >= _LIMIT
                else int(value)
            )
        return value if isinstance(value, int) else None
    if kinds.is_floating(dtype):
        return float(value) if isinstance(value, int | float) else None
    if kinds.is_binary(dtype) or kinds.is_large_binary(dtype):
        return value.encode("utf-8", "ignore") if isinstance(value, str) else value
    return value
