"""Choosing from a finite set of hypotheses with a bounded number of rows per user (amin2018, amin2019)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.bounding import HETEROGENEITY
from evenhand.guarantee import Amount, Relation, UsageError, parse_epsilon
from evenhand.learning.base import choice, pay
from evenhand.learning.inputs import Features, Frame, PerRow
from evenhand.learning.private_estimator import PrivateRows
from evenhand.learning.private_values import Floats, double, same
from evenhand.learning.progress import fitting
from evenhand.learning.row_profile import profile_price, require_public, rows_per_user, rows_support
from evenhand.learning.targets import MOST_CLASSES, Bounded, Classes
from evenhand.ledger import Cost, Ledger
from evenhand.planning.row_choice import LARGEST_TAU, limits_to_try
from evenhand.profiles import Profile, Sums, Support

LOSSES = ("zero-one", "absolute", "squared")

LARGEST_FEATURE = 1e30
"""Features are clamped to this: squares and single-precision numbers still hold it."""

_UNIT = 2**20  # steps of a row's loss from 0 to 1


Hypothesis: TypeAlias = Any
"""A function of arrays, or an object with ``predict``."""


class HypothesisSelection(PrivateRows):
    """The hypothesis with about the smallest loss among finitely many, by permute-and-flip.

    Guarantee: pure ε-differential privacy for *all rows of a user*. A row's loss lies in [0, 1], on an integer
    grid; with at most τ rows per user, one user moves each hypothesis' total loss by at most τ. Under presence all
    totals move in the same direction, so ``exp(−ε·loss/τ)`` needs no factor 2. Sampling is exact; permute-and-flip
    is never worse than the exponential mechanism.

    Edge cases: rows and labels as in `BoundedERM`; features are clamped to ±10³⁰, and under values a missing one counts as
    0. A hypothesis is called with one row at a time, an array of shape (1, d), so that no row changes its prediction for
    another; where it raises, or returns anything but one prediction, the loss is 1. There is no guarantee
    for one that remembers rows, or writes them somewhere.

    Args:
        hypotheses: fitted models (with ``predict``) or functions of X, chosen without looking at these rows. Each is
            tried on a row of zeros first, before the debit; what it raises there is an error.
        epsilon: the privacy-loss bound ε of one fit.
        loss: ``"zero-one"``, or ``"absolute"`` or ``"squared"`` as a part of the width of ``label_bounds``.
        classes: for the zero-one loss, the labels.
        label_bounds: (low, high) of a numeric label.
        rows_per_user: τ, or ``"auto"``.
        profile: a public or bought `Profile` of rows per user.
        protects: ``"presence"`` or ``"values"``; a table knows its own.
        population: a name for the people, so that arrays and tables about them share a ledger; a table has its own.
        ledger: where to debit ε before the release.

    Attributes:
        best_index_, best_hypothesis_: the choice.
        guarantee_, rows_per_user_: the `Guarantee`, and τ.

    Example:
        >>> HypothesisSelection(models, epsilon=1.0).fit(X, y, users=ids).best_index_

    Reference: Amin et al. (2018), section 4; McKenna and Sheldon (2020).
    """

    def __init__(
        self,
        hypotheses: Sequence[Hypothesis] = (),
        epsilon: Amount = 1.0,
        *,
        loss: str = "zero-one",
        classes: Sequence[Any] = (0, 1),
        label_bounds: tuple[float, float] | None = None,
        rows_per_user: int | str = "auto",
        profile: Profile | None = None,
        protects: str = "presence",
        population: str | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.epsilon = epsilon
        self.loss = loss
        self.classes = classes
        self.label_bounds = label_bounds
        self.rows_per_user = rows_per_user
        self.profile = profile
        self.protects = protects
        self.population = population
        self.ledger = ledger

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
        targets = Classes.parse(self.classes, MOST_CLASSES) if self._classifies else Bounded.parse(self.label_bounds)
        require_public(self.profile)
        source, encoding = self._opened(X, y, users, targets)
        names = encoding.names
        for index, model in enumerate(self.hypotheses):
            _try_on_zeros(index, model, len(names))
        guarantee = source.guarantee(epsilon, profile=self.profile)
        query = {"statistic": "selection among hypotheses", "hypotheses": len(self.hypotheses)}
        query |= {"features": list(names), "loss": self.loss}
        receipt = pay(self.ledger, guarantee, Cost.pure(epsilon), query)
        left = epsilon
        with source.reading():
            if tau is None:
                _, left = profile_price(source, self.profile, epsilon)
                support = rows_support(source, self.profile, epsilon, receipt)
                tau = best_limit(support, len(self.hypotheses), left)
            scores = source.sample(tau).map(lambda rows: [self._scores(*rows, targets)])
        # Under presence adding a user lowers every score.
        monotone = source.relation is Relation.PRESENCE
        (self.best_index_,) = receipt.choices(scores, tau * _UNIT, left, monotone).places
        self.best_hypothesis_ = self.hypotheses[self.best_index_]
        self.guarantee_, self.rows_per_user_ = guarantee, tau
        if isinstance(targets, Classes):
            self.classes_ = np.array(targets.labels)
        return self

    def predict(self, X: ArrayLike | Frame) -> NDArray[Any]:
        """What the chosen hypothesis predicts, for features by the same rule as in the fit."""
        rows = _clean(self._new_rows(X))
        return np.asarray(_predict(self.best_hypothesis_, rows))

    @property
    def _classifies(self) -> bool:
        return self.loss == "zero-one"

    def _scores(self, rows: Floats, truth: Floats, targets: Classes | Bounded) -> list[int]:
        """Minus the total loss of each hypothesis."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a row would tell about it
            return [-self._total_loss(model, _clean(rows), truth, targets) for model in self.hypotheses]

    def _total_loss(self, model: Hypothesis, rows: Floats, truth: Floats, targets: Classes | Bounded) -> int:
        """The sum of the losses of a hypothesis, in integer steps."""
        pairs = zip(rows, truth.tolist(), strict=True)
        return sum(self._steps(_prediction(model, row), target, targets) for row, target in pairs)

    def _steps(self, predicted: object, target: float, targets: Classes | Bounded) -> int:
        """The loss of one prediction, from 0 to _UNIT; what is no prediction has the largest."""
        if isinstance(targets, Classes):
            return 0 if same(predicted, targets.label_of(target)) else _UNIT
        off = abs(double(predicted) - targets.offset - target) / targets.width
        if not off < 1:  # NaN too
            return _UNIT
        return math.floor((off if self.loss == "absolute" else off * off) * _UNIT + 0.5)


def best_limit(support: Support, hypotheses: int, epsilon: Decimal) -> int:
    """The τ with the least forecast: bias of the mix of users, plus the selection's error τ·ln(k)/(ε·n_τ)."""
    sums = Sums.of(support)
    taus = np.array(limits_to_try(min(float(support.sizes.max()), LARGEST_TAU)))
    spread = np.minimum(sums.total_variation(taus), HETEROGENEITY * np.sqrt(sums.chi_square(taus)))
    noise = taus * max(math.log(hypotheses), 1.0) / (float(epsilon) * sums.kept(taus))
    return int(taus[np.argmin(spread + noise)])


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
