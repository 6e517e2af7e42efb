"""Choosing among settings of an estimator, paid for as a whole before the first fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Amount, Guarantee, Relation, UsageError, parse_delta, parse_epsilon
from evenhand.learning.data.inputs import Features, Frame, PerRow
from evenhand.learning.data.private_values import Floats, Integers, unwarned
from evenhand.learning.data.public_rows import column_names
from evenhand.learning.data.row_sources import MemoryRows
from evenhand.learning.fitting import pay
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.selection.budget import Division, FitBudget, Model, amounts, fitted, quote
from evenhand.learning.selection.per_user_loss import Scoring, regrets, scoring_for, user_losses
from evenhand.learning.selection.train_test_split import GivenRows, codes_of, train_test_split, without_rows
from evenhand.pages.progress import watched
from evenhand.release import Receipt
from evenhand.tables import Table

MOST_CANDIDATES = 1000

_RESERVED = ("epsilon", "delta", "ledger", "loss", "classes", "label_bounds", "features", "protects")


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The best of some settings of an estimator: scikit-learn's ``GridSearchCV``, under one (ε, δ) for everything.

    Guarantee: (ε, δ)-differential privacy for *all rows of a user*, for all candidates, the choice and the last fit together. A
    coin of their own decides for each user whether they train or judge; no user does both, so a user pays for all candidates
    or for the choice, and then for the last fit. All of it is debited before the first fit. See docs/proofs/search.md.

    Edge cases: as in the estimator. Each judging user holds against a candidate how much larger their mean loss is than with
    their best candidate, up to a sixth of the largest loss; the sums decide, by permute-and-flip. There are no scores to look at: they
    were not paid for. Buy the loss of the winner with `model_loss`.

    Args:
        estimator: a `BoundedERM` or `WeightedERM`; its ``epsilon`` and ``delta`` are not used, its ``ledger`` is debited once.
        param_grid: settings by name, each a list, or a list of such mappings; chosen without looking at the data.
        epsilon, delta: for everything; ``delta=0`` with `BoundedERM`, which is purely private.
        scoring: ``"neg_log_loss"``, ``"accuracy"`` or ``"neg_mean_squared_error"``; by default what the estimator minimises.
        refit: whether the winner is fitted again, on all users, with three quarters of the budget.

    Attributes:
        best_params_, best_index_: the winner, and its place in ``cv_results_["params"]``.
        best_estimator_: the model, fitted again on all users; absent without ``refit``.
        candidate_epsilon_: the ε that each candidate was fitted with.
        guarantee_: the `Guarantee` of everything.

    Example:
        >>> search = PrivateSearchCV(WeightedERM(feature_bounds=(-1, 1)), {"regularisation": [0, 0.01, 0.1]}, epsilon=1)
        >>> search.fit(X, y, users=ids).best_params_

    Reference: Chaudhuri and Vinterbo (2013) for judging on other people; McKenna and Sheldon (2020) for the choice.
    """

    estimator: LinearModel = field(kw_only=False)
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] = field(kw_only=False)
    epsilon: Amount = field(default=1.0, kw_only=False)
    delta: Amount = field(default=1e-6, kw_only=False)
    scoring: str | None = None
    refit: bool = True

    @unwarned
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Debit everything, fit the candidates on some users, choose on the others, and fit the winner on all.

        Args:
            X, y, users: as in `BoundedERM.fit`; of a table the rows of those who judge are taken into memory.
        """
        epsilon, delta = parse_epsilon(self.epsilon), parse_delta(self.delta)
        candidates, scoring = self._candidates(), scoring_for(self.scoring, self.estimator)
        division = Division.of(epsilon, delta, bool(self.refit))
        estimator, features = self.estimator, self.estimator.features
        if isinstance(X, Table):  # a part of it has columns of its own
            X.engine.require_tested("a search")
            features = column_names(X, y, features)[1]
            estimator = clone(estimator).set_params(features=list(features))
        codes = codes_of(X, y, users, features, estimator.protects)
        nobody = without_rows(X, y, users)
        each = amounts(estimator, candidates, nobody, delta, division)
        quoted = quote(estimator, candidates[0], each[0], delta, nobody)
        assert quoted.guarantee is not None
        guarantee: Guarantee = replace(quoted.guarantee, epsilon=epsilon, delta=delta)
        query = {"statistic": f"search among {len(candidates)} settings of {type(estimator).__name__}",
                 "settings": [{name: str(value) for name, value in one.items()} for one in candidates],
                 "scoring": scoring.name, "refit": bool(self.refit)}  # fmt: skip
        receipt = pay(self.estimator.ledger, guarantee, division.cost, query)
        with (
            watched(f"{len(candidates)} candidates"),
            train_test_split(X, y, users, features, codes) as (training, judges),
        ):
            purse = FitBudget(division.search, division.pure, receipt.event)
            models = [
                fitted(estimator, candidate, own, delta, purse, training)
                for candidate, own in zip(candidates, each, strict=True)
            ]
            self.best_index_ = self._choose(models, estimator, judges, scoring, division.judging, receipt)
            self.best_params_ = candidates[self.best_index_]
            if self.refit:
                last = FitBudget(division.refit, division.pure, receipt.event)
                own = amounts(estimator, [self.best_params_], nobody, delta, division, last.left)[0]
                model = fitted(estimator, self.best_params_, own, delta, last, (X, y, users))
                model.guarantee_ = guarantee  # there would be no such model without the search
                self.best_estimator_ = model.set_params(ledger=self.estimator.ledger)
        self.cv_results_ = {"params": candidates}
        self.candidate_epsilon_ = [float(own) for own in each]
        self.guarantee_, self.scorer_ = guarantee, scoring.name
        return self

    def _choose(
        self,
        models: Sequence[LinearModel],
        estimator: LinearModel,
        judges: GivenRows,
        scoring: Scoring,
        epsilon: Decimal,
        receipt: Receipt,
    ) -> int:
        template = clone(estimator)
        targets = template._targets()
        source, _, _ = template._open(*judges, targets)

        def judged(rows: MemoryRows) -> list[list[int]]:
            return [scores(np.array([user_losses(model, rows, targets, scoring) for model in models]), scoring)]

        # Under presence one user more lowers every score, or leaves it.
        monotone = source.relation is Relation.PRESENCE
        (place,) = receipt.choices(source.fetched().map(judged), scoring.regret, epsilon, monotone).places
        return place

    def _candidates(self) -> list[dict[str, Any]]:
        if not isinstance(self.estimator, LinearModel):
            raise UsageError(
                f"estimator is a {type(self.estimator).__name__}; expected BoundedERM or WeightedERM of evenhand.learning: a search "
                "over others, or over a Pipeline, would not be private."
            )
        grid = ParameterGrid(self.param_grid)
        if len(grid) > MOST_CANDIDATES:  # a product, of which nothing is made before it is known to be small
            raise UsageError(f"param_grid has {len(grid)} candidates; expected at most {MOST_CANDIDATES}.")
        candidates = [dict(one) for one in grid]
        for name in {name for one in candidates for name in one}:
            if name in _RESERVED:
                raise UsageError(
                    f"param_grid has {name!r}, which is the same for all candidates: the search divides the budget, and candidates are "
                    "compared by one loss. Set it on the estimator or on the search."
                )
        return candidates

    def predict(self, X: ArrayLike | Frame) -> NDArray[Any]:
        """What the winner predicts."""
        return np.asarray(self._winner().predict(X))

    def decision_function(self, X: ArrayLike | Frame) -> Floats:
        """The winner's margin."""
        return np.asarray(self._winner().decision_function(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike | Frame) -> Floats:
        """The winner's class probabilities."""
        return np.asarray(self._winner().predict_proba(X))

    def score(self, X: ArrayLike | Frame, y: ArrayLike) -> float:
        """The winner's accuracy, or R². It is computed from the rows given: not private."""
        return float(self._winner().score(X, y))

    @property
    def classes_(self) -> NDArray[Any]:
        """The winner's classes."""
        return np.asarray(self._winner().classes_)

    @property
    def n_features_in_(self) -> int:
        """The winner's number of features."""
        return int(self._winner().n_features_in_)

    def _winner(self) -> Model:
        check_is_fitted(self, "best_estimator_", msg="fit the search with refit=True first: there is no model to use.")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        tags.non_deterministic = True
        return tags


def scores(losses: Integers, scoring: Scoring) -> list[int]:
    """Of each candidate: minus the sum of what users hold against it, each from 0 to ``scoring.regret``."""
    return [-int(total) for total in regrets(losses, scoring.regret).sum(axis=1)]
