"""The server's half of each sketch: derive queries in bulk, add up what the reports say, and read it."""

from __future__ import annotations

from evenhand.recommender.at_server.sketches.base import Bits, Ints, Opinions, Population, RatedSets, ServerSketch, Sums
from evenhand.recommender.messages import SKETCHES, Task, load_half


def half_of(sketch: str) -> type[ServerSketch]:
    """The server's half of a sketch, by its name in the list."""
    return load_half(SKETCHES[sketch].server)


def sketch_for(task: Task, rated: RatedSets | None = None) -> ServerSketch:
    """The server's half of the task's sketch; ``rated`` is for tasks that treat the rated items as public."""
    return half_of(task.sketch)(task, rated)


__all__ = ["Bits", "Ints", "Opinions", "Population", "RatedSets", "ServerSketch", "Sums", "half_of", "sketch_for"]
