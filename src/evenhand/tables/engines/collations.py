"""Which columns of text take different spellings for one: by a collation, or by a type of their own such as citext.

Only schemas are looked at: the statements here name the source, and read no row of it. What they find is public, like names and types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Query = Callable[[str], list[tuple[Any, ...]]]

PAIRS = (("a", "A"), ("e", "é"), ("é", "e\u0301"))
"""Of each, one at least is equal under every collation of DuckDB that takes any different texts for equal."""

_TEXT_TYPES = ("text", "varchar", "bpchar", "name", "char")


def quoted(name: str) -> str:
    """A column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def folded_in_duckdb(sql: str, names: Sequence[str], query: Query) -> frozenset[str]:
    """Those of the columns of text whose comparisons take different texts for equal: DuckDB shows no collation, so it is asked to compare."""
    if not names:
        return frozenset()

    def folds(name: str) -> str:
        column = f"t.{quoted(name)}"
        return " OR ".join(f"coalesce({column}, '{one}') = coalesce({column}, '{other}')" for one, other in PAIRS)

    (found,) = query(f"SELECT {', '.join(map(folds, names))} FROM {_nothing(sql)}")
    return frozenset(name for name, yes in zip(names, found, strict=True) if yes)


def folded_in_postgres(sql: str, names: Sequence[str], query: Query) -> frozenset[str]:
    """Those of the columns of text whose type or collation may take different texts for equal, by the catalog."""
    if not names:
        return frozenset()
    (oids,) = query(
        f"SELECT {', '.join(f'pg_typeof(t.{quoted(name)})::oid::bigint' for name in names)} FROM {_nothing(sql)}"
    )
    base = (
        "WITH RECURSIVE below AS (SELECT oid AS given, oid, typtype, typbasetype FROM pg_type WHERE oid = ANY (ARRAY[{oids}]::oid[]) UNION ALL "
        "SELECT given, t.oid, t.typtype, t.typbasetype FROM below JOIN pg_type t ON t.oid = below.typbasetype WHERE below.typtype = 'd') "
        "SELECT given::bigint, t.typname::text, t.typnamespace = 'pg_catalog'::regnamespace, t.typcollation <> 0, t.typtype = 'e' "
        "FROM below JOIN pg_type t USING (oid) WHERE below.typtype <> 'd'"
    )
    types = {given: rest for given, *rest in query(base.format(oids=", ".join(map(str, set(oids)))))}
    found, collated = set(), []
    for name, oid in zip(names, oids, strict=True):
        kind, builtin, has_collation, enumeration = types[oid]
        if builtin and kind in _TEXT_TYPES:
            collated += [name] if has_collation else []
        elif not builtin and not enumeration:  # its equality is its own
            found.add(name)
    if collated:
        asked = ", ".join(f"to_regcollation(pg_collation_for(t.{quoted(name)}))::oid::bigint" for name in collated)
        (collations,) = query(f"SELECT {asked} FROM {_nothing(sql)}")
        plain = {oid for (oid,) in query("SELECT oid::bigint FROM pg_collation WHERE collisdeterministic")}
        found |= {name for name, oid in zip(collated, collations, strict=True) if oid not in plain}
    return frozenset(found)


def _nothing(sql: str) -> str:
    """One row of nulls with the columns of a query, of which no row is read."""
    return f"(SELECT 1) AS o LEFT JOIN (SELECT * FROM ({sql}) AS s WHERE false) AS t ON true"
