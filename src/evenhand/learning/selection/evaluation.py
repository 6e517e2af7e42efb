"""How good a model is, bought from people's rows or computed on public ones: its loss, and whether it beats a constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Amount, Guarantee, Relation, UsageError, parse_epsilon, split
from evenhand.learning.data.inputs import Features, PerRow
from evenhand.learning.data.private_values import Floats, Integers, unwarned
from evenhand.learning.data.row_sources import MemoryRows
from evenhand.learning.data.targets import BoundedLabels, Classes, Targets
from evenhand.learning.fitting import pay
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.selection.per_user_loss import UNIT, Scoring, mean_losses, scoring_for, user_losses
from evenhand.ledger import Cost, Ledger
from evenhand.release import Additive, Measurement, Ratio, Receipt
from evenhand.release.intervals import check_confidence
from evenhand.tables import Secret, Table

CONSTANT_SHARE = Decimal("0.2")
"""The part of ε that finds the constant to compare with: the average label."""

LOSS_SHARE = Decimal("0.5")
"""The part of the rest that goes into the loss itself; the other part into the difference to the constant's."""

UserNumbers: TypeAlias = Callable[[MemoryRows], Integers]
"""A whole number for each user."""

EXTREME = 1e-3
"""A constant never gives a class less than this."""


