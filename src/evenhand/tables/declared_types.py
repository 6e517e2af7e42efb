"""Types of columns that were read as text: declared, or those of a public sample, never looked up in the rows.

A cell that can't be read as its column's type is null, by the rules of casts in views (`views/casts.py`), which are the same on every engine. So one
cell decides its own value and nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from evenhand.guarantee import DataError, UsageError, suggest, told
from evenhand.tables.expressions import Column, DataType
from evenhand.tables.public import PublicTable, read_public

if TYPE_CHECKING:
    from evenhand.tables.table import Table

Types: TypeAlias = Mapping[str, str] | PublicTable | str | Path | None
"""What ``types=`` may be: types by column, or a public sample of the table."""

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_ISO = {"Y": 4, "m": 2, "d": 2}
KINDS: dict[str, Callable[[Column], Column]] = {
    "text": lambda text: text,
    "int": lambda text: text.cast("int64"),
    "float": lambda text: text.cast("float64"),
    "bool": lambda text: _truth(text),
    "date": lambda text: text.cast("date"),
    "timestamp": lambda text: text.cast("timestamp"),
}
"""How text is read, by the name of the type."""


def parse_types(given: Types, sources: Sequence[str] = ()) -> dict[str, str]:
    """Read ``types=``: a mapping, or a public sample, which must not be one of the private files."""
    if given is None:
        return {}
    if isinstance(given, str | Path):
        path = Path(given).expanduser()
        if any(os.path.exists(source) and path.exists() and os.path.samefile(source, path) for source in sources):
            raise UsageError(
                f"types={str(given)!r} is the table itself: types that are read off private rows would show them. Expected a public sample with the "
                "same columns, or types by name: types={'day': 'date', 'amount': 'float'}."
            )
        given = read_public(path)
    if isinstance(given, PublicTable):
        return {name: _kind_of(given, name) for name in given.columns}
    if not isinstance(given, Mapping):
        raise UsageError(
            f"types={told(given)}: expected a type for each column, such as types={{'day': 'date', 'amount': 'float'}}, or the path of a public sample."
        )
    return {str(name): parse_type(kind, f"types=, column {name!r}") for name, kind in given.items()}


def parse_type(given: object, where: str) -> str:
    """A type's name, or that of a date with its pattern: ``date %d/%m/%Y``."""
    name, _, pattern = str(given).partition(" ")
    if not isinstance(given, str) or name not in KINDS or (pattern and name != "date"):
        raise UsageError(
            f"{where}: {told(given)} is no type; expected one of {', '.join(KINDS)}, or a date with its pattern, such as 'date %d/%m/%Y'."
            f"{suggest(name, list(KINDS))}"
        )
    if pattern:
        _parts(pattern)
    return given


def with_types(table: Table, given: Mapping[str, str], sampled: bool = False) -> Table:
    """The table with the types that were declared for its columns; ``sampled`` says that they come from a sample, which may have other columns."""
    stated = {name: known.type for name, known in table.facts.items() if known.type is not None}
    wanted = {**given, **stated}
    for name in wanted:
        if name not in table.columns and not (sampled and name not in stated):
            raise DataError(
                f"types=: there is no column {name!r} in the table; its columns are {list(table.columns)}.{suggest(name, table.columns)}"
            )
    made = {name: kind for name, kind in wanted.items() if name in table.text and kind != "text"}
    for name, kind in wanted.items():
        if name in table.columns and name not in table.text and not _is(table.expression.schema()[name], kind):
            raise UsageError(
                f"the column {name!r} holds {table.expression.schema()[name]} by its schema, and {kind!r} was declared; leave the type out, or derive "
                f"another column: table.derive(n=eh._.{name}.cast('float64'))."
            )
    for name in table.user:
        if made.get(name, "int") != "int":
            raise UsageError(
                f"the user column {name!r} can't be read as {made[name]!r}: ids are compared as they are spelled. Expected 'text' or 'int'."
            )
    return _typed(table, made) if made else table


def _typed(table: Table, kinds: Mapping[str, str]) -> Table:
    from evenhand.tables.views.guard import Guard
    from evenhand.tables.views.rows import typed, viewed

    guard = Guard(table.engine, table.expression, {})
    made = {name: guard.checked(_reader(kind)(table.expression[name])) for name, kind in kinds.items()}
    rows = table.expression.mutate(**{name: typed(operand) for name, operand in made.items()})
    derived = {**table.derived, **{name: operand.range for name, operand in made.items()}}
    declared = table.declared
    found = viewed(table, rows, {"text": table.text - set(made), "derived": derived})
    return replace(found, declared=declared)


def _reader(kind: str) -> Callable[[Column], Column]:
    name, _, pattern = kind.partition(" ")
    return (lambda text: _dated(text, pattern)) if pattern else KINDS[name]


def _truth(text: Column) -> Column:
    import ibis

    word = text.strip().lower()
    return ibis.cases((word.isin(_TRUE), True), (word.isin(_FALSE), False), else_=ibis.null("boolean"))


def _parts(pattern: str) -> tuple[list[str], str]:
    """The order of year, month and day in a pattern, and what separates them."""
    found = re.fullmatch(r"%([Ymd])([^%\w])%([Ymd])\2%([Ymd])", pattern)
    if found is None or len({found[1], found[3], found[4]}) < 3:
        raise UsageError(
            f"the pattern {pattern!r} of a date is not known; expected %Y, %m and %d in any order with one sign between them, such as %d/%m/%Y."
        )
    return [found[1], found[3], found[4]], found[2]


def _dated(text: Column, pattern: str) -> Column:
    """A date in another order, put into that of 2026-11-30 and read as such; days and months may have one digit."""
    import ibis

    from evenhand.tables.views.sql_words import joined

    order, separator = _parts(pattern)
    pieces = text.strip().split(separator)
    digits = {letter: pieces[order.index(letter)] for letter in _ISO}
    filled = {
        letter: (value.length() == 1).ifelse(joined([ibis.literal("0"), value]), value)
        for letter, value in digits.items()
    }
    filled["Y"] = digits["Y"]
    dashed = joined([filled["Y"], ibis.literal("-"), filled["m"], ibis.literal("-"), filled["d"]])
    return (pieces[3] == "").ifelse(dashed, ibis.null("string")).cast("date")


def _kind_of(sample: PublicTable, name: str) -> str:
    import pyarrow as pa

    kind = sample.rows.schema.field(name).type
    for found, is_kind in (
        ("bool", pa.types.is_boolean),
        ("int", pa.types.is_integer),
        ("float", lambda each: pa.types.is_floating(each) or pa.types.is_decimal(each)),
        ("date", pa.types.is_date),
        ("timestamp", pa.types.is_timestamp),
    ):
        if is_kind(kind):
            return found
    return "text"


def _is(dtype: DataType, kind: str) -> bool:
    """Whether a column has a declared type by its schema already."""
    checks = {
        **{"text": dtype.is_string, "int": dtype.is_integer, "bool": dtype.is_boolean, "date": dtype.is_date},
        **{"timestamp": dtype.is_timestamp, "float": lambda: dtype.is_numeric() and not dtype.is_boolean()},
    }
    return bool(checks[kind.partition(" ")[0]]())
