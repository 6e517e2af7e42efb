"""Answers on their way to the store: a draw is kept until it is durable, however long the store is away, and nothing is drawn twice.

Whether a commit that broke off was done is not known; the next try reads first, and what was stored first stays (`Desk.store`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evenhand.guarantee import DataError
from evenhand.ledger.desk import AlreadyPaid

log = logging.getLogger("evenhand.keeper")

WORKERS = 16
"""Threads: they wait for the disk together, and one commit is for all of them (`ledger/batches.py`)."""
_FIRST, _LONGEST = 0.05, 5.0  # seconds between tries

T = TypeVar("T")


class Closing(Exception):  # noqa: N818 - no error
    """The server stops while the store is away: what is not stored is drawn after the restart."""


class Storing:
    """Threads that store what was drawn."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, "store")
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._away: set[str] = set()

    @property
    def away(self) -> int:
        """How many questions wait for the store to come back."""
        return len(self._away)

    def add(self, work: Callable[[], object]) -> None:
        """Have something done by one of the threads."""
        self._pool.submit(work)

    def until_done(self, id: str, work: Callable[[], T]) -> T:
        """Do a transaction for a question, again and again until the store has done it; ``work`` reads before it writes."""
        pause = _FIRST
        while True:
            try:
                done = work()
            except AlreadyPaid:
                raise
            except DataError as error:
                with self._lock:
                    first = id not in self._away
                    self._away.add(id)
                if first:
                    log.error(
                        "the store failed: the question was spent, its answer is kept and will be stored",
                        extra={"question": id, "error": type(error).__name__},
                    )
            else:
                if id in self._away:
                    with self._lock:
                        self._away.discard(id)
                    log.warning("the store is back: the answer that was kept is stored", extra={"question": id})
                return done
            if self._closing.wait(pause):
                raise Closing
            pause = min(2 * pause, _LONGEST)

    def close(self) -> None:
        """Let stores end that are under way; what the store does not take now is drawn after the restart."""
        self._closing.set()
        self._pool.shutdown(wait=True)
