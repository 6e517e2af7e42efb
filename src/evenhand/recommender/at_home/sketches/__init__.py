"""The client's half of each sketch: derive the query, and say the true bits it asks for."""

from __future__ import annotations

from typing import Any

from evenhand.recommender.at_home.sketches.base import HomeSketch
from evenhand.recommender.messages import SKETCHES, Task, load_half


def sketch_for(task: Task) -> HomeSketch[Any]:
    half: type[HomeSketch[Any]] = load_half(SKETCHES[task.sketch].home)
    return half(task)


__all__ = ["HomeSketch", "sketch_for"]
