"""Linear hypotheses: a finite net of them in the unit ball (amin2018, section 4), and the losses of many at once.

A row's margin is a sum of one product after the other, feature by feature: the same for a row whatever the other rows are. So a
row changes its own losses only, as if each hypothesis had been called with that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.data.private_values import Floats, Integers, same
from evenhand.learning.data.targets import BoundedLabels, Classes
from evenhand.learning.selection.per_user_loss import UNIT

_AT_ONCE, _ROWS_AT_ONCE = 2**17, 2**11  # margins that are held in memory, and of how many rows


MOST_HYPOTHESES = 100_000
"""Of 2,000 rows so many hypotheses are judged in seconds."""


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
    def of(cls, hypotheses: Sequence[object], features: int, targets: Classes | BoundedLabels) -> LinearHypotheses:
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

    def total_losses(self, rows: Floats, truth: Floats, targets: Classes | BoundedLabels, squared: bool) -> Integers:
        """The sum of the losses of each, in integer steps."""
        totals = np.zeros(len(self.weights), dtype=np.int64)
        high = min(max(len(rows), 1), _ROWS_AT_ONCE)
        wide = max(1, _AT_ONCE // high)
        for first in range(0, len(self.weights), wide):
            some = slice(first, first + wide)
            for top in range(0, len(rows), high):
                margin = products(rows[top : top + high], self.weights[some]) + self.intercepts[some]
                target = truth[top : top + high, None]
                if isinstance(targets, BoundedLabels):
                    steps = bounded_steps(margin, target, targets, squared)
                else:
                    said = np.where(margin > 0, self.labels[some, 1], self.labels[some, 0])
                    steps = np.where(said == target, 0, UNIT)
                totals[some] += steps.sum(axis=0)
        return totals


def bounded_steps(predicted: Floats, target: Floats, targets: BoundedLabels, squared: bool) -> Integers:
    """The losses of predicted numbers, from 0 to UNIT; what is no prediction has the largest."""
    off = np.abs(predicted - targets.offset - target) / targets.width
    within = off < 1  # NaN is not
    part = np.where(within, off, 0.0)
    return np.where(within, np.floor((part * part if squared else part) * UNIT + 0.5), UNIT).astype(np.int64)


def _codes(labels: tuple[Any, Any] | None, targets: Classes | BoundedLabels, times: int) -> Floats:
    """What stands for two predicted labels, so many times."""
    if labels is None or isinstance(targets, BoundedLabels):
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


def products(X: Floats, weights: Floats) -> Floats:
    """``⟨x, w⟩`` for each row and each hypothesis, added feature by feature: BLAS would add in an order that depends on how many rows there are."""
    total = np.zeros((len(X), len(weights)))
    for column, own in zip(X.T, weights.T, strict=True):
        total += column[:, None] * own
    return total


@dataclass(frozen=True)
class LinearHypothesis:
    """``⟨w, x⟩``, or with ``classes`` the second of them where that is positive, else the first."""

    weights: tuple[float, ...]
    classes: tuple[Any, Any] | None = None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """One prediction per row."""
        margin = products(np.asarray(X, dtype=np.float64), np.array([self.weights]))[:, 0]
        return margin if self.classes is None else np.where(margin > 0, self.classes[1], self.classes[0])


@dataclass(frozen=True, eq=False)
class LinearNet(Sequence[LinearHypothesis]):
    """Linear hypotheses, one for each row of ``weights``, such that every w with ‖w‖₂ ≤ 1 has one within ``distance``."""

    weights: Floats
    distance: float
    classes: tuple[Any, Any] | None = None

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, place: int) -> LinearHypothesis: ...

    @overload
    def __getitem__(self, place: slice) -> LinearNet: ...

    def __getitem__(self, place: int | slice) -> LinearHypothesis | LinearNet:
        if isinstance(place, slice):
            return replace(self, weights=self.weights[place])
        return LinearHypothesis(tuple(self.weights[place].tolist()), self.classes)

    def __repr__(self) -> str:
        return f"<{len(self):,} linear hypotheses of {self.weights.shape[1]} features, {self.distance:g} apart at most>"


def linear_net(dimension: int, distance: float, classes: tuple[Any, Any] | None = None) -> LinearNet:
    """Linear hypotheses such that every w with ‖w‖₂ ≤ 1 has one within ``distance``; for `HypothesisSelection`.

    Amin et al. (2018) sample from the whole ball. A net is chosen from exactly, in integers, where a sampler for the ball would need a proof about its
    doubles and its mixing. For a loss that changes by at most L·‖x‖ per unit of w, the best of the net is within L·‖x‖·distance of the best of the ball. It is for
    a few features: with 100,000 hypotheses at most, the distance can be 0.01 for 2 features, 0.05 for 3, 0.15 for 5, 0.23 for 6.

    Args:
        dimension: d, the number of features.
        distance: how far the ball may be from the net, up to 1.
        classes: two labels, to classify; None to predict numbers.

    Example:
        >>> HypothesisSelection(linear_net(2, 0.1, classes=(0, 1)), epsilon=1).fit(X, y, users=ids)

    Reference: Conway and Sloane (1999), chapter 4, for the lattice A*_d, which needs fewer points than any other known here.
    """
    if dimension < 1 or not 0 < distance <= 1:
        raise UsageError(f"linear_net({dimension}, {distance}): expected one feature or more, and a distance up to 1.")
    # The lattice with Gram matrix I − J/(d+1) is within √(d(d+2)/(12(d+1))) of everything, and has √(d+1) points in a unit of volume.
    unit = distance / math.sqrt(dimension * (dimension + 2) / (12 * (dimension + 1)))
    ball = math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1)
    if ball * ((1 + distance) / unit) ** dimension * math.sqrt(dimension + 1) > 2 * MOST_HYPOTHESES:
        raise _too_many(dimension, distance)
    basis = np.linalg.cholesky(np.eye(dimension) - 1 / (dimension + 1)).astype(np.float64)
    points = _short(unit * basis, (1 + distance) * (1 + 1e-9), math.sqrt(2) / unit)
    # Those beyond the ball are moved onto it, which brings them nearer to every point of it.
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    points = np.unique(points, axis=0)
    if len(points) > MOST_HYPOTHESES:
        raise _too_many(dimension, distance)
    return LinearNet(points, distance, classes)


def _short(basis: Floats, reach: float, steepest: float) -> Floats:
    """The points of a lattice no longer than ``reach``; no coordinate in the basis, which is triangular, is larger than ``steepest`` times that."""
    size, most = len(basis), math.floor(reach * steepest)
    places = np.arange(-most, most + 1, dtype=np.float64)
    found = np.zeros((1, size))
    for row in range(
        size - 1, -1, -1
    ):  # coordinates of the points from the last on: that of ``row`` depends on no earlier one
        found = (found[:, None, :] + places[None, :, None] * basis[row]).reshape(-1, size)
        found = found[(found[:, row:] ** 2).sum(axis=1) <= reach**2]
    return found


def _too_many(dimension: int, distance: float) -> UsageError:
    return UsageError(
        f"linear_net({dimension}, {distance}) has more than {MOST_HYPOTHESES:,} hypotheses; expected fewer features or a larger distance. BoundedERM "
        "is for more features."
    )
