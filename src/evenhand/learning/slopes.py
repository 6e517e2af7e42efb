"""The slope of a loss as a table of integers over a public grid of scores.

A library's exponential may differ in its last bit with the place of a number in an array, and then one more user would
change what the others contribute. Looked up by an exact integer score, a row's slope depends on that row alone. And
the code of a loss, which may be anybody's, never sees a row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.targets import BoundedLabels, Targets
from evenhand.learning.fitting import public_number
from evenhand.learning.losses import Loss, MarginLoss
from evenhand.tables import parse_bounds

Shorts = NDArray[np.int16]

SLOPE = 2**14
"""Steps from 0 to the steepest slope."""

LABEL_STEPS = 2**15
"""Steps over the width of the label bounds: targets are from −2^14 to 2^14."""

SCORE_BITS = 29
"""Scores are integers in units of 2^−29: 11 bits of the features, 18 of the coefficients."""

CURVE = 2**12
"""Steps of a slope's derivative of 1: slopes are compared an eighth of a score to either side."""

REACH = 32
"""Where labels are classes, scores are told apart from −32 to 32; beyond, the slope is that of the end."""

_CELLS = 2**15
_CLASS_BITS = 9  # classes: cells of 2^-9 from -32 to 32
_AROUND = 2**6  # cells on each side over which the rise of an average slope is measured: an eighth of a score
_NUMBER_BITS = 13  # numbers: cells of 2^-13 label widths, up to two widths on each side


_POWER_BITS = 9  # scores are told apart in cells of 2^-9
_POWERS = 2**14  # cells below the largest score; beyond, a class has no probability at all
_ONE = 2**30  # e^0
_OWN_CELLS = 2**12  # over the range of scores
_OWN_BITS = 6  # of a cell: scores from −32 to 32
_LABEL_LEVELS = 2**8  # of the label between its bounds; in between slopes are interpolated
_SPAN = _OWN_CELLS // (2 * REACH)  # cells over which a slope's change is measured: a corner counts as that wide


@dataclass(frozen=True, eq=False)
class Slopes(ABC):
    """What a descent asks of a loss: the slopes of rows by their scores and targets, all exact integers.

    Args:
        table: integers from −2^14 to 2^14, row after row.
        curvature: the largest derivative of a slope, in units of the steepest; decides how far steps may go.
        bend: the same where scores are 0.
        unit: what a score of 1 here is in the loss's own units; ``offset``: what a score of 0 is.
        steepest: the steepest slope in the loss's own units.
        scores: how many scores a row has.
    """

    table: NDArray[np.int16] | NDArray[np.float64]
    curvature: float
    bend: float
    unit: float = 1.0
    offset: float = 0.0
    steepest: float = 1.0
    scores: int = 1

    at_constant: ClassVar[bool] = False
    """Whether a descent starts at the best constant model, which the average target tells; otherwise where scores are 0."""

    largest_target: ClassVar[int] = 1
    """Targets are from minus to plus this, where their average is used."""

    by_label_width: ClassVar[bool] = False
    """Whether labels are numbers, and scores in units of the width of their bounds."""

    steepest_at_zero: ClassVar[bool] = False
    """Whether no slope is steeper than where scores are 0."""

    def start(self, mean: float) -> tuple[float, float, float]:
        """The score a descent starts from, the average curvature there, and the largest one to expect along the model.

        Args:
            mean: the place of the average target between minus and plus the largest one, from 0 to 1.
        """
        return 0.0, self.bend, self.curvature

    @abstractmethod
    def at(self, scores: Floats, targets: Shorts) -> Floats:
        """The integer slope of each row, as a double; with several scores one column for each."""

    def curved(self, scores: Floats, targets: Shorts) -> Floats:
        """The integer derivative of each row's slope in steps of `CURVE`, for one score."""
        aside = CURVE / (2 * SLOPE) * 2.0**SCORE_BITS
        return self.at(scores + aside, targets) - self.at(scores - aside, targets)


