"""Threads for work that waits: whoever checks tokens is never kept from it, and nobody takes all turns of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from evenhand.service.refusals import Refused

T = TypeVar("T")

TOKENS = 8
"""Threads that check tokens; each does so for a millisecond."""


class Turns:
    """Threads for one kind of work, with turns among those who have it done.

    Args:
        threads: in all.
        at_once: of one account.
        waiting: requests of one account that may wait for their turn.
    """

    def __init__(self, threads: int, at_once: int, waiting: int) -> None:
        self._threads = CapacityLimiter(threads)
        self._at_once, self._most = at_once, at_once + waiting
        self._here: Counter[str] = Counter()
        self._turns: dict[str, CapacityLimiter] = {}

    async def run(self, who: str, work: Callable[..., T], *given: Any) -> T:  # noqa: ANN401 - whatever the work takes
        """Have it done in a thread, in the turn of an account."""
        if self._here[who] >= self._most:
            raise Refused(429, "too many requests", f"{self._most} of your requests are waiting; ask again later.")
        self._here[who] += 1
        turn = self._turns.setdefault(who, CapacityLimiter(self._at_once))
        try:
            async with turn:
                return await run_sync(partial(work, *given), limiter=self._threads)
        finally:
            self._here[who] -= 1
            if not self._here[who]:
                del self._here[who], self._turns[who]


class Threads:
    """The threads of one server, by what they do."""

    def __init__(self, prices: int) -> None:
        self._tokens = CapacityLimiter(TOKENS)
        self.prices = Turns(prices, at_once=1, waiting=15)
        self.work = Turns(40, at_once=16, waiting=240)

    async def checked(self, work: Callable[..., T], *given: Any) -> T:  # noqa: ANN401 - whatever the work takes
        """Who presents a token."""
        return await run_sync(partial(work, *given), limiter=self._tokens)
