"""Choosing from a finite set of hypotheses with a bounded number of rows per user (amin2018, amin2019).

And how far users' losses lie apart: Var(H), the quantity by which amin2019 bounds the bias of dropping rows. A user with s rows of losses
l in [0, 1] has the mean loss L = Σl/s, and the average product of two of their rows' losses, P = ((Σl)² − Σl²)/(s(s − 1)), whose
expectation is the square of that of L: unlike L² it holds none of the scatter of rows. With weights w = min(s, h), over users with two rows
or more, Var(H) = ΣwP/Σw − (ΣwL/Σw)². As 0 ≤ P ≤ L ≤ 1, the three numbers w(1 − L), w(L − P) and wP are not negative and add up to w: one
user moves them by h in L1 norm, together.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Amount, Guarantee, Relation, UsageError, parse_epsilon
from evenhand.learning.data.inputs import Features, Frame, PerRow
from evenhand.learning.data.private_values import Floats, double, same, unwarned
from evenhand.learning.data.row_sources import MemoryRows, profile_price, require_public, rows_per_user, rows_support
from evenhand.learning.data.targets import MOST_CLASSES, Classes, Targets
from evenhand.learning.fitting import choice, fitting, is_worst_case, pay, whole_number
from evenhand.learning.linear_model import PrivateRows
from evenhand.learning.selection.linear_hypotheses import LinearHypotheses, LinearNet, bounded_steps
from evenhand.learning.selection.per_user_loss import UNIT
from evenhand.ledger import Cost
from evenhand.planning.row_choice import LARGEST_TAU
from evenhand.planning.selection import SelectionForecast, best_selection, safest_selection, selection_forecasts
from evenhand.release import Measurement, Receipt
from evenhand.release.intervals import check_confidence
from evenhand.tables import Secret

LOSSES = ("zero-one", "absolute", "squared")

LARGEST_FEATURE = 1e30
"""Features are clamped to this: squares and single-precision numbers still hold it."""


Hypothesis: TypeAlias = Any
"""A function of arrays, or an object with ``predict``."""


@dataclass(eq=False, repr=False, kw_only=True)
class HypothesisSelection(PrivateRows):
    """The hypothesis with about the smallest loss among finitely many, by permute-and-flip.

    Guarantee: pure ε-differential privacy for *all rows of a user*. A row's loss lies in [0, 1], on an integer
    grid; with at most τ rows per user, one user moves each hypothesis' total loss by at most τ. Under presence all
    totals move in the same direction, so ``exp(−ε·loss/τ)`` needs no factor 2. Sampling is exact; permute-and-flip
    is never worse than the exponential mechanism.

    Edge cases: rows and labels as in `BoundedERM`; features are clamped to ±10³⁰, and under values a missing one counts as
    0. A hypothesis is called with one row at a time, an array of shape (1, d), so that no row changes its prediction for
    another; where it raises, or returns anything but one prediction, the loss is 1. There is no guarantee
    for one that remembers rows, or writes them somewhere. Linear ones (`linear_net`; of scikit-learn's those for numbers or
    two classes with a ``coef_``) are not called: all are judged at once, from their coefficients.

    Args:
        hypotheses: fitted models (with ``predict``) or functions of X, chosen without looking at these rows. Each is
            tried on a row of zeros first, before the debit; what it raises there is an error.
        epsilon: the privacy-loss bound ε of one fit.
        loss: ``"zero-one"``, or ``"absolute"`` or ``"squared"`` as a part of the width of ``label_bounds``.
        classes: for the zero-one loss, the labels.
        label_bounds: (low, high) of a numeric label.
        rows_per_user: τ; ``"auto"``: that of the smallest forecast; ``"worst case"``: that which makes what is proved least, as amin2018 does.
        profile: a public or bought `Profile` of rows per user.
        protects: ``"presence"`` or ``"values"``; a table knows its own.
        population: a name for the people, so that arrays and tables about them share a ledger; a table has its own.
        ledger: where to debit ε before the release.

    Attributes:
        best_index_, best_hypothesis_: the choice.
        guarantee_, rows_per_user_: the `Guarantee`, and τ.
        forecast_: a `SelectionForecast`: what the choice loses at most, and what dropping rows is assumed to cost. None where τ was given and
            nothing is known of how many rows there are.
        usable_: whether that leaves half of what there may be to learn, a tenth of a constant hypothesis' loss; None with ``forecast_``.

    Example:
        >>> HypothesisSelection(models, epsilon=1.0).fit(X, y, users=ids).best_index_

    Reference: Amin et al. (2018), section 4; McKenna and Sheldon (2020).
    """

    hypotheses: Sequence[Hypothesis] = field(default=(), kw_only=False)
    epsilon: Amount = field(default=1.0, kw_only=False)
    loss: str = "zero-one"
    rows_per_user: int | str = "auto"

    @fitting
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Bound, debit ε, and choose; arguments as in `BoundedERM.fit`.

        Of a table at most τ random rows per user are taken into memory, after the debit.
        """
        epsilon = parse_epsilon(self.epsilon)
        if not len(self.hypotheses):
            raise UsageError("hypotheses= is empty; expected a list of fitted models or functions to choose from.")
        tau = rows_per_user(self.rows_per_user)
        choice("loss", self.loss, LOSSES)
        targets = self._targets()
        require_public(self.profile)
        source, encoding = self._opened(X, y, users, targets)
        names = encoding.names
        for index, model in enumerate(
            self.hypotheses[:1] if isinstance(self.hypotheses, LinearNet) else self.hypotheses
        ):
            _try_on_zeros(index, model, len(names))
        linear = LinearHypotheses.of(self.hypotheses, len(names), targets)
        guarantee = source.guarantee(epsilon, profile=self.profile)
        query = {"statistic": "selection among hypotheses", "hypotheses": len(self.hypotheses)}
        query |= {"features": list(names), "loss": self.loss}
        receipt = pay(self.ledger, guarantee, Cost.pure(epsilon), query)
        left = epsilon
        with source.reading():
            self.forecast_: SelectionForecast | None = None
            if tau is None or self.profile is not None or source.relation.counts_are_public:
                if tau is None:
                    _, left = profile_price(source, self.profile, epsilon)
                support = rows_support(source, self.profile, epsilon, receipt)
                given = len(self.hypotheses), left, source.relation, tau
                best = safest_selection if is_worst_case(self.rows_per_user) else best_selection
                self.forecast_ = best(selection_forecasts(support, *given))
                tau = self.forecast_.tau
            scores = source.sample(tau).map(lambda rows: [self._scores(linear, *rows, targets)])
        # Under presence adding a user lowers every score.
        monotone = source.relation is Relation.PRESENCE
        (self.best_index_,) = receipt.choices(scores, tau * UNIT, left, monotone).places
        self.best_hypothesis_ = self.hypotheses[self.best_index_]
        self.guarantee_, self.rows_per_user_ = guarantee, tau
        classes = len(targets.labels) if isinstance(targets, Classes) else 2
        self.usable_ = None if self.forecast_ is None else self.forecast_.usable(self.loss, classes)
        if isinstance(targets, Classes):
            self.classes_ = np.array(targets.labels)
        return self

    def predict(self, X: ArrayLike | Frame) -> NDArray[Any]:
        """What the chosen hypothesis predicts, for features by the same rule as in the fit."""
        rows = _clean(self._new_rows(X))
        return np.asarray(_predict(self.best_hypothesis_, rows))

    @unwarned
    def loss_spread(
        self, X: Features, y: PerRow = None, users: PerRow = None, *, epsilon: Amount, rows_per_user: int | None = None
    ) -> LossSpread:
        """How far users' losses by the chosen hypothesis lie apart: amin2019's √Var(H), for ``plan(..., heterogeneity=...)``.

        Guarantee: pure ε-differential privacy for *all rows of a user*, who counts by three numbers that add up to at most ``rows_per_user``; debited from the ledger of
        the fit. Users with one row say nothing about it and are left out. See docs/proofs/output-perturbation.md.

        Args:
            X, y, users: as in ``fit``; all rows are taken into memory.
            epsilon: what to spend.
            rows_per_user: how much a user may weigh, in rows; that of the fit if left out.
        """
        check_is_fitted(self)
        amount = parse_epsilon(epsilon)
        limit = (
            self.rows_per_user_ if rows_per_user is None else whole_number("rows_per_user", rows_per_user, LARGEST_TAU)
        )
        targets = self._targets()
        source, encoding = clone(self)._opened(X, y, users, targets)
        if len(encoding.names) != self.n_features_in_:
            raise UsageError(f"X has {len(encoding.names)} features; expected {self.n_features_in_}, as in the fit.")
        guarantee = source.guarantee(amount)
        query = {"statistic": "spread of losses", "loss": self.loss, "rows_per_user": limit}
        receipt = pay(self.ledger, guarantee, Cost.pure(amount), query)
        with source.reading(copied=False):
            sums = source.fetched().map(lambda rows: self._loss_parts(rows, targets, limit))
        return bought_spread(sums, limit, source.relation, amount, receipt, guarantee)

    def _loss_parts(self, rows: MemoryRows, targets: Targets, limit: int) -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a row would tell about it
            losses = self._row_losses(self.best_hypothesis_, _clean(rows.X), rows.targets, targets)
        return loss_parts(losses, rows.users.tolist(), limit)

    @property
    def _classifies(self) -> bool:
        return self.loss == "zero-one"

    def _most_classes(self) -> int:
        return MOST_CLASSES

    @unwarned
    def _scores(self, linear: LinearHypotheses, rows: Floats, truth: Floats, targets: Targets) -> list[int]:
        """Minus the total loss of each hypothesis."""
        rows, squared = _clean(rows), self.loss == "squared"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a row would tell about it
            scores = np.zeros(len(self.hypotheses), dtype=np.int64)
            scores[linear.places] = -linear.total_losses(rows, truth, targets, squared)
            for place in sorted(set(range(len(scores))).difference(linear.places)):
                scores[place] = -sum(self._row_losses(self.hypotheses[place], rows, truth, targets))
        return [int(score) for score in scores]

    def _row_losses(self, model: Hypothesis, rows: Floats, truth: Floats, targets: Targets) -> list[int]:
        """The loss of each row, in integer steps."""
        pairs = zip(rows, truth.tolist(), strict=True)
        return [self._steps(_prediction(model, row), target, targets) for row, target in pairs]

    def _steps(self, predicted: object, target: float, targets: Targets) -> int:
        """The loss of one prediction, from 0 to UNIT; what is no prediction has the largest."""
        if isinstance(targets, Classes):
            return 0 if same(predicted, targets.label_of(target)) else UNIT
        said = np.array(double(predicted))
        return int(bounded_steps(said, np.array(target), targets, self.loss == "squared"))