class ByClass(Slopes):
    """Two classes: a row of the table for each."""

    at_constant = steepest_at_zero = True

    @classmethod
    def of(cls, loss: MarginLoss, weights: Floats) -> ByClass:
        """Evaluate a loss on the grid; the class that counts most keeps its steps, so weights make no slope steeper."""
        scores = cells() / 2.0**_CLASS_BITS
        rows = [loss.slope(scores, np.full(_CELLS, target)) for target in (-1.0, 1.0)]
        curvature = loss.roundest / loss.steepest
        return cls(
            in_steps(np.array(rows) / loss.steepest * weights[:, None]), curvature, curvature, steepest=loss.steepest
        )

    def start(self, mean: float) -> tuple[float, float, float]:
        average, place = self._average(mean)
        rise = max(float(average[place + _AROUND] - average[place - _AROUND]), 1 / SLOPE)
        rise *= 2.0**_CLASS_BITS / (2 * _AROUND)
        return self.constant(mean), rise, rise * _outlying(mean)

    def constant(self, mean: float) -> float:
        """The best score for all rows if this part of them is positive."""
        return (self._average(mean)[1] - _CELLS // 2) / 2.0**_CLASS_BITS

    def _average(self, mean: float) -> tuple[Floats, int]:
        """The slopes of a mixture of both classes, and where they change sign."""
        average = (np.array([1 - mean, mean]) @ self.table.reshape(2, _CELLS)) / SLOPE
        return average, int(np.clip(np.searchsorted(average, 0.0), _AROUND, _CELLS - 1 - _AROUND))

    def by_class(self, scores: Floats) -> Floats:
        """Slopes at public scores, for the first and the second class, in units of the steepest."""
        middles = cells() / 2.0**_CLASS_BITS
        return np.array([np.interp(scores, middles, row) for row in self.table.reshape(2, _CELLS) / SLOPE])

    def chances(self, margins: Floats) -> Floats:
        """The part of positives at which a margin would be right."""
        negative, positive = self.by_class(margins)
        return np.asarray(negative / np.maximum(negative - positive, 1e-12))

    def at(self, scores: Floats, targets: Shorts) -> Floats:
        return self.table[places(scores, _CLASS_BITS) + _CELLS * (targets > 0)].astype(np.float64)


class ByDifference(Slopes):
    """Numbers, for a loss of score minus label, in units of the width of the label bounds."""

    at_constant, by_label_width, largest_target = True, True, LABEL_STEPS // 2

    @classmethod
    def of(cls, loss: MarginLoss, targets: BoundedLabels) -> ByDifference:
        """Evaluate a loss on the grid."""
        row = loss.slope(cells() / 2.0**_NUMBER_BITS * targets.width, np.zeros(_CELLS))
        curvature = loss.roundest * targets.width / loss.steepest
        return cls(in_steps(row / loss.steepest), curvature, curvature, targets.width, targets.offset, loss.steepest)

    def start(self, mean: float) -> tuple[float, float, float]:
        return mean - 0.5, self.curvature, self.curvature * _outlying(mean)

    def at(self, scores: Floats, targets: Shorts) -> Floats:
        off = scores - targets * (2.0**SCORE_BITS / LABEL_STEPS)
        return self.table[places(off, _NUMBER_BITS)].astype(np.float64)


def _outlying(mean: float) -> float:
    """How large the mean square of a standardised feature may be along a model: far out if a class, or one end of the labels, is rare."""
    return 1 - 2 * math.log(2 * min(mean, 1 - mean))


def cells(count: int = _CELLS) -> Floats:
    """The middles of cells on both sides of 0, in cells."""
    return np.arange(count, dtype=np.float64) - count // 2 + 0.5


def places(scores: Floats, bits: int, count: int = _CELLS) -> NDArray[np.int32]:
    """In which cell of 2^−bits a score lies; beyond the ends it is the last one."""
    found = np.clip(np.floor(scores * 2.0 ** (bits - SCORE_BITS)), -count // 2, count // 2 - 1)
    return found.astype(np.int32) + count // 2


def in_steps(slopes: Floats) -> Shorts:
    """Slopes in units of the steepest as integers, in one line."""
    return np.clip(np.rint(slopes * SLOPE), -SLOPE, SLOPE).astype(np.int16).ravel()


def target_steps(values: Floats, targets: Targets) -> Shorts:
    """Targets as integers: codes of classes, steps of the label's width for numbers."""
    scaled = np.rint(values / targets.width * LABEL_STEPS) if isinstance(targets, BoundedLabels) else values
    return np.clip(scaled, -LABEL_STEPS // 2, LABEL_STEPS // 2).astype(np.int16)


class Softmax(Slopes):
    """``p_k − 1`` for a row's own class, ``p_k`` for the others, times the weight of its class.

    Exponentials come from a public table by the exact difference to the largest score; they are integers, so their sum is exact in any
    order, and a probability is one quotient, which IEEE 754 rounds one way. A row's slopes together have norm at most √2.
    """

    @classmethod
    def of(cls, weights: Floats) -> Softmax:
        """For as many classes as there are weights, the largest being 1.

        No eigenvalue of diag(p) − ppᵀ exceeds ½; where all scores are equal they are 1/K.
        """
        powers = np.rint(np.exp(-np.arange(_POWERS + 1) / 2.0**_POWER_BITS) * _ONE)
        return cls(np.r_[weights, powers], 0.5, 1 / len(weights), scores=len(weights))

    def at(self, scores: Floats, targets: Shorts) -> Floats:
        weights, powers = self.table[: self.scores], self.table[self.scores :]
        below = scores.max(axis=1, keepdims=True) - scores
        cells = np.minimum(np.rint(below * 2.0 ** (_POWER_BITS - SCORE_BITS)), _POWERS).astype(np.int32)
        parts = powers[cells]
        slopes: Floats = np.rint(parts * SLOPE / parts.sum(axis=1, keepdims=True))
        slopes[np.arange(len(targets)), targets] -= SLOPE
        return np.rint(slopes * weights[targets][:, None])


class ByLabel(Slopes):
    """Slopes by score and label: a row of the table for each level of the label."""

    @classmethod
    def of(cls, loss: Loss, targets: Targets, weights: Floats) -> ByLabel:
        """Evaluate a loss on the grid; whatever is wrong with it shows here, from public numbers alone."""
        if isinstance(targets, BoundedLabels):
            labels, half = np.linspace(*targets.bounds, _LABEL_LEVELS + 1), targets.width / 2
            usual = targets.bounds[0] - half, targets.bounds[1] + half
        else:
            labels, usual = np.array([-1.0, 1.0]), (-8.0, 8.0)
        low, high = usual if loss.scores is None else parse_bounds(loss.scores, "scores of the loss")
        cell, name = (high - low) / _OWN_CELLS, type(loss).__name__
        scores = low + (np.arange(_OWN_CELLS) + 0.5) * cell
        grid = (
            np.broadcast_to(scores, (len(labels), _OWN_CELLS)).copy(),
            np.repeat(labels, _OWN_CELLS).reshape(-1, _OWN_CELLS),
        )
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
        start, end = (_OWN_CELLS - _SPAN) // 2, (_OWN_CELLS + _SPAN) // 2
        bend = float(np.abs(found[:, end] - found[:, start]).mean())
        bend = min(max(bend, curvature / (2 * REACH)), curvature)
        table = in_steps(found * (1.0 if isinstance(targets, BoundedLabels) else weights[:, None]))
        return cls(table, curvature, bend, unit, (low + high) / 2, steepest)

    def at(self, scores: Floats, targets: Shorts) -> Floats:
        place = places(scores, _OWN_BITS, _OWN_CELLS)
        if len(self.table) == 2 * _OWN_CELLS:
            return self.table[place + _OWN_CELLS * (targets > 0)].astype(np.float64)
        step = LABEL_STEPS // _LABEL_LEVELS
        level, part = np.divmod(targets.astype(np.int32) + LABEL_STEPS // 2, step)
        lower, upper = (self.table[place + _OWN_CELLS * np.minimum(level + more, _LABEL_LEVELS)] for more in (0, 1))
        below, above = (step - part).astype(np.float64), part.astype(np.float64)
        return np.asarray(np.rint((lower * below + upper * above) / step))
