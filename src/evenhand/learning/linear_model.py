"""What linear models with private features have in common: parameters, targets, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.guarantee import UsageError
from evenhand.learning.base import choice
from evenhand.learning.categories import Categories
from evenhand.learning.features import FeatureBounds, FeatureMap, feature_map
from evenhand.learning.inputs import Features, Frame, PerRow, as_fitted, dense, named_column, private_feature_matrix
from evenhand.learning.losses import LOSSES
from evenhand.learning.own_loss import Loss
from evenhand.learning.private_rows import open_rows, with_names
from evenhand.learning.private_values import Floats
from evenhand.learning.sources import Source
from evenhand.learning.targets import Bounded, Classes, Targets


def _is_logistic(model: LinearModel) -> bool:
    if not isinstance(model.loss, str) or model.loss != "logistic":
        raise AttributeError(f"predict_proba is for loss='logistic', not {model.loss!r}.")
    return True


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """Predictions ⟨coef, x⟩ + intercept, as a class or a number; subclasses fit them."""

    loss: str | Loss
    classes: Sequence[Any]
    label_bounds: tuple[float, float] | None
    feature_norm: float | None
    feature_bounds: FeatureBounds | None
    features: Sequence[str] | None
    fit_intercept: bool
    protects: str
    population: str | None
    categories: Categories | None
    class_weight: Mapping[Any, float] | None
    coef_: Floats
    intercept_: Any  # a number, or an array with one per row of ``coef_``

    def decision_function(self, X: ArrayLike | Frame) -> Floats:
        """The score ⟨coef, x⟩ + intercept, of more than two classes one for each; a missing feature counts as the middle of its range.

        Of a frame the columns of the fit are taken by name; others, such as the label, may be there.
        """
        check_is_fitted(self)
        rows = self._encoded(as_fitted(X, self.columns_))
        rows = validate_data(self, rows, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        rows = np.where(np.isnan(rows), self.feature_map_.centre, rows)
        scores = np.asarray(rows @ np.atleast_2d(self.coef_).T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _encoded(self, X: ArrayLike | Frame) -> ArrayLike | Frame:
        """New rows with the features of the fit: categories as 0 and 1, a sparse matrix as a dense one."""
        if not self.encoding_.levels:
            return dense(X)
        matrix = private_feature_matrix(X, self.encoding_)
        return matrix if self.columns_ is None else with_names(matrix, self.encoding_)

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

    @property
    def _classifies(self) -> bool:
        return self.loss.classifies if isinstance(self.loss, Loss) else self.loss != "squared"

    def _targets(self) -> Targets:
        """How labels become targets."""
        if not isinstance(self.loss, Loss):
            choice("loss", self.loss, LOSSES)
        return (
            Classes.parse(self.classes, self._most_classes()) if self._classifies else Bounded.parse(self.label_bounds)
        )

    def _most_classes(self) -> int:
        return 2

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
    ) -> tuple[Source, tuple[str, ...], FeatureMap]:
        """The rows, and the features' names and scales; their number and names are kept, as scikit-learn does."""
        source, encoding, matrix = open_rows(
            X,
            y,
            users,
            features=self.features,
            targets=targets,
            protects=self.protects,
            population=self.population,
            categories=self.categories,
        )
        self.encoding_, names = encoding, encoding.names
        self.columns_ = encoding.columns if hasattr(X, "columns") else None
        if matrix is not None:
            validate_data(self, matrix, skip_check_array=True)
        else:
            self.n_features_in_ = len(names)
            self.feature_names_in_ = np.array(names, dtype=object)
        return source, names, feature_map(encoding.flags, self.feature_norm, self.feature_bounds, self.fit_intercept)

    def _adopt(self, coefficients: Floats, mapped: FeatureMap, targets: Targets, offset: float | None = None) -> None:
        """Keep coefficients of scaled features, for several scores row by row, as a model of the features as they came."""
        self.feature_map_ = mapped
        rows = [mapped.to_original(row) for row in np.atleast_2d(coefficients)]
        slopes, constants = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
        if isinstance(targets, Bounded):
            self.coef_, self.intercept_ = (
                slopes[0],
                float(constants[0]) + (targets.offset if offset is None else offset),
            )
        else:  # as scikit-learn shapes them: one row per class, or one for two classes
            self.coef_, self.intercept_ = slopes, constants + (offset or 0.0)
            self.classes_ = np.array(targets.labels)
