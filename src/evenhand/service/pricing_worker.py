"""A process that works prices out: it is given the shapes of tables, then questions, one after the other."""

from __future__ import annotations

import os
import pickle
import sys
from typing import BinaryIO

from evenhand.guarantee import UsageError
from evenhand.service.pricing import MEGABYTES, SECONDS, priced

_NICE = 10
"""Answers that were paid for come first."""


def main() -> None:
    """Answer until the server closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    os.nice(_NICE)
    asked = sys.stdin.buffer
    tables = {name: shape.opened() for name, shape in pickle.loads(_read(asked)).items()}
    _limit_memory()
    _write(answers, b"ready")
    while given := _read(asked):
        name, question, profile = pickle.loads(given)
        _limit_time()
        try:
            _write(answers, priced(tables[name], question, profile))
        except MemoryError:
            os._exit(1)  # the server says why
        except Exception as error:  # a defect: it is told by its kind, as everywhere
            _write(answers, pickle.dumps(UsageError(f"this question can't be worked out ({type(error).__name__}).")))


def _limit_memory() -> None:
    try:
        from resource import RLIMIT_DATA, setrlimit
    except ImportError:  # Windows
        return
    try:
        with open("/proc/self/status") as status:
            now = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    except (OSError, StopIteration):  # no Linux: the time ends it
        return
    most = now + MEGABYTES * 2**20
    setrlimit(RLIMIT_DATA, (most, most))


def _limit_time() -> None:
    try:
        from resource import RLIM_INFINITY, RLIMIT_CPU, RUSAGE_SELF, getrusage, setrlimit
    except ImportError:  # Windows: the server's patience ends it
        return
    used = getrusage(RUSAGE_SELF)
    setrlimit(RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + SECONDS + 1, RLIM_INFINITY))


def _read(source: BinaryIO) -> bytes:
    size = source.read(8)
    return source.read(int.from_bytes(size, "big")) if len(size) == 8 else b""


def _write(answers: BinaryIO, found: bytes) -> None:
    answers.write(len(found).to_bytes(8, "big") + found)
    answers.flush()


if __name__ == "__main__":
    main()
