"""Models learned from people's rows under user-level differential privacy, as scikit-learn estimators."""

from importlib.util import find_spec

if any(
    find_spec(name) is None for name in ("clarabel", "dp_accounting", "mpmath", "scipy", "sklearn", "threadpoolctl")
):
    raise ImportError(
        "learning needs scikit-learn and a few solvers; install them with: pip install 'evenhand[learning]'",
        name="evenhand.learning",
    )

from evenhand.learning.bounded_erm import BoundedERM
from evenhand.learning.constraints import Ball, Box
from evenhand.learning.evaluation import ModelLoss, model_loss
from evenhand.learning.hypotheses import HypothesisSelection
from evenhand.learning.net import linear_net
from evenhand.learning.own_loss import Loss
from evenhand.learning.regression import LabelPrivateRegression
from evenhand.learning.search_cv import PrivateSearchCV
from evenhand.learning.weighted_erm import WeightedERM
from evenhand.learning.weights.integer import RegressionWeights

__all__ = [
    "Ball",
    "BoundedERM",
    "Box",
    "HypothesisSelection",
    "LabelPrivateRegression",
    "Loss",
    "ModelLoss",
    "PrivateSearchCV",
    "RegressionWeights",
    "WeightedERM",
    "linear_net",
    "model_loss",
]
