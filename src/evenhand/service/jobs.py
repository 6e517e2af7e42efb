"""A worker, and the questions that wait for it: in turns by analyst, each within its slot, none past its deadline.

The order is free as long as all that waits can still be computed in time, each with its whole slot: then the next is that of the analyst
whose turn it is. Otherwise it is the one whose deadline comes first.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import insort
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from evenhand.service.schedule import Place, Schedule, turns
from evenhand.tables.engines.stopping import Work

log = logging.getLogger("evenhand.keeper")

WATCHED = 0.005
"""Seconds between two looks at the question that is computed, while there is one."""
STUCK = 30.0
"""Seconds beyond its slot after which a question that can't be stopped is reported."""


@dataclass(eq=False)
class Job:
    """A question that waits.

    Args:
        place: its slot.
        work: what is to be done within it; told what watches it.
    """

    place: Place
    work: Callable[[Work], None]
    id: str = ""

    def __lt__(self, other: Job) -> bool:
        return self.place.latest < other.place.latest


@dataclass
class Lane:
    """One worker. Threads start with the first job.

    Args:
        name: for the logs.
        schedule: what it has taken on.
    """

    name: str
    schedule: Schedule
    _waiting: list[Job] = field(default_factory=list)  # by deadline
    _of: dict[str, deque[Job]] = field(default_factory=dict)  # by analyst
    _seconds: float = 0.0  # of all that wait
    _last: str = ""
    _ending: bool = False
    _closed: bool = False
    _running: tuple[Job, Work] | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _threads: list[threading.Thread] = field(default_factory=list)

    def add(self, job: Job) -> None:
        """Have it done in its turn."""
        with self._changed:
            insort(self._waiting, job)
            self._of.setdefault(job.place.analyst, deque()).append(job)
            self._seconds += job.place.slot
            if not self._threads:
                self._threads = [
                    threading.Thread(target=one, name=self.name, daemon=True) for one in (self._run, self._watch)
                ]
                for thread in self._threads:
                    thread.start()
            self._changed.notify_all()

    def end(self) -> None:
        """Take on nothing more, and end once all that waits is done."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def close(self, until: float) -> None:
        """`end`, and wait for it until a time by the monotonic clock; what waits then is left undone."""
        self.end()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def next(self, now: float) -> Job:
        """Which of those that wait comes now."""
        first = self._waiting[0]
        if len(self._of) == 1:
            return first
        mine = self._of[turns(self._last, list(self._of))][0]
        if now + self._seconds <= first.place.latest:  # whatever the order
            return mine
        until = now + mine.place.slot
        for job in self._waiting:
            if job is not mine:
                until += job.place.slot
                if until > job.place.latest:
                    return first
        return mine

    def _take(self) -> Job | None:
        with self._changed:
            while not self._waiting and not self._ending:
                self._changed.wait()
            if self._closed or not self._waiting:
                self._closed = True
                self._changed.notify_all()
                return None
            job = self.next(self.schedule.clock())
            self._waiting.remove(job)
            mine = self._of[job.place.analyst]
            mine.remove(job)
            if not mine:
                del self._of[job.place.analyst]
            grace = self.schedule.grace(self._seconds)
            self._seconds -= job.place.slot
            self._last = job.place.analyst
            self._running = (job, Work(job.place.slot + grace))
            self._changed.notify_all()
            return job

    def _run(self) -> None:
        while (job := self._take()) is not None:
            running = self._running
            assert running is not None
            try:
                job.work(running[1])
            except Exception as error:  # of what is left to do after the work itself; nobody waits for it here
                log.error("defect", extra={"question": job.id, "error": type(error).__name__})
            finally:
                self._running = None
            del job, running  # a thread that waits keeps no table open

    def _watch(self) -> None:
        """Stop what has used up its slot."""
        stopping: tuple[Work, float] | None = None
        while True:
            with self._changed:
                while self._running is None and not self._closed:
                    self._changed.wait()
                running = self._running
                if running is None:
                    return
            job, work = running
            if work.check() and (stopping is None or stopping[0] is not work):
                stopping = (work, time.monotonic())
            if stopping and stopping[0] is work and time.monotonic() - stopping[1] > STUCK:
                log.error("question can't be stopped", extra={"question": job.id})
                stopping = (work, time.monotonic())
            time.sleep(WATCHED)


def settled(value: Any) -> Future[Any]:  # noqa: ANN401 - whatever was waited for
    """A future that is done."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future
