"""What estimators whose features are private too have in common: parameters, how they open rows and take new ones, targets, predictions, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.guarantee import Amount, UsageError
from evenhand.learning.data.features import Categories, Encoding, FeatureBounds, FeatureMap, feature_map
from evenhand.learning.data.inputs import (
    Features,
    Frame,
    PerRow,
    as_fitted,
    dense,
    named_column,
    private_feature_matrix,
)
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import RowSource, open_rows, with_names
from evenhand.learning.data.targets import BoundedLabels, Classes, Targets
from evenhand.learning.fitting import choice
from evenhand.learning.losses import LOSSES, Loss
from evenhand.learning.model_card import ShownAsCard, coefficient_rows
from evenhand.ledger import Ledger
from evenhand.profiles import Profile


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRows(BaseEstimator):  # type: ignore[misc]
    """An estimator of rows whose labels and features are private."""

    classes: Sequence[Any] = (0, 1)
    label_bounds: tuple[float, float] | None = None
    profile: Profile | None = None
    protects: str = "presence"
    population: str | None = None
    ledger: Ledger | None = None

    @property
    @abstractmethod
    def _classifies(self) -> bool:
        """Whether labels are classes."""

    def _targets(self) -> Targets:
        """How labels become targets."""
        return (
            Classes.parse(self.classes, self._most_classes())
            if self._classifies
            else BoundedLabels.parse(self.label_bounds)
        )

    def _most_classes(self) -> int:
        return 2

    @abstractmethod
    def predict(self, X: ArrayLike | Frame) -> NDArray[Any]:
        """The predicted class, or number."""

    def _opened(
        self,
        X: Features,
        y: PerRow,
        users: PerRow,
        targets: Targets,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
    ) -> tuple[RowSource, Encoding]:
        """The rows; the number and names of their features are kept, as scikit-learn does."""
        source, self.encoding_, matrix = open_rows(
            X, y, users,
            features=features, targets=targets, protects=self.protects, population=self.population, categories=categories,
        )  # fmt: skip
        self.columns_ = self.encoding_.columns if hasattr(X, "columns") else None
        if matrix is not None:
            validate_data(self, matrix, skip_check_array=True)
        else:
            self.n_features_in_ = len(self.encoding_.names)
            self.feature_names_in_ = np.array(self.encoding_.names, dtype=object)
        return source, self.encoding_

    def _new_rows(self, X: ArrayLike | Frame) -> Floats:
        """Rows to predict from with the features of the fit, by name where both have names; NaN where one is missing."""
        check_is_fitted(self)
        rows = self._encoded(as_fitted(X, self.columns_))
        return np.asarray(validate_data(self, rows, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"))

    def _encoded(self, X: ArrayLike | Frame) -> ArrayLike | Frame:
        """New rows with the features of the fit: categories as 0 and 1, a sparse matrix as a dense one."""
        if not self.encoding_.levels:
            return dense(X)
        matrix = private_feature_matrix(X, self.encoding_)
        return matrix if self.columns_ is None else with_names(matrix, self.encoding_)

    def score(self, X: ArrayLike | Frame, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy, or R² for labels that are numbers; ``y`` may name a column. It is computed from the rows given: not private."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if self._classifies else r2_score
        return float(measure(named_column(X, y), self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not self._classifies:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags(poor_score=True)
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=len(self.classes) > 2)
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.non_deterministic = True
        return tags


def _is_logistic(model: LinearModel) -> bool:
    if not isinstance(model.loss, str) or model.loss != "logistic":
        raise AttributeError(f"predict_proba is for loss='logistic', not {model.loss!r}.")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class LinearModel(ShownAsCard, PrivateRows):
    """Predictions ⟨coef, x⟩ + intercept, as a class or a number; subclasses fit them."""

    epsilon: Amount = field(default=1.0, kw_only=False)
    loss: str | Loss = "logistic"
    feature_norm: float | None = None
    feature_bounds: FeatureBounds | None = None
    class_weight: Mapping[Any, float] | None = None
    fit_intercept: bool = True
    features: Sequence[str] | None = None
    categories: Categories | None = None

    def decision_function(self, X: ArrayLike | Frame) -> Floats:
        """The score ⟨coef, x⟩ + intercept, of more than two classes one for each; a missing feature counts as the middle of its range.

        Of a frame the columns of the fit are taken by name; others, such as the label, may be there.
        """
        rows = self._new_rows(X)
        rows = np.where(np.isnan(rows), self.feature_map_.centre, rows)
        scores = np.asarray(rows @ np.atleast_2d(self.coef_).T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike | Frame) -> NDArray[Any]:
        """The predicted class, or number."""
        score = self.decision_function(X)
        if not self._classifies:
            return self.loss.prediction(score) if isinstance(self.loss, Loss) else score
        return np.asarray(self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)])

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike | Frame) -> Floats:
        """Class probabilities, for the logistic loss."""
        score = self.decision_function(X)
        scores = np.column_stack([np.zeros(len(score)), score]) if score.ndim == 1 else score
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike | Frame) -> Floats:
        """Logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @property
    def _classifies(self) -> bool:
        return self.loss.classifies if isinstance(self.loss, Loss) else self.loss != "squared"

    def _targets(self) -> Targets:
        """How labels become targets."""
        if not isinstance(self.loss, Loss):
            choice("loss", self.loss, LOSSES)
            if self._classifies and self.label_bounds is not None:
                raise UsageError(
                    f"label_bounds={self.label_bounds!r} are for labels that are numbers, and loss={self.loss!r} is for classes; expected "
                    "loss='squared' with label_bounds, or classes=(negative, positive) without."
                )
        return super()._targets()

    def _class_weights(self, targets: Targets) -> Floats:
        """Weights of the classes, the largest being 1."""
        if isinstance(targets, Classes):
            return targets.weights(self.class_weight)
        if self.class_weight is not None:
            raise UsageError(f"class_weight={self.class_weight!r} is for losses of classes; leave it out.")
        return np.ones(1)

    def _query(self, statistic: str, names: Sequence[str], *parameters: str) -> dict[str, Any]:
        """What the ledger notes: the statistic, and parameters by name."""
        loss = type(self.loss).__name__ if isinstance(self.loss, Loss) else self.loss
        asked = {"statistic": statistic, "loss": loss, "features": list(names)}
        return asked | {name: getattr(self, name) for name in parameters}

    def _open(
        self, X: Features, y: PerRow, users: PerRow, targets: Targets
    ) -> tuple[RowSource, tuple[str, ...], FeatureMap]:
        """The rows, and the features' names and scales."""
        source, encoding = self._opened(X, y, users, targets, self.features, self.categories)
        bounds = encoding.bounds(self.feature_bounds)
        return source, encoding.names, feature_map(encoding.flags, self.feature_norm, bounds, self.fit_intercept)

    def _coefficient_rows(self, ranges: Floats | None) -> list[dict[str, Any]]:
        """Coefficients by name, for a card."""
        names = [*getattr(self, "feature_names_in_", [f"x{index}" for index in range(self.n_features_in_)])]
        rows, constants = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        if self.fit_intercept:
            names, rows = [*names, "intercept"], np.column_stack([rows, constants])
        prefixes = [""] if len(rows) == 1 else [f"{label}: " for label in self.classes_]
        named = [f"{prefix}{name}" for prefix in prefixes for name in names]
        return coefficient_rows(list(zip(named, rows.ravel().tolist(), strict=True)), ranges)

    def _adopt(self, coefficients: Floats, mapped: FeatureMap, targets: Targets, offset: float | None = None) -> None:
        """Keep coefficients of scaled features, for several scores row by row, as a model of the features as they came."""
        self.feature_map_ = mapped
        rows = [mapped.to_original(row) for row in np.atleast_2d(coefficients)]
        slopes, constants = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
        if isinstance(targets, BoundedLabels):
            self.coef_, self.intercept_ = (
                slopes[0],
                float(constants[0]) + (targets.offset if offset is None else offset),
            )
        else:  # as scikit-learn shapes them: one row per class, or one for two classes
            self.coef_, self.intercept_ = slopes, constants + (offset or 0.0)
            self.classes_ = np.array(targets.labels)
