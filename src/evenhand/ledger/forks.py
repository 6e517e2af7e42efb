"""A ledger in a process that is forked while another thread is in the middle of a transaction.

SQLite does not survive that: a thread inside it may hold one of its mutexes, which nobody in the child would ever release; and it
remembers, for each file, which locks the process holds, which the child inherits without the locks. It would read without a
lock, and wait for ever for a writer that does not exist there. So

- a fork waits for the transactions of other threads to end, which they do within milliseconds;
- if one does not end, the child leaves SQLite's memory of locks alone: it opens that file with SQLite's locking switched off
  and takes, itself, the lock that SQLite would take to write, so that it and all other processes still exclude each other.

Connections are opened for each transaction and never used across a fork.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from evenhand.ledger import failures

WAIT = 5.0
"""Seconds that a fork waits for transactions of other threads."""

_FIRST_LOCK_BYTE, _LOCK_BYTES = 0x40000000, 512  # SQLite's PENDING, RESERVED and SHARED bytes (sqlite.org/fileformat2)

_gate = threading.Condition()
_running: dict[int, Path] = {}  # threads inside SQLite, and where
_waiting_forks: list[int] = []
_unknown_locks: set[object] = set()  # files about whose locks SQLite, in this process, remembers what is no longer so
_alone = threading.Lock()  # file locks do not keep the threads of one process apart


@contextmanager
def transaction(path: Path, patience: float, kept: failures.Kept = failures.LEDGER) -> Iterator[None]:
    """Around one transaction on a SQLite file, from before it is opened until after it is closed."""
    _enter(path)
    try:
        with _own_lock(path, patience, kept) if locks_unknown(path) else nullcontext():
            yield
    finally:
        _leave()


def pause(seconds: float) -> None:
    """Sleep inside a transaction that has locked nothing yet; others may fork meanwhile."""
    path = _leave()
    time.sleep(seconds)
    _enter(path)


def locks_unknown(path: Path) -> bool:
    """Whether SQLite, in this process, can't know who holds locks on the file."""
    return bool(_unknown_locks) and _identity(path) in _unknown_locks


def _enter(path: Path) -> None:
    with _gate:
        _gate.wait_for(lambda: not _waiting_forks)  # else threads that debit all the time would leave a fork no moment
        _running[threading.get_ident()] = path


def _leave() -> Path:
    with _gate:
        path = _running.pop(threading.get_ident())
        _gate.notify_all()
        return path


@contextmanager
def _own_lock(path: Path, patience: float, kept: failures.Kept) -> Iterator[None]:
    """The lock that a SQLite writer takes last: nobody else, reader or writer, is in the file."""
    import fcntl

    deadline = time.monotonic() + patience
    with _alone:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise failures.of_system(str(path), error, kept) from None
        try:
            while True:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_BYTES, _FIRST_LOCK_BYTE)
                    break
                except (BlockingIOError, PermissionError):  # either means that somebody else has it
                    if time.monotonic() > deadline:
                        raise failures.locked(str(path), kept) from None
                time.sleep(random.uniform(0.0005, 0.004))
            yield
        finally:
            os.close(file)  # and with it the lock


def _identity(path: Path) -> object:
    """What SQLite knows a file by, whatever its names."""
    try:
        facts = path.stat()
    except OSError:
        return path
    return facts.st_dev, facts.st_ino


def _before() -> None:
    _gate.acquire()
    _waiting_forks.append(threading.get_ident())
    _gate.wait_for(lambda: not _running, timeout=WAIT)
    _waiting_forks.pop()
    _gate.notify_all()


def _in_child() -> None:
    global _alone
    _unknown_locks.update(_identity(path) for path in _running.values())
    _running.clear()
    _waiting_forks.clear()
    _alone = threading.Lock()  # a thread that held it is gone
    _gate.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_gate.release, after_in_child=_in_child)
