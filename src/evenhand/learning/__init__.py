"""Models learned from people's rows under user-level differential privacy, as scikit-learn estimators."""

from evenhand.learning.regression import LabelPrivateRegression
from evenhand.learning.weights.integer import RegressionWeights

__all__ = ["LabelPrivateRegression", "RegressionWeights"]
