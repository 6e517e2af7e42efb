"""How fast reports come in: a limit for all together, and one transaction for all that wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from evenhand.recommender.at_server.store import ReportStatus
from evenhand.service.rates import refilled

MOST_WAITING = 20_000
_AT_ONCE = 4096  # reports in one transaction


class Rate:
    """So many requests a second, with bursts of one second's worth. Nobody is told apart, so no address is looked at."""

    def __init__(self, per_second: int) -> None:
        self._per_second, self._left, self._at = per_second, float(per_second), time.monotonic()

    def admits(self) -> bool:
        now = time.monotonic()
        admitted, self._left = refilled(self._left, now - self._at, self._per_second, self._per_second)
        self._at = now
        return admitted


class Intake:
    """Reports that came wait here for the next transaction; each is answered once it is on disk.

    A transaction syncs the disk however many reports it holds, so while one runs the next ones gather.

    Args:
        take: stores some reports durably, and says what became of each; called in a thread, one call at a time.
    """

    def __init__(self, take: Callable[[list[bytes]], list[ReportStatus]]) -> None:
        self._take = take
        self._waiting: list[tuple[bytes, asyncio.Future[ReportStatus]]] = []
        self._writer: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        return len(self._waiting) >= MOST_WAITING

    async def put(self, record: bytes) -> ReportStatus:
        """What became of a report; raises what storing it raised."""
        answer: asyncio.Future[ReportStatus] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, answer))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await answer

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            work = asyncio.to_thread(self._take, [record for record, _ in batch])
            (outcomes,) = await asyncio.gather(work, return_exceptions=True)
            for place, (_, answer) in enumerate(batch):
                if answer.done():  # its sender went away
                    continue
                if isinstance(outcomes, BaseException):
                    answer.set_exception(outcomes)
                else:
                    answer.set_result(outcomes[place])
