"""Statements that last longer than a connection allows are stopped. (`stopping.py` stops all of a question, at the end of its slot.)"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AGAIN = 0.05
"""Seconds between two attempts to stop one statement: an engine forgets an interrupt that comes before its statement has begun."""
_IDLE = 10.0
"""Seconds without a statement to watch, after which the thread ends."""


class Watch:
    """Stops the statement of one connection at the end of its time. A connection runs one at a time.

    Args:
        interrupt: stops what the connection runs; does nothing if it runs nothing.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.seconds: float | None = None
        """How long one statement may run; None for any time."""
        self._interrupt = interrupt
        self._changed = threading.Condition()
        self._until: float | None = None
        self._wakes = 0.0  # when the thread looks next
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self) -> Iterator[None]:
        """Around one statement."""
        if self.seconds is None:
            yield
            return
        self._watch(time.monotonic() + self.seconds)
        try:
            yield
        finally:
            with self._changed:  # from here on nothing interrupts, so the next statement is left alone
                self._until = None

    def _watch(self, end: float) -> None:
        with self._changed:
            self._until = end
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="evenhand time limit", daemon=True)
                self._wakes = end
                self._thread.start()
            elif end < self._wakes:  # else it looks early enough: a statement of a millisecond wakes nobody
                self._changed.notify()

    def _run(self) -> None:
        idle = False
        with self._changed:
            while True:
                now, end = time.monotonic(), self._until
                if end is None and idle:
                    self._thread = None
                    return
                idle = end is None
                if end is not None and end <= now:
                    self._interrupt()
                    end = now + _AGAIN
                self._wakes = now + _IDLE if end is None else end
                self._changed.wait(self._wakes - now)
