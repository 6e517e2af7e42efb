"""Convex losses of a margin, written once for NumPy arrays and for engine expressions; and what a loss of one's own has to say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.data.private_values import Floats
from evenhand.planning.row_choice import LossFacts
from evenhand.tables.expressions import Column

Values: TypeAlias = Column
"""One number per row: a column of an engine, or an array."""

_STEEPEST = 500.0  # margins beyond it have slopes that no double can tell from their limit


LOSSES = ("logistic", "huber-svm", "squared")


@dataclass(frozen=True)
class Operations:
    """The few functions that losses need, on arrays or on expressions."""

    exp: Callable[[Any], Any]
    clip: Callable[[Any, float, float], Any]
    where: Callable[[Any, float, float], Any]


ARRAYS = Operations(np.exp, np.clip, np.where)


def _between(value: Column, low: float, high: float) -> Column:
    """``clip`` without repeating the expression, as Ibis' own does: nested, it would be evaluated many times over."""
    import ibis

    return ibis.greatest(ibis.least(value, ibis.literal(high, "float64")), ibis.literal(low, "float64"))


def _either(test: Column, yes: float, no: float) -> Column:
    """One of two doubles; engines would take 0.5 for a decimal."""
    import ibis

    return test.ifelse(ibis.literal(yes, "float64"), ibis.literal(no, "float64"))


EXPRESSIONS = Operations(lambda x: x.exp(), _between, _either)


class MarginLoss(ABC):
    """ℓ(m, t) of a margin ``m = ⟨f, x⟩`` and a target ``t``; convex in m, with public bounds on its derivatives.

    Attributes:
        steepest: the largest |ℓ'|: with ‖x‖ ≤ R a row's gradient is at most this times R.
        roundest: the largest ℓ''.
        at_zero: the largest ℓ(0, t): how much there is to gain at all, as no loss is negative.
        typical: a guess of the average weight of a row: weights are there to make both classes count the same.
    """

    classifies: bool = True
    steepest: float
    roundest: float
    at_zero: float
    typical: float = 1.0

    @property
    def facts(self) -> LossFacts:
        """What forecasts know of it."""
        return LossFacts(self.steepest, self.roundest, self.at_zero, self.classifies, self.typical)

    @abstractmethod
    def slope(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        """dℓ/dm."""

    @abstractmethod
    def curvature(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        """d²ℓ/dm²."""


class Logistic(MarginLoss):
    """ln(1 + e^(−tm)) for targets ±1."""

    steepest, roundest, at_zero = 1.0, 0.25, 0.7  # ln 2

    def slope(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        return -target / (on.exp(on.clip(target * margin, -_STEEPEST, _STEEPEST)) + 1.0)

    def curvature(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        half = on.clip(target * margin, -_STEEPEST, _STEEPEST) / 2
        away, back = on.exp(half), on.exp(-half)
        return 1.0 / ((away + back) * (away + back))


class CappedLogistic(Logistic):
    """The logistic loss with each row weighted by ½/max(p, 1 − p), p its predicted chance: e^(−m)/2 to the right of 0, a line to the left.

    Slopes are at most ½, and probabilities are as well calibrated as with the logistic loss, because the weight is the same for
    either label. Cutting long gradients instead would cut the rows that contradict the model, and coefficients would grow.
    """

    steepest = roundest = at_zero = 0.5

    def slope(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        return -target * on.exp(-on.clip(target * margin, 0.0, _STEEPEST)) / 2

    def curvature(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        right = on.where(target * margin > 0, 0.5, 0.0)
        return right * on.exp(-on.clip(target * margin, 0.0, _STEEPEST))


class HuberHinge(MarginLoss):
    """The hinge loss of a support vector machine, with its corner rounded over ``width`` on each side."""

    width = 0.5
    steepest, roundest, at_zero = 1.0, 1 / (2 * width), 1.0

    def slope(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        return -target * on.clip((1 + self.width - target * margin) / (2 * self.width), 0.0, 1.0)

    def curvature(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        off = target * margin - 1.0
        return on.where((off < self.width) & (off > -self.width), self.roundest, 0.0)


class Squared(MarginLoss):
    """½(m − t)², continued as a straight line where |m − t| exceeds the width of the label bounds.

    Labels are clipped, so predictions inside the label bounds never get there, and the gradient is bounded
    without a constraint on the coefficients.
    """

    classifies, roundest = False, 1.0

    def __init__(self, width: float) -> None:
        self.width, self.steepest, self.at_zero = width, width, width**2 / 8  # targets are centred

    def slope(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        return on.clip(margin - target, -self.width, self.width)

    def curvature(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        off = margin - target
        return on.where((off < self.width) & (off > -self.width), 1.0, 0.0)


class ClassWeighted(MarginLoss):
    """A loss of two classes times a weight for each, the larger being 1: no slope or curvature becomes larger."""

    def __init__(self, loss: MarginLoss, negative: float, positive: float) -> None:
        self.loss, self.negative, self.positive = loss, negative, positive
        self.steepest, self.roundest, self.at_zero = loss.steepest, loss.roundest, loss.at_zero
        self.typical = 2 * negative * positive / (negative + positive)

    def slope(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        return self.loss.slope(margin, target, on) * on.where(target > 0, self.positive, self.negative)

    def curvature(self, margin: Values, target: Values, on: Operations = ARRAYS) -> Values:
        return self.loss.curvature(margin, target, on) * on.where(target > 0, self.positive, self.negative)


def loss_named(name: str, label_bounds: tuple[float, float] | None) -> MarginLoss:
    """A loss by name; the squared one needs the label bounds."""
    if name == "logistic":
        return Logistic()
    if name == "huber-svm":
        return HuberHinge()
    if name == "squared" and label_bounds is not None:
        return Squared(label_bounds[1] - label_bounds[0])
    raise UsageError(f"loss={name!r} needs label_bounds=(low, high), or is not one of {list(LOSSES)}.")


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
