"""How long a question may take: its slot, from what it asks for and from the declared size of its table, before anything is read.

A slot is a limit: whatever takes longer is stopped. So the figures below are about four times what was measured on two cores
(``python -m benchmarks.service`` measures; a keeper with a slower machine sets ``slowness`` in keeper.toml).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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

SHAPES = 16
"""Questions whose per-user summaries are remembered here: half of what the engine keeps (`copied.SUMMARIES`), since one may need two."""
AGAIN = 600.0
"""Seconds after which a reading is given up: one that failed has left nothing to be found. After half of them one question has its whole slot again."""
_KEPT = ("count", "users")
"""Statistics whose reading is kept by the engine: asked again, they read a summary of their users."""
_SUMMARY = 0.02
"""Of the seconds for a reading: what is left when its summary is there. Declared rows, not users: a user has a row at least."""


@dataclass(frozen=True)
class Kept:
    """A reading that a worker's engine keeps.

    Args:
        worker: its name.
        since: from when on it is surely there, by the clock of the schedule.
        renewed: from when on questions have their whole slot, until one of them was paid for.
        until: when it is given up, if none was.
        slot: what a question has that finds it.
    """

    worker: str
    since: float
    renewed: float
    until: float
    slot: float


@dataclass
class Slots:
    """Slots of questions about the tables of a keeper.

    Args:
        rows: what each table is declared to hold at most, by name.
        slowness: how many times slower the machine is than the one that was measured on.
    """

    rows: Mapping[str, int]
    slowness: float = 1.0
    _shapes: OrderedDict[str, Kept] = field(default_factory=OrderedDict)

    def of_fit(self, table: str, query: Mapping[str, Any], question: Mapping[str, Any]) -> float:
        """Seconds for a model: what the ledger notes of it, and the question itself, which names the estimator of a search."""
        inner, settings = question.get("of", question), query.get("settings", [{}])
        steps = max(_number(one.get("steps", inner.get("steps", _USUAL_STEPS))) for one in settings)
        levels = sum(map(len, (inner.get("categories") or {}).get("mapping", {}).values()))
        features = len(query.get("features") or inner.get("features") or _USUAL_FEATURES) + levels
        fits = len(settings) * (2 if "settings" in query else 1)  # a search fits, judges, and fits the best
        each = _FIT + self._millions(table) * (_FIT_READ + _STEP * steps * (features + 1))
        return self.slowness * fits * each

    def of(self, table: str, query: Mapping[str, Any], *, again: bool = False) -> float:
        """Seconds for a question, from its public parameters as the ledger notes them; ``again`` says that its reading is kept."""
        millions = self._millions(table)
        parts = _parts(query)
        reading = millions * sum(_READ.get(str(part["statistic"]), _READ_OTHER) for part in parts)
        if "sql" in query:
            reading += millions * _SQL
        by, keys = query.get("by") or (), query.get("keys")
        if (by and not isinstance(keys, int)) or any(part["statistic"] in ("top", "distinct") for part in parts):
            reading += millions * _HIDDEN * max(1, len(by)) ** 2 * len(parts)
        elif again:
            reading *= _SUMMARY
        groups = keys if isinstance(keys, int) else 1
        cells = sum(groups * (_SEARCHED * _searches(part) if _searches(part) else _KEY) for part in parts)
        return self.slowness * (_ANSWER + reading + cells)

    def kept(self, table: str, query: Mapping[str, Any], now: float) -> Kept | None:
        """Where the reading of a question is kept now, told from the questions that were paid for, whatever is in the table."""
        shape = _shape(table, query)
        found = None if shape is None else self._shapes.get(shape)
        if shape is None or found is None or not found.since <= now < found.renewed:
            return None
        self._shapes.move_to_end(shape)
        return found

    def note(self, table: str, query: Mapping[str, Any], worker: str, whole: float, since: float) -> None:
        """Note that a question with a slot ``whole`` was paid for, which a worker will have read by a time."""
        shape = _shape(table, query)
        if shape is None:
            return
        found, slot = self._shapes.get(shape), self.of(table, query, again=True)
        if found is None or since >= found.until:
            self._shapes[shape] = Kept(worker, since, since + AGAIN / 2, since + AGAIN, slot)
        elif whole >= self.of(table, query) and since >= found.renewed:
            self._shapes[shape] = replace(found, renewed=since + AGAIN / 2, until=since + AGAIN)
        self._shapes.move_to_end(shape)
        while len(self._shapes) > SHAPES:
            self._shapes.popitem(last=False)

    def _millions(self, table: str) -> float:
        return self.rows.get(table, DECLARED_ROWS) / MILLION


def _shape(table: str, query: Mapping[str, Any]) -> str | None:
    """What two questions share that read the same, if their reading is one that engines keep."""
    if query.get("by") or not all(part["statistic"] in _KEPT for part in _parts(query)):
        return None
    how = query.get("bounding")
    if isinstance(how, Mapping) and how.get("strategy") == "RowLimit":  # draws rows anew
        return None
    return repr((table, query.get("statistic"), query.get("sql"), query.get("parts")))


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
