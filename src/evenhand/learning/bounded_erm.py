"""Empirical risk minimisation with a bounded number of rows per user (amin2019, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Amount, Relation, parse_epsilon
from evenhand.learning.base import is_auto, pay, public_number
from evenhand.learning.categories import Categories
from evenhand.learning.features import FeatureBounds, FeatureMap
from evenhand.learning.inputs import Features, PerRow
from evenhand.learning.intervals import spherical_radius
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.losses import Loss
from evenhand.learning.minimise import FINENESS, Coefficients, Objective, minimise
from evenhand.learning.private_values import Floats, unwarned
from evenhand.learning.row_choice import RowChoice, Scales, choose_rows, rows_per_user
from evenhand.learning.row_profile import profile_price, require_public, rows_support
from evenhand.learning.sources import Source
from evenhand.ledger import Cost, Ledger
from evenhand.profiles import Profile
from evenhand.release import Opener, Receipt

ACCURACY = Fraction(1, 1000)
"""The optimiser's gradient norm, in units of what one user can do: 0.2 % more noise buys a certain answer."""

MOST_ROWS = 2**31
"""From so many kept rows on, the model is scaled down, to zero at twice as many, where doubles would not be accurate enough."""

FARTHEST = 2**20
"""How far one user may move the margin, in units of the range over which a loss is curved. Less regularisation is refused:
the release would be nothing but noise, and the optimiser would not end."""

_LATTICE = 2**20  # lattice steps per noise scale
_LARGEST_REGULARISATION = 1e15


