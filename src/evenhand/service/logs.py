"""What a server writes to its log: one JSON line for each event, whoever logs it, and no text that somebody sent.

The server's own events are named in its code, and their fields are names, numbers and kinds. What a library says may quote a question
(sqlglot warns with the SQL that it does not know), so of its messages only their place in its code is written: enough to look
them up, nothing that an analyst chose.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

OURS = "evenhand"
SELDOM = 60.0
"""Seconds in which an event that strangers can cause at will has one line."""

log = logging.getLogger("evenhand.process")


class JsonLines(logging.Formatter):
    """A log line as one JSON object: the event and the fields given with it, nothing formatted from data."""

    _own = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        now = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {"time": now, "level": record.levelname}
        if record.name == OURS or record.name.startswith(f"{OURS}."):
            fields = {name: value for name, value in vars(record).items() if name not in self._own}
            told |= {"event": record.msg, **fields}
        else:
            told |= {"event": "library", "logger": record.name, "place": _place(record)}
            told |= {"times": getattr(record, "times", 1)}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
        return json.dumps(told, default=str)


class Seldom:
    """Lets an event through once in a while, with how often it happened since it was last let through."""

    def __init__(self, seconds: float = SELDOM, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._until, self._times = -seconds, 0
        self._lock = threading.Lock()

    def happened(self) -> int:
        """How often, if it is to be said now; else 0."""
        with self._lock:
            self._times += 1
            now = self._clock()
            if now < self._until:
                return 0
            told, self._times, self._until = self._times, 0, now + self._seconds
            return told


class _Rarely(logging.Filter):
    """What a library says is said once a minute for each place in its code: a stranger who sends nonsense makes it say the same again and again."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, str], Seldom] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == OURS or record.name.startswith(f"{OURS}."):
            return True
        times = self._places.setdefault((record.name, _place(record)), Seldom()).happened()
        vars(record)["times"] = times
        return bool(times)


def _place(record: logging.LogRecord) -> str:
    return f"{record.module}:{record.lineno}"


def install() -> logging.Handler:
    """From now on everything that this process logs, warns of or fails with is a line on its standard error; the handler that writes."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    handler.addFilter(_Rarely())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(logging.INFO)
    for name in list(
        logging.root.manager.loggerDict
    ):  # libraries that write by themselves, whenever they were imported
        known = logging.getLogger(name)
        known.handlers.clear()
        known.propagate = True
    logging.captureWarnings(True)
    sys.excepthook = lambda kind, *_: log.critical("process failed", extra={"error": kind.__name__})
    threading.excepthook = lambda failed: log.error("thread failed", extra={"error": failed.exc_type.__name__})
    sys.unraisablehook = lambda failed: log.error("not raised", extra={"error": failed.exc_type.__name__})
    return handler


def watch_loop(loop: asyncio.AbstractEventLoop) -> None:
    """What fails outside of any request is said once a minute for each kind: strangers can make accepting connections fail at will."""
    kinds: dict[tuple[str, str], Seldom] = {}

    def failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        event = "connection not accepted" if "accept" in str(context.get("message", "")) else "loop failed"
        kind = type(error).__name__
        times = kinds.setdefault((event, kind), Seldom()).happened()
        if times:
            log.error(event, extra={"error": kind, "times": times})

    loop.set_exception_handler(failed)
