"""Stopping work that takes longer than was declared for it: the statement that runs is interrupted, and so is Python between statements.

What counts is what the work itself uses: the time of its statements, and its thread's own processor time between them. Waiting for
other threads costs nothing, so nobody else can use up what was declared for it. A statement that runs inside this process counts no more
than the processor time that the process got meanwhile, down to a quarter of the time: a machine that does something else stops nothing.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


SLOWED = 4.0
"""How many times slower than usual a busy machine may make a statement before that counts."""


class Stopped(BaseException):
    """Work took longer than was declared for it. (Not an `Exception`: nothing on the way may take it for a failure of its own.)"""


class Work:
    """A piece of work that may be stopped, run by one thread and watched by another.

    Args:
        seconds: that it may use.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._thread, self._clock = 0, time.monotonic
        self._spent = self._since = 0.0
        self._interrupt: Callable[[], object] | None = None  # of the statement that runs
        self._processor: float | None = None  # what this process had used when it began, if it runs here
        self._spared = 0
        self._stopped = self._sent = False
        self._over = True

    @property
    def used(self) -> float:
        """Seconds so far."""
        with self._lock:
            return self._used()

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stopped

    def run(self, work: Callable[[], T]) -> T:
        """Do it in this thread; raises Stopped if it was stopped before it was done."""
        self._thread, self._clock = threading.get_ident(), _processor_clock()
        self._since, self._over = self._clock(), False
        token = _present.set(self)
        try:
            try:
                result = work()
            finally:
                self._close()
        except Stopped:
            self._close()  # it may have broken off the first
            raise
        except Exception:
            if self._stopped:  # what the interrupted statement raised
                raise Stopped from None
            raise
        finally:
            _present.reset(token)
        if self._stopped:
            raise Stopped
        return result

    def check(self) -> bool:
        """Stop it if it has used more than it may, and again if it goes on; for the thread that watches. Whether it is being stopped."""
        with self._lock:
            if self._over or self._used() <= self.seconds:
                return self._stopped
            self._stopped = True
            if self._interrupt is not None:
                self._interrupt()  # with the lock: the statement can't end meanwhile, so that no other is hit
            elif not self._sent and not self._spared:
                self._sent = True
                _raise_in(self._thread, Stopped)
            return True

    def begin(self, interrupt: Callable[[], object], inside: bool) -> None:
        """A statement begins, which ``interrupt`` breaks off."""
        with self._lock:
            if self._stopped and not self._spared:
                raise Stopped
            self._spent, self._since, self._interrupt = self._used(), time.monotonic(), interrupt
            self._processor = time.process_time() if inside else None

    def end(self) -> None:
        """The statement has ended."""
        with self._lock:
            self._spent, self._since, self._interrupt = self._used(), self._clock(), None

    @contextmanager
    def spared(self) -> Iterator[None]:
        self._spared += 1
        try:
            yield
        finally:
            self._spared -= 1

    def _used(self) -> float:
        if self._over:
            return self._spent
        if self._interrupt is None:
            return self._spent + self._clock() - self._since
        took = time.monotonic() - self._since
        if self._processor is not None:
            took = max(min(took, time.process_time() - self._processor), took / SLOWED)
        return self._spent + took

    def _close(self) -> None:
        with self._lock:
            if not self._over:
                self._spent, self._over = self._used(), True
                if self._sent:
                    _raise_in(self._thread, None)  # it may not have arrived yet; from here on it must not


_present: ContextVar[Work | None] = ContextVar("evenhand_work", default=None)


@contextmanager
def statement(interrupt: Callable[[], object], inside: bool) -> Iterator[None]:
    """Around a statement of an engine; ``interrupt`` breaks it off, from another thread. ``inside`` says that it runs in this process."""
    work = _present.get()
    if work is None:
        yield
        return
    work.begin(interrupt, inside)
    try:
        yield
    finally:
        work.end()


@contextmanager
def spared() -> Iterator[None]:
    """A block that is finished even by work that is being stopped: what it has made is put away there."""
    work = _present.get()
    if work is None:
        yield
        return
    with work.spared():
        yield


def _processor_clock() -> Callable[[], float]:
    """The processor time of this thread, for any thread to read; where a system can't tell, the time."""
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
    except (AttributeError, OSError):
        return time.monotonic
    return lambda: time.clock_gettime(clock)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have an exception raised in a thread, at its next step in Python; None takes back one that has not arrived."""
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