class BoundedERM(LinearModel):
    """A linear model by output perturbation: at most τ rows per user, a regularised minimiser, spherical noise.

    Guarantee: pure ε-differential privacy for *all rows of a user*. Features are clipped to a public norm, so one
    user moves the minimiser of ``Σ ℓ + (Λ/2)‖f‖²`` by at most τL/Λ in L2 norm (2τL/Λ under values); the
    accuracy of the optimiser, guaranteed for every table, and the rounding to a lattice are part of the declared
    sensitivity. See docs/proofs/output-perturbation.md.

    Edge cases: under presence rows with a missing feature or label are dropped; under values a missing feature
    counts as 0 and a missing label as the middle or the first class. Infinite features are moved to the edge of the
    ball. Labels outside the bounds are clamped; a label that is neither class counts as missing.

    Args:
        epsilon: the privacy-loss bound ε of one fit.
        loss: ``"logistic"``, ``"huber-svm"`` (both for two classes) or ``"squared"`` (needs ``label_bounds``).
        classes: the two labels (negative, positive).
        label_bounds: (low, high) of a numeric label.
        feature_norm: rows are clipped to this Euclidean norm, and divided by it.
        feature_bounds: instead of the norm: (low, high) for all features, or one pair each; features are then
            centred and scaled to the unit ball.
        rows_per_user: τ, or ``"auto"``: forecast from the public counts (values), from ``profile``, or from a
            profile bought with a tenth of ε (presence).
        regularisation: Λ for the features divided by their norm, or ``"auto"``; too little for the number of rows per user is
            refused.
        coefficient_norm: a guess of the norm of good coefficients, for the automatic choices.
        profile: a public or bought `Profile` of rows per user.
        protects: ``"presence"`` or ``"values"``; a table knows its own.
        fit_intercept: whether to add a constant feature.
        features: names of the feature columns of a frame or table.
        categories: public levels of columns that hold no numbers, ``{"colour": ["red", "blue"]}``: one 0/1 feature each; any
            other value, and a missing one, has 0 in all of them. Of an array, by the place of the column.
        population: a name for the people, so that arrays and tables about them share a ledger; a table has its own.
        ledger: where to debit ε before the release.

    Attributes:
        coef_, intercept_: the released model, for features as they came.
        guarantee_: the `Guarantee`.
        rows_per_user_, regularisation_: τ and Λ.
        sensitivity_, noise_scale_: Δ and Δ/ε, for the coefficients of the scaled features.
        forecast_: `RowChoice`, the forecast excess of the average loss and its parts.

    Example:
        >>> BoundedERM(epsilon=1.0, feature_bounds=(0, 1)).fit(X, y, users=ids).predict(X)

    Reference: Amin, Kulesza, Muñoz Medina and Vassilvitskii (ICML 2019); Chaudhuri, Monteleoni and Sarwate
    (JMLR 2011) for output perturbation.
    """

    def __init__(
        self,
        epsilon: Amount = 1.0,
        *,
        loss: str = "logistic",
        classes: Sequence[Any] = (0, 1),
        label_bounds: tuple[float, float] | None = None,
        feature_norm: float = 1.0,
        feature_bounds: FeatureBounds | None = None,
        rows_per_user: int | str = "auto",
        regularisation: float | str = "auto",
        coefficient_norm: float | None = None,
        profile: Profile | None = None,
        protects: str = "presence",
        fit_intercept: bool = True,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
        population: str | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.classes = classes
        self.label_bounds = label_bounds
        self.feature_norm = feature_norm
        self.feature_bounds = feature_bounds
        self.rows_per_user = rows_per_user
        self.regularisation = regularisation
        self.coefficient_norm = coefficient_norm
        self.profile = profile
        self.protects = protects
        self.fit_intercept = fit_intercept
        self.features = features
        self.categories = categories
        self.population = population
        self.ledger = ledger

    @unwarned
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Bound, debit ε, minimise, and release the noisy minimiser.

        Args:
            X: n × d features; a data frame; or an `eh.read` table, which stays where it is.
            y: one label per row, or the name of the label column.
            users: one id per row, or the name of the user column; known already for a table.
        """
        epsilon = parse_epsilon(self.epsilon)
        loss, targets = self._problem()
        tau, regularisation = rows_per_user(self.rows_per_user), self._regularisation()
        source, names, mapped = self._open(X, y, users, targets)
        self._check_given(tau, regularisation, loss, mapped, source)
        guarantee = source.guarantee(epsilon, profile=self.profile)
        receipt = pay(
            self.ledger,
            guarantee,
            Cost.pure(epsilon),
            self._query("bounded ERM", names, "rows_per_user", "regularisation"),
        )
        with source.reading():
            left = epsilon
            if tau is None or regularisation is None:
                _, left = profile_price(source, self.profile, epsilon)
                support = rows_support(source, self.profile, epsilon, receipt)
                chosen = choose_rows(support, self._scales(loss, mapped, left, source.relation), tau, regularisation)
                chosen = _within_range(chosen, regularisation, least_regularisation(1, loss, mapped, source.relation))
            else:  # nothing to choose, so nothing is bought; of the forecast only the noise is known
                noise = self._scales(loss, mapped, left, source.relation).noise(tau, regularisation)
                chosen = RowChoice(tau, regularisation, math.nan, math.nan, noise, math.nan)
            self._adopt(self._release(source, loss, mapped, chosen, left, receipt), mapped, targets)
        self.guarantee_, self.forecast_ = guarantee, chosen
        return self

    def interval(self, confidence: float = 0.95) -> Floats:
        """A range for each coefficient (intercept last): privacy noise only, not sampling error or bias."""
        check_is_fitted(self)
        mapped = self.feature_map_
        radius = spherical_radius(confidence, mapped.size, self.noise_scale_)
        values, spread = np.ravel(self.coef_), radius / mapped.scale
        if self.fit_intercept:  # it moves with every slope whose feature is centred
            constant = radius * math.sqrt(1 + float(np.sum((mapped.centre / mapped.scale) ** 2)))
            values, spread = np.r_[values, self.intercept_], np.r_[spread, constant]
        return np.column_stack([values - spread, values + spread])

    def _regularisation(self) -> float | None:
        """Λ as the analyst set it; None if it is left to a forecast."""
        given = self.regularisation
        return None if is_auto("regularisation", given) else public_number("regularisation", given)

    def _check_given(
        self, tau: int | None, regularisation: float | None, loss: Loss, mapped: FeatureMap, source: Source
    ) -> None:
        """Refuse, from public parameters and before the debit, what could not be carried out for every table."""
        require_public(self.profile)
        self._scales(loss, mapped, Decimal(1), source.relation)
        if regularisation is not None:
            least = least_regularisation(tau or 1, loss, mapped, source.relation)
            public_number("regularisation", regularisation, smallest=least, largest=_LARGEST_REGULARISATION)

    def _scales(self, loss: Loss, mapped: FeatureMap, epsilon: Decimal, relation: Relation) -> Scales:
        guess = self.coefficient_norm
        typical = 3.0 if loss.classifies else loss.steepest / 2
        norm = typical if guess is None else public_number("coefficient_norm", guess, smallest=1e-9, largest=1e9)
        slope, curvature = loss.steepest * mapped.norm, loss.roundest * mapped.norm**2
        return Scales(mapped.size, slope, curvature, norm, relation.moves, float(epsilon))

    def _release(
        self, source: Source, loss: Loss, mapped: FeatureMap, chosen: RowChoice, epsilon: Decimal, receipt: Receipt
    ) -> Floats:
        one_user = Fraction(chosen.tau) * Fraction(loss.steepest * mapped.norm * (1 + 1e-12))
        accuracy = one_user * ACCURACY
        exact = (source.relation.moves * one_user + 2 * accuracy) / Fraction(chosen.regularisation)
        exact += fading(chosen, loss, accuracy)
        exponent = math.floor(math.log2(_LATTICE * float(epsilon) / float(exact)))
        # Rounding moves either minimiser by at most half a step per coordinate.
        steps = exact * Fraction(2) ** exponent + math.isqrt(mapped.size) + 1

        def lattice(opener: Opener) -> list[int]:
            with source.limited(mapped, chosen.tau, opener) as rows:
                gradient, hessian = partial(rows.gradient, loss=loss), partial(rows.hessian, loss=loss)
                roundest = loss.roundest * mapped.norm**2 * rows.rows
                objective = Objective(gradient, hessian, chosen.regularisation, roundest, mapped.size)
                # Nothing is left of the model from twice MOST_ROWS on: there is nothing to minimise.
                kept = min(max(2 - Fraction(rows.rows, MOST_ROWS), Fraction(0)), Fraction(1))
                minimiser = minimise(objective, float(accuracy)) if kept else Coefficients.zero(mapped.size)
            shift = kept * Fraction(2) ** (exponent - FINENESS)
            return [math.floor(step * shift + Fraction(1, 2)) for step in minimiser.steps]

        noisy = receipt.vector(lattice, steps, epsilon)
        unit = float(Fraction(2) ** -exponent)
        self.rows_per_user_, self.regularisation_ = chosen.tau, chosen.regularisation
        self.sensitivity_ = float(steps) * unit
        self.noise_scale_ = self.sensitivity_ / float(epsilon)
        return np.array([float(value) for value in noisy]) * unit


def fading(chosen: RowChoice, loss: Loss, accuracy: Fraction) -> Fraction:
    """How far a user's τ rows move the model by scaling it down: τ/MOST_ROWS of its norm, which public numbers bound.

    No loss is negative, so (Λ/2)‖f‖² is at most the total loss at 0.
    """
    total = 2 * MOST_ROWS * loss.at_zero
    norm = Fraction(math.sqrt(total) * math.sqrt(2 / chosen.regularisation) * (1 + 1e-12))
    return Fraction(chosen.tau, MOST_ROWS) * (norm + accuracy / Fraction(chosen.regularisation))


def _within_range(chosen: RowChoice, given: float | None, least: float) -> RowChoice:
    """A choice that could have been given: not less than ``least`` regularisation for each row of a user."""
    if given is not None:
        return replace(chosen, tau=min(chosen.tau, max(math.floor(given / least), 1)))
    return replace(chosen, regularisation=min(max(chosen.regularisation, least * chosen.tau), _LARGEST_REGULARISATION))


def least_regularisation(tau: int, loss: Loss, mapped: FeatureMap, relation: Relation) -> float:
    """The Λ at which one user moves margins by FARTHEST times the range over which the loss is curved."""
    return relation.moves * tau * loss.roundest * mapped.norm / FARTHEST
