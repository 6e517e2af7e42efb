"""One user moves the comparison of a model with a constant one as declared (docs/proofs/search.md, Claim 6)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.guarantee import Relation
from evenhand.learning import BoundedERM
from evenhand.learning.losses import LOSSES
from evenhand.learning.perturbation import shrink_to_constant
from evenhand.learning.perturbation.shrink_to_constant import PARTS, ShrinkToConstant
from evenhand.learning.selection.per_user_loss import UNIT, regrets, scoring_for
from evenhand.noise import seam
from evenhand.release import Receipt
from evenhand.tables import Secret

WILD = [np.nan, np.inf, -np.inf, 1e308, -3.0, 0.5, 40.0]
NONE = [0] * len(PARTS)
seeds, losses = st.integers(0, 10**6), st.sampled_from(LOSSES)


def a_model(loss: str, rng: np.random.Generator) -> BoundedERM:
    """As released: any coefficients."""
    options: dict[str, Any] = {"label_bounds": (-1, 1)} if loss == "squared" else {"class_weight": {0: 1, 1: 3}}
    model = BoundedERM(1.0, loss=loss, feature_bounds=(-1, 1), rows_per_user=1, regularisation=50.0, **options)
    model.fit(np.zeros((2, 3)), np.array([0, 1]), users=[0, 1])
    model.coef_, model.intercept_ = rng.normal(scale=3, size=model.coef_.shape), model.intercept_ + rng.normal()
    return model


def beside(model: BoundedERM, label: float) -> ShrinkToConstant:
    targets = model._targets()
    weights = model._class_weights(targets).tolist()
    scoring = scoring_for(None, model)
    empty = Secret((np.zeros((0, 3)), np.zeros(0)))
    return ShrinkToConstant(empty, Relation.PRESENCE, targets, (weights[0], weights[-1]), scoring, label)


def rows(rng: np.random.Generator, loss: str) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(30, 3))
    X[0] = rng.choice(WILD, size=3)
    return X, rng.uniform(-1, 1, 30) if loss == "squared" else rng.choice([-1.0, 1.0], 30)


@given(seed=seeds, loss=losses)
def test_a_row_moves_every_score_as_declared(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    model = a_model(loss, rng)
    own, (X, truth) = beside(model, float(rng.uniform(0.01, 0.99))), rows(rng, loss)
    most = own.most(model)
    before, after = own.scores(model, X, truth, most, NONE), own.scores(model, X[1:], truth[1:], most, NONE)
    assert all(0 <= gone - there <= most for there, gone in zip(before, after, strict=True))
    X[0], truth[0] = rng.choice(WILD, size=3), -truth[0]
    changed = own.scores(model, X, truth, most, NONE)
    assert all(abs(one - two) <= most for one, two in zip(before, changed, strict=True))


def test_a_comparison_without_the_limit_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what a row holds against a part is not cut."""
    rng = np.random.default_rng(1)
    model = a_model("logistic", rng)
    model.coef_ = np.full((1, 3), 9.0)
    own = beside(model, 0.5)
    X, most = np.full((1, 3), -1.0), own.most(model)
    assert own.scores(model, X, np.ones(1), most, NONE)[-1] == -most
    monkeypatch.setattr(shrink_to_constant, "regrets", lambda losses, _: regrets(losses, 2**60))
    assert own.scores(model, X, np.ones(1), most, NONE)[-1] < -most


@given(seed=seeds, loss=losses)
def test_a_row_adds_one_to_both_numbers_of_the_constant(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    model, (_, truth) = a_model(loss, rng), rows(rng, loss)
    with_row, without = (shrink_to_constant._halves(own, model._targets()) for own in (truth, truth[1:]))
    moved = [one - other for one, other in zip(with_row, without, strict=True)]
    assert min(moved) >= 0
    assert sum(moved) == UNIT


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_all_parts_together_are_epsilon(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left over that would have made the model better, and nothing is used twice."""
    used: list[Decimal] = []
    use = Receipt._use

    def watching(self: Receipt, epsilon: Decimal, delta: Decimal = Decimal(0)) -> None:
        used.append(epsilon)
        use(self, epsilon, delta)

    monkeypatch.setattr(Receipt, "_use", watching)
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (300, 2))
    model = BoundedERM("0.7", feature_bounds=(-1, 1), protects=relation)
    with seam.replaced(seam.silent):
        model.fit(X, (X[:, 0] > 0).astype(int), users=np.arange(300))
    assert sum(used) == Decimal("0.7")
