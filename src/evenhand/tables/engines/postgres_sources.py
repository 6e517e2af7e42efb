"""Which Postgres queries give the same rows each time, told from their text and from that of the views they name.

(A query plan would not do: plans are made out of statistics, and so out of rows.)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

from evenhand.guarantee import DataError, UsageError
from evenhand.tables.engines.stable import unstable
from evenhand.tables.expressions import Backend

Query = Callable[[str], list[tuple[Any, ...]]]

_TEXT = re.compile(r"'(?:[^']|'')*'")
_NAME = re.compile(r'"(?:[^"]|"")*"')
_SIGNS = {
    "a random sample": re.compile(r"\bTABLESAMPLE\b", re.IGNORECASE),
    "a limited number of rows": re.compile(r"\b(LIMIT|OFFSET|FETCH\s+(FIRST|NEXT))\b", re.IGNORECASE),
    "the current time": re.compile(
        r"\b(CURRENT_(DATE|TIME|TIMESTAMP)|LOCALTIME(STAMP)?|(now|transaction_timestamp|statement_timestamp)\s*\()",
        re.IGNORECASE,
    ),
    "the order in which rows happen to be read": re.compile(
        r"\b(row_number|ntile|lag|lead|first_value|last_value|nth_value|array_agg|string_agg|(json|jsonb|xml)_?agg|mode)\s*\("
        r"|\bctid\b|\bDISTINCT\s+ON\b|\bROWS\s+BETWEEN\b",
        re.IGNORECASE,
    ),
}
_CALLED = re.compile(r"([A-Za-z_]\w*)\"?\s*\(")

TABLES = (
    "SELECT n.nspname, c.relname, pg_table_is_visible(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'"
)
"""Schema, name, and whether the name alone means it."""


_open: WeakValueDictionary[bytes, Backend] = WeakValueDictionary()
"""By the hash of the URL, which may hold a password. Tables of one database share a connection, so that they can be joined."""


def connected(url: str) -> Backend:
    """A connection to the database of a URL. Errors never show the URL: it may hold a password."""
    place = hashlib.sha256(url.encode()).digest()
    try:
        import ibis
        import psycopg  # noqa: F401 - what Ibis needs

        backend = _open.get(place)
        if backend is None or backend.con.closed:
            backend = _open[place] = ibis.connect(url.replace("postgresql://", "postgres://", 1))
        return backend
    except ModuleNotFoundError:
        raise UsageError(
            "reading from Postgres needs the driver psycopg, which is not installed. Install it with: pip install 'evenhand[postgres]'"
        ) from None
    except Exception as error:
        kind = type(error).__name__
    raise DataError(
        f"the Postgres database can't be opened ({kind}): expected a URL such as postgresql://user@host:5432/database of a server "
        "that runs and lets this user in. A password may stand in PGPASSWORD or ~/.pgpass."
    )


def refuse_unstable_sql(sql: str, query: Query) -> None:
    """Refuse a query that is not about one snapshot of ordinary tables, or whose rows are not determined by it."""
    for text in _texts(sql, query, set()):
        bare = _TEXT.sub("''", text)
        for reason, sign in _SIGNS.items():
            if sign.search(_NAME.sub("name", bare)):
                raise unstable(reason)
        names = ", ".join(f"'{name.lower()}'" for name in {*_CALLED.findall(bare)}) or "''"
        volatile = query(f"SELECT proname FROM pg_proc WHERE provolatile = 'v' AND lower(proname) IN ({names})")
        if volatile:
            raise unstable(f"{volatile[0][0]}(), which gives another value each time")


def _texts(sql: str, query: Query, seen: set[int]) -> Iterator[str]:
    """The query and the definitions of all views below it; refuses foreign tables on the way."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, dialect="postgres")
    except sqlglot.errors.SqlglotError:
        raise unstable("a statement that can't be checked") from None
    yield sql
    named = {common.alias for common in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or (table.name in named and not table.db):
            continue
        path = ".".join('"' + part.name.replace('"', '""') + '"' for part in table.parts[-2:])
        found = query(
            "SELECT oid::bigint, relkind::text, CASE WHEN relkind = 'v' THEN pg_get_viewdef(oid) END FROM pg_class "
            f"WHERE oid = to_regclass('{path.replace(chr(39), chr(39) * 2)}')"
        )
        for oid, kind, definition in found:
            if oid in seen:
                continue
            seen.add(oid)
            if kind == "f" or _has_foreign_part(oid, query):
                raise unstable(f"the foreign table {table.name!r}, which is not part of the statement's snapshot")
            if definition:
                yield from _texts(definition.rstrip("; \n"), query, seen)


def _has_foreign_part(oid: int, query: Query) -> bool:
    """Whether a foreign table is among the partitions or children."""
    below = (
        "WITH RECURSIVE below AS (SELECT inhrelid FROM pg_inherits "
        f"WHERE inhparent = {oid} UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.inhrelid) "
        "SELECT 1 FROM below JOIN pg_class ON pg_class.oid = below.inhrelid WHERE relkind = 'f'"
    )
    return bool(query(below))
