"""A forked child can look at and debit a ledger, whatever the threads of its parent were doing at the moment of the fork."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from evenhand.guarantee import Guarantee, LedgerError, Relation
from evenhand.ledger import Cost, Ledger, forks, store

PROMISE = Guarantee(Decimal("0.1"), Decimal(0), Relation.PRESENCE, ("userId",))


def debit(ledger: Ledger) -> str:
    return ledger.debit(Cost.pure("0.1"), {"statistic": "count"}, PROMISE).id


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "budget.db")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long: what can't be had within seconds is taken to be out of reach."""
    monkeypatch.setattr(forks, "WAIT", 0.2)
    monkeypatch.setattr(store, "PATIENCE", 5.0)


@pytest.fixture(autouse=True)
def kept_out_of_collections() -> Iterator[None]:
    """A child must not collect what other tests left behind, such as DuckDB connections, whose threads a fork does not copy: it would crash."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Child:
    """A forked process that does some work."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.process = os.fork()
        if self.process == 0:
            try:
                work()
            except BaseException as error:
                os.write(2, f"in the child: {error!r}\n".encode())
                os._exit(1)
            os._exit(0)

    def end(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@contextmanager
def busy_thread(ledger: Ledger, *, write: bool) -> Iterator[threading.Event]:
    """A thread in the middle of a transaction; it ends when the event is set."""
    entered, leave = threading.Event(), threading.Event()

    def work(connection: object) -> None:
        entered.set()
        leave.wait()

    thread = threading.Thread(target=lambda: ledger._store.run(work, write=write))
    thread.start()
    entered.wait()
    try:
        yield leave
    finally:
        leave.set()
        thread.join()


def test_a_ledger_object_works_on_both_sides_of_a_fork(location: str) -> None:
    ledger = Ledger(location, epsilon=1)
    debit(ledger)
    assert Child(lambda: debit(ledger)).end() == 0
    debit(ledger)
    assert ledger.spent.epsilon == Decimal("0.3")
    ledger.verify()


@pytest.mark.parametrize("write", [True, False])
def test_a_child_forked_inside_a_transaction_debits(location: str, write: bool) -> None:
    ledger = Ledger(location, epsilon=10)
    debit(ledger)

    def work() -> None:
        debit(ledger)
        debit(Ledger(location))
        Child(lambda: debit(ledger)).end()
        ledger.verify()
        assert len(ledger.events) == 4

    with busy_thread(ledger, write=write) as leave:
        child = Child(work)
        time.sleep(0.1)
        leave.set()
    assert child.end() == 0
    debit(ledger)
    assert ledger.spent.epsilon == Decimal("0.5")
    ledger.verify()


def test_a_fork_waits_for_a_transaction_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the child finds SQLite as it should be; threads that come later wait for the fork."""
    monkeypatch.setattr(forks, "WAIT", 60.0)
    ledger = Ledger(tmp_path / "b.db", epsilon=1)

    def work() -> None:
        assert not forks._unknown_locks
        debit(ledger)

    with busy_thread(ledger, write=True) as leave:
        threading.Timer(0.2, leave.set).start()
        child = Child(work)
        assert leave.is_set()
    assert child.end() == 0


def test_such_a_child_waits_for_the_transaction_and_others_wait_for_the_child(tmp_path: Path) -> None:
    """With SQLite's locking out of use, the lock on the file still keeps all processes apart."""
    path = tmp_path / "b.db"
    ledger = Ledger(path, epsilon=1000)
    debit(ledger)

    def spend(times: int) -> None:
        for _ in range(times):
            debit(ledger)

    def threads() -> None:
        both = [threading.Thread(target=spend, args=(15,)) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()

    with busy_thread(ledger, write=True) as leave:
        children = [Child(threads) for _ in range(2)]
        time.sleep(0.3)
        with sqlite3.connect(path) as peer:  # a look past our own code: nobody may have written yet
            assert peer.execute("SELECT count(*) FROM evenhand_event").fetchone() == (1,)
        peer.close()
        leave.set()
        spend(15)
    assert [child.end() for child in children] == [0, 0]
    assert len(ledger.events) == 1 + 15 + 2 * 30
    ledger.verify()


def test_such_a_child_gives_up_in_plain_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    ledger = Ledger(tmp_path / "b.db", epsilon=1)

    def work() -> None:
        with pytest.raises(LedgerError, match=r"kept it locked too long.*Nothing was spent"):
            debit(ledger)
        (tmp_path / "b.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(LedgerError, match="can't be opened"):
            debit(ledger)

    with busy_thread(ledger, write=True):
        child = Child(work)
        assert child.end() == 0


def test_a_process_killed_in_the_middle_is_rolled_back_by_such_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child finds the journal of a writer that died: it must undo what was half written, as SQLite does."""
    path = tmp_path / "b.db"
    ledger = Ledger(path, epsilon=1000)
    for _ in range(3):
        debit(ledger)
    killed = Child(lambda: _half_write(path))
    assert killed.end() == -9
    assert (tmp_path / "b.db-journal").stat().st_size > 0

    def work() -> None:
        debit(ledger)
        ledger.verify()
        assert len(ledger.events) == 4

    monkeypatch.setitem(forks._running, -1, path)  # as if a thread were in it
    assert Child(work).end() == 0
    ledger.verify()


def _half_write(path: Path) -> None:
    """Write pages to the file without committing, and die."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = PERSIST")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE evenhand_ledger SET epsilon = '0'")
    connection.execute("CREATE TABLE filler (text TEXT)")
    connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 3000,) for _ in range(200)])
    os.kill(os.getpid(), 9)


def test_workers_of_multiprocessing_debit(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a thread debits without a pause: a fork in the middle of SQLite's code would hang its child now and then."""
    monkeypatch.setattr(forks, "WAIT", 60.0)
    ledger = Ledger(location, epsilon=100_000)  # more than the thread can spend meanwhile
    debit(ledger)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            debit(ledger)

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        workers = [multiprocessing.get_context("fork").Process(target=debit, args=(ledger,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(20)
    finally:
        stop.set()
        thread.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    ledger.verify()
