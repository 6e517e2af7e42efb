"""The client's half of each sketch: derive the query, and say the true bits it asks for."""

from __future__ import annotations

from typing import Any

from evenhand.recommender.at_home.sketches.base import HomeSketch
from evenhand.recommender.at_home.sketches.maxsense import MaxSense
from evenhand.recommender.at_home.sketches.multi_maxsense import MultiMaxSense
from evenhand.recommender.at_home.sketches.pairwise import Pairwise
from evenhand.recommender.at_home.sketches.projection import Projection
from evenhand.recommender.messages import Task

_SKETCHES: dict[str, type[HomeSketch[Any]]] = {
    "pairwise": Pairwise,
    "maxsense": MaxSense,
    "multi-maxsense": MultiMaxSense,
    "projection": Projection,
}


def sketch_for(task: Task) -> HomeSketch[Any]:
    """The client's half of the task's sketch."""
    return _SKETCHES[task.sketch](task)


__all__ = ["HomeSketch", "sketch_for"]
