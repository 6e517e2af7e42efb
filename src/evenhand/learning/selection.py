"""Choosing from a finite set of hypotheses with a bounded number of rows a user (amin2018, amin2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Amount, Relation, UsageError, parse_epsilon
from evenhand.learning.base import choice, pay
from evenhand.learning.inputs import Floats
from evenhand.learning.linear_model import rows_support
from evenhand.learning.private_rows import open_rows
from evenhand.learning.row_choice import LARGEST_TAU
from evenhand.learning.sources import MemoryRows, random_ranks
from evenhand.learning.targets import Bounded, Classes
from evenhand.ledger import Cost, Ledger
from evenhand.noise import NoisyMax
from evenhand.noise.integers import round_up
from evenhand.planning import Profile, Support
from evenhand.planning.weights import HETEROGENEITY, Sums
from evenhand.tables import Table, parse_bounds

LOSSES = ("zero-one", "absolute", "squared")

_UNIT = 2**20  # steps of a row's loss from 0 to 1


class HypothesisSelection(BaseEstimator):  # type: ignore[misc]
    """The hypothesis with about the smallest loss among finitely many, by permute-and-flip.

    Guarantee: pure ε-differential privacy for *all rows of a user*. A row's loss lies in [0, 1], on an integer
    grid; with at most τ rows a user, one user moves each hypothesis' total loss by at most τ. Under presence all
    totals move in the same direction, so ``exp(−ε·loss/τ)`` needs no factor 2. Sampling is exact; permute-and-flip
    is never worse than the exponential mechanism.

    Edge cases: as in `BoundedERM`. A prediction that is NaN has loss 1.

    Args:
        hypotheses: fitted models (with ``predict``) or functions of X, chosen without looking at these rows.
        epsilon: the privacy-loss bound ε of one fit.
        loss: ``"zero-one"``, or ``"absolute"`` or ``"squared"`` as a part of the width of ``label_bounds``.
        classes: for the zero-one loss, the two labels (negative, positive).
        label_bounds: (low, high) of a numeric label.
        rows_per_user: τ, or ``"auto"``.
        profile: a public or bought `Profile` of rows per user.
        protects: ``"presence"`` or ``"values"``.
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
        hypotheses: Sequence[Any] = (),
        epsilon: Amount = 1.0,
        *,
        loss: str = "zero-one",
        classes: Sequence[Any] = (0, 1),
        label_bounds: tuple[float, float] | None = None,
        rows_per_user: int | str = "auto",
        profile: Profile | None = None,
        protects: str = "presence",
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
        self.ledger = ledger

    def fit(self, X: Any, y: Any = None, users: Any = None) -> Self:
        """Bound, debit ε, and choose."""
        epsilon = parse_epsilon(self.epsilon)
        if not len(self.hypotheses):
            raise UsageError("hypotheses= is empty; expected a list of fitted models or functions to choose from.")
        if isinstance(X, Table):
            raise UsageError("hypotheses are evaluated in memory: give arrays or a data frame instead of a table.")
        tau = self._tau()
        targets = (
            Classes.parse(self.classes)
            if choice("loss", self.loss, LOSSES) == "zero-one"
            else Bounded(parse_bounds(self.label_bounds, "label_bounds"))
        )
        source, names, _ = open_rows(X, y, users, features=None, targets=targets, protects=self.protects)
        assert isinstance(source, MemoryRows)
        guarantee = source.guarantee(epsilon, profile=self.profile)
        query = {
            "statistic": "selection among hypotheses",
            "hypotheses": len(self.hypotheses),
            "features": list(names),
            "loss": self.loss,
        }
        receipt = pay(self.ledger, guarantee, Cost.pure(epsilon), query)
        left = epsilon
        if tau is None:
            support, left = rows_support(source, self.profile, epsilon, receipt)
            tau = best_limit(support, len(self.hypotheses), left)
        receipt.use(left)
        kept = random_ranks(source.users, source.counts) < tau
        scores = [-_total(self._losses(model, source, kept, targets)) for model in self.hypotheses]
        self.best_index_ = noisy_max(tau, left, source.relation).choose(scores)
        self.best_hypothesis_ = self.hypotheses[self.best_index_]
        self.guarantee_, self.rows_per_user_ = guarantee, tau
        return self

    def predict(self, X: Any) -> Any:
        """What the chosen hypothesis predicts."""
        check_is_fitted(self, "best_hypothesis_")
        return _predict(self.best_hypothesis_, X)

    def _tau(self) -> int | None:
        given = self.rows_per_user
        if isinstance(given, str):
            choice("rows_per_user", given, ("auto",))
            return None
        if int(given) != given or not 1 <= given <= LARGEST_TAU:
            raise UsageError(f"rows_per_user={given}; expected a whole number from 1 to {LARGEST_TAU}, or 'auto'.")
        return int(given)

    def _losses(
        self, model: Any, source: MemoryRows, kept: np.ndarray[Any, np.dtype[np.bool_]], targets: Classes | Bounded
    ) -> Floats:
        predicted = np.asarray(_predict(model, source.X[kept]))
        truth = source.targets[kept]
        if isinstance(targets, Classes):
            wrong = np.where(predicted == targets.labels[1], 1.0, -1.0) != truth
            return np.asarray(wrong, dtype=np.float64)
        width = targets.bounds[1] - targets.bounds[0]
        off = np.abs(predicted.astype(np.float64) - targets.offset - truth) / width
        return np.asarray(off if self.loss == "absolute" else off**2)


def noisy_max(tau: int, epsilon: Decimal, relation: Relation) -> NoisyMax:
    """The selection that protects totals of losses with at most ``tau`` rows a user."""
    if relation is not Relation.PRESENCE:
        return NoisyMax.calibrated(tau * _UNIT, epsilon)
    # Adding a user lowers every score: for such monotone scores half the scale gives the same ε.
    return NoisyMax(round_up(Fraction(tau * _UNIT) / Fraction(epsilon)))


def best_limit(support: Support, hypotheses: int, epsilon: Decimal) -> int:
    """The τ with the least forecast: bias of the mix of users, plus the selection's error τ·ln(k)/(ε·n_τ)."""
    sums = Sums.of(support)
    top = min(float(support.sizes.max()), float(LARGEST_TAU))
    taus = np.unique(np.minimum(top, np.ceil(1.25 ** np.arange(0, math.log(max(top, 1.0), 1.25) + 1))))
    spread = np.minimum(sums.total_variation(taus), HETEROGENEITY * np.sqrt(sums.chi_square(taus)))
    noise = taus * max(math.log(hypotheses), 1.0) / (float(epsilon) * sums.kept(taus))
    return int(taus[np.argmin(spread + noise)])


def _total(losses: Any) -> int:
    """A sum of losses in integer steps; NaN counts as 1."""
    clipped = np.clip(np.nan_to_num(np.asarray(losses, dtype=np.float64), nan=1.0), 0.0, 1.0)
    return int(np.floor(clipped * _UNIT + 0.5).astype(np.int64).sum())


def _predict(model: Any, X: Any) -> Any:
    return model.predict(X) if hasattr(model, "predict") else model(X)
