"""Postgres, through Ibis. A single statement sees one snapshot there, of ordinary tables."""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Any

from evenhand.tables.engines.base import IbisEngine, quietly
from evenhand.tables.engines.postgres_sources import refuse_unstable_sql


class PostgresEngine(IbisEngine):
    """A Postgres connection that Ibis drives."""

    def check_source(self) -> None:
        super().check_source()
        sql = str(self.backend.compile(self._source.to_expr()))
        with self._turn:
            quietly(self.name, lambda: refuse_unstable_sql(sql, self._rows))

    def spelled(self, value: Any) -> Any:
        dtype = value.type()
        if dtype.is_decimal():
            value = _functions()["trim_scale"](value)  # 1.0 and 1.00 are equal, and print differently
        if dtype.is_temporal():
            # As JSON prints it: always ISO, and defined for infinity; plain text follows the session's DateStyle.
            return _functions()["convert_to"](
                _functions()["btrim"](_functions()["to_json"](value).cast("string"), '"'), "UTF8"
            )
        return _functions()["convert_to"](value.cast("string"), "UTF8")

    def _run(self, sql: str) -> None:
        with self.backend._safe_raw_sql(sql):
            pass

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.backend._safe_raw_sql(sql) as cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _reseed(self) -> None:
        self._run(f"SELECT setseed({secrets.randbits(53) / 2**52 - 1})")


@lru_cache(maxsize=1)
def _functions() -> dict[str, Any]:
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(name="convert_to", signature=((dt.string, dt.string), dt.binary))
    def convert_to(text, encoding): ...  # type: ignore[no-untyped-def]

    @ibis.udf.scalar.builtin(name="btrim", signature=((dt.string, dt.string), dt.string))
    def btrim(text, characters): ...  # type: ignore[no-untyped-def]

    @ibis.udf.scalar.builtin(name="to_json", signature=((dt.timestamp,), dt.json))
    def to_json(value): ...  # type: ignore[no-untyped-def]

    @ibis.udf.scalar.builtin(name="trim_scale", signature=((dt.decimal,), dt.decimal))
    def trim_scale(value): ...  # type: ignore[no-untyped-def]

    return {"convert_to": convert_to, "btrim": btrim, "to_json": to_json, "trim_scale": trim_scale}
