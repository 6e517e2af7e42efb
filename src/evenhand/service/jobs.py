"""Questions that wait to be computed: a few at a time, those with a deadline first."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import PriorityQueue

COMPUTED = 4
"""Questions that are computed at the same time."""
WORKERS = 16
"""Threads: most of them wait until what they have computed is on disk, which takes longer, and is done for all who wait at once."""

Job = tuple[Callable[[], str], Future[str]]


class Jobs:
    """A queue, and threads that are started with the first job.

    Args:
        workers: how many.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._workers = workers
        self._queue: PriorityQueue[tuple[int, int, Job | None]] = PriorityQueue()
        self._numbers = itertools.count()
        self._threads: list[threading.Thread] = []
        self._start = threading.Lock()
        self.computing = threading.BoundedSemaphore(COMPUTED)
        """Held by a job while it computes, and not while it waits for the disk."""

    def add(self, work: Callable[[], str], *, first: bool) -> Future[str]:
        """Have it done; what comes back can be waited for."""
        future: Future[str] = Future()
        self._queue.put((0 if first else 1, next(self._numbers), (work, future)))
        with self._start:
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._run, name="question", daemon=True) for _ in range(self._workers)
                ]
                for thread in self._threads:
                    thread.start()
        return future

    def close(self, patience: float) -> None:
        """Let running jobs end, for so many seconds; those that wait are left undone."""
        until = time.monotonic() + patience
        for _ in self._threads:
            self._queue.put((-1, next(self._numbers), None))
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while True:
            job = self._queue.get()[2]
            if job is None:
                return
            work, future = job
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del job, work, future  # a thread that waits keeps no table open
