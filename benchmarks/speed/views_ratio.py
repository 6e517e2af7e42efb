"""A release on a view against the same release on that view materialised, on DuckDB.

A view is computed anew for each release, a table is not, so making the table is part of what whoever has no view pays. Three figures:

- ``hand`` (the bar): the table is made with the SQL that one would write, with a total order in windows, without guards, and with sums of doubles that
  depend on the order of rows; then it is asked. Both are timed.
- ``stored``: the same with the view's own statement, guards and exact sums included. It has no bar: it leaves out what the guards cost. Where it is below
  ``hand``, that is the cost.
- ``again``: without the time of making the table: what a view costs each time that it is asked again, and the reason to store one that is asked often.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

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


FIGURES = ("hand", "stored", "again", "seconds")


def run(repeats: int = 3, share: int = 10) -> dict[str, dict[str, float]]:
    """By view: processor seconds of its release, divided by those of the materialised one."""
    path = str(ratings(users=138_493 // share, rows=20_000_263 // share))
    ledger = eh.Ledger(Path(tempfile.mkdtemp()) / "bench.db", epsilon=1e6)
    table = eh.read(path, user="userId")
    found = {}
    for name, (build, sql, ask) in views().items():
        turns = [_turn(path, table, ledger, build, sql, ask) for _again in range(repeats + 1)]
        found[name] = dict(zip(FIGURES, (median(each) for each in zip(*turns[1:], strict=True)), strict=True))
    return found


def _turn(
    path: str,
    table: eh.Table,
    ledger: eh.Ledger,
    build: Callable[[eh.Table], eh.Table],
    sql: str,
    ask: Callable[[eh.Session], Any],
) -> tuple[float, ...]:
    by_hand = ibis.duckdb.connect()
    by_hand.con.execute(f"CREATE VIEW rows AS SELECT * FROM '{path}'")
    by_hand.con.register("genres", GENRES)
    release = _seconds(lambda: ask(eh.Session(build(table), ledger)))["processor"]
    view = build(table)
    storing, asking_stored = _made(view.engine.backend, view.engine.sql(view.expression), ask, ledger)
    making, asking = _made(by_hand, sql, ask, ledger)
    return release / (making + asking), release / (storing + asking_stored), release / asking, release


def _made(backend: Any, sql: str, ask: Callable[[eh.Session], Any], ledger: eh.Ledger) -> tuple[float, float]:
    """Seconds for making a table and for asking it."""
    making = _seconds(lambda: backend.con.execute(f"CREATE TEMPORARY TABLE made AS {sql}").fetchall())["processor"]
    made = eh.read(backend.table("made"), user="userId")
    asking = _seconds(lambda: ask(eh.Session(made, ledger)))["processor"]
    backend.con.execute("DROP TABLE made")
    return making, asking


if __name__ == "__main__":
    for name, figures in run(*map(int, sys.argv[1:])).items():
        print(
            f"{name:<18} {figures['hand']:5.2f} by hand (bar {BAR}), {figures['stored']:5.2f} stored, {figures['again']:5.2f} asked again; "
            f"{figures['seconds']:.2f} s",
            flush=True,
        )
