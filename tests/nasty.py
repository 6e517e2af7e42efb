"""Random small tables with everything that real ones hold, and their neighbours."""

from __future__ import annotations

import datetime
import functools
import math
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

import evenhand as eh

LOW, HIGH = -2.5, 7.0
"""The bounds that neighbour tests ask with: not symmetric, and not whole."""

KEYS = ("a", "b", "")
"""The group keys that neighbour tests ask with; tables hold others too."""

_USERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
    "text": (pa.string(), ["", " ", "nan", "NULL", "a", "A", "é", "e\u0301", "'; --", "\u0000"]),
    "floats": (pa.float64(), [0.0, 1.5, -math.inf, 5e-324, 1e300]),
    "dates": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]),
    "uuids": (pa.uuid(), [uuid.UUID(int=number).bytes for number in (0, 1, 2**128 - 1)]),
    "pairs": (pa.string(), [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "")]),
}  # fmt: skip

VALUES: list[float | None] = [
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e308, -1e308, LOW, HIGH, 2.25, LOW - 1e-12, HIGH + 1e-12,
    1 / 3, 2.0**53 + 2,
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row: whose, in which group, which value."""

    user: Any
    group: str | None
    value: float | None


@dataclass(frozen=True)
class Rows:
    """A table as Python rows.

    Args:
        kind: the type of user ids, a key of ``_USERS``.
        rows: in order.
    """

    kind: str
    rows: tuple[Row, ...]

    @functools.cached_property
    def arrow(self) -> pa.Table:
        """The rows as an Arrow table with columns u (and w, for pairs), g, v, and x, another value that hangs on v."""
        columns: dict[str, pa.Array] = {}
        user_type = _USERS[self.kind][0]
        if self.kind == "pairs":
            for index, name in enumerate("uw"):
                columns[name] = pa.array([row.user and row.user[index] for row in self.rows], user_type)
        else:
            columns["u"] = pa.array([row.user for row in self.rows], user_type)
        columns["g"] = pa.array([row.group for row in self.rows], pa.string())
        columns["v"] = pa.array([row.value for row in self.rows], pa.float64())
        columns["x"] = pa.array([None if row.value == LOW else -(row.value or 1) for row in self.rows], pa.float64())
        return pa.table(columns)

    def read(self, relation: str, folder: Path | None = None, engine: str = "duckdb") -> eh.Table:
        """Open the table; through a Parquet file if there is a folder, because files carry statistics that engines use."""
        source: Any = self.arrow
        if folder is not None:
            source = folder / f"{uuid.uuid4().hex}.parquet"
            pq.write_table(self.arrow, source)
        user = ["u", "w"] if self.kind == "pairs" else "u"
        public = ["g"] if relation == "values" else []
        return eh.read(source, user=user, protects=relation, public=public, engine=engine)

    def without(self, user: Any) -> Rows:
        """The neighbour under presence."""
        return replace(self, rows=tuple(row for row in self.rows if row.user != user))

    def altered(self, user: Any, values: Sequence[float | None]) -> Rows:
        """The neighbour under values: this user's values replaced, in order."""
        fresh = iter(values)
        return replace(
            self, rows=tuple(replace(row, value=next(fresh)) if row.user == user else row for row in self.rows)
        )

    def steady(self, except_user: Any) -> Rows:
        """All rows of each other user made alike: which of them are drawn no longer matters."""
        first: dict[Any, Row] = {}
        return replace(
            self,
            rows=tuple(row if row.user == except_user else first.setdefault(row.user, row) for row in self.rows),
        )


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables."""

    first: Rows
    second: Rows


values = st.one_of(st.sampled_from(VALUES), st.floats(LOW, HIGH, allow_nan=False))
groups = st.sampled_from([*KEYS, "c", None])


@st.composite
def pairs(draw: st.DrawFn, relation: str, steady: bool) -> Pair:
    """Neighbouring tables: some light users, perhaps a giant one, and rows of nobody; the changed user may be any of them."""
    kind = draw(st.sampled_from(sorted(_USERS)))
    pool = _USERS[kind][1]
    users = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=5, unique=True))
    rows = [
        Row(user, draw(groups), draw(values))
        for user in [*users, None]
        for _ in range(draw(st.integers(0 if user is None else 1, 4)))
    ]
    if draw(st.booleans()):
        giant, size = draw(st.sampled_from(users)), draw(st.sampled_from([30, 500]))
        spread = draw(st.lists(st.tuples(groups, values), min_size=1, max_size=4))
        rows += [Row(giant, *spread[index % len(spread)]) for index in range(size)]
    changed = draw(st.sampled_from(users))
    table = Rows(kind, tuple(draw(st.permutations(rows)) if len(rows) < 20 else rows))
    if steady:
        table = table.steady(changed)
    if relation == "presence":
        neighbour = table.without(changed)
    else:
        own = sum(row.user == changed for row in table.rows)
        fresh = draw(st.lists(values, min_size=1, max_size=4))
        neighbour = table.altered(changed, [fresh[index % len(fresh)] for index in range(own)])
    return Pair(table, neighbour) if draw(st.booleans()) else Pair(neighbour, table)


@functools.cache
def extreme_pairs(relation: str) -> tuple[Pair, ...]:
    """Pairs in which one user does as much as a user can, among a few others: they show that a bound is attained."""
    return tuple(_extreme_pairs(relation))


def _extreme_pairs(relation: str) -> Iterator[Pair]:
    others = [Row("other", "a", 1.0), Row("other", "b", 3.0), Row("else", "c", LOW)]
    for size in (3000, 40, 2, 1):
        for value in (HIGH, LOW):
            for spread in (("a",), ("a", "b", "")):
                own = [Row("giant", spread[index % len(spread)], value) for index in range(size)]
                table = Rows("text", (*others, *own))
                opposite = LOW if value == HIGH else HIGH
                neighbour = (
                    table.without("giant") if relation == "presence" else table.altered("giant", [opposite] * size)
                )
                yield Pair(table, neighbour)
