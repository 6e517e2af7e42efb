"""Transactions of many threads on one ledger, written together: whoever gets the turn writes for all who wait.

A commit to disk takes tens of milliseconds, whatever is in it, and threads that write to one SQLite file at once spend their
time waiting for its lock. So they queue, and one commit makes all of them durable. Each has a savepoint of its own: what one
refuses leaves the others alone. Nobody is told anything before the commit.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.ledger.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

Result = TypeVar("Result")

STALLED = 5.0
"""Seconds after which a transaction that is not done is a sign of trouble."""
PROBED = 5.0
"""Seconds without a transaction after which one is tried, to see whether the database is there."""


class _Job:
    """One transaction that waits; afterwards, what came of it."""

    def __init__(self, work: Callable[[Connection], Any], write: bool) -> None:
        self.work, self.write = work, write
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def attempt(self, connection: Connection) -> None:
        """Run inside the transaction of all. What fails in the database is the failure of all: they may try again with their keys."""
        from sqlalchemy.exc import SQLAlchemyError

        self.result, self.error = None, None
        try:
            if self.write:
                with connection.begin_nested():
                    self.result = self.work(connection)
            else:
                self.result = self.work(connection)
        except (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError):
            raise
        except Exception as error:  # raised again where it belongs
            self.error = error


class Batches(Store):
    """A store whose transactions are run in turns, all that wait in one.

    Args:
        store: where the ledger lives.
    """

    def __init__(self, store: Store) -> None:
        self.__dict__.update(vars(store))
        self._store = store
        self._queue, self._turn = threading.Lock(), threading.Lock()
        self._waiting: list[_Job] = []
        self._began: float | None = None  # the transaction that runs
        self._ended, self._failed = time.monotonic(), False

    def stalled(self) -> bool:
        """Whether the database was away at the last try, or takes too long now."""
        began = self._began
        return self._failed or (began is not None and time.monotonic() - began > STALLED)

    def probe(self) -> None:
        """Try the database if it was not asked for a while, or was away."""
        if self._failed or time.monotonic() - self._ended > PROBED:
            self.run(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())

    def run(self, work: Callable[[Connection], Result], *, write: bool = False, create: bool = False) -> Result:
        """As `Store.run`."""
        job = _Job(work, write)
        with self._queue:
            self._waiting.append(job)
        with self._turn:
            if not job.done:
                self._write()
        if job.error is not None:
            raise job.error
        result: Result = job.result
        return result

    def _write(self) -> None:
        with self._queue:
            jobs, self._waiting = self._waiting, []

        def all_of_them(connection: Connection) -> None:
            for job in jobs:
                job.attempt(connection)

        self._began = time.monotonic()
        try:
            self._store.run(all_of_them, write=any(job.write for job in jobs))
            self._failed = False
        except BaseException as error:
            self._failed = True
            for job in jobs:
                job.error = error
        finally:
            self._began, self._ended = None, time.monotonic()
            for job in jobs:
                job.done = True
