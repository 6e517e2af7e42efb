"""Releases by group on DuckDB against the bare ``GROUP BY user, key``: hidden names, and means and counts of 26,744 groups.

Seconds of the processor, of all threads together, beside seconds by the clock: on a machine that others use, only the first compare.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

import evenhand as eh
from benchmarks.speed.data import MOVIES, ratings

BARS = {"count, hidden names": 1.3, "users, hidden names": 1.3, "mean": 1.2, "mean, δ": 1.2}
BOUNDS = (0.5, 5)


def run(repeats: int = 5) -> dict[str, dict[str, float]]:
    """By question the median ratio to the bare query of the same turn, in processor seconds and by the clock."""
    path, bare = str(ratings()), duckdb.connect()
    ledger = eh.Ledger(Path(tempfile.mkdtemp()) / "bench.db", epsilon=1e6, delta=0.5)
    table = eh.read(path, user="userId")
    per_pair = (
        f"SELECT count(*), sum(s) FROM (SELECT userId, movieId, sum(rating) s, count(*) c FROM '{path}' "
        "GROUP BY userId, movieId)"
    )
    by: dict[str, Any] = {"by": "movieId", "epsilon": 1}
    public: dict[str, Any] = {**by, "keys": list(range(MOVIES))}

    def session() -> eh.Session:
        return eh.Session(table, ledger)  # a new one buys its profile again

    sides: dict[str, Callable[[], Any]] = {
        "bare": lambda: bare.execute(per_pair).fetchall(),
        "count, hidden names": lambda: session().count(**by, delta=1e-6),
        "users, hidden names": lambda: session().users(**by, delta=1e-6),
        "mean": lambda: session().mean("rating", bounds=BOUNDS, **public),
        "mean, δ": lambda: session().mean("rating", bounds=BOUNDS, **public, delta=1e-6),
        "count, δ": lambda: session().count(**public, delta=1e-6),
        "users": lambda: session().users(**public),
    }
    turns = [{name: _seconds(side) for name, side in sides.items()} for _ in range(repeats + 1)][1:]
    return {
        name: {
            clock: median(turn[name][clock] / (1 if name == "bare" else turn["bare"][clock]) for turn in turns)
            for clock in ("processor", "clock")
        }
        for name in sides
    }


def _seconds(run: Callable[[], Any]) -> dict[str, float]:
    processor, clock = time.process_time(), time.perf_counter()
    run()
    return {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock}


if __name__ == "__main__":
    for name, figures in run(*map(int, sys.argv[1:])).items():
        bar = f"  (bar {BARS[name]})" if name in BARS else ""
        print(f"{name:<22} processor {figures['processor']:6.2f}   clock {figures['clock']:6.2f}{bar}", flush=True)
