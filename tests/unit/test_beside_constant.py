"""BoundedERM keeps as much of a model as is better than a constant one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import evenhand as eh
from evenhand.learning import BoundedERM
from evenhand.learning.model_card import model_card
from evenhand.noise import seam

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (4000, 3))
USERS = np.arange(4000)


@pytest.mark.parametrize("loss", ["logistic", "huber-svm", "squared"])
def test_a_model_that_is_better_than_a_constant_is_kept(loss: str) -> None:
    squared = loss == "squared"
    y = X[:, 0] if squared else (X[:, 0] > 0).astype(int)
    model = BoundedERM(3.0, loss=loss, feature_bounds=(-1, 1), label_bounds=(-1, 1) if squared else None)
    with seam.replaced(seam.silent):
        model.fit(X, y, users=USERS)
    assert (model.model_part_, model.usable_) == (1.0, True)


def test_noise_is_not_kept() -> None:
    """There is nothing to learn, and the sampler makes the coefficients wild."""
    y = np.arange(4000) % 4 == 0

    def wild(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        return [2**48, -(2**48), 2**48, 0] if name == "blockwise" else list(values)

    model = BoundedERM(1.0, feature_bounds=(-1, 1))
    with seam.replaced(wild):
        model.fit(X, y.astype(int), users=USERS)
    assert (model.model_part_, model.usable_) == (0.0, False)
    assert not model.coef_.any()
    assert model.intercept_[0] == pytest.approx(np.log(1 / 3), abs=0.05)
    assert "0% of it was kept" in model_card(model)["likely"]


def test_settings_of_ones_own_are_released_as_they_are() -> None:
    y = np.arange(4000) % 2
    for options in ({"regularisation": 50.0}, {"method": "output"}, {"fit_intercept": False}):
        model = BoundedERM(1.0, feature_bounds=(-1, 1), **options).fit(X, y, users=USERS)
        assert (model.model_part_, model.plan_) == (1.0, None)


def test_a_profile_says_before_paying_that_it_is_not_worth_it() -> None:
    few, many = eh.Profile.counts([1] * 200), eh.Profile.counts([1] * 50_000)
    model = BoundedERM(0.1, feature_bounds=(-1, 1), profile=few)
    with pytest.warns(UserWarning, match="not likely to be worth its ε"):
        model.fit(X, np.arange(4000) % 2, users=USERS)
    assert model.plan_ is not None
    assert not model.plan_.usable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BoundedERM(1.0, feature_bounds=(-1, 1), profile=many).fit(X, np.arange(4000) % 2, users=USERS)
