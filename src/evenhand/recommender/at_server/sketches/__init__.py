"""The server's half of each sketch: derive queries in bulk, add up what the reports say, and read it."""

from __future__ import annotations

from evenhand.recommender.at_server.sketches.base import RatedSets, ServerSketch, Sums
from evenhand.recommender.at_server.sketches.maxsense import MaxSense
from evenhand.recommender.at_server.sketches.multi_maxsense import MultiMaxSense
from evenhand.recommender.at_server.sketches.pairwise import Pairwise
from evenhand.recommender.at_server.sketches.projection import Projection
from evenhand.recommender.messages import Task

_SKETCHES: dict[str, type[ServerSketch]] = {
    "pairwise": Pairwise,
    "maxsense": MaxSense,
    "multi-maxsense": MultiMaxSense,
    "projection": Projection,
}


def sketch_for(task: Task, rated: RatedSets | None = None) -> ServerSketch:
    """The server's half of the task's sketch; ``rated`` is for tasks that treat the rated items as public."""
    return _SKETCHES[task.sketch](task, rated)


__all__ = ["RatedSets", "ServerSketch", "Sums", "sketch_for"]
