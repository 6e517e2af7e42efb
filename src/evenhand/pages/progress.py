"""Progress for a person: a line on standard error once something takes longer than two seconds; silent for programs.

It says what is being done and for how long, which whoever waits knows anyway: nothing from the rows.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

AFTER = 2.0
"""Seconds before anything is shown."""

_shown: ContextVar[bool] = ContextVar("evenhand_progress", default=False)


@contextmanager
def shown() -> Iterator[None]:
    """A block whose progress is shown already: what it calls shows none of its own."""
    token = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(token)


@contextmanager
def watched(doing: str, after: float = AFTER) -> Iterator[None]:
    """Show what is being done, if a person watches and it takes longer than ``after`` seconds."""
    stream = sys.stderr
    if _shown.get() or not _is_a_persons(stream):
        yield
        return
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(doing, stream, done, after), daemon=True)
    teller.start()
    try:
        with shown():
            yield
    finally:
        done.set()
        teller.join()


def _is_a_persons(stream: TextIO | None) -> bool:
    """A terminal, or a notebook, whose streams are none."""
    try:
        terminal = stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
    return terminal or (stream is not None and type(stream).__module__.startswith("ipykernel."))


def _tell(doing: str, stream: TextIO, done: threading.Event, after: float) -> None:
    start, line = time.monotonic(), ""
    while not done.wait(after if not line else 1.0):
        line = f"{doing}: {time.monotonic() - start:.0f} s"
        stream.write(f"\r{line}")
        stream.flush()
    if line:
        stream.write(f"\r{' ' * len(line)}\r")
        stream.flush()
