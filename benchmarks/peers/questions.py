"""The questions of the comparison, their true answers, and the error of a released answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.tables import Floats, Table

EPSILON, DELTA = 1.0, 1e-6
QUANTILES = (0.5, 0.9)


@dataclass(frozen=True)
class Question:
    """One statistic of one table, by public or hidden keys or without groups."""

    table: str
    statistic: str
    by: str | None = None
    hidden: bool = False
    epsilon: float = EPSILON

    @property
    def name(self) -> str:
        """As the report prints it, and under which results are kept."""
        groups = f" by {'hidden ' if self.hidden else ''}{self.by}" if self.by else ""
        return f"{self.table}: {self.statistic}{groups}, ε = {self.epsilon:g}"

    def groups(self, table: Table) -> int:
        """How many groups there are, one without groups."""
        return table.groups[self.by] if self.by else 1

    def key(self, table: Table) -> Any:
        """The group of each row."""
        return table.keys[self.by] if self.by else np.zeros(len(table.user), dtype=np.int64)


QUESTIONS = [
    *(
        Question(table, statistic)
        for table in ("shops", "purchases", "course")
        for statistic in ("count", "sum", "mean")
    ),
    *(Question("shops", statistic, "item") for statistic in ("count", "mean", "quantiles")),
    Question("single", "users", "item", hidden=True),
    Question("books", "users", "item", hidden=True),
    Question("films", "users", "item", hidden=True),
    Question("stays", "users", "item", hidden=True),
    Question("visits", "users", "item", hidden=True),
    Question("demo", "mean", "genre"),
    *(
        Question("movielens", statistic, by)
        for by in ("film", "genre", "series")
        for statistic in ("count", "users", "mean")
    ),
    Question("movielens", "users", "film", hidden=True),
    Question("movielens", "quantiles", "genre"),
]
"""Without groups on small tables, because a run gives one error only and many runs are needed; the large tables come last."""

SMOKE = [
    Question("tiny", "count"),
    Question("tiny", "mean", "item"),
    Question("tiny", "quantiles", "item"),
    Question("tiny", "users", "item", hidden=True),
]


def truth(question: Question, table: Table) -> Floats:
    """The exact answer: a row for each group, a column for each number; NaN where a group has no rows."""
    key, groups = question.key(table), question.groups(table)
    if question.statistic == "quantiles":
        order = np.argsort(key, kind="stable")
        parts = np.split(table.value[order], np.searchsorted(key[order], np.arange(1, groups)))
        return np.array([np.quantile(part, QUANTILES) if len(part) else [math.nan] * len(QUANTILES) for part in parts])
    rows = np.bincount(key, minlength=groups).astype(np.float64)
    if question.statistic == "count":
        return rows[:, None]
    if question.statistic == "users":
        pairs = np.unique(table.user * groups + key)
        return np.bincount(pairs % groups, minlength=groups).astype(np.float64)[:, None]
    sums = np.bincount(key, weights=table.value, minlength=groups).astype(np.float64)
    if question.statistic == "sum":
        return sums[:, None]
    with np.errstate(invalid="ignore"):
        return (sums / rows)[:, None]


def score(question: Question, table: Table, exact: Floats, values: Mapping[int, Sequence[float]]) -> dict[str, float]:
    """Root mean squared error over groups and numbers; with hidden keys over those found, with how many, and what is missing.

    Means and quantiles are brought into the public bounds first, for everybody: some libraries do it, some do not. A number that was not given
    counts as the middle.
    """
    keys = np.array(sorted(values), dtype=np.int64)
    given = np.array([values[int(key)] for key in keys], dtype=np.float64).reshape(len(keys), exact.shape[1])
    if question.statistic in ("mean", "quantiles"):
        given = np.clip(np.nan_to_num(given, nan=sum(table.bounds) / 2), *table.bounds)
    error = given - exact[keys]
    error = error[~np.isnan(error)]
    found = {"rmse": float(np.sqrt(np.mean(error**2))) if error.size else math.nan}
    if question.hidden:
        total = float(exact.sum())
        found |= {"found": float(len(keys)), "missing": 1 - float(exact[keys].sum()) / total}
    elif len(keys) != len(exact):
        raise ValueError(f"{question.name}: {len(keys)} groups were released, expected the {len(exact)} public ones.")
    return found
