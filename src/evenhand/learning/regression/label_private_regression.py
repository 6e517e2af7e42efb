"""Linear regression when the labels are private and the features are public (epasto2020, section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.guarantee import Amount, Guarantee, Relation, UsageError, parse_epsilon, split
from evenhand.learning.data.inputs import (
    CallerData,
    Features,
    Frame,
    PerRow,
    as_fitted,
    feature_matrix,
    label_column,
    named_column,
    require_no_population,
    take_apart,
    user_codes,
    with_dummies,
)
from evenhand.learning.data.private_values import Floats, Integers, doubles, require_number_labels
from evenhand.learning.data.public_rows import PublicRows, public_columns
from evenhand.learning.data.targets import label_grid, label_steps
from evenhand.learning.fitting import admit, choice, fitting, halved, pay, public_number, single_threaded
from evenhand.learning.loss_forecast import LossForecast
from evenhand.learning.model_card import ShownAsCard, coefficient_rows
from evenhand.learning.regression import noise_level
from evenhand.learning.regression.weights import TARGETS, WEIGHTINGS, RegressionWeights, compute
from evenhand.ledger import Cost, Ledger
from evenhand.release import Measurement, Noisy, Receipt, noise_for
from evenhand.release.intervals import check_confidence
from evenhand.tables import Grid, Secret, Table, parse_bounds

NOISE_SHARE = Decimal("0.1")
"""The part of ε that ``noise_sd="private"`` takes: a wrong σ costs accuracy only."""


@dataclass(eq=False, repr=False, kw_only=True)
class LabelPrivateRegression(ShownAsCard, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Least squares with weights that bound how far one user's labels move the result, and noise scaled to that bound.

    The released coefficients are ``C y`` plus Laplace noise, for the ``C`` with ``C X = 1`` that has the least
    total variance, sampling error and noise together.

    Guarantee: ε-differential privacy for *all labels of a user*. Features, users and rows per user are treated
    as public; weights are computed from them alone, so they may be saved and reused for other labels of the
    same rows (each release costs its own ε). The sensitivity is computed in exact integers from the weights
    that are used.

    Edge cases: labels outside the bounds are clamped; a label that is NaN counts as the middle of the bounds,
    because refusing it would reveal it. NaN or infinite features are refused, as are columns that others
    determine. With a single user the result is mostly noise, and ``variance_`` says so.

    Args:
        epsilon: the privacy-loss bound ε of one fit.
        label_bounds: (low, high) of a label, chosen without looking at the labels.
        noise_sd: standard deviation of a label about the regression: a public guess (default: a quarter of the
            label range), or ``"private"`` to estimate it with a tenth of ε. A wrong value costs accuracy, not
            privacy.
        fit_intercept: whether to add a constant feature.
        weighting: ``"optimal"``; ``"row-limit"`` (least squares on a few random rows per user) and ``"all"``
            (least squares) are there to compare.
        target: minimise the total variance of the ``"coefficients"``, as the paper does, or the mean squared
            error of ``"predictions"``, which does not change when a feature is rescaled. ``"auto"`` takes the
            first while all columns (and the intercept) are within a factor of ten in size.
        row_limit: rows per user for ``weighting="row-limit"``; chosen by forecast if left out.
        features: names of the feature columns of a frame or table; default all but label and user.
        population: a name for the people, so that arrays and tables about them share a ledger; a table has its own.
        categories: names of feature columns to replace by 0/1 columns, one for each value but the first.
        weights: `RegressionWeights` to reuse instead of computing new ones.
        tol: relative gap to the optimum at which the optimiser stops; it may stop earlier, and ``weights_.gap`` says where.
        ledger: where to debit ε before the release.

    Attributes:
        coef_, intercept_: the released model.
        guarantee_: the `Guarantee`.
        noise_scale_: the scale of the Laplace noise on each released number.
        variance_: forecast of the total variance, noise and sampling error, of the coefficients; or of the mean
            squared error of predictions, if ``target_`` says so.
        target_: what was minimised.
        weights_: the weights used, with their certificate (``value``, ``bound``, ``gap``).
        noise_sd_: the σ that the forecast assumes.
        forecast_, usable_: a `LossForecast` made from these numbers, and whether the model is likely to beat a constant one.

    Example:
        >>> model = LabelPrivateRegression(epsilon=1.0, label_bounds=(1, 10), noise_sd=1.5)
        >>> model.fit(X, y, users=ids).coef_

    Reference: Epasto, Mahdian, Mao, Mirrokni and Ren (NeurIPS 2020), Algorithm 3 and Theorem 6.
    """

    epsilon: Amount = field(default=1.0, kw_only=False)
    label_bounds: tuple[float, float] | None = None
    noise_sd: float | str | None = None
    fit_intercept: bool = True
    weighting: str = "optimal"
    target: str = "auto"
    row_limit: int | None = None
    features: Sequence[str] | None = None
    population: str | None = None
    categories: Sequence[str] = ()
    weights: RegressionWeights | None = None
    tol: float = 1e-3
    ledger: Ledger | None = None

    @fitting
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Choose weights from what is public, debit ε, read the labels, and release the coefficients.

        Args:
            X: n × d features; a data frame; or an `eh.read` table with public features.
            y: one label per row, or the name of the label column.
            users: one id per row, or the name of the user column; known already for a table.
        """
        epsilon = parse_epsilon(self.epsilon)
        bounds = parse_bounds(self.label_bounds, "label_bounds")
        self._check_parameters()
        design, codes, guarantee, read_labels = self._read_public(X, y, users, epsilon)
        if not isinstance(self.noise_sd, str):
            noise_sd = (bounds[1] - bounds[0]) / 4 if self.noise_sd is None else float(self.noise_sd)
            weights = self._weights(design, codes, epsilon, bounds, noise_sd)
            receipt = self._pay(guarantee)
            labels = read_labels()
        else:  # σ is bought first: the weights depend on it
            blocks = noise_level.enough_blocks(design, codes)
            receipt = self._pay(guarantee)
            labels = read_labels()
            part, epsilon = split(epsilon, NOISE_SHARE)
            noise_sd = noise_level.buy(blocks, labels, bounds, part, receipt)
            weights = self._weights(design, codes, epsilon, bounds, noise_sd)
        grid = label_grid(bounds, weights.label_bits)
        heaviest = weights.heaviest_user(codes) * grid.width
        exact = labels.map(lambda y: weights.apply(label_steps(y, grid)))
        noisy = receipt.numbers(Measurement(lambda: exact, l1=heaviest, l2_squared=heaviest**2), epsilon)
        coefficients = self._adopt(weights, grid, noisy, noise_sd)
        large = noise_sd * (
            1.5 if self.noise_sd is None else 1.0
        )  # labels spread evenly have more than the usual guess
        errors = ((noise_sd, self.noise_scale_), (large, 0.0), (0.0, self.noise_scale_))
        covariances = (weights.covariance(*one) for one in errors)
        self.forecast_ = LossForecast.of_regression(design, coefficients, *covariances)
        self.usable_ = self.forecast_.loss_above_constant < 0
        self.guarantee_ = guarantee
        return self

    def predict(self, X: ArrayLike | Frame) -> Floats:
        """Predicted labels, not clipped to the label bounds; of a frame the columns of the fit are taken by name."""
        check_is_fitted(self)
        rows = validate_data(self, as_fitted(X, self.columns_, self.levels_), reset=False, dtype=np.float64)
        return np.asarray(rows @ self.coef_ + self.intercept_)

    def score(self, X: ArrayLike | Frame, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R²; ``y`` may name a column. It is computed from the rows given: not private."""
        return float(super().score(X, named_column(X, y), sample_weight))

    def interval(self, confidence: float = 0.95) -> Floats:
        """A range for each coefficient (intercept first, if fitted): sampling error and privacy noise together.

        It assumes a linear relation with independent errors of standard deviation ``noise_sd_``.
        """
        check_is_fitted(self)
        values = np.r_[self.intercept_, self.coef_] if self.fit_intercept else self.coef_
        radii = np.array([law.radius(confidence) for law in self.errors_])
        return np.column_stack([values - radii, values + radii])

    def _card(self, confidence: float) -> dict[str, Any]:
        weights = self.weights_
        how = {
            "optimal": "optimal weights: no other linear unbiased estimate with this noise rule has a smaller total variance "
            f"(certified to {weights.gap:.1g})",
            "row-limit": f"least squares on at most {weights.row_limit} random rows per user",
            "all": "least squares on all rows: heavy users need much noise",
        }[weights.weighting]
        values = [self.intercept_, *self.coef_.tolist()] if self.fit_intercept else self.coef_.tolist()
        named = list(zip(self.coefficient_names_, values, strict=True))
        return {
            "bounding": f"{how[0].upper()}{how[1:]}; minimised: the variance of the {self.target_}.",
            "range_covers": "The range covers privacy noise and sampling error, for a linear relation with independent errors "
            f"of standard deviation {self.noise_sd_:.4g} (assumed, not checked).",
            "coefficients": coefficient_rows(named, self.interval(confidence)),
            "forecast": {
                "variance": self.variance_,
                "noise_scale": self.noise_scale_,
                "noise_sd_assumed": self.noise_sd_,
                "objective": weights.value,
                "lower_bound_of_the_objective": weights.bound if weights.weighting == "optimal" else None,
            },
            "likely": self.forecast_.words,
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.regressor_tags.poor_score = True
        return tags

    def _check_parameters(self) -> None:
        choice("weighting", self.weighting, WEIGHTINGS)
        choice("target", self.target, TARGETS)
        if isinstance(self.noise_sd, str):
            choice("noise_sd", self.noise_sd, ("private",))
            if self.weights is not None:
                raise UsageError(
                    "noise_sd='private' chooses new weights, but weights= were given; give noise_sd a number."
                )
        elif self.noise_sd is not None:
            public_number("noise_sd", self.noise_sd, zero=True)
        if self.row_limit is not None and (int(self.row_limit) != self.row_limit or self.row_limit < 1):
            raise UsageError(f"row_limit={self.row_limit!r}; expected a whole number of rows, at least 1.")

    def _read_public(
        self, X: Features, y: PerRow, users: PerRow, epsilon: Decimal
    ) -> tuple[Floats, Integers, Guarantee, Callable[[], Secret[Floats]]]:
        """Features, users and the guarantee; and how to read the labels, which waits for the debit."""
        public = public_columns(X, y, users, self.features)
        if isinstance(X, Table):
            X.engine.require_tested("a fit")
            guarantee = Guarantee(epsilon, Decimal(0), X.relation, X.unit, public, user=X.user)
            admit(self.ledger, guarantee)
            require_no_population(self.population)
            rows = PublicRows(X, y, self.features, self.categories)
            given, columns = rows.given, rows.names
        else:
            given = take_apart(X, y, users, self.features, self.population)
            guarantee = Guarantee(epsilon, Decimal(0), Relation.LABELS, given.unit, public)
            admit(self.ledger, guarantee)
            columns = given.names or ()
            given = with_dummies(given, self.categories)
        self.columns_, self.levels_ = columns or None, given.levels
        features = self._validated(given)
        codes = user_codes(given.users, len(features))
        design = np.column_stack([np.ones(len(features)), features]) if self.fit_intercept else features
        if isinstance(X, Table):
            return design, codes, guarantee, rows.labels
        column = label_column(given.y, len(features), require_number_labels)
        return design, codes, guarantee, lambda: Secret(doubles(column, "y"))

    def _validated(self, given: CallerData) -> Floats:
        """Check the features and remember their number and names, as scikit-learn does."""
        checked = feature_matrix(given.X)
        validate_data(self, given.X if given.names else checked, skip_check_array=True)
        names = given.names or tuple(f"x{index}" for index in range(checked.shape[1]))
        self.coefficient_names_ = ("intercept", *names) if self.fit_intercept else names
        return checked

    def _weights(
        self, design: Floats, codes: Integers, epsilon: Decimal, bounds: tuple[float, float], noise_sd: float
    ) -> RegressionWeights:
        weights = self.weights
        if weights is None:
            with single_threaded():
                weights = compute(
                    design,
                    codes,
                    names=self.coefficient_names_,
                    epsilon=epsilon,
                    width=bounds[1] - bounds[0],
                    noise_sd=noise_sd,
                    weighting=self.weighting,
                    target=self.target,
                    row_limit=self.row_limit,
                    tolerance=self.tol,
                )
        weights.check(design, codes)
        # Noise that does not fit 64-bit integers is refused here, before the debit where the weights are known by then.
        heaviest = weights.heaviest_user(codes) * label_grid(bounds, weights.label_bits).width
        noise_for(heaviest, heaviest**2, epsilon)
        return weights

    def _pay(self, guarantee: Guarantee) -> Receipt:
        query = {
            "statistic": "label-private regression",
            "coefficients": list(self.coefficient_names_),
            "label_bounds": [float(bound) for bound in self.label_bounds or ()],
            "weighting": self.weighting,
            "noise_sd": self.noise_sd,
        }
        return pay(self.ledger, guarantee, Cost.pure(guarantee.epsilon), query)

    def _adopt(self, weights: RegressionWeights, grid: Grid, noisy: Noisy, noise_sd: float) -> Floats:
        """Turn the released integers into coefficients, and say how far to trust them."""
        step = float(weights.unit / grid.steps_per_unit)
        shift = grid.origin * np.asarray(weights.matrix.sum(axis=0), dtype=np.float64) * float(weights.unit)
        released = np.array(noisy.values, dtype=np.float64) * step + shift
        coefficients = weights.decode @ released
        self.intercept_ = float(coefficients[0]) if self.fit_intercept else 0.0
        self.coef_ = coefficients[1:] if self.fit_intercept else coefficients
        self.weights_, self.noise_sd_, self.target_ = weights, noise_sd, weights.objective
        self.noise_scale_ = float(noisy.noise.scale * weights.unit / grid.steps_per_unit)
        # Each coefficient has all Laplace noises in it, each times an entry of its row of ``decode``.
        scales = np.abs(weights.decode) * self.noise_scale_
        sampling = np.sqrt(np.diagonal(weights.covariance(noise_sd)))
        parts = zip(sampling.tolist(), scales.tolist(), strict=True)
        self.errors_ = tuple(ErrorLaw(normal_sd, tuple(row)) for normal_sd, row in parts)
        maps = weights.target @ weights.decode
        noise = 2 * self.noise_scale_**2 * float(np.sum(maps**2))
        self.variance_ = noise_sd**2 * weights.spread() + noise
        return np.asarray(coefficients)


@dataclass(frozen=True)
class ErrorLaw:
    """The law of a normal error (of sampling) plus independent Laplace errors (noise) of these scales."""

    normal_sd: float
    laplace_scales: tuple[float, ...]

    @property
    def sd(self) -> float:
        """The standard deviation of the whole."""
        return math.sqrt(self.normal_sd**2 + 2 * sum(scale**2 for scale in self.laplace_scales))

    def tail(self, distance: float) -> float:
        """P(|error| > distance), by inversion of the characteristic function.

        The law is symmetric with characteristic function φ(w) = exp(−s²w²/2) / Π(1 + b²w²), hence
        P(|E| > x) = 1 − (2/π) ∫ sin(wx)/w φ(w) dw.
        """
        scales = [scale for scale in self.laplace_scales if scale > 1e-9 * self.sd]
        if self.normal_sd <= 1e-9 * self.sd and len(scales) == 1:
            return math.exp(-distance / scales[0])
        if not scales:
            return math.erfc(distance / (math.sqrt(2) * self.normal_sd))
        # The integrand oscillates with period 2π/x and decays at 1/sd; Simpson's rule on a grid finer than both.
        reach = min(40 / self.normal_sd if self.normal_sd > 0 else math.inf, 2000 / self.sd)
        steps = 2 * math.ceil(max(2000.0, 8 * reach * distance))
        w = np.linspace(0.0, reach, steps + 1)
        phi = np.exp(-((self.normal_sd * w) ** 2) / 2)
        for scale in scales:
            phi /= 1 + (scale * w) ** 2
        integrand = distance * np.sinc(w * distance / math.pi) * phi
        weights = np.ones(steps + 1)
        weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
        return 1 - 2 / math.pi * float(integrand @ weights) * (reach / steps) / 3

    def radius(self, confidence: float = 0.95) -> float:
        """The distance that the error exceeds with probability 1 − confidence."""
        check_confidence(confidence)
        if self.sd == 0:
            return 0.0
        low, high = 0.0, self.sd
        while self.tail(high) > 1 - confidence:
            low, high = high, 2 * high
        return halved(lambda tried: not self.tail(tried) > 1 - confidence, low, high, 50)[1]
