"""Postgres, through Ibis. A single statement sees one snapshot there, of ordinary tables."""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.tables.engines.base import IbisEngine, quietly
from evenhand.tables.engines.postgres_sources import refuse_unstable_sql


class PostgresEngine(IbisEngine):
    """A Postgres connection that Ibis drives."""

    def check_source(self) -> None:
        super().check_source()
        sql = str(self.backend.compile(self._source.to_expr()))
        with self._turn:
            quietly(self.name, lambda: refuse_unstable_sql(sql, self._rows))
            allowed = "current_setting('transaction_read_only') = 'off' AND has_database_privilege(current_database(), 'TEMP')"
            if not quietly(self.name, lambda: self._rows(f"SELECT {allowed}"))[0][0]:
                raise UsageError(
                    "this Postgres connection may not create temporary tables (it is read-only, or lacks the TEMP privilege), and "
                    "releases keep per-user sums in them. Connect as a role that may, or read from a copy."
                )

    def spelled(self, value: Any) -> Any:
        import ibis.expr.datatypes as dt

        dtype = value.type()
        if dtype.is_decimal():
            value = _function("trim_scale", dtype, returns=dtype)(
                value
            )  # 1.0 and 1.00 are equal, and print differently
        if dtype.is_temporal():
            # As JSON prints it: always ISO, and defined for infinity; plain text follows the session's DateStyle.
            quoted = _function("to_json", dtype, returns=dt.json)(value).cast("string")
            value = _function("btrim", dt.string, dt.string, returns=dt.string)(quoted, '"')
        return _function("convert_to", dt.string, dt.string, returns=dt.binary)(value.cast("string"), "UTF8")

    def _run(self, sql: str) -> None:
        with self.backend._safe_raw_sql(sql):
            pass

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.backend._safe_raw_sql(sql) as cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _reseed(self) -> None:
        self._run(f"SELECT setseed({secrets.randbits(53) / 2**52 - 1})")


@lru_cache(maxsize=64)
def _function(name: str, *takes: Any, returns: Any) -> Any:
    """One of Postgres' own functions."""
    import ibis

    arguments = ", ".join(f"argument_{index}" for index in range(len(takes)))
    stub = eval(f"lambda {arguments}: None")  # Ibis reads the names of the arguments off it
    stub.__name__ = name
    return ibis.udf.scalar.builtin(name=name, signature=(takes, returns))(stub)
