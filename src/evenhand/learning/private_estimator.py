"""What estimators whose features are private too have in common as scikit-learn's: how they open rows, take new ones, and score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.learning.categories import Categories, Encoding
from evenhand.learning.inputs import Features, Frame, PerRow, as_fitted, dense, named_column, private_feature_matrix
from evenhand.learning.private_rows import open_rows, with_names
from evenhand.learning.private_values import Floats
from evenhand.learning.sources import Source
from evenhand.learning.targets import Targets


class PrivateRows(BaseEstimator):  # type: ignore[misc]
    """An estimator of rows whose labels and features are private."""

    classes: Sequence[Any]
    protects: str
    population: str | None

    @property
    @abstractmethod
    def _classifies(self) -> bool:
        """Whether labels are classes."""

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
    ) -> tuple[Source, Encoding]:
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
