"""What linear models with private features have in common: parameters, targets, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from evenhand.guarantee import UsageError
from evenhand.learning.base import choice
from evenhand.learning.categories import Categories
from evenhand.learning.features import FeatureBounds, FeatureMap, feature_map
from evenhand.learning.inputs import Features, Frame, PerRow
from evenhand.learning.losses import LOSSES
from evenhand.learning.own_loss import Loss
from evenhand.learning.private_estimator import PrivateRows
from evenhand.learning.private_values import Floats
from evenhand.learning.shown import ShownAsCard
from evenhand.learning.sources import Source
from evenhand.learning.targets import Bounded, Classes, Targets


def _is_logistic(model: LinearModel) -> bool:
    if not isinstance(model.loss, str) or model.loss != "logistic":
        raise AttributeError(f"predict_proba is for loss='logistic', not {model.loss!r}.")
    return True


class LinearModel(ShownAsCard, PrivateRows):
    """Predictions ⟨coef, x⟩ + intercept, as a class or a number; subclasses fit them."""

    loss: str | Loss
    label_bounds: tuple[float, float] | None
    feature_norm: float | None
    feature_bounds: FeatureBounds | None
    features: Sequence[str] | None
    fit_intercept: bool
    categories: Categories | None
    class_weight: Mapping[Any, float] | None
    coef_: Floats
    intercept_: Any  # a number, or an array with one per row of ``coef_``

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
        """The rows, and the features' names and scales."""
        source, encoding = self._opened(X, y, users, targets, self.features, self.categories)
        bounds = encoding.bounds(self.feature_bounds)
        return source, encoding.names, feature_map(encoding.flags, self.feature_norm, bounds, self.fit_intercept)

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
