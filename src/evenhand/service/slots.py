"""How long a question may take: its slot, from what it asks for and from the declared size of its table, before anything is read.

A slot is a limit: whatever takes longer is stopped. So the figures below are about four times what was measured on two cores
(``python -m benchmarks.service`` measures; a keeper with a slower machine sets ``slowness`` in keeper.toml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MILLION = 1_000_000
DECLARED_ROWS = MILLION
"""Of a table whose keeper declared no size."""

_ANSWER = 0.008
"""Seconds to draw, to write down an answer, and to put things away."""
_READ = {"count": 0.3, "users": 0.3, "profile": 0.3, "mean": 0.7, "per_user_mean": 0.7}
_READ_OTHER = 1.5
"""Seconds for a million rows, by statistic: one reading, sums per user, and what a bound is chosen from."""
_HIDDEN = 2.0
"""Seconds for a million rows to form pairs of user and hidden name; for names of several columns, of which there may be many more, times their square."""
_KEY = 0.0005
"""Seconds for a public group and a number about it; a quantile is a search of its own in each group."""
_SEARCHED = 0.02
_SQL = 0.5
"""Seconds for a million rows, of conditions and expressions in SQL."""
_FIT = 2.0
"""Seconds for a model, whatever its size."""
_FIT_READ = 6.0
"""Seconds for a million rows that are read into memory and put in order, once a setting."""
_STEP = 0.015
"""Seconds for one step of a descent over a million rows, and a feature."""
_USUAL_STEPS = 100
_USUAL_FEATURES = range(20)  # where all columns are features

_OF_USERS = ("count", "users")
"""Statistics that need no more than how many rows each user has, which is read when the server starts and held (`Workers.warm`)."""
_HELD = 0.05
"""Of the seconds for a reading: what it takes to read that instead, five times what was measured for a million users with one row each (3 ms).
Declared rows, not users: a user has a row at least."""


@dataclass
class Slots:
    """Slots of questions about the tables of a keeper.

    Args:
        rows: what each table is declared to hold at most, by name.
        slowness: how many times slower the machine is than the one that was measured on.
        part_rows: what the parts of each table are declared to hold at most, together; a question in SQL may join them.
        held: tables of which the worker for short questions holds how many rows each user has, as long as the server runs.
    """

    rows: Mapping[str, int]
    slowness: float = 1.0
    held: set[str] = field(default_factory=set)
    part_rows: Mapping[str, int] = field(default_factory=dict)

    def of_fit(self, table: str, query: Mapping[str, Any], question: Mapping[str, Any]) -> float:
        """Seconds for a model: what the ledger notes of it, and the question itself, which names the estimator of a search."""
        inner, settings = question.get("of", question), query.get("settings", [{}])
        steps = max(_number(one.get("steps", inner.get("steps", _USUAL_STEPS))) for one in settings)
        levels = sum(map(len, (inner.get("categories") or {}).get("mapping", {}).values()))
        features = len(query.get("features") or inner.get("features") or _USUAL_FEATURES) + levels
        fits = len(settings) * (2 if "settings" in query else 1)  # a search fits, judges, and fits the best
        each = _FIT + self._millions(table) * (_FIT_READ + _STEP * steps * (features + 1))
        return self.slowness * fits * each

    def of(self, table: str, query: Mapping[str, Any], *, held: bool = False) -> float:
        """Seconds for a question, from its public parameters as the ledger notes them; ``held`` says that its worker holds what it reads."""
        millions = self._millions(table)
        if "sql" in query:
            millions += self.part_rows.get(table, 0) / MILLION
        parts = _parts(query)
        reading = millions * sum(_READ.get(str(part["statistic"]), _READ_OTHER) for part in parts)
        if "sql" in query:
            reading += millions * _SQL
        by, keys = query.get("by") or (), query.get("keys")
        if (by and not isinstance(keys, int)) or any(part["statistic"] in ("top", "distinct") for part in parts):
            reading += millions * _HIDDEN * max(1, len(by)) ** 2 * len(parts)
        elif held:
            reading *= _HELD
        groups = keys if isinstance(keys, int) else 1
        cells = sum(groups * (_SEARCHED * _searches(part) if _searches(part) else _KEY) for part in parts)
        return self.slowness * (_ANSWER + reading + cells)

    def reads_held(self, table: str, query: Mapping[str, Any]) -> bool:
        """Whether a question reads nothing but how many rows each user has, where that is held."""
        how = query.get("bounding")
        draws = isinstance(how, Mapping) and how.get("strategy") == "RowLimit"
        plain = not query.get("by") and "sql" not in query and "parts" not in query
        return table in self.held and plain and not draws and query.get("statistic") in _OF_USERS

    def _millions(self, table: str) -> float:
        return self.rows.get(table, DECLARED_ROWS) / MILLION


def _parts(query: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    parts = query.get("parts")
    return list(parts.values()) if isinstance(parts, Mapping) else [query]


def _searches(part: Mapping[str, Any]) -> int:
    """How many quantiles a part of a question looks for."""
    if part["statistic"] in ("quantiles", "median"):
        found = part.get("quantiles")
        return len(found) if isinstance(found, list | tuple) else 1
    return 0


def _number(given: object) -> int:
    """A number of steps as a search notes it: as text, or as a number."""
    try:
        return int(str(given))
    except ValueError:
        return _USUAL_STEPS
