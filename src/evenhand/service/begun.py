"""What workers begin is noted in the store before, so that a question that takes the server down is known when it starts again."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress

from evenhand.guarantee import DataError
from evenhand.ledger.desk import Desk, StoredQuestion

log = logging.getLogger("evenhand.keeper")

MARKED = 0.05
"""Seconds: a question with a longer slot is noted. Shorter ones read a few sums that are kept."""
MARKING = 0.05
"""Seconds that the note may take of a slot: one commit."""


class Begun:
    """The questions that workers have begun: by this server, and by those before it that died."""

    def __init__(self) -> None:
        self._now: dict[str, Desk] = {}  # noted, and not drawn yet
        self._before: dict[str, int] = {}

    def recall(self, desks: Iterable[Desk]) -> None:
        """Read what earlier servers began and never answered."""
        for desk in desks:
            self._before |= desk.started()

    def times(self, id: str) -> int:
        """How often a question was begun by servers that died meanwhile."""
        return self._before.get(id, 0)

    def note(self, desk: Desk, asked: StoredQuestion, worker: str) -> None:
        """Note that a question begins. If the store is away it begins all the same: others must not wait for the store."""
        try:
            desk.note_started(worker, asked.id)
        except DataError as error:
            log.error("the store does not answer", extra={"question": asked.id, "error": type(error).__name__})
        self._now[asked.id] = desk

    def drawn(self, id: str) -> None:
        """Its worker has done with it."""
        self._now.pop(id, None)

    def note_again(self, desk: Desk, asked: StoredQuestion) -> None:
        """Note that the empty table's answer is drawn for a question that is set aside."""
        desk.note_started(asked.id, asked.id, self.times(asked.id) + 1)

    def close(self) -> None:
        """In good order: what still runs only took too long."""
        for id, desk in list(self._now.items()):
            with suppress(DataError):
                desk.forget_started(id)
