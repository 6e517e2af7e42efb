"""What DuckDB may take is limited: memory, temporary files, time; and a question that would take more ends, and leaves nothing behind."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from weakref import WeakSet

import duckdb
import pytest

import evenhand as eh
from evenhand.tables.engines import duckdb_limits
from evenhand.tables.engines.duckdb_limits import Limits, machine_memory, size
from evenhand.tables.engines.time_limit import Watch

MANY = 600
"""Rows of each user. The rows of a question below are as many for each user as this to the power of two."""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are for a process: here they reach no connection but those that a test opens."""
    monkeypatch.setattr(duckdb_limits, "_limits", Limits())
    monkeypatch.setattr(duckdb_limits, "_opened", WeakSet())


def database(folder: Path) -> eh.Table:
    """A file of its own, so a connection of its own."""
    path = folder / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            f"CREATE TABLE rows AS SELECT 'somebody ' || (i % 20) AS u, i::DOUBLE AS v, repeat(i::TEXT, 40) AS g FROM range({20 * MANY}) AS t(i)"
        )
    return eh.read(path, table="rows", user="u")


def joined(table: eh.Table) -> eh.Table:
    return table.join(table.select("v").derive(w="v").select("w"), fan_out=MANY)


def setting(table: eh.Table, name: str) -> str:
    return str(table.engine.backend.con.execute(f"SELECT current_setting('{name}')").fetchall()[0][0])


def temporary_tables(table: eh.Table) -> int:
    return int(
        table.engine.backend.con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall()[0][0]
    )


def test_limits_hold_for_connections_before_and_after(tmp_path: Path) -> None:
    before = database(tmp_path)
    eh.limit_duckdb(memory="1GiB", temporary="2GiB", folder=tmp_path, seconds=5)
    (tmp_path / "later").mkdir()
    for table in (before, database(tmp_path / "later")):
        assert setting(table, "memory_limit") == "1.0 GiB"
        assert setting(table, "max_temp_directory_size") == "2.0 GiB"
        assert setting(table, "temp_directory") == str(tmp_path)
        assert (watch := duckdb_limits.watch(table.engine.backend)) is not None
        assert watch.seconds == 5
    eh.limit_duckdb(seconds=7)
    assert setting(before, "memory_limit") == "1.0 GiB"
    before.engine.backend.con.execute("SET lock_configuration = true")
    with pytest.raises(eh.UsageError, match=r"DuckDB refuses memory_limit.*keeper\.toml"):
        eh.limit_duckdb(memory="2GiB")


def test_a_connection_of_the_callers_own_keeps_its_settings(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS u; SET memory_limit = '300MiB'")
        eh.read(connection, table="t", user="u")
        eh.limit_duckdb(memory="1GiB")
        assert connection.execute("SELECT current_setting('memory_limit')").fetchall() == [("300.0 MiB",)]


def test_a_question_that_needs_more_memory_fails_after_its_debit(tmp_path: Path) -> None:
    table = database(tmp_path)
    eh.limit_duckdb(memory="64MiB", temporary=0)
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10, delta="1e-3")
    session, tables = eh.Session(joined(table), ledger), temporary_tables(table)
    with pytest.raises(eh.EngineError, match=r"OutOfMemoryException.*eh\.limit_duckdb"):
        session.quantiles("w", [0.5], bounds=(0, 10), epsilon=1)
    assert ledger.spent.epsilon == 1
    assert temporary_tables(table) == tables
    assert eh.Session(table, ledger).count(epsilon=1, bounding=eh.TotalCap(1)).value is not None


def test_a_question_that_needs_more_time_is_stopped(tmp_path: Path) -> None:
    table = database(tmp_path)
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10, delta="1e-3")
    slow, tables = eh.Session(joined(joined_again(table)), ledger), temporary_tables(table)
    eh.limit_duckdb(seconds=0.3)
    began = time.monotonic()
    with pytest.raises(eh.EngineError, match="InterruptException"):
        slow.sum("w", bounds=(0, 10), epsilon=1, bounding=eh.TotalCap(1))
    assert time.monotonic() - began < 5, "it would take minutes"
    assert ledger.spent.epsilon == 1
    assert temporary_tables(table) == tables
    assert eh.Session(table, ledger).count(epsilon=1, bounding=eh.TotalCap(1)).value is not None


def joined_again(table: eh.Table) -> eh.Table:
    """More rows than a question may have, so that it takes more than its time on every machine."""
    return replace(joined(table).select("v"), growth=1)


def test_an_interrupt_never_reaches_the_next_statement() -> None:
    """Statements of all lengths, one after the other, as a connection runs them."""
    stopped: list[int] = []
    running: list[int] = [0]
    watch = Watch(lambda: stopped.append(running[0]))
    watch.seconds = 0.03
    for number in range(1, 40):
        with watch.over():
            running[0] = number
            time.sleep(0.001 if number % 4 else 0.05)
        running[0] = 0
    assert set(stopped) == {number for number in range(1, 40) if number % 4 == 0}
    assert sum("time limit" in thread.name for thread in threading.enumerate()) >= 1
    watch.seconds = None
    with watch.over():  # no limit, no thread to ask
        running[0] = 99
        time.sleep(0.05)
    assert 99 not in stopped


@pytest.mark.parametrize(
    ("given", "found"), [("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("512mib", 2**29), ("7", 7), (10**9, 10**9)]
)
def test_sizes(given: int | str, found: int) -> None:
    assert size(given, "memory") == found


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"memory": "4 gigs"}, "memory='4 gigs': expected a number of bytes.*'4GB'"),
        ({"memory": 1000}, "at least 16 MiB"),
        ({"memory": True}, "expected a number of bytes"),
        ({"memory": -1}, "expected a number of bytes"),
        ({"temporary": float("nan")}, "expected a number of bytes"),
        ({"seconds": 0}, "seconds=0: expected"),
        ({"seconds": float("nan")}, "expected a number of seconds"),
        ({"folder": "/there/is/no/such/folder"}, "not a directory"),
    ],
)
def test_what_is_no_limit_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(eh.UsageError, match=words):
        eh.limit_duckdb(**given)  # type: ignore[arg-type]


def test_the_machine_has_memory() -> None:
    assert 2**28 < machine_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
