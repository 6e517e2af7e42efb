"""Every error Evenhand raises on purpose.

    EvenhandError
    ├── UsageError          a parameter is wrong              (exit code 2)
    ├── BudgetExceeded      the ledger refuses the debit      (exit code 3)
    └── DataError           the data can't be read as asked   (exit code 4)
        ├── EngineError     the engine is missing or failed
        ├── LedgerError     the ledger can't be read or written
        └── MessageError    a message of the recommender is malformed

A message says what was given, what was expected and what to do. It never holds anything read from
the rows of a table: column names and parameters only.
"""

from __future__ import annotations

import datetime
import difflib
import numbers
import uuid
from collections.abc import Iterable


class EvenhandError(Exception):
    """The base of all errors raised by Evenhand."""

    exit_code = 1


class UsageError(EvenhandError, ValueError):
    """A parameter is missing, malformed or would void the guarantee."""

    exit_code = 2


class BudgetExceeded(EvenhandError):  # noqa: N818 (the public name)
    """The ledger does not hold enough budget for this release. Nothing was read or spent."""

    exit_code = 3


class DataError(EvenhandError):
    """The source can't be read, or lacks what was asked for."""

    exit_code = 4


class EngineError(DataError):
    """The engine is missing (Java, PySpark) or failed."""


class LedgerError(DataError):
    """The ledger can't be opened, read or written."""


class MessageError(DataError):
    """A message of the recommender is cut, altered, not valid or none at all; nothing was done with it."""


_QUOTED = (str, bytes, numbers.Number, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, type(None))


def told(given: object) -> str:
    """A parameter as a message may quote it: text, numbers, and lists of them. Of anything else the type: expressions and frames print rows."""
    several = list(given.items()) if isinstance(given, dict) else given if isinstance(given, list | tuple) else [given]
    parts = [part for each in several for part in (each if isinstance(each, list | tuple) else [each])]
    return repr(given) if all(isinstance(part, _QUOTED) for part in parts) else f"<{type(given).__name__}>"


def suggest(given: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` when a known name is close to the given one, else nothing."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
