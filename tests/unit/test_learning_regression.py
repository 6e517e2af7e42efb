"""LabelPrivateRegression: its attributes, its conventions, and what it does with bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import evenhand as eh
from evenhand.guarantee import BudgetExceeded, DataError, Relation, UsageError
from evenhand.learning import LabelPrivateRegression, RegressionWeights
from evenhand.noise import seam


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(300), rng.integers(1, 12, size=300))
    X = rng.normal(size=(len(users), 3))
    return X, X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=len(users)), users


def model(**options: Any) -> LabelPrivateRegression:
    given: dict[str, Any] = {"epsilon": 1.0, "label_bounds": (-5, 11), "noise_sd": 1.0} | options
    return LabelPrivateRegression(**given)


def test_it_finds_the_coefficients(data: Any) -> None:
    X, y, users = data
    fitted = model(epsilon=50).fit(X, y, users=users)
    np.testing.assert_allclose(fitted.coef_, [1.0, -2.0, 0.5], atol=0.3)
    assert fitted.intercept_ == pytest.approx(3, abs=0.3)
    assert fitted.guarantee_.relation is Relation.LABELS
    assert float(fitted.guarantee_.epsilon) == 50
    assert fitted.weights_.gap < 1e-4


def test_without_noise_it_is_unbiased_to_rounding(data: Any) -> None:
    X, _, users = data
    with seam.replaced(seam.silent):
        for weighting in ("optimal", "row-limit", "all"):
            fitted = model(weighting=weighting).fit(X, X @ [1.0, -1.0, 0.25] + 3, users=users)
            np.testing.assert_allclose(fitted.coef_, [1.0, -1.0, 0.25], atol=1e-5)
            assert fitted.intercept_ == pytest.approx(3, abs=1e-5)


def test_the_forecast_is_the_variance_of_the_release(data: Any) -> None:
    """600 releases of the same labels: the variance of the noise within 30 % (false alarm below 1e-5)."""
    X, y, users = data
    first = model(noise_sd=0.0).fit(X, y, users=users)
    again = model(noise_sd=0.0, weights=first.weights_)
    draws = np.array([np.r_[m.intercept_, m.coef_] for m in (again.fit(X, y, users=users) for _ in range(600))])
    assert draws.var(axis=0).sum() == pytest.approx(first.variance_, rel=0.3)


def test_optimal_weights_forecast_less_than_the_baselines(data: Any) -> None:
    X, y, users = data
    forecast = {w: model(weighting=w).fit(X, y, users=users).variance_ for w in ("optimal", "row-limit", "all")}
    assert forecast["optimal"] < forecast["row-limit"] <= forecast["all"] * 1.01


def test_predictions_do_not_depend_on_the_scale_of_features(data: Any) -> None:
    X, y, users = data
    one = model(target="predictions").fit(X, y, users=users)
    other = model(target="predictions").fit(X * [1e-6, 1.0, 1e7], y, users=users)
    assert one.variance_ == pytest.approx(other.variance_, rel=1e-4)
    assert model().fit(X, y, users=users).target_ == "coefficients"
    assert model().fit(X * [1, 1, 1000], y, users=users).target_ == "predictions"


@pytest.mark.parametrize("target", ["coefficients", "predictions"])
def test_intervals_cover(data: Any, target: str) -> None:
    """400 releases with fresh labels: 95 % ranges cover 92–98 % of 1600 coefficients (false alarm below 1e-5)."""
    X, _, users = data
    rng = np.random.default_rng(1)
    truth = np.array([3, 1.0, -1.0, 0.25])
    first = model(label_bounds=(-20, 20), target=target).fit(X, users * 0.0, users=users)
    radius = np.diff(first.interval(0.95), axis=1).ravel() / 2
    again = model(label_bounds=(-20, 20), target=target, weights=first.weights_)
    hits = []
    for _ in range(400):
        labels = X @ truth[1:] + truth[0] + rng.normal(size=len(users))
        fitted = again.fit(X, labels, users=users)
        hits.append(np.abs(np.r_[fitted.intercept_, fitted.coef_] - truth) <= radius)
    assert 0.92 <= np.mean(hits) <= 0.98


def test_weights_can_be_saved_and_reused_for_other_labels(data: Any, tmp_path: Path) -> None:
    X, y, users = data
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=2)
    first = model(ledger=ledger).fit(X, y, users=users)
    first.weights_.save(tmp_path / "weights.npz")
    weights = RegressionWeights.load(tmp_path / "weights.npz")
    second = model(ledger=ledger, weights=weights).fit(X, -y, users=users)
    assert second.noise_scale_ == first.noise_scale_
    assert ledger.spent.epsilon == 2
    with pytest.raises(BudgetExceeded):
        model(ledger=ledger, weights=weights).fit(X, y, users=users)
    with pytest.raises(UsageError, match="other features or users"):
        model(weights=weights).fit(X + 1, y, users=users)
    with pytest.raises(DataError, match="can't be read"):
        RegressionWeights.load(tmp_path / "budget.db")


def test_a_lying_file_can_not_lower_the_noise(data: Any, tmp_path: Path) -> None:
    from dataclasses import replace

    X, y, users = data
    first = model().fit(X, y, users=users)
    lying = model(weights=replace(first.weights_, heaviest=1)).fit(X, y, users=users)
    assert lying.noise_scale_ == first.noise_scale_


def test_a_private_noise_level_is_paid_from_epsilon(data: Any, tmp_path: Path) -> None:
    X, y, users = data
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=5)
    fitted = model(epsilon=5, noise_sd="private", ledger=ledger).fit(X, y, users=users)
    assert 0.5 < fitted.noise_sd_ < 2  # the truth is 1
    assert ledger.spent.epsilon == 5
    assert fitted.noise_scale_ > model(epsilon=5, noise_sd=fitted.noise_sd_).fit(X, y, users=users).noise_scale_


def test_a_private_noise_level_needs_enough_groups() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(DataError, match="groups of users"):
        model(noise_sd="private").fit(X, X[:, 0], users=np.zeros(20))


@pytest.mark.parametrize("epsilon", [1e-3, 100])
def test_extreme_epsilon(data: Any, epsilon: float) -> None:
    X, y, users = data
    fitted = model(epsilon=epsilon).fit(X, y, users=users)
    assert np.isfinite(fitted.coef_).all()
    assert fitted.noise_scale_ * epsilon == pytest.approx(
        fitted.weights_.heaviest * 16 * float(fitted.weights_.unit), rel=0.01
    )


def test_labels_are_clamped_and_missing_ones_count_as_the_middle(data: Any) -> None:
    X, y, users = data
    weights = model().fit(X, y, users=users).weights_
    with seam.replaced(seam.silent):
        wild = model(weights=weights).fit(X, np.where(users == 3, np.inf, np.where(users == 5, np.nan, y)), users=users)
        tame = model(weights=weights).fit(X, np.where(users == 3, 11, np.where(users == 5, 3, y)), users=users)
    np.testing.assert_array_equal(wild.coef_, tame.coef_)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"users": None}, UsageError, "users= is missing"),
        ({"users": [1, 2]}, UsageError, "one user id per row"),
        ({"users": "nan"}, DataError, "no user"),
        ({"y": "short"}, ValueError, "inconsistent numbers of samples"),
        ({"y": "text"}, DataError, "not numbers"),
        ({"X": "nan"}, UsageError, "NaN.*Fill the gaps"),
        ({"X": "inf"}, UsageError, "infinity"),
        ({"X": "sparse"}, TypeError, "[Ss]parse"),
        ({"X": "constant"}, UsageError, "x1"),
    ],
)
def test_bad_data(data: Any, change: dict[str, Any], error: type[Exception], words: str) -> None:
    X, y, users = (part.copy() for part in data)
    given: dict[str, Any] = {"X": X, "y": y, "users": users} | change
    if given["users"] == "nan" if isinstance(given["users"], str) else False:
        given["users"] = np.where(users == 0, np.nan, users)
    given["y"] = {"short": y[:-1], "text": np.where(y > 0, "a", "b")}[given["y"]] if "y" in change else y
    if "X" in change:
        bad = X.copy()
        bad[3, 1] = {"nan": np.nan, "inf": np.inf}.get(change["X"], bad[3, 1])
        if change["X"] == "constant":
            bad[:, 1] = 7
        given["X"] = sparse.csr_matrix(X) if change["X"] == "sparse" else bad
    with pytest.raises(error, match=words):
        model().fit(given["X"], given["y"], users=given["users"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_bounds": None}, "label_bounds are missing"),
        ({"label_bounds": (3, 1)}, "reversed"),
        ({"weighting": "optimum"}, "Did you mean 'optimal'"),
        ({"noise_sd": -1}, "noise_sd=-1"),
        ({"noise_sd": "secret"}, "noise_sd='secret'"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"target": "all"}, "target='all'"),
        ({"row_limit": 0}, "row_limit=0"),
    ],
)
def test_bad_parameters(data: Any, options: dict[str, Any], words: str) -> None:
    X, y, users = data
    with pytest.raises(UsageError, match=words):
        model(**options).fit(X, y, users=users)


def test_a_single_user_gets_an_honest_result(data: Any) -> None:
    X, y, _ = data
    lonely = model().fit(X, y, users=np.zeros(len(X)))
    assert lonely.variance_ > 1  # mostly noise, and it says so


def test_nearly_dependent_features_get_an_honest_result(data: Any) -> None:
    X, y, users = data
    near = np.column_stack([X[:, 0], X[:, 0] + 1e-4 * X[:, 1]])
    assert model().fit(near, y, users=users).variance_ > 1e4
    with pytest.raises(UsageError, match="x1"):
        model().fit(np.column_stack([X[:, 0], X[:, 0] + 1e-9 * X[:, 1]]), y, users=users)


@pytest.mark.parametrize("kind", ["text", "float32", "frame", "names", "object"])
def test_many_kinds_of_input_give_the_same_model(data: Any, kind: str) -> None:
    X, y, users = data
    X = X.astype(np.float32).astype(np.float64)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with seam.replaced(seam.silent):
        plain = model().fit(X, y, users=users)
        if kind == "names":
            other = model().fit(frame.assign(who=users, label=y), "label", users="who")
            assert list(other.feature_names_in_) == ["a", "b", "c"]
            assert other.guarantee_.unit == ("who",)
        elif kind == "frame":
            other = model(features=["a", "b", "c"]).fit(frame.assign(extra=1.0), pd.Series(y), users=pd.Series(users))
        elif kind == "float32":
            other = model().fit(X.astype(np.float32), y, users=users)
        else:
            ids = np.array([f"u{u}" for u in users], dtype=object if kind == "object" else str)
            other = model().fit(X, y, users=ids)
    np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-6)


def test_shuffled_rows_give_the_same_model(data: Any) -> None:
    X, y, users = data
    order = np.random.default_rng(2).permutation(len(users))
    with seam.replaced(seam.silent):
        plain, shuffled = model().fit(X, y, users=users), model().fit(X[order], y[order], users=users[order])
    np.testing.assert_allclose(shuffled.coef_, plain.coef_, atol=1e-4)
    assert shuffled.noise_scale_ == pytest.approx(plain.noise_scale_, rel=1e-4)


def test_a_table_with_public_features(data: Any) -> None:
    X, y, users = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(who=users, label=y)
    with seam.replaced(seam.silent):
        plain = model().fit(X, y, users=users)
        for protects, public in (("labels", ()), ("values", ["a", "b", "c"])):
            table = eh.read(frame, user="who", protects=protects, public=public)
            fitted = model().fit(table, "label")
            np.testing.assert_allclose(fitted.coef_, plain.coef_, atol=1e-6)
            assert fitted.guarantee_.relation is Relation.parse(protects)
    with pytest.raises(UsageError, match="protects='labels'"):
        model().fit(eh.read(frame, user="who"), "label")
    with pytest.raises(DataError, match="no rows"):
        model().fit(eh.read(frame.head(0), user="who", protects="labels"), "label")
    with pytest.raises(UsageError, match="public"):
        model().fit(eh.read(frame, user="who", protects="values"), "label")


def test_categories_become_columns(data: Any) -> None:
    _, y, users = data
    frame = pd.DataFrame({"colour": np.where(y > 4, "red", np.where(y > 2, "blue", "green"))})
    fitted = model(categories=["colour"], epsilon=100).fit(frame, y, users=users)
    assert fitted.coefficient_names_ == ("intercept", "colour=green", "colour=red")
    assert fitted.predict(frame.assign(colour="red")).mean() > fitted.predict(frame.assign(colour="green")).mean()


def test_predict_before_fit() -> None:
    with pytest.raises(NotFittedError):
        model().predict(np.zeros((2, 3)))


def test_clone_pipeline_and_routing(data: Any, tmp_path: Path) -> None:
    X, y, users = data
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=10)
    copy = clone(model(ledger=ledger))
    assert copy.get_params()["label_bounds"] == (-5, 11)
    pipeline = make_pipeline(StandardScaler(), copy)
    pipeline.fit(X, y, labelprivateregression__users=users)
    assert pipeline.predict(X).shape == y.shape
    assert ledger.spent.epsilon == 1


class RowUsers(LabelPrivateRegression):
    """Every row a user of its own, as scikit-learn's checks call ``fit``."""

    def fit(self, X: Any, y: Any = None, users: Any = None) -> Any:
        rows = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
        return super().fit(X, y, users=np.arange(rows))


