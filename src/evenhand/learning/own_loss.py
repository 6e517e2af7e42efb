"""A loss of one's own: evaluated on a public grid before anything is paid for or read, so its code never sees a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.base import public_number
from evenhand.learning.private_values import Floats
from evenhand.learning.slopes import LABEL_STEPS, REACH, Shorts, Slopes, in_steps, places
from evenhand.learning.targets import Bounded, Targets
from evenhand.tables import parse_bounds

_CELLS = 2**12  # over the range of scores
_BITS = 6  # of a cell: scores from −32 to 32
_LEVELS = 2**8  # of the label between its bounds; in between slopes are interpolated
_SPAN = _CELLS // (2 * REACH)  # cells over which a slope's change is measured: a corner counts as that wide


class Loss(ABC):
    """A convex loss ℓ(score, label) of your own, for `WeightedERM`: its slope, and over which scores to look at it.

    The clamp on users carries the guarantee whatever ``slope`` returns; if the loss is not convex the model may be bad, not less
    private. ``slope`` is called once, before the debit, with arrays of public scores and labels, never with rows; what it raises is
    raised. There is no guarantee for a loss that was made from the rows. It runs where you run it: no server takes one.

    Attributes:
        classifies: whether labels are two ``classes``, −1 and +1; otherwise they are numbers within ``label_bounds``.
        scores: (low, high) of useful scores; beyond, the slope is that of the end. A descent starts in the middle. By default
            (−8, 8) for classes; for numbers the label bounds and half their width on each side.
        steepest: slopes are cut to this, which leaves a convex loss convex; by default the largest on the grid. They are kept to
            1/16,384 of it, so it should be of the size of usual slopes.
        smoothness: how fast a slope changes at most where scores will be; steps are as long as it allows. By default the
            largest on the grid.

    Example:
        >>> class Poisson(Loss):  # the score is the logarithm of a rate
        ...     scores, steepest = (-4, 4), 20
        ...
        ...     def slope(self, score, label):
        ...         return np.exp(score) - label
        ...
        ...     def prediction(self, score):
        ...         return np.exp(score)
    """

    classifies: bool = False
    scores: tuple[float, float] | None = None
    steepest: float | None = None
    smoothness: float | None = None

    @abstractmethod
    def slope(self, score: Floats, label: Floats) -> Floats:
        """dℓ/dscore, elementwise."""

    def prediction(self, score: Floats) -> NDArray[Any]:
        """What to predict for a score where labels are numbers; the score itself unless you say otherwise."""
        return score


class ByLabel(Slopes):
    """Slopes by score and label: a row of the table for each level of the label."""

    @classmethod
    def of(cls, loss: Loss, targets: Targets, weights: Floats) -> ByLabel:
        """Evaluate a loss on the grid; whatever is wrong with it shows here, from public numbers alone."""
        if isinstance(targets, Bounded):
            labels, half = np.linspace(*targets.bounds, _LEVELS + 1), targets.width / 2
            usual = targets.bounds[0] - half, targets.bounds[1] + half
        else:
            labels, usual = np.array([-1.0, 1.0]), (-8.0, 8.0)
        low, high = usual if loss.scores is None else parse_bounds(loss.scores, "scores of the loss")
        cell, name = (high - low) / _CELLS, type(loss).__name__
        scores = low + (np.arange(_CELLS) + 0.5) * cell
        grid = np.broadcast_to(scores, (len(labels), _CELLS)).copy(), np.repeat(labels, _CELLS).reshape(-1, _CELLS)
        found = np.array(loss.slope(*grid), dtype=np.float64)
        if found.shape != grid[0].shape or not np.isfinite(found).all():
            raise UsageError(
                f"{name}.slope gave shape {found.shape} with {np.count_nonzero(~np.isfinite(found))} numbers that are not finite, for "
                f"scores and labels of shape {grid[0].shape}; expected a finite slope for each. Set `scores` to where it is finite."
            )
        most = float(np.abs(found).max()) if loss.steepest is None else loss.steepest
        steepest = public_number(f"{name}.steepest", most)
        found = np.clip(found / steepest, -1.0, 1.0)
        unit = _SPAN * cell
        if loss.smoothness is None:
            curvature = float(np.abs(found[:, _SPAN:] - found[:, :-_SPAN]).max())
        else:
            curvature = public_number(f"{name}.smoothness", loss.smoothness) * unit / steepest
        curvature = max(curvature, 1 / REACH**2)  # a straight line would allow steps of any length
        start, end = (_CELLS - _SPAN) // 2, (_CELLS + _SPAN) // 2
        bend = float(np.abs(found[:, end] - found[:, start]).mean())
        bend = min(max(bend, curvature / (2 * REACH)), curvature)
        table = in_steps(found * (1.0 if isinstance(targets, Bounded) else weights[:, None]))
        return cls(table, curvature, bend, unit, (low + high) / 2, steepest)

    def at(self, scores: Floats, targets: Shorts) -> Floats:
        place = places(scores, _BITS, _CELLS)
        if len(self.table) == 2 * _CELLS:
            return self.table[place + _CELLS * (targets > 0)].astype(np.float64)
        step = LABEL_STEPS // _LEVELS
        level, part = np.divmod(targets.astype(np.int32) + LABEL_STEPS // 2, step)
        lower, upper = (self.table[place + _CELLS * np.minimum(level + more, _LEVELS)] for more in (0, 1))
        below, above = (step - part).astype(np.float64), part.astype(np.float64)
        return np.asarray(np.rint((lower * below + upper * above) / step))
