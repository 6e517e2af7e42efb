"""Postgres, through Ibis. A single statement sees one snapshot there, of ordinary tables."""

from __future__ import annotations

import math
import secrets
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.tables.engines.base import Engine
from evenhand.tables.engines.collations import folded_in_postgres
from evenhand.tables.engines.compiled import compiled, written_through
from evenhand.tables.engines.dialect import function, recast
from evenhand.tables.engines.naming import choose_table
from evenhand.tables.engines.postgres_sources import TABLES, connected, refuse_unstable_sql
from evenhand.tables.expressions import Column, Rows

_TOTAL = ("UTF8", "LATIN1")
"""Encodings of databases in which all stored text has a form in UTF-8, so that `spelled` is defined for it."""


class PostgresEngine(Engine):
    """A Postgres connection that Ibis drives."""

    name = ibis_name = "postgres"
    tested = True
    spells_networks = True
    end_of_text = r"\Z"

    @classmethod
    def holds_tables(cls, source: object) -> bool:
        return isinstance(source, str) and source.startswith(("postgresql://", "postgres://"))

    @classmethod
    def open_table(cls, source: str, table: str | None) -> Engine:
        backend = connected(source)
        with backend._safe_raw_sql(TABLES) as cursor:
            found = cursor.fetchall()
        schema, name = choose_table(found, table, "the Postgres database")
        return cls(backend.table(name, database=schema), backend)

    def check_source(self) -> None:
        super().check_source()
        sql = self.sql(self.rows)
        with self._turn:
            self.quietly(lambda: refuse_unstable_sql(sql, self._query))
            ((encoding,),) = self.quietly(lambda: self._query("SELECT current_setting('server_encoding')"))
            if encoding not in _TOTAL:
                raise UsageError(
                    f"this Postgres database stores text as {encoding}, some bytes of which are no characters: one such id would make a release fail. "
                    "Expected a database whose encoding is UTF8 (or LATIN1); copy the tables into one."
                )
            self._steady = frozenset(self._sources)  # a statement has one snapshot of all that it names
            allowed = "current_setting('transaction_read_only') = 'off' AND has_database_privilege(current_database(), 'TEMP')"
            if not self.quietly(lambda: self._query(f"SELECT {allowed}"))[0][0]:
                raise UsageError(
                    "this Postgres connection may not create temporary tables (it is read-only, or lacks the TEMP privilege), and "
                    "releases keep per-user sums in them. Connect as a role that may, or read from a copy."
                )

    def folded(self) -> frozenset[str]:
        text = [name for name, dtype in self.rows.schema().items() if dtype.is_string() or dtype.is_unknown()]
        with self._turn:
            found = self.quietly(lambda: folded_in_postgres(self.sql(self.rows), text, self._query))
        self.bytewise = not found
        return found

    def joined(self, other: Engine) -> Engine:
        both = super().joined(other)
        both.bytewise = (
            False  # what two columns of different collations are united to has none, and can't be compared as it is
        )
        return both

    def spelled(self, value: Column) -> Column:
        dtype = value.type()
        if dtype.is_decimal():
            # 1.0 and 1.00 are equal, and print differently.
            value = function("trim_scale", dtype, returns=dtype)(value)
        if dtype.is_temporal():
            # As JSON prints it: always ISO, and defined for infinity; plain text follows the session's DateStyle.
            quoted = function("to_json", dtype, returns="json")(value).cast("string")
            value = function("btrim", "string", "string", returns="string")(quoted, '"')
        return function("convert_to", "string", "string", returns="binary")(
            recast(value, "string"), "UTF8"
        )  # enumerations too

    def text(self, spelling: Column) -> Column:
        return function("convert_from", "binary", "string", returns="string")(spelling, "UTF8")

    def plain(self, text: Column) -> Column:
        # Enumerations and CHAR(n) come as text, and compare with no other text, or without the spaces at its end.
        return recast(text, "string") if self.bytewise else super().plain(text)

    def without_nan(self, decimal: Column) -> Column:
        import ibis

        # As text: a cast to doubles raises beyond their range.
        return (decimal.cast("string") == "NaN").ifelse(ibis.null(decimal.type()), decimal)

    def double(self, decimal: Column) -> Column:
        # Decimals hold more than doubles do there, and the cast of the rest raises.
        import ibis
        import ibis.expr.datatypes as dt

        def exact(text: str) -> Column:
            return ibis.literal(Decimal(text), dt.Decimal())

        wide = decimal.cast(dt.Decimal())
        return ibis.cases(
            (wide == exact("NaN"), ibis.null("float64")),  # equal to itself and greater than infinity there
            (wide >= exact("1e308"), ibis.literal(math.inf)),
            (wide <= exact("-1e308"), ibis.literal(-math.inf)),
            (wide.abs() < exact("1e-300"), ibis.literal(0.0)),
            else_=super().double(wide),
        )

    def parsed(self, text: Column) -> Column:
        import ibis.expr.datatypes as dt

        return self.double(text.cast(dt.Decimal()))  # a cast to doubles raises beyond their range

    def utc(self, moment: Column) -> Column:
        dtype = moment.type()
        if dtype.timezone is None:
            return moment
        return function("timezone", "string", dtype, returns="timestamp")("UTC", moment)

    def scaled(self, value: Column, factor: float) -> Column:
        import ibis

        if factor < 1:
            # Postgres raises where a product underflows, and an error would depend on the rows. These are far below a step.
            tiny = value.abs() < ibis.literal(2.0**-500, "float64")
            value = tiny.ifelse(ibis.literal(0.0, "float64"), value)
        return super().scaled(value, factor)

    def sql(self, expression: Rows) -> str:
        return compiled(expression, type(self.backend), partial(written_through, self.backend))

    def run(self, sql: str) -> None:
        with self.backend._safe_raw_sql(sql):
            pass

    def _query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.backend._safe_raw_sql(sql) as cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def interrupt(self) -> None:
        with suppress(Exception):  # the connection is gone, and with it the statement
            self.backend.con.cancel_safe(timeout=2)

    def reseed(self) -> None:
        self.run(f"SELECT setseed({secrets.randbits(53) / 2**52 - 1})")
