"""A progress line for long solves, when a person is watching."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WORTH_SHOWING = 3_000_000  # numbers; below it a solve takes a second or two


@contextmanager
def shown(title: str, size: int) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that shows the optimality gap on a terminal, or None where nobody would see it."""
    if size < _WORTH_SHOWING or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{title}: starting") as status:

        def update(gap: float) -> None:
            known = f"within {gap:.1%} of the optimum" if math.isfinite(gap) else "starting"
            status.update(f"{title}: {known}")

        yield update
