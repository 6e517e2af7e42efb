"""Turns a database's own errors into one that says what to do, without stack or password: for a ledger a `LedgerError`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.guarantee import DataError, LedgerError

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError


@dataclass(frozen=True)
class Kept:
    """What a database keeps, in the words of its errors.

    Args:
        what: its name.
        error: what is raised.
        undone: what did not happen when a transaction failed.
        lost: what is known when a connection was lost.
        restored: what to do after a backup was restored.
    """

    what: str = "ledger"
    error: type[DataError] = LedgerError
    undone: str = " Nothing was spent."
    lost: str = " Nothing was released; whether the debit was recorded shows in ledger.events."
    restored: str = " and count everything released since that backup as spent"

    def failed(self, name: str, why: str) -> DataError:
        """The error to raise for what is kept at ``name``."""
        return self.error(f"{self.what} {name}: {why}")


LEDGER = Kept()

_SQLITE = {
    "SQLITE_BUSY": "other processes kept it locked too long; try again, or find the process that holds it.",
    "SQLITE_READONLY": "it can't be written; make the file and its directory writable, or use another place.",
    "SQLITE_PERM": "it can't be written; make the file and its directory writable, or use another place.",
    "SQLITE_CANTOPEN": "it can't be opened; check that the file exists and that you may read and write it "
    "and its directory.",
    "SQLITE_FULL": "the disk is full; free some space and try again.",
    "SQLITE_IOERR": "the disk failed to read or write it; check free space, quota and the disk's health.",
    "SQLITE_NOTADB": "this file is not a {what}; give another path, and leave this file alone.",
    "SQLITE_CORRUPT": "the file is damaged; restore it from a backup{restored}.",
}

_OF_VALUES = "of_values"
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


def of_database(name: str, error: SQLAlchemyError | sqlite3.Error, kept: Kept = LEDGER) -> DataError:
    """The error to raise for a failed transaction on what is kept at ``name``."""
    from sqlalchemy import exc

    made = _of_database(name, error, kept)
    setattr(made, _OF_VALUES, isinstance(error, exc.DataError | exc.IntegrityError))
    return made


def of_values(error: BaseException) -> bool:
    """Whether the database refused what it was given, such as a text that it can't store: then it is there, and takes other values."""
    return bool(getattr(error, _OF_VALUES, False))


def _of_database(name: str, error: SQLAlchemyError | sqlite3.Error, kept: Kept) -> DataError:
    cause = getattr(error, "orig", error)
    if isinstance(cause, sqlite3.Error):
        known = _sqlite_name(cause)
        return (
            _advice(name, known, kept) if known in _SQLITE else kept.failed(name, f"SQLite says: {cause}.{kept.undone}")
        )
    said = " ".join(str(cause).split("\n", 1)[0].split())
    if getattr(error, "connection_invalidated", False):
        return kept.failed(name, f"the connection was lost ({said}).{kept.lost}")
    if getattr(cause, "sqlstate", None) is None:
        check = "Check host, port, user and password."
        return kept.failed(name, f"the Postgres server can't be reached ({said}). {check}{kept.undone}")
    return kept.failed(name, f"Postgres refused ({said}).{kept.undone}")


def of_system(name: str, error: OSError | ValueError, kept: Kept = LEDGER) -> DataError:
    """The error to raise when the operating system refuses to look at the file."""
    said = error.strerror if isinstance(error, OSError) else error
    return kept.failed(name, f"it can't be opened ({said}); check the path and its permissions.")


def locked(name: str, kept: Kept = LEDGER) -> DataError:
    """The error to raise when others kept the file locked."""
    return _advice(name, "SQLITE_BUSY", kept)


def corrupt(name: str, kept: Kept = LEDGER) -> DataError:
    """The error to raise when what is stored makes no sense."""
    return _advice(name, "SQLITE_CORRUPT", kept)


def _advice(name: str, known: str, kept: Kept) -> DataError:
    return kept.failed(name, _SQLITE[known].format(what=kept.what, restored=kept.restored) + kept.undone)


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
