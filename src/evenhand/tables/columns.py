"""What is publicly known about columns, stated once: bounds, keys, units.

Facts come from the caller or from a TOML file, never from rows. They fill in what a question leaves out
(`statistics/stated.py`); whatever they say, bounds only decide where values are clamped.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.tables.expressions import ArrowTable
from evenhand.tables.grid import Bounds, OpenBounds, parse_open_bounds

_MOST_PUBLIC_KEYS = 1000
"""Of a column of a public table; with more, a release by all of them would mostly be noise."""

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.tables.table import Table


@dataclass(frozen=True)
class Column:
    """What is publicly known about a column.

    Args:
        bounds: (low, high) for one value; either may be None, or infinite, if it is not known. Questions about the column use them unless they are given others.
        keys: all values that may name a group; releases by this column need no ``keys=``.
        unit: of the values, such as ``"stars"``; shown beside released numbers.
        description: for people.
        type: of a column of CSV or JSON, which is text unless one says so: ``"int"``, ``"float"``, ``"bool"``, ``"date"``, ``"date %d/%m/%Y"``,
            ``"timestamp"`` or ``"text"``. A cell that can't be read as one is null.

    Guarantee: a statement must not be read off the rows. Bounds that are too narrow cost accuracy, never privacy: values outside
    are clamped. Rows with other keys are dropped.

    Example:
        >>> eh.read("ratings.parquet", user="userId", columns={"rating": eh.Column(bounds=(0.5, 5), unit="stars")})
    """

    bounds: OpenBounds | Sequence[float | None] | None = None
    keys: Sequence[Any] | None = None
    unit: str | None = None
    description: str | None = None
    type: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", None if self.bounds is None else parse_open_bounds(_open(self.bounds)))
        if self.keys is not None:
            if isinstance(self.keys, str | Mapping) or not isinstance(self.keys, Iterable):
                raise UsageError(f"keys={self.keys!r} of a column: expected a list, such as keys=['drama', 'comedy'].")
            object.__setattr__(self, "keys", tuple(self.keys))
            if not self.keys:
                raise UsageError("keys=[] of a column is empty; list its keys, or leave keys out.")
        for name in ("unit", "description"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(f"{name}={getattr(self, name)!r} of a column: expected text.")
        if self.type is not None:
            from evenhand.tables.declared_types import parse_type

            parse_type(self.type, "type= of a column")

    def cells(self) -> tuple[str, str, str]:
        """Unit, bounds and the number of keys, for people; empty where nothing is stated."""
        low, high = self.range
        ends = (
            ""
            if low is None and high is None
            else f"{'' if low is None else f'{low:,g}'} to {'' if high is None else f'{high:,g}'}"
        )
        return self.unit or "", ends.strip(), "" if self.keys is None else f"{len(self.keys):,}"

    @property
    def range(self) -> OpenBounds:
        """The bounds; None for an end that is not known."""
        return parse_open_bounds(self.bounds)


def _open(bounds: Iterable[float | None]) -> Iterable[float | None]:
    """TOML has no None: an infinite end is one that is not known."""
    pair = list(bounds) if isinstance(bounds, tuple | list) else bounds
    if isinstance(pair, list) and len(pair) == 2:
        return [None if end == unknown else end for end, unknown in zip(pair, (-math.inf, math.inf), strict=True)]
    return pair


def parse_columns(given: Mapping[str, object], where: str = "columns=") -> dict[str, Column]:
    """Read facts: `Column` objects, or mappings with the same fields."""
    expected = "expected eh.Column(bounds=(0.5, 5), unit='stars'), or a mapping with such fields"
    known = [field.name for field in fields(Column)]
    found = {}
    for name, facts in given.items():
        if isinstance(facts, Mapping):
            unknown = [key for key in facts if key not in known]
            if unknown:
                raise UsageError(
                    f"{where} states {unknown[0]!r} of the column {name!r}; expected one of {known}.{suggest(str(unknown[0]), known)}"
                )
            try:
                facts = Column(**{str(key): value for key, value in facts.items()})
            except UsageError as error:
                raise UsageError(f"{where}, column {name!r}: {error}") from None
        if not isinstance(facts, Column):
            raise UsageError(f"{where} holds {facts!r} for the column {name!r}; {expected}.")
        found[name] = facts
    return found


def read_columns(path: Path) -> dict[str, Column] | None:
    """The facts in a TOML file; None if it has no table ``columns``."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"the facts about columns in {str(path)!r} can't be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"the facts about columns in {str(path)!r} are not TOML: {error}.") from None
    stated = found.get("columns")
    if stated is None:
        return None
    if not isinstance(stated, Mapping):
        raise DataError(f"{str(path)!r}: expected a table for each column, such as [columns.rating].")
    return parse_columns(stated, str(path))


