"""Models learned from people's rows under user-level differential privacy, as scikit-learn estimators."""

from importlib.util import find_spec

if any(
    find_spec(name) is None for name in ("clarabel", "dp_accounting", "mpmath", "scipy", "sklearn", "threadpoolctl")
):
    raise ImportError(
        "learning needs scikit-learn and a few solvers; install them with: pip install 'evenhand[learning]'",
        name="evenhand.learning",
    )

from evenhand.learning.descent.constraints import Ball, Box
from evenhand.learning.descent.weighted_erm import WeightedERM
from evenhand.learning.losses import Loss
from evenhand.learning.perturbation.bounded_erm import BoundedERM
from evenhand.learning.regression.label_private_regression import LabelPrivateRegression
from evenhand.learning.regression.weights import RegressionWeights
from evenhand.learning.selection.evaluation import ModelLoss, model_loss
from evenhand.learning.selection.hypotheses import HypothesisSelection
from evenhand.learning.selection.linear_hypotheses import linear_net
from evenhand.learning.selection.search_cv import PrivateSearchCV

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
