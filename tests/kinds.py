"""Columns of every type that engines hold, as SQL literals: ids, keys and values, ends of ranges and several spellings included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import ibis

DUCKDB: dict[str, list[str]] = {
    "tinyint": ["0::tinyint", "(-128)::tinyint", "127::tinyint"],
    "ubigint": ["18446744073709551615::ubigint", "18446744073709551614::ubigint"],
    "hugeint": ["170141183460469231731687303715884105727::hugeint", "100000000000000000000000000000000001::hugeint", "1::hugeint"],
    "uhugeint": ["340282366920938463463374607431768211455::uhugeint", "340282366920938463463374607431768211454::uhugeint"],
    "bignum": ["123456789012345678901234567890123456789012345::bignum", "123456789012345678901234567890123456789012346::bignum"],
    "float": ["16777216::float", "0.1::float", "'-inf'::float", "3e38::float"],
    "double": ["0.0::double", "1e308::double", "'inf'::double", "5e-324::double"],
    "decimal": ["1.00::decimal(38,2)", "1.01::decimal(38,2)", "-999999999999999999999999999999999999.99::decimal(38,2)"],
    "boolean": ["true", "false"],
    "date": ["'2024-01-01'::date", "'0001-01-01'::date", "'9999-12-31'::date", "'10000-01-01'::date", "'infinity'::date", "'0044-03-15 (BC)'::date"],
    "timestamp": ["'2024-01-01'::timestamp", "'0001-01-01'::timestamp", "'infinity'::timestamp", "'290000-01-01'::timestamp"],
    "timestamp_s": ["'2024-01-01'::timestamp_s", "'20240-01-01'::timestamp_s"],
    "timestamp_ns": ["'2024-01-01'::timestamp_ns", "'2024-01-01 00:00:00.123456789'::timestamp_ns", "'2024-01-01 00:00:00.123456788'::timestamp_ns"],
    "timestamptz": ["'2024-01-01 00:00:00+00'::timestamptz", "'0001-01-01 00:00:00+14'::timestamptz", "'infinity'::timestamptz"],
    "time": ["'12:00:00'::time", "'24:00:00'::time", "'00:00:00'::time"],
    "timetz": ["'12:00:00+01'::timetz", "'12:00:00+00'::timetz"],
    "interval": ["interval '1 month'", "interval '31 days'", "interval '300000 years'"],
    "text": ["'a'", "'A'", "''", "' '", "'é'", "'e' || chr(769)", "chr(0)", "'nan'", "'NULL'", "'<b>'"],
    "nocase": ["'ann' collate nocase", "'bob' collate nocase"],
    "noaccent": ["'rene' collate noaccent", "'bob' collate noaccent"],
    "blob": ["'\\xAA'::blob", "'\\xAB\\x00'::blob", "''::blob"],
    "bit": ["'0101'::bit", "'101'::bit"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'::uuid", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"],
    "enum": ["'x'::enum('x', 'y', 'é')", "'é'::enum('x', 'y', 'é')"],
    "list": ["[1, null]", "[1, null, null]", "[]::int[]"],
    "struct": ["{'a': 1.5::double}", "{'a': null::double}"],
    "map": ["map {'a': 1}", "map {'a': 2}"],
    "json": ["'{\"a\": 1}'::json", "'[]'::json"],
    "variant": ["1::variant", "'a'::variant"],
}  # fmt: skip
"""Types and some of their values; the first is an ordinary one, and no two of a type are equal."""

SPELLINGS: dict[str, tuple[str, str]] = {
    "zero": ("0.0::double", "-0.0::double"),
    "float zero": ("0.0::float", "-0.0::float"),
    "nocase": ("'hiv' collate nocase", "'hIv' collate nocase"),
    "noaccent": ("'rene' collate noaccent", "'rené' collate noaccent"),
    "time zones": ("'2024-01-01 00:00:00+00'::timestamptz", "'2024-01-01 01:00:00+01'::timestamptz"),
    "decimals": ("1.0::decimal(9,2)", "1.00::decimal(9,2)"),
    "intervals": ("interval '1 month'", "interval '30 days'"),
    "zero in a struct": ("{'a': 0.0::double}", "{'a': -0.0::double}"),
    "zero in a list": ("[0.0::double]", "[-0.0::double]"),
}
"""Two ways to write what DuckDB holds for one key."""


@dataclass(frozen=True)
class Line:
    """Some equal rows: whose, in which group, which value, how many; as SQL."""

    user: str
    key: str
    value: str = "1.0::double"
    copies: int = 1


def select(lines: list[Line]) -> str:
    """The rows as a query; types come from the first line, also when the others are gone."""
    columns = (
        f"SELECT {line.user} AS u, {line.key} AS k, {line.value} AS v FROM range({line.copies})" for line in lines
    )
    return " UNION ALL ".join(columns)


def as_table(lines: list[Line]) -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS {select(lines)}")
    for column, literal in (("u", lines[-1].user), ("k", lines[-1].key)):
        _, collated, name = literal.partition(" collate ")
        if collated:  # CREATE TABLE AS forgets it
            connection.execute(f"ALTER TABLE t ALTER {column} SET DATA TYPE varchar COLLATE {name}")
    return ibis.duckdb.from_connection(connection).table("t")


def as_relation(lines: list[Line]) -> Any:
    return duckdb.connect().sql(select(lines))


def as_arrow(lines: list[Line]) -> Any:
    return duckdb.connect().sql(select(lines)).to_arrow_table()


SOURCES: dict[str, Callable[[list[Line]], Any]] = {"table": as_table, "relation": as_relation, "arrow": as_arrow}


def keys(lines: list[Line], source: str) -> int:
    """How many different keys the engine itself sees."""
    if source == "table":
        return int(as_table(lines).k.nunique().execute())
    given = SOURCES[source](lines)
    relation = given if source == "relation" else duckdb.connect().from_arrow(given)
    return int(relation.aggregate("count(DISTINCT k)").fetchall()[0][0])