def columns_beside(table: Path) -> dict[str, Column]:
    """The facts in a file of the same name beside a table, ``ratings.toml`` for ``ratings.parquet``; none if there is no such file."""
    path = table.with_suffix(".toml") if table.name else table
    return (read_columns(path) or {}) if path.is_file() else {}


def schema_bounds(table: Table, column: str) -> Bounds | None:
    """Between which numbers the values of a column lie by its type, or by the expression that made it: truth values are 0 and 1."""
    if column in table.text or column not in table.columns:
        return None
    known = table.derived.get(column)
    return (0.0, 1.0) if table.expression.schema()[column].is_boolean() else None if known is None else known.bounds


def zero_or_one(table: Table, column: str, bounds: Bounds) -> bool:
    """Whether values are 0 or 1 once they are within their bounds, by the type of the column."""
    dtype = table.expression.schema()[column]
    return bounds == (0, 1) and column not in table.text and (dtype.is_boolean() or dtype.is_integer())


def keys_of(public: ArrowTable, names: Iterable[str]) -> dict[str, Column]:
    """Facts about columns of a public table: their values are known, so they are keys, if they are few and name groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    for name in names:
        kind, values = public[name].type, pc.drop_null(pc.unique(public[name]))
        named = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)
        if (named or pa.types.is_integer(kind) or pa.types.is_date(kind)) and 0 < len(values) <= _MOST_PUBLIC_KEYS:
            found[name] = Column(keys=sorted(values.to_pylist()))
    return found


def description(table: Table) -> pd.DataFrame:
    """What is known about each column of a table, from its schema and the facts stated with it: no row is read."""
    import pandas as pd

    rows = []
    for name, dtype in table.expression.schema().items():
        facts = table.facts.get(name, Column())
        role = "user" if name in table.user else "public" if name in table.public else ""
        rows.append(
            {
                "column": name,
                "type": "text" if name in table.text else str(dtype),
                "role": role,
                "bounds": "" if facts.bounds is None else _ends(facts.range),
                "keys": "" if facts.keys is None else _few(facts.keys),
                "unit": facts.unit or "",
                "description": facts.description or "",
            }
        )
    return pd.DataFrame(rows)


def template(table: Table, source: str) -> str:
    """A TOML file to fill in, made from the schema alone."""
    lines = [
        f"# What is publicly known about the columns of {' '.join(source.split())}.",
        "# Fill it in from documentation and common knowledge, never from the rows: what stands here is not private.",
        "# Values outside bounds are clamped; rows with other keys are left out of releases by that column.",
    ]
    for name, dtype in table.expression.schema().items():
        if name in table.user:
            continue
        text = name in table.text
        lines += ["", f"[columns.{_toml_key(name)}]  # {'text' if text else _one_line(str(dtype))}"]
        if text:
            lines.append('# type = "float"')
        if text or dtype.is_numeric():
            lines.append("# bounds = [0, 100]")
            lines.append('# unit = ""')
        if text or not dtype.is_floating():
            lines.append(f"# keys = {_example_keys(text, dtype)}")
        lines.append('# description = ""')
    return "\n".join(lines) + "\n"


def _example_keys(text: bool, dtype: Any) -> str:  # noqa: ANN401 - an Ibis type
    if not text and dtype.is_integer():
        return "[1, 2, 3]"
    if not text and dtype.is_boolean():
        return "[true, false]"
    return '["a", "b"]'


def _toml_key(name: str) -> str:
    # JSON escapes all that TOML wants escaped, except for the delete character.
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name).replace("\x7f", "\\u007f")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ends(bounds: OpenBounds) -> str:
    low, high = bounds
    if low is None or high is None:
        return "" if low is high else f"at least {low:g}" if high is None else f"at most {high:g}"
    return f"{low:g} to {high:g}"


def _few(keys: Sequence[object]) -> str:
    shown = ", ".join(str(key) for key in keys[:5])
    return f"{shown}, ... ({len(keys):,})" if len(keys) > 5 else shown
