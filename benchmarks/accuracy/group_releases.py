"""Grouped releases through `Session` on DuckDB: that the simulation of `groups.py` is about the library, and that `aggregate` costs nothing.

python -m benchmarks.accuracy.group_releases
"""

from __future__ import annotations

import datetime
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import evenhand as eh
from benchmarks.accuracy.group_tables import OTHERS, TUNED, Table
from benchmarks.accuracy.groups import DELTA, Floats, Grouped, measure
from benchmarks.results import keep, table
from evenhand.statistics.users import Users

CASES = (
    ("films, 3,000", "count", 1.0, DELTA),
    ("shops, 40", "count", 0.4, 0.0),
    ("shops, 40", "sum", 1.0, DELTA),
    ("3 favourites, 500", "users", 0.4, DELTA),
    ("spending, 120", "sum", 1.0, DELTA),
    ("exponential, 6", "count", 1.0, 0.0),
)
TOGETHER = (("shops, 40", 1.0, 0.0), ("shops, 40", 1.0, DELTA), ("course ratings, 700", 1.0, DELTA))
RUNS = 8


def session(rows: Table, folder: str) -> eh.Session:
    """A table in DuckDB with a fresh ledger."""
    frame = pa.table({"user": rows.user, "group": rows.group, "value": rows.value})
    ledger = eh.Ledger(Path(folder) / "ledger.db", epsilon=1e6, delta=0.5)
    return eh.Session(eh.read(frame, user="user"), ledger)


def parts(rows: Table) -> dict[str, Any]:
    """The statistics of `CASES` and of an aggregate."""
    bounds = (0, rows.largest)
    return {
        "count": eh.count(),
        "users": Users(),
        "sum": eh.sum("value", bounds=bounds),
        "mean": eh.mean("value", bounds=bounds),
    }


def truths(rows: Table) -> dict[str, Floats]:
    """The exact answers by group."""
    exact = {name: Grouped(rows, name) for name in ("count", "users", "sum")}
    found = {name: grouped.truth / grouped.step for name, grouped in exact.items()}
    return {**found, "mean": found["sum"] / np.maximum(found["count"], 1)}


def errors(rows: Table, names: list[str], epsilon: float, delta: float) -> dict[str, float]:
    """Root mean squared error over groups and runs of statistics that are asked together."""
    wanted, exact, squares = parts(rows), truths(rows), dict.fromkeys(names, 0.0)
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            release = session(rows, folder).aggregate(
                by="group",
                keys=list(range(rows.groups)),
                epsilon=epsilon,
                delta=delta,
                **{name: wanted[name] for name in names},
            )
        for name in names:
            column = release.value[name].to_numpy()
            squares[name] += float(((column - exact[name]) ** 2).mean()) / RUNS
    return {name: math.sqrt(square) for name, square in squares.items()}


def main() -> None:
    """Measure, write, print."""
    tables = {**TUNED, **OTHERS}
    agree, together = [], []
    for name, statistic, epsilon, delta in CASES:
        rows = tables[name]()
        case = measure(Grouped(rows, statistic), epsilon, delta, 60, seed=1)
        real = errors(rows, [statistic], epsilon, delta)[statistic] / case["hindsight"]
        agree.append([name, statistic, f"{epsilon:g}", f"{delta:g}", f"{case['rms']:.2f}", f"{real:.2f}"])
    for name, epsilon, delta in TOGETHER:
        rows = tables[name]()
        asked = [*parts(rows)]
        joint = errors(rows, asked, epsilon, delta)
        alone = {one: errors(rows, [one], epsilon / len(asked), delta)[one] for one in asked}
        ratios = [f"{joint[one] / alone[one]:.2f}" for one in asked]
        together.append([name, f"{epsilon:g}", f"{delta:g}", *ratios])
    today = datetime.date.today().isoformat()
    text = f"""# Grouped releases through the session, {today}

RMSE over groups in multiples of hindsight, {RUNS} releases each:

{table(["table", "statistic", "ε", "δ", "simulated", "released"], agree)}

RMSE in an aggregate of four statistics, in multiples of the same statistic alone with a quarter of ε:

{table(["table", "ε", "δ", "count", "users", "sum", "mean"], together)}
"""
    keep(Path(__file__).parent, f"group-releases-{today}", text, {"agree": agree, "together": together})


if __name__ == "__main__":
    main()
