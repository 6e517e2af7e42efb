"""Second rounds: a task whose epoch names the model of the first, so that its id is bound to it."""

from __future__ import annotations

import hashlib
import re

from evenhand.guarantee import UsageError
from evenhand.recommender.messages.model import PublishedModel
from evenhand.recommender.messages.task import Task

_MARK = re.compile(r"; side ([0-9]{1,3}) of model ([0-9a-f]{32})")


def epoch_after(model: PublishedModel, axis: int, epoch: str) -> str:
    """The epoch of a task that is asked on the sides of a model's axis, numbered from 1."""
    if not 1 <= axis <= model.dimensions:
        raise UsageError(
            f"axis={axis} is out of range: the first round's model has {model.dimensions} axes. Sides need one that "
            "stood out of the noise, as projection and pairwise find."
        )
    return f"{epoch}; side {axis} of model {_digest(model)}"


def is_second_round(task: Task) -> bool:
    """Whether people turn their ratings over by side before they answer."""
    return _MARK.search(task.epoch) is not None


def axis_of(task: Task, model: PublishedModel) -> list[float]:
    """The axis that a second round is about; an error if the model is not that of its first."""
    found = _MARK.search(task.epoch)
    if found is None or found[2] != _digest(model) or model.items != task.items:
        raise UsageError("The task is not a second round after this model: use the model that was published with it.")
    place = int(found[1]) - 1
    if not 0 <= place < model.dimensions:
        raise UsageError("The task names an axis that the model does not have: do not answer it.")
    return [vector[place] for vector in model.embedding]


def _digest(model: PublishedModel) -> str:
    """Of the binary message, which is the same however the model was read."""
    return hashlib.sha256(model.to_bytes()).hexdigest()[:32]
