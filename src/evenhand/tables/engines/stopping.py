"""Statements that last too long are stopped: each by itself, and all of a question together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float | None] = ContextVar("evenhand_end", default=None)

_AGAIN = 0.05
"""Seconds between two attempts to stop one statement: an engine forgets an interrupt that comes before its statement has begun."""
_IDLE = 10.0
"""Seconds without a statement to watch, after which the thread ends."""


class Stopped(Exception):  # noqa: N818 - the engine's failure is named after it
    """The time of a question was over before a statement could begin."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Within this block, statements end when so many seconds are over, and no other begins, on engines that can stop one.

    What is stopped fails as every failure of an engine does. Blocks may be nested; the first end counts.
    """
    end, outer = time.monotonic() + seconds, _end.get()
    token = _end.set(end if outer is None else min(end, outer))
    try:
        yield
    finally:
        _end.reset(token)


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
        end = _end.get()
        if self.seconds is not None:
            own = time.monotonic() + self.seconds
            end = own if end is None else min(own, end)
        if end is None:
            yield
            return
        if end <= time.monotonic():
            raise Stopped
        self._watch(end)
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
