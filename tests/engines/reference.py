"""What the engines must compute, in plain Python: one user's rows and their sum on the grid."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import evenhand as eh
from evenhand.tables import Grid
from evenhand.tables.summaries import per_user

BOUNDS = (-2.5, 7.0)
GRID = Grid.about(BOUNDS, origin=0.0)

Summary = list[tuple[int, int]]
"""For each user, the number of rows and the sum of grid integers above the bottom; sorted."""


def expected(rows: Iterable[tuple[Any, Any]], relation: str, grid: Grid = GRID) -> Summary:
    """Apply the rules of the house to (user, value) rows."""
    counts: dict[Any, int] = defaultdict(int)
    above: dict[Any, int] = defaultdict(int)
    for user, value in rows:
        if _missing(user):
            continue
        if _missing(value):
            if relation == "presence":
                continue
            value = (grid.low + grid.high) / 2
        clamped = min(max(float(value), grid.low), grid.high)
        counts[user] += 1
        above[user] += grid.steps_above(clamped)
    return sorted((counts[user], above[user]) for user in counts)


def found(table: eh.Table, column: str = "v", grid: Grid = GRID) -> Summary:
    """The same from the engine."""
    rows = table.engine.fetch(per_user(table, [(column, grid)])).reveal().to_pylist()
    return sorted((int(row["rows"]), int(row["above_0"])) for row in rows)


def from_text(text: str | None) -> float | None:
    """The one rule for numbers in CSV and JSON."""
    plain = (text or "").strip(" \t\n\r\v\f").lower()
    if re.fullmatch(r"[+-]?(inf|infinity)", plain):
        return -math.inf if plain.startswith("-") else math.inf
    if len(plain) > 2000:
        return None
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", plain):
        return float(plain)
    return None


def _missing(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_missing(part) for part in value)
    return value is None or (isinstance(value, float | Decimal) and math.isnan(value))
