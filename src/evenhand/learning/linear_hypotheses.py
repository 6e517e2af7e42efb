"""The losses of many linear hypotheses at once, where they can be told to be linear.

A row's margin is a sum of one product after the other, feature by feature: the same for a row whatever the other rows are. So a
row changes its own losses only, as if each hypothesis had been called with that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.learning.inputs import Integers
from evenhand.learning.net import LinearHypothesis, LinearNet, products
from evenhand.learning.private_values import Floats, same
from evenhand.learning.targets import Bounded, Classes

UNIT = 2**20
"""Steps of a row's loss from 0 to 1."""

_AT_ONCE, _ROWS_AT_ONCE = 2**17, 2**11  # margins that are held in memory, and of how many rows


@dataclass(frozen=True)
class LinearHypotheses:
    """Hypotheses ``⟨w, x⟩ + intercept``, and of classes the second where that is positive.

    Args:
        places: where they stand among all.
        weights: one row per hypothesis; ``intercepts``: one number.
        labels: where classes are predicted, what stands for the two of each, NaN for a label that is no class.
    """

    places: Sequence[int]
    weights: Floats
    intercepts: Floats
    labels: Floats

    @classmethod
    def of(cls, hypotheses: Sequence[object], features: int, targets: Classes | Bounded) -> LinearHypotheses:
        """Those that are known to be linear in so many features, and to predict what is asked for. Reads no rows."""
        if isinstance(hypotheses, LinearNet):
            known = [(hypotheses.weights, np.zeros(len(hypotheses)), hypotheses.classes)]
            places = [range(len(hypotheses))]
        else:
            found = {place: one for place, model in enumerate(hypotheses) if (one := _linear(model)) is not None}
            known = [(own[None], np.array([intercept]), labels) for own, intercept, labels in found.values()]
            places = [range(place, place + 1) for place in found]
        classifies = isinstance(targets, Classes)
        fit = [own.shape[1] == features and (labels is not None) == classifies for own, _, labels in known]
        kept = [one for one, fits in zip(known, fit, strict=True) if fits]
        return cls(
            [place for some, fits in zip(places, fit, strict=True) if fits for place in some],
            np.concatenate([np.zeros((0, features)), *(own for own, _, _ in kept)]),
            np.concatenate([np.zeros(0), *(intercepts for _, intercepts, _ in kept)]),
            np.concatenate([np.zeros((0, 2)), *(_codes(labels, targets, len(own)) for own, _, labels in kept)]),
        )

    def total_losses(self, rows: Floats, truth: Floats, targets: Classes | Bounded, squared: bool) -> Integers:
        """The sum of the losses of each, in integer steps."""
        totals = np.zeros(len(self.weights), dtype=np.int64)
        high = min(max(len(rows), 1), _ROWS_AT_ONCE)
        wide = max(1, _AT_ONCE // high)
        for first in range(0, len(self.weights), wide):
            some = slice(first, first + wide)
            for top in range(0, len(rows), high):
                margin = products(rows[top : top + high], self.weights[some]) + self.intercepts[some]
                target = truth[top : top + high, None]
                if isinstance(targets, Bounded):
                    steps = bounded_steps(margin, target, targets, squared)
                else:
                    said = np.where(margin > 0, self.labels[some, 1], self.labels[some, 0])
                    steps = np.where(said == target, 0, UNIT)
                totals[some] += steps.sum(axis=0)
        return totals


def bounded_steps(predicted: Floats, target: Floats, targets: Bounded, squared: bool) -> Integers:
    """The losses of predicted numbers, from 0 to UNIT; what is no prediction has the largest."""
    off = np.abs(predicted - targets.offset - target) / targets.width
    within = off < 1  # NaN is not
    part = np.where(within, off, 0.0)
    return np.where(within, np.floor((part * part if squared else part) * UNIT + 0.5), UNIT).astype(np.int64)


def _codes(labels: tuple[Any, Any] | None, targets: Classes | Bounded, times: int) -> Floats:
    """What stands for two predicted labels, so many times."""
    if labels is None or isinstance(targets, Bounded):
        return np.zeros((times, 2))
    known = list(zip(targets.codes, targets.labels, strict=True))
    codes = [next((code for code, own in known if same(label, own)), math.nan) for label in labels]
    return np.tile(codes, (times, 1))


def _linear(model: object) -> tuple[Floats, float, tuple[Any, Any] | None] | None:
    """Weights, intercept and classes of a hypothesis of ours, or of a fitted model whose ``predict`` is scikit-learn's for linear ones."""
    if type(model) is LinearHypothesis:
        return np.array(model.weights, dtype=np.float64), 0.0, model.classes
    from sklearn.linear_model import LinearRegression, LogisticRegression

    kind, weights = type(model), getattr(model, "coef_", None)
    predict = None if "predict" in getattr(model, "__dict__", ()) else getattr(kind, "predict", None)
    if not isinstance(weights, np.ndarray) or weights.dtype.kind != "f":
        return None
    intercept = float(np.ravel(getattr(model, "intercept_", 0.0))[0])
    if predict is LinearRegression.predict and weights.ndim == 1:
        return weights.astype(np.float64), intercept, None
    plain = getattr(kind, "decision_function", None) is LogisticRegression.decision_function
    classes = np.ravel(getattr(model, "classes_", ())).tolist()
    if predict is LogisticRegression.predict and plain and weights.shape[:1] == (1,) and len(classes) == 2:
        return weights[0].astype(np.float64), intercept, (classes[0], classes[1])
    return None