@dataclass(frozen=True)
class Average:
    """An average over users, with its interval."""

    value: float
    at: Callable[[float], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class ModelLoss:
    """The average over users of their mean loss, and of how much better the model is than a constant one.

    Args:
        scoring: which loss, in words.
        constant: what the constant model predicts: the average label, of more than two classes the part of each; noisy unless the rows were
            public.
        loss, gain: averages over users: the model's loss, and the constant's minus the model's.
        guarantee: what was promised; None for public rows.
    """

    scoring: str
    constant: float | tuple[float, ...]
    loss: Average
    gain: Average
    guarantee: Guarantee | None

    @property
    def value(self) -> float:
        """The model's average loss."""
        return self.loss.value

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The range of the loss: of the noise, or of sampling error if the rows were public."""
        return self.loss.at(check_confidence(confidence))

    def gain_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The range of the gain over the constant."""
        return self.gain.at(check_confidence(confidence))

    @property
    def beats_constant(self) -> str:
        """Yes, no or can't tell, at 95%."""
        low, high = self.gain_interval()
        return "yes" if low > 0 else "no" if high < 0 else "can't tell"

    def words(self) -> str:
        """One or two sentences."""
        (low, high), (least, most) = self.interval(), self.gain_interval()
        covers = "sampling error" if self.guarantee is None else "the noise; for these users"
        return (
            f"{self.scoring}: {self.value:.4g} ({low:.4g} to {high:.4g}, 95%, covers {covers}). Better than a constant model: "
            f"{self.beats_constant} (by {self.gain.value:.4g}; {least:.4g} to {most:.4g})."
        )

    def __str__(self) -> str:
        return self.words()

    def card(self, confidence: float = 0.95) -> dict[str, Any]:
        """The same as data."""
        return {
            "scoring": self.scoring,
            "value": self.value,
            "range": list(self.interval(confidence)),
            "constant": self.constant,
            "better_than_constant_by": self.gain.value,
            "better_range": list(self.gain_interval(confidence)),
            "beats_constant": self.beats_constant,
            "guarantee": self.guarantee.to_dict() if self.guarantee else None,
            "words": self.words(),
        }


@unwarned
def model_loss(
    model: LinearModel,
    X: Features,
    y: PerRow = None,
    users: PerRow = None,
    *,
    epsilon: Amount | None = None,
    public: bool = False,
    scoring: str | None = None,
    ledger: Ledger | None = None,
) -> ModelLoss:
    """The loss of a fitted model, averaged over users, with an interval, and whether it beats a constant model.

    Guarantee: pure ε-differential privacy for *all rows of a user*. Each user counts by one number from 0 to a public limit:
    the mean loss of their rows, clamped. See docs/proofs/search.md.

    Edge cases: rows and labels as in the model's ``fit``. On the rows that the model was fitted on the loss is a little too small;
    ε adds up with that of the fit. Differences to the constant beyond a sixth of the largest loss count as that.

    Args:
        model: a fitted `BoundedERM` or `WeightedERM`.
        X, y, users: as in ``fit``, an `eh.read` table too, whose rows are taken into memory; better of other people than those it was fitted on.
        epsilon: what to spend; left out for ``public`` rows.
        public: the rows are public: exact averages, with sampling error, at no cost.
        scoring: as in `PrivateSearchCV`.
        ledger: where to debit ε; the model's own if left out.

    Example:
        >>> print(model_loss(model, X_other, y_other, users_other, epsilon=0.2))
    """
    if not isinstance(model, LinearModel):
        raise UsageError(f"model is a {type(model).__name__}; expected a fitted BoundedERM or WeightedERM.")
    check_is_fitted(model)
    if public == (epsilon is not None):
        raise UsageError(
            "give epsilon=, which is spent on private rows, or public=True, which costs nothing; not both."
        )
    if public and isinstance(X, Table):
        raise UsageError("public=True is for rows in memory: give arrays or a data frame instead of a table.")
    judged = scoring_for(scoring, model)
    template = clone(model)
    targets = template._targets()
    source, names, _ = template._open(X, y, users, targets)
    if epsilon is None:
        assert isinstance(source, MemoryRows)
        return _exact_loss(model, source, targets, judged)
    amount = parse_epsilon(epsilon)
    guarantee = source.guarantee(amount)
    query = {"statistic": "loss of a model", "scoring": judged.name, "features": list(names)}
    receipt = pay(ledger or model.ledger, guarantee, Cost.pure(amount), query)
    first, rest = split(amount, CONSTANT_SHARE)
    shares = iter((first, *split(rest, LOSS_SHARE)))
    with source.reading(copied=False):
        rows = source.fetched()

    def noisy(values: UserNumbers, width: int) -> Average:
        return _bought(rows.map(values), width, next(shares), source.relation, receipt)

    def noisy_parts(totals: Callable[[MemoryRows], list[int]]) -> Floats:
        # A user adds UNIT to all of them together; changed, they take it from some and give it to others.
        moved = source.relation.moves * UNIT
        parts = Measurement(lambda: rows.map(totals), l1=moved, l2_squared=moved * UNIT)
        return np.array([float(value) for value in receipt.numbers(parts, next(shares)).values])

    return _measured(model, targets, judged, guarantee, noisy, noisy_parts)


def _exact_loss(model: LinearModel, rows: MemoryRows, targets: Targets, scoring: Scoring) -> ModelLoss:
    """Of public rows."""
    if not len(rows.targets):
        raise UsageError("there is no complete row to judge the model on; expected public rows with labels and users.")

    def exactly(values: UserNumbers, width: int) -> Average:
        return _exactly(values(rows))

    return _measured(model, targets, scoring, None, exactly, lambda totals: np.array(totals(rows), dtype=np.float64))


def _measured(
    model: LinearModel,
    targets: Targets,
    scoring: Scoring,
    guarantee: Guarantee | None,
    average: Callable[[UserNumbers, int], Average],
    parts: Callable[[Callable[[MemoryRows], list[int]]], Floats],
) -> ModelLoss:
    """Average label, loss and gain over the constant, in this order: the constant is made of the first."""
    shown: float | tuple[float, ...]
    if isinstance(targets, Classes) and len(targets.labels) > 2:
        found = np.maximum(parts(lambda rows: class_parts(rows, len(targets.labels))), 0.0) + 1.0
        found = np.maximum(found / found.sum(), EXTREME)
        shown, margin = tuple((found / found.sum()).tolist()), np.log(found)
    else:
        label = average(lambda rows: user_labels(rows, targets), UNIT).value
        shown = targets.bounds[0] + label * targets.width if isinstance(targets, BoundedLabels) else label
        margin = np.array(constant_margin(label, targets))
    most = scoring.regret

    def losses(rows: MemoryRows) -> Integers:
        return user_losses(model, rows, targets, scoring)

    def gains(rows: MemoryRows) -> Integers:
        everywhere = np.broadcast_to(margin, (len(rows.targets), *margin.shape))
        constant = mean_losses(everywhere, rows, targets, scoring)
        return np.asarray(np.clip(constant - losses(rows), -most, most) + most)

    loss = average(losses, scoring.largest)
    gain = average(gains, 2 * most)
    return ModelLoss(scoring.words, shown, loss, _shifted(gain, -most / UNIT), guarantee)


def class_parts(rows: MemoryRows, classes: int) -> list[int]:
    """Sums over users of the part of their rows in each class, in steps: all parts of a user together are at most UNIT."""
    pairs, counts = np.unique(rows.users * classes + rows.targets.astype(np.int64), return_counts=True)
    who, code = np.divmod(pairs, classes)
    totals = np.zeros(classes, dtype=np.int64)
    np.add.at(totals, code, counts * UNIT // np.maximum(rows.counts, 1)[who])
    return [int(total) for total in totals]


def user_labels(rows: MemoryRows, targets: Targets) -> Integers:
    """Each user's mean label in steps, from 0 (the first class, the lowest label) to UNIT; a whole number per user."""
    totals = np.zeros(len(rows.counts), dtype=np.int64)
    np.add.at(totals, rows.users, label_places(rows.targets, targets))
    return totals // np.maximum(rows.counts, 1)


def label_places(truth: Floats, targets: Targets) -> Integers:
    """Each row's label in steps, from 0 (the first class, the lowest label) to UNIT."""
    low, width = (-targets.width / 2, targets.width) if isinstance(targets, BoundedLabels) else (-1.0, 2.0)
    return np.clip(np.floor((truth - low) / width * UNIT), 0, UNIT).astype(np.int64)


def constant_margin(label: float, targets: Targets) -> float:
    """The margin of the best constant for this average label."""
    if isinstance(targets, BoundedLabels):
        return targets.bounds[0] + label * targets.width
    part = min(max(label, EXTREME), 1 - EXTREME)
    return math.log(part / (1 - part))


def _bought(values: Secret[Integers], width: int, epsilon: Decimal, relation: Relation, receipt: Receipt) -> Average:
    """The average of whole numbers from 0 to ``width``, one per user, in units of UNIT, with Laplace noise."""
    if relation.counts_are_public:
        count = max(receipt.public(values.map(len), relation), 1)
        total = Measurement(lambda: values.map(lambda own: [int(own.sum())]), l1=width, l2_squared=width**2)
        noisy = receipt.numbers(total, epsilon)
        unit = 1 / (UNIT * count)
        found = Additive(noisy.values[0] * unit, noisy.noise, unit, (0.0, width / UNIT))
        return Average(min(max(found.value, 0.0), width / UNIT), found.at)
    # A user adds v to one sum and width − v to the other: together width.
    both = values.map(lambda own: [int(own.sum()), int((width - own).sum())])
    noisy = receipt.numbers(Measurement(lambda: both, l1=width, l2_squared=width**2), epsilon)
    one, other = noisy.values
    ratio = Ratio(one, one + other, (noisy.noise, noisy.noise), (0.0, 1.0), 0.0, width / UNIT, paired=True)
    return Average(ratio.value, ratio.at)


def _exactly(values: Integers) -> Average:
    """The average over public users, and what it may be for others like them: normal, by the spread between users."""
    mean, spread = float(np.mean(values)) / UNIT, float(np.std(values)) / UNIT / math.sqrt(max(len(values), 1))

    def at(confidence: float) -> tuple[float, float]:
        from scipy.stats import norm

        reach = float(norm.ppf((1 + confidence) / 2)) * spread
        return mean - reach, mean + reach

    return Average(mean, at)


def _shifted(average: Average, offset: float) -> Average:
    def at(confidence: float) -> tuple[float, float]:
        low, high = average.at(confidence)
        return low + offset, high + offset

    return Average(average.value + offset, at)
