"""Neighbouring tables that have broken mechanisms before: where one user does the most that a user can do.

Rows have a user ``u``, a group ``g`` and a value ``v`` in [−1, 1], and once more as ``w``. Under presence the user is there or not; under values the
same rows hold other values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evenhand.audit.mechanism import Pair
from evenhand.guarantee import Relation
from evenhand.tables import Table, read

LOW, HIGH = -1.0, 1.0
GROUPS = ("a", "b", "c")
"""Groups that a question may name; tables hold others too."""

Row = tuple[str | None, str | None, float | None]

_CROWD: dict[str, list[Row]] = {
    "nobody else": [],
    "equal users": [(f"user {user}", "a", 0.0) for user in range(6) for _ in range(3)],
    "mixed users": [(f"user {user}", GROUPS[user % 3], user / 8) for user in range(8) for _ in range(1 + user % 4)],
}

_GIANT = 400
_LONELY = tuple(f"only {number}" for number in range(8))


@dataclass(frozen=True)
class Extreme:
    """What one user does: rows in some groups, all with one value, and the values they turn into under values.

    A ``quick`` audit tries it under these relations, where it breaks most broken things.
    """

    name: str
    rows: int
    groups: tuple[str | None, ...]
    value: float
    turned: tuple[float, ...]
    user: str = "the one"
    quick: tuple[Relation, ...] = ()

    def table(self, turned: bool = False) -> list[Row]:
        """The user's rows, as they are or with other values."""
        values = self.turned if turned else (self.value,)
        return [(self.user, self.groups[row % len(self.groups)], values[row % len(values)]) for row in range(self.rows)]


_PRESENCE, _VALUES = (Relation.PRESENCE,), (Relation.VALUES,)
_EXTREMES = (
    Extreme("a giant at the top", _GIANT, ("a",), HIGH, (LOW,), quick=_PRESENCE + _VALUES),
    Extreme("a giant at the bottom", _GIANT, ("b",), LOW, (HIGH,), quick=_PRESENCE),
    Extreme("a giant in all groups", _GIANT, GROUPS, HIGH, (LOW,), quick=_PRESENCE + _VALUES),
    Extreme("one row", 1, ("a",), HIGH, (LOW,)),
    Extreme("a user alone in eight groups", 8, _LONELY, HIGH, (LOW,), quick=_PRESENCE),
    Extreme("a user beyond the bounds", 30, ("a",), math.inf, (-math.inf,)),
    Extreme("a user without numbers", 30, ("a",), math.nan, (HIGH,)),
    Extreme("a user who sorts first", 1, ("a",), HIGH, (LOW,), user=""),
    Extreme("a giant who turns to the middle", _GIANT, ("a",), HIGH, (0.0,), quick=_VALUES),
    Extreme("a giant who spreads out", _GIANT, ("a",), HIGH, (-0.9, -0.3, 0.3, 0.9), quick=_VALUES),
    Extreme("a giant without groups", _GIANT, (None,), HIGH, (LOW,)),
)


def neighbours(relation: Relation, quick: bool = False) -> Iterator[Pair]:
    """Pairs of opened tables under a relation; with ``quick`` only those that break most broken things."""
    crowds = {name: _CROWD[name] for name in (("mixed users",) if quick else _CROWD)}
    extremes = [extreme for extreme in _EXTREMES if not quick or relation in extreme.quick]
    for crowd, others in crowds.items():
        for extreme in extremes:
            one = [*extreme.table(), *others]
            other = others if relation is Relation.PRESENCE else [*extreme.table(turned=True), *others]
            yield Pair(f"{extreme.name}, {crowd}", opened(one, relation), opened(other, relation))


def opened(rows: list[Row], relation: Relation) -> Table:
    """Rows as a table in memory; the groups are public where values are protected."""
    import pyarrow as pa

    types: dict[str, Any] = {"u": pa.string(), "g": pa.string(), "v": pa.float64()}
    columns = {name: pa.array([row[index] for row in rows], types[name]) for index, name in enumerate(types)}
    columns["w"] = columns["v"]
    public = ("g",) if relation.counts_are_public else ()
    return read(pa.table(columns), "u", protects=relation, public=public)
