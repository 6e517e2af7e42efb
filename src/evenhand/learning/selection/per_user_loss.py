"""How wrong a model is about each user: a whole number per user, between 0 and a public limit.

The loss of a row depends on that row and the model only, to the last bit: margins are sums of one product after the other, the
same for a row wherever it stands, and exponentials come from a public table. So one user changes one number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from evenhand.guarantee import UsageError, suggest
from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.data.row_sources import MemoryRows
from evenhand.learning.data.targets import BoundedLabels, Targets
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.losses import Loss
from evenhand.learning.selection.budget import Model
from evenhand.learning.slopes import SCORE_BITS, SLOPE, Shorts, Softmax

UNIT = 2**20
"""Steps of a loss of 1."""

_REACH, _FINE = 32, 1024  # the table of the log-loss: margins from −32 to 32 in steps of 1/1024
_LARGEST_FEATURE = 1e30


_BY_LOSS = {"logistic": "neg_log_loss", "huber-svm": "accuracy", "squared": "neg_mean_squared_error"}


@dataclass(frozen=True)
class Scoring:
    """A loss for judging: its name in scikit-learn, its words, and the largest loss of a row, in steps."""

    name: str
    words: str
    largest: int

    @property
    def regret(self) -> int:
        """The largest loss above that of the best candidate that a user may hold against another one, in steps.

        Candidates differ little for most users, so noise for this much is enough; a user with more counts as so much.
        """
        return self.largest // 6


SCORINGS = {
    one.name: one
    for one in (
        # No worse than giving the true class a probability of 1/8, a quarter of what each of two would get.
        Scoring("neg_log_loss", "log-loss", math.floor(3 * math.log(2) * UNIT)),
        Scoring("accuracy", "part of wrong predictions", UNIT),
        # The middle of the bounds is never farther from a label than half their width.
        Scoring("neg_mean_squared_error", "squared error in units of the label bounds' width", UNIT // 4),
    )
}


def scoring_for(given: str | None, model: LinearModel) -> Scoring:
    """Read ``scoring=``, or the loss that the model minimises."""
    loss = model.loss
    if isinstance(loss, Loss) and not loss.classifies:
        raise UsageError(
            f"the model has a loss of one's own, {type(loss).__name__}; only known losses of numbers can be judged."
        )
    name = _BY_LOSS.get(str(loss), "accuracy") if given is None else given
    known = [one for one in SCORINGS if (one == "neg_mean_squared_error") == (loss == "squared")]
    if loss != "logistic" and "neg_log_loss" in known:
        known.remove("neg_log_loss")
    if name not in known:
        raise UsageError(
            f"scoring={given!r} with loss={loss!r}; expected one of {known}.{suggest(str(given), known)} Only averages over rows can "
            "be judged user by user; an area under a curve is none."
        )
    found, classes = SCORINGS[name], len(model.classes)
    if name == "neg_log_loss" and classes > 2:  # a quarter of what every class would get
        return replace(found, largest=math.floor(math.log(4 * classes) * UNIT))
    return found


def user_losses(model: Model, rows: MemoryRows, targets: Targets, scoring: Scoring) -> Integers:
    """Each user's mean loss in steps, rounded down, from 0 to ``scoring.largest``; users in the order of their codes."""
    return mean_losses(margins(model, rows.X), rows, targets, scoring)


def mean_losses(margin: Floats, rows: MemoryRows, targets: Targets, scoring: Scoring) -> Integers:
    """Each user's mean loss of these margins, one per row."""
    losses = row_losses(margin, rows.targets, targets, scoring)
    totals = np.zeros(len(rows.counts), dtype=np.int64)
    np.add.at(totals, rows.users, np.clip(losses, 0, scoring.largest).astype(np.int64))
    return totals // np.maximum(rows.counts, 1)


def row_losses(margin: Floats, target: Floats, targets: Targets, scoring: Scoring) -> Floats:
    """Each row's loss in steps, a whole number; a margin that is none has the largest."""
    unknown = np.isnan(margin) if margin.ndim == 1 else np.isnan(margin).any(axis=1)
    return np.where(unknown, scoring.largest, _steps(margin, target, targets, scoring))


def regrets(losses: Integers, most: int) -> Integers:
    """What is held against each candidate: its loss above that of the best one, row by row or user by user, at most ``most``."""
    return np.asarray(np.minimum(losses - losses.min(axis=0), most))


def margins(model: Model, X: Floats) -> Floats:
    """``⟨coef, x⟩ + intercept`` row by row, of more than two classes a column for each: BLAS would add in an order that depends on
    how many rows there are."""
    slopes = np.atleast_2d(model.coef_)
    total = np.tile(np.atleast_1d(model.intercept_).astype(np.float64), (len(X), 1))
    for column, own, centre in zip(X.T, slopes.T, model.feature_map_.centre, strict=True):
        value = np.where(np.isnan(column), centre, column)
        total += np.clip(value, -_LARGEST_FEATURE, _LARGEST_FEATURE)[:, None] * own
    return total[:, 0] if len(slopes) == 1 else total


def _steps(margin: Floats, target: Floats, targets: Targets, scoring: Scoring) -> Floats:
    if isinstance(targets, BoundedLabels):
        # Targets are centred; a prediction outside the bounds counts as the end.
        half = targets.width / 2
        off = (np.clip(margin - targets.offset, -half, half) - target) / targets.width
        return np.asarray(np.floor(off * off * UNIT))
    if margin.ndim == 2:
        return _of_classes(margin, target.astype(np.int16), scoring)
    if scoring.name == "accuracy":
        return np.where((margin > 0) == (target > 0), 0.0, float(UNIT))
    place = np.floor(np.clip(np.where(np.isnan(margin), 0.0, margin) * target, -_REACH, _REACH) * _FINE + 0.5)
    return log_losses()[place.astype(np.int64) + _REACH * _FINE].astype(np.float64)


def _of_classes(scores: Floats, target: Shorts, scoring: Scoring) -> Floats:
    """Of more than two classes: whether the largest score is that of the class, or minus the logarithm of its probability."""
    if scoring.name == "accuracy":
        return np.where(np.argmax(scores, axis=1) == target, 0.0, float(UNIT))
    below = np.nan_to_num(np.clip(scores - scores.max(axis=1, keepdims=True), -_REACH, 0.0))
    slopes = Softmax.of(np.ones(scores.shape[1])).at(np.rint(below * 2.0**SCORE_BITS), target)
    chances = SLOPE + slopes[np.arange(len(target)), target]  # in steps
    losses = [scoring.largest, *(math.floor(-UNIT * math.log(place / SLOPE)) for place in range(1, SLOPE + 1))]
    return np.array(losses, dtype=np.float64)[chances.astype(np.int64)]


@lru_cache(maxsize=1)
def log_losses() -> Integers:
    """ln(1 + e^−m) in steps, for every margin of the table."""
    places = range(-_REACH * _FINE, _REACH * _FINE + 1)
    return np.array([math.floor(UNIT * math.log1p(math.exp(-place / _FINE))) for place in places], dtype=np.int64)
