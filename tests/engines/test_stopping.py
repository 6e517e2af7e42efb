"""Work that takes longer than its slot is stopped: in a statement, in Python, and never after it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import ibis
import pytest

import evenhand as eh
from evenhand.tables.engines.base import Engine
from evenhand.tables.engines.copied import CopiedEngine, beside, copied
from evenhand.tables.engines.stopping import Stopped, Work, spared

ROWS = 3000


def table(kind: str, request: pytest.FixtureRequest) -> eh.Table:
    if kind == "postgres":
        backend = ibis.connect(request.getfixturevalue("postgres_url"))
        series = f"generate_series(0, {ROWS - 1})"
    else:
        backend, series = ibis.duckdb.connect(), f"range({ROWS})"
    with backend._safe_raw_sql(f"CREATE TABLE t AS SELECT u::BIGINT AS u, (u % 7)::BIGINT AS v FROM {series} AS s(u)"):
        pass
    return copied(eh.read(backend.table("t"), user="u"))


def heavy(engine: Engine) -> Any:
    """All triples of rows: minutes."""
    both = engine.rows.cross_join(engine.rows.view(), rname="two_{name}")
    three = both.cross_join(engine.rows.view(), rname="three_{name}")
    return three.aggregate(found=(three.v + three.two_v * three.three_v).sum())


def watched(work: Work, does: Callable[[], object], every: float = 0.005) -> BaseException | None:
    """Run it here, watched from another thread; what it ended with."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            work.check()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        work.run(does)
    except BaseException as error:
        return error
    finally:
        over.set()
        watcher.join()
    return None


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_a_statement_is_interrupted_and_the_connection_goes_on(kind: str, request: pytest.FixtureRequest) -> None:
    engine = table(kind, request).engine
    began = time.monotonic()
    work = Work(0.2)
    assert isinstance(watched(work, lambda: engine.fetch(heavy(engine))), Stopped)
    assert time.monotonic() - began < 15
    assert 0.2 < work.used < 5
    simple = engine.rows.aggregate(n=engine.rows.count())
    for _ in range(20):  # no interrupt comes late
        assert watched(Work(20), lambda: engine.fetch(simple)) is None


def test_python_is_stopped_between_statements() -> None:
    def endless() -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:  # what is stopped can't take it for a failure of its own
                continue

    assert isinstance(watched(Work(0.1), endless), Stopped)


def test_waiting_for_others_is_nobodys_use() -> None:
    """A worker whose thread sleeps, or waits for a lock that another holds, has used nothing."""
    work = Work(0.1)
    assert watched(work, lambda: time.sleep(0.5)) is None
    assert work.used < 0.1


@pytest.mark.parametrize("endless", [True, False])
def test_what_is_put_away_is_put_away(endless: bool) -> None:
    """Whether its time was over before that, or ends meanwhile."""
    put: list[int] = []

    def work() -> None:
        try:
            while endless:
                sum(range(1000))
        finally:
            with spared():
                for _ in range(30):
                    until = time.monotonic() + 0.01
                    while time.monotonic() < until:
                        sum(range(1000))
                put.append(1)

    assert isinstance(watched(Work(0.05), work), Stopped)
    assert put == [1]


def test_nothing_is_stopped_after_its_end() -> None:
    """Thousands of short pieces of work whose time is over at about the moment they end: what follows is never hit."""
    until, ends = time.monotonic() + 1.5, [0, 0]

    def short(pieces: int = 5) -> None:
        for _ in range(pieces):
            sum(range(3000))
            time.sleep(0.0001)  # the one who watches looks

    def long() -> None:
        short(50)

    while time.monotonic() < until:
        for work in (short, long):
            error = watched(Work(0.001), work, every=0.0001)
            assert error is None or isinstance(error, Stopped)
            ends[error is None] += 1
            short()
    assert min(ends) > 3


def test_workers_don_t_wait_for_each_others_statements(request: pytest.FixtureRequest) -> None:
    first = table("duckdb", request)
    other = beside({"t": first})["t"]
    assert isinstance(first.engine, CopiedEngine)
    busy = threading.Thread(target=lambda: watched(Work(2), lambda: first.engine.fetch(heavy(first.engine))))
    busy.start()
    time.sleep(0.3)
    began = time.monotonic()
    for each in (other, other.where("v > 2")):
        each.engine.fetch(each.expression.aggregate(n=each.expression.count()))
    assert busy.is_alive()
    assert time.monotonic() - began < 1.5
    busy.join()
