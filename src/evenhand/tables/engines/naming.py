"""Which table of a database is meant. What a database's tables are called is public, as its schema is."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.guarantee import DataError, UsageError, suggest


def choose_table(found: Iterable[tuple[str, str, bool]], wanted: str | None, where: str) -> tuple[str, str]:
    """The schema and the name of the table that ``sales`` or ``schema.sales`` means.

    Args:
        found: schema, name, and whether the schema is where plain names are looked up.
        wanted: as the caller says it.
        where: the database in words.
    """
    names = {(name if usual else f"{schema}.{name}"): (schema, name) for schema, name, usual in found}
    known = sorted(names)
    if wanted is None:
        raise UsageError(f"table= is missing: which table of {where}? It holds {_few(known)}.")
    if not isinstance(wanted, str):
        raise UsageError(f"table={wanted!r} is not the name of a table; {where} holds {_few(known)}.")
    if wanted in names:
        return names[wanted]
    full = {f"{schema}.{name}": (schema, name) for schema, name in names.values()}
    if wanted in full:
        return full[wanted]
    raise DataError(f"there is no table {wanted!r} in {where}; it holds {_few(known)}.{suggest(wanted, known)}")


def _few(names: list[str]) -> str:
    if not names:
        return "no tables"
    return f"{names[:20]}{f' and {len(names) - 20:,} more' if len(names) > 20 else ''}"
