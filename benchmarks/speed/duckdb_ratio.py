"""Releases on DuckDB against the bare ``GROUP BY user``, and grouped ones against ``GROUP BY user, key``."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

import evenhand as eh
from benchmarks.speed.data import MOVIES, ratings
from benchmarks.speed.timing import compare, middle

BARS = {"mean": 1.35, "sum": 1.35, "count": 1.35, "mean, auto": 2.5, "mean by movie": 1.5, "row limit": 1.2}
BOUNDS = (0.5, 5)


def run() -> dict[str, float]:
    """Ratios to the bare engine; at most the bars above."""
    path, bare = str(ratings()), duckdb.connect()
    ledger = eh.Ledger(Path(tempfile.mkdtemp()) / "bench.db", epsilon=1e6)
    table = eh.read(path, user="userId")
    session = eh.Session(table, ledger)
    per_user = f"SELECT count(*), sum(s) FROM (SELECT userId, sum(rating) s, count(*) c FROM '{path}' GROUP BY userId)"
    per_pair = (
        f"SELECT count(*), sum(s) FROM (SELECT userId, movieId, sum(rating) s, count(*) c FROM '{path}' "
        "GROUP BY userId, movieId)"
    )
    # The best bare query for 100 random rows a user that we found: a bounded heap a user, no sort.
    sampled = (
        "SELECT sum(list_sum(l)), sum(len(l)) FROM (SELECT userId, arg_min(rating, r, 100) l "
        f"FROM (SELECT userId, rating, random() r FROM '{path}') GROUP BY userId)"
    )
    movies = list(range(MOVIES))
    smooth = eh.SmoothWeights(100)
    plain = compare(
        {
            "bare": lambda: bare.execute(per_user).fetchall(),
            "mean": lambda: session.mean("rating", bounds=BOUNDS, epsilon=1, bounding=smooth),
            "sum": lambda: session.sum("rating", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(500)),
            "count": lambda: session.count(epsilon=1, bounding=eh.TotalCap(500)),
            "mean, auto": lambda: eh.Session(table, ledger).mean("rating", bounds=BOUNDS, epsilon=1),
        }
    )
    grouped = compare(
        {
            "bare": lambda: bare.execute(per_pair).fetchall(),
            "mean by movie": lambda: session.mean(
                "rating", bounds=BOUNDS, epsilon=1, by="movieId", keys=movies, bounding=smooth
            ),
        },
        repeats=3,
    )
    limited = compare(
        {
            "bare": lambda: bare.execute(sampled).fetchall(),
            "row limit": lambda: session.mean("rating", bounds=BOUNDS, epsilon=1, bounding=eh.RowLimit(100)),
        },
        repeats=3,
    )
    ratios: dict[str, float] = {}
    for times in (plain, grouped, limited):
        ratios |= {name: seconds / times["bare"] for name, seconds in times.items() if name != "bare"}
    return ratios | {
        "bare seconds": plain["bare"],
        "import seconds": middle(import_seconds),
        "peak memory GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def import_seconds() -> float:
    """How long ``import evenhand`` takes in a new process."""
    code = "import time; s = time.perf_counter(); import evenhand; print(time.perf_counter() - s)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    for name, figure in run().items():
        bar = f"  (bar {BARS[name]})" if name in BARS else ""
        print(f"{name:<16} {figure:6.2f}{bar}")
