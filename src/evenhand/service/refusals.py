"""What somebody who asked is told when it can't be done: what is wrong with a question, and nothing about the keeper's machines."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.guarantee import BudgetExceeded, EngineError, EvenhandError, LedgerError, UsageError
from evenhand.ledger.desk import Busy, NeedsApproval

log = logging.getLogger("evenhand.http")

_LATER = (
    "the server can't do this now, and its keeper's log says why. Try again later; a question that is asked again with the same key is never "
    "paid twice."
)
_LONGEST = 2000
"""Characters of a message."""
_HIDDEN = "of the keeper"


class Refused(Exception):  # noqa: N818
    """A request that is not let in."""

    def __init__(self, status: int, kind: str, message: str, retry_after: int = 2) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.retry_after = status, kind, message, retry_after


class Unavailable(EvenhandError):  # noqa: N818
    """What the server needs does not answer now."""


@dataclass(frozen=True)
class Refusals:
    """Errors in the form in which they may leave.

    Args:
        places: names of files and databases, which are the keeper's own.
    """

    places: tuple[str, ...]

    @classmethod
    def hiding(cls, places: Iterable[str | None]) -> Refusals:
        """Without any of these, a longer one first: it may hold a shorter one."""
        return cls(
            tuple(sorted({one for one in places if one and "/" in one.replace("\\", "/")}, key=len, reverse=True))
        )

    def of(self, error: EvenhandError) -> Refused:
        """The refusal of a request that failed with an error."""
        if isinstance(error, LedgerError | EngineError | Unavailable):  # they quote databases and systems
            log.error("not available", extra={"error": type(error).__name__, "why": str(error)})
            return Refused(503, "unavailable", _LATER)
        text = str(error)
        for place in self.places:
            text = text.replace(place, _HIDDEN)
        if len(text) > _LONGEST:  # it quotes a long question
            text = f"{text[:_LONGEST]}…"
        if isinstance(error, Busy):
            return Refused(429, "busy", text, error.retry_after)
        if isinstance(error, NeedsApproval):
            return Refused(409, "needs approval", text)
        if isinstance(error, BudgetExceeded):
            return Refused(402, "budget", text)
        return Refused(400, "usage", text) if isinstance(error, UsageError) else Refused(422, "data", text)
