"""Turns a database's own errors into a `LedgerError` that says what to do, without stack or password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenhand.guarantee import LedgerError

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError

_SQLITE = {
    "SQLITE_BUSY": "other processes kept it locked too long; try again, or find the process that holds it.",
    "SQLITE_READONLY": "it can't be written; make the file and its directory writable, or use another place.",
    "SQLITE_PERM": "it can't be written; make the file and its directory writable, or use another place.",
    "SQLITE_CANTOPEN": "it can't be opened; check that the file exists and that you may read and write it "
    "and its directory.",
    "SQLITE_FULL": "the disk is full; free some space and try again.",
    "SQLITE_IOERR": "the disk failed to read or write it; check free space, quota and the disk's health.",
    "SQLITE_NOTADB": "this file is not a ledger; give another path, and leave this file alone.",
    "SQLITE_CORRUPT": "the file is damaged; restore it from a backup and count everything released since "
    "that backup as spent.",
}

_POSTGRES_TRANSIENT = {"40001", "40P01", "55P03"}  # serialisation failure, deadlock, lock not available


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock of a SQLite file."""
    return _sqlite_name(error) == "SQLITE_BUSY"


def is_transient(error: SQLAlchemyError | sqlite3.Error) -> bool:
    """Whether nothing was done and trying again may help: another writer was in the way."""
    cause = getattr(error, "orig", error)
    if isinstance(cause, sqlite3.Error):
        return is_busy(cause)
    return getattr(cause, "sqlstate", None) in _POSTGRES_TRANSIENT


def of_database(name: str, error: SQLAlchemyError | sqlite3.Error) -> LedgerError:
    """The error to raise for a failed transaction on the ledger called ``name``."""
    cause = getattr(error, "orig", error)
    if isinstance(cause, sqlite3.Error):
        advice = _SQLITE.get(_sqlite_name(cause), f"SQLite says: {cause}.")
        return LedgerError(f"ledger {name}: {advice} Nothing was spent.")
    said = " ".join(str(cause).split("\n", 1)[0].split())
    if getattr(error, "connection_invalidated", False):
        return LedgerError(
            f"ledger {name}: the connection was lost ({said}). Nothing was released; whether the debit was "
            "recorded shows in ledger.events."
        )
    if getattr(cause, "sqlstate", None) is None:
        return LedgerError(
            f"ledger {name}: the Postgres server can't be reached ({said}). Check host, port, user and "
            "password. Nothing was spent."
        )
    return LedgerError(f"ledger {name}: Postgres refused ({said}). Nothing was spent.")


def of_system(name: str, error: OSError | ValueError) -> LedgerError:
    """The error to raise when the operating system refuses to look at the file."""
    said = error.strerror if isinstance(error, OSError) else error
    return LedgerError(f"ledger {name}: it can't be opened ({said}); check the path and its permissions.")


def locked(name: str) -> LedgerError:
    """The error to raise when others kept the file locked."""
    return LedgerError(f"ledger {name}: {_SQLITE['SQLITE_BUSY']} Nothing was spent.")


def corrupt(name: str) -> LedgerError:
    """The error to raise when what is stored makes no sense."""
    return LedgerError(f"ledger {name}: {_SQLITE['SQLITE_CORRUPT']} Nothing was spent.")


@contextmanager
def damaged(name: str) -> Iterator[None]:
    """While parsing what is stored: text that can't be parsed means that the ledger is damaged."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise corrupt(name) from None


def _sqlite_name(cause: sqlite3.Error) -> str:
    """The primary error name: SQLITE_IOERR for SQLITE_IOERR_WRITE."""
    full = getattr(cause, "sqlite_errorname", "") or ""
    return "_".join(full.split("_")[:2])
