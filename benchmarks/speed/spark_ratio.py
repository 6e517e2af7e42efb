"""Releases on local Spark against Spark's own ``GROUP BY user``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import evenhand as eh
from benchmarks.speed.data import MOVIES, ratings
from benchmarks.speed.timing import compare

BARS = {"mean": 1.2, "sum": 1.2, "count": 1.2}


def run() -> dict[str, float]:
    """Ratios to bare Spark; at most the bars above."""
    path = str(ratings())
    table = eh.read(path, user="userId", engine="spark")
    session = eh.Session(table, eh.Ledger(Path(tempfile.mkdtemp()) / "bench.db", epsilon=1e6, delta=0.5))
    spark = table.engine.backend._session
    spark.read.parquet(path).createOrReplaceTempView("bare_ratings")
    # Both columns are used: Spark would not compute a count that nobody asks for.
    query = "SELECT sum(c), sum(s) FROM (SELECT userId, sum(rating) s, count(*) c FROM bare_ratings GROUP BY userId)"
    pairs = "SELECT sum(c), sum(s) FROM (SELECT userId, movieId, sum(rating) s, count(*) c FROM bare_ratings GROUP BY userId, movieId)"
    movies: dict[str, Any] = {"by": "movieId", "keys": list(range(MOVIES)), "epsilon": 1}
    times = compare(
        {
            "bare": lambda: spark.sql(query).collect(),
            "mean": lambda: session.mean("rating", bounds=(0.5, 5), epsilon=1, bounding=eh.SmoothWeights(100)),
            "sum": lambda: session.sum("rating", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(500)),
            "count": lambda: session.count(epsilon=1, bounding=eh.TotalCap(500)),
        },
        repeats=6,
    )
    grouped = compare(
        {
            "bare": lambda: spark.sql(pairs).collect(),
            "hidden names": lambda: session.count(by="movieId", epsilon=1, delta=1e-6),
            "mean by movie": lambda: session.mean("rating", bounds=(0.5, 5), **movies),
        },
        repeats=2,
    )
    ratios = {name: seconds / times["bare"] for name, seconds in times.items()} | {"bare seconds": times["bare"]}
    return (
        ratios
        | {name: seconds / grouped["bare"] for name, seconds in grouped.items() if name != "bare"}
        | {"bare pairs, s": grouped["bare"]}
    )


if __name__ == "__main__":
    for name, figure in run().items():
        bar = f"  (bar {BARS[name]})" if name in BARS else ""
        print(f"{name:<16} {figure:6.2f}{bar}")
