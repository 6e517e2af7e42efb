"""Where the threads of a process spend their time: their stacks, looked at two hundred times a second."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY = 0.005
"""Seconds between two looks."""
WRITTEN = 500
"""Looks after which the file is written again."""
WAITS = ("threading.py", "queue.py", "selectors.py", "concurrent/futures")
"""Files in which a thread that is looked at waits for others."""


def sampling(path: str) -> None:
    """Look as long as the process lives, and write what was seen now and then: nobody knows when it ends."""
    seen: Counter[tuple[str, ...]] = Counter()

    def look() -> None:
        me = threading.get_ident()
        for looks in itertools.count(1):
            time.sleep(EVERY)
            if looks % WRITTEN == 0:
                Path(path).write_text(told(dict(seen), looks), encoding="utf-8")
            for thread, frame in sys._current_frames().items():
                if thread != me and not frame.f_code.co_filename.endswith(WAITS):
                    seen[stack(frame)] += 1

    threading.Thread(target=look, daemon=True).start()


def stack(frame: FrameType | None) -> tuple[str, ...]:
    """The functions of a stack, the innermost first."""
    found = []
    while frame is not None:
        code = frame.f_code
        found.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_qualname}")
        frame = frame.f_back
    return tuple(found)


def told(seen: dict[tuple[str, ...], int], looks: int) -> str:
    """Two lists: time in a function itself, and with all that it calls, in parts of the process's time by the clock."""
    inner: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for functions, count in seen.items():
        inner[functions[0]] += count
        for function in set(functions):
            whole[function] += count
    lines = []
    for name, counted in (("in the function itself", inner), ("with what it calls", whole)):
        lines += [f"## {name}, of {looks} looks", ""]
        lines += [f"{count / max(looks, 1):7.3f}  {function}" for function, count in counted.most_common(90)]
        lines += [""]
    return "\n".join(lines)
