"""Postgres, through Ibis. A single statement sees one snapshot there, of ordinary tables."""

from __future__ import annotations

import math
import secrets
from contextlib import suppress
from decimal import Decimal
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.tables.engines.base import Engine
from evenhand.tables.engines.dialect import function
from evenhand.tables.engines.naming import choose_table
from evenhand.tables.engines.postgres_sources import TABLES, connected, refuse_unstable_sql
from evenhand.tables.expressions import Column


class PostgresEngine(Engine):
    """A Postgres connection that Ibis drives."""

    name = ibis_name = "postgres"
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
            allowed = "current_setting('transaction_read_only') = 'off' AND has_database_privilege(current_database(), 'TEMP')"
            if not self.quietly(lambda: self._query(f"SELECT {allowed}"))[0][0]:
                raise UsageError(
                    "this Postgres connection may not create temporary tables (it is read-only, or lacks the TEMP privilege), and "
                    "releases keep per-user sums in them. Connect as a role that may, or read from a copy."
                )

    def spelled(self, value: Column) -> Column:
        dtype = value.type()
        if dtype.is_decimal():
            # 1.0 and 1.00 are equal, and print differently.
            value = function("trim_scale", dtype, returns=dtype)(value)
        if dtype.is_temporal():
            # As JSON prints it: always ISO, and defined for infinity; plain text follows the session's DateStyle.
            quoted = function("to_json", dtype, returns="json")(value).cast("string")
            value = function("btrim", "string", "string", returns="string")(quoted, '"')
        return function("convert_to", "string", "string", returns="binary")(value.cast("string"), "UTF8")

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
