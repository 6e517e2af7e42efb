"""A release on a view against the same release on that view materialised by hand, on DuckDB.

By hand means the SQL that one would write (``CREATE TABLE AS SELECT ...``), with a total order in windows, without guards. Its time is counted once with the release and once without:
a view is computed anew for each release, a table is not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import ibis
import pyarrow as pa

import evenhand as eh
from benchmarks.speed.data import MOVIES, ratings
from benchmarks.speed.groups_ratio import _seconds

BAR = 1.1
_ = eh._
GENRES = pa.table({"movieId": list(range(MOVIES)), "genre": [movie % 20 for movie in range(MOVIES)]})
Views = dict[str, tuple[Callable[[eh.Table], eh.Table], str, Callable[[eh.Session], Any]]]


def views() -> Views:
    """By name: the view, its SQL, and a question."""
    genres = eh.read_public(GENRES)
    return {
        "filter and column": (
            lambda table: table.where(_.rating >= 1).derive(half=_.rating / 2),
            "SELECT *, rating / 2 AS half FROM rows WHERE rating >= 1",
            lambda session: session.mean("half", bounds=(0.5, 2.5), epsilon=1),
        ),
        "public join": (
            lambda table: table.join(genres, on="movieId"),
            "SELECT * FROM rows JOIN genres USING (movieId)",
            lambda session: session.count(by="genre", keys=list(range(20)), epsilon=1),
        ),
        "per user": (
            lambda table: table.per_user(total=_.rating.sum(), movies=_.movieId.nunique()),
            "SELECT userId, sum(rating) AS total, count(DISTINCT movieId) AS movies FROM rows GROUP BY userId",
            lambda session: session.mean("total", bounds=(0, 1000), epsilon=1),
        ),
        "per user, all used": (
            lambda table: table.per_user(total=_.rating.sum(), movies=_.movieId.nunique()).where(_.movies >= 30),
            "SELECT * FROM (SELECT userId, sum(rating) AS total, count(DISTINCT movieId) AS movies FROM rows GROUP BY userId) WHERE movies >= 30",
            lambda session: session.mean("total", bounds=(0, 1000), epsilon=1),
        ),
        "window": (
            lambda table: table.window(order_by="movieId", before=_.rating.lag()),
            "SELECT *, lag(rating) OVER (PARTITION BY userId ORDER BY movieId, rating) AS before FROM rows",
            lambda session: session.mean("before", bounds=(0.5, 5), epsilon=1),
        ),
    }


def run(repeats: int = 3, share: int = 10) -> dict[str, dict[str, float]]:
    """By view: processor seconds of its release, divided by those of the materialised one, with and without making that."""
    path = str(ratings(users=138_493 // share, rows=20_000_263 // share))
    ledger = eh.Ledger(Path(tempfile.mkdtemp()) / "bench.db", epsilon=1e6)
    table = eh.read(path, user="userId")
    found = {}
    for name, (build, sql, ask) in views().items():
        turns = [_turn(path, table, ledger, build, sql, ask) for _again in range(repeats + 1)]
        kept = turns[1:]
        found[name] = dict(
            zip(("with", "without", "seconds"), (median(each) for each in zip(*kept, strict=True)), strict=True)
        )
    return found


def _turn(
    path: str,
    table: eh.Table,
    ledger: eh.Ledger,
    build: Callable[[eh.Table], eh.Table],
    sql: str,
    ask: Callable[[eh.Session], Any],
) -> tuple[float, float, float]:
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW rows AS SELECT * FROM '{path}'")
    connection.register("genres", GENRES)
    release = _seconds(lambda: ask(eh.Session(build(table), ledger)))["processor"]
    making = _seconds(lambda: connection.execute(f"CREATE TABLE made AS {sql}").fetchall())["processor"]
    made = eh.read(ibis.duckdb.from_connection(connection).table("made"), user="userId")
    asking = _seconds(lambda: ask(eh.Session(made, ledger)))["processor"]
    return release / (making + asking), release / asking, release


if __name__ == "__main__":
    for name, figures in run(*map(int, sys.argv[1:])).items():
        print(
            f"{name:<18} {figures['with']:5.2f} with making it (bar {BAR}), {figures['without']:5.2f} without; {figures['seconds']:.2f} s",
            flush=True,
        )