# What scikit-learn expects of every estimator and this one can't or must not do.
EXPECTED = {
    "check_supervised_y_no_nan": "an error would reveal a private label",
}


def test_scikit_learn_conventions() -> None:
    estimator = RowUsers(label_bounds=(-100.0, 100.0), fit_intercept=False)
    failed = set()
    for candidate, check in estimator_checks_generator(estimator):
        try:
            with seam.replaced(seam.silent):  # without noise, as the checks compare one fit with another
                check(candidate)
        except SkipTest:
            continue
        except Exception:
            failed.add(check.func.__name__)
    assert failed <= set(EXPECTED)


def test_labels_that_features_tell_nothing_of_are_not_usable_and_bad_features_say_what_to_do() -> None:
    rng = np.random.default_rng(1)
    X, users = rng.uniform(-1, 1, (2000, 3)), np.repeat(np.arange(500), 4)
    with seam.replaced(seam.silent):
        model = LabelPrivateRegression(1.0, label_bounds=(0, 3)).fit(X, rng.integers(0, 4, 2000), users=users)
        assert not model.usable_
        assert model.fit(X, 1.5 + X[:, 0], users=users).usable_
    X[3, 1] = np.nan
    with pytest.raises(eh.UsageError, match=r"NaN; expected a finite number.*categories="):
        model.fit(X, X[:, 0], users=users)
