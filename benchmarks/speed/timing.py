"""Timing by turns: the two sides of a ratio alternate, so that a busy moment hits both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any


def compare(sides: Mapping[str, Callable[[], Any]], repeats: int = 7) -> dict[str, float]:
    """The best time of each side, in seconds, after one warm-up each."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _ in range(repeats):
        for name, run in sides.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: min(several) for name, several in times.items()}


def middle(run: Callable[[], float], repeats: int = 5) -> float:
    """The median of a measured figure."""
    return median(run() for _ in range(repeats))