def _clean(X: Floats) -> Floats:
    """Features by the stated rule: clamped, and 0 where one is missing (under presence such rows are gone already)."""
    return np.clip(np.where(np.isnan(X), 0.0, X), -LARGEST_FEATURE, LARGEST_FEATURE)


def _prediction(model: Hypothesis, row: Floats) -> object:
    """What a hypothesis says about one row; None if it raises or does not say one thing."""
    try:
        said = np.asarray(_predict(model, row.reshape(1, -1).copy()))
    except Exception:  # the caller's code: whatever it raises on a private row must not be told
        return None
    return said.ravel().tolist()[0] if said.size == 1 else None


def _try_on_zeros(index: int, model: Hypothesis, features: int) -> None:
    """Find hypotheses that can't take these features at all, from public facts, before the debit."""
    try:
        _predict(model, np.zeros((1, features)))
    except Exception as error:
        raise UsageError(
            f"hypotheses[{index}] raises {type(error).__name__} on a row of {features} zeros ({error}); expected a fitted model "
            f"or a function of arrays with {features} column(s)."
        ) from error


def _predict(model: Hypothesis, X: ArrayLike | Frame) -> ArrayLike:
    said: ArrayLike = model.predict(X) if hasattr(model, "predict") else model(X)
    return said


@dataclass(frozen=True)
class LossSpread:
    """Var(H) of one hypothesis, noisy: the variance of users' losses, users weighted by their rows up to ``rows_per_user``.

    Args:
        variance: between 0 and 1/4; ``sd``, its root, is what `plan` takes as ``heterogeneity``.
        sums: the three noisy sums; ``scale``: of their noise.
        rows_per_user: h.
        guarantee: what was promised.
    """

    sums: tuple[float, float, float]
    scale: float
    rows_per_user: int
    guarantee: Guarantee

    @property
    def variance(self) -> float:
        """Of users' losses; 0 where noise hides it."""
        return _variance(self.sums)

    @property
    def sd(self) -> float:
        """Its root."""
        return math.sqrt(self.variance)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A range for ``sd``; it covers the noise only. All three sums lie within it with this probability or more."""
        radius = self.scale * math.log(3 / (1 - check_confidence(confidence)))
        corners = [
            _variance((one + a * radius, two + b * radius, three + c * radius))
            for (one, two, three) in (self.sums,)
            for a, b, c in itertools.product((-1, 0, 1), repeat=3)
        ]
        return math.sqrt(min(corners)), math.sqrt(max(corners))


def loss_parts(losses: Sequence[int], users: Sequence[int], rows_per_user: int) -> list[int]:
    """The three sums in steps, of each row's loss in steps from 0 to UNIT; exact integers, each user's clamped."""
    totals = [0, 0, 0]
    for _, rows in itertools.groupby(zip(users, losses, strict=True), key=lambda pair: pair[0]):
        own = [loss for _, loss in rows]
        size, total = len(own), sum(own)
        if size < 2:
            continue
        weight = min(size, rows_per_user)
        mean = min(max(total // size, 0), UNIT)
        pairs = (total * total - sum(loss * loss for loss in own)) // (size * (size - 1) * UNIT)
        product = min(max(pairs, 0), mean)
        for place, part in enumerate((UNIT - mean, mean - product, product)):
            totals[place] += weight * part
    return totals


def bought_spread(
    sums: Secret[list[int]],
    rows_per_user: int,
    relation: Relation,
    epsilon: Decimal,
    receipt: Receipt,
    guarantee: Guarantee,
) -> LossSpread:
    """Var(H) from noisy sums."""
    reach, moves = rows_per_user * UNIT, relation.moves
    noisy = receipt.numbers(Measurement(lambda: sums, l1=moves * reach, l2_squared=moves * reach**2), epsilon)
    one, two, three = (float(value) / UNIT for value in noisy.values)
    scale = moves * rows_per_user / float(epsilon)
    return LossSpread((one, two, three), scale, rows_per_user, guarantee)


def _variance(sums: tuple[float, float, float]) -> float:
    weight = sum(sums)
    if weight <= 0:
        return 0.25
    mean, square = (sums[1] + sums[2]) / weight, sums[2] / weight
    return float(np.clip(square - mean**2, 0.0, 0.25))
