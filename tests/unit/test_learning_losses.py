"""Several classes, losses of one's own, and where coefficients may lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import evenhand as eh
from evenhand.guarantee import UsageError
from evenhand.learning import Ball, BoundedERM, Box, Loss, WeightedERM, model_loss
from evenhand.learning.data.targets import BoundedLabels
from evenhand.learning.model_card import card_text, model_card
from evenhand.learning.slopes import SCORE_BITS, SLOPE, ByLabel, Softmax
from evenhand.noise import seam

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(6000, 3))
USERS = np.arange(6000) // 2
TRUTH = np.array([1.0, -0.5, 0.3])


class Poisson(Loss):
    """The score is the logarithm of a rate."""

    scores, steepest = (-4, 4), 20

    def slope(self, score: np.ndarray, label: np.ndarray) -> np.ndarray:
        return np.exp(score) - label

    def prediction(self, score: np.ndarray) -> np.ndarray:
        return np.exp(score)


class Pinball(Loss):
    """A median, with a corner."""

    def slope(self, score: np.ndarray, label: np.ndarray) -> np.ndarray:
        return np.where(score > label, 0.5, -0.5)


class Exponential(Loss):
    """As in boosting."""

    classifies, scores, steepest = True, (-5, 5), 5.0

    def slope(self, score: np.ndarray, label: np.ndarray) -> np.ndarray:
        return -label * np.exp(-label * score)


def test_slopes_of_several_classes_are_those_of_the_softmax_row_by_row() -> None:
    weights = np.array([1.0, 0.1, 0.5, 1.0])
    slopes, scores, labels = Softmax.of(weights), RNG.normal(0, 4, size=(500, 4)), RNG.integers(0, 4, size=500)
    whole = np.rint(scores * 2.0**SCORE_BITS)
    found = slopes.at(whole, labels.astype(np.int16))
    powers = np.exp(scores)
    expected = (powers / powers.sum(axis=1, keepdims=True) - np.eye(4)[labels]) * weights[labels][:, None]
    np.testing.assert_allclose(found / SLOPE, expected, atol=2e-3)
    assert np.linalg.norm(found, axis=1).max() <= np.sqrt(2) * (SLOPE + 2)
    for row in range(0, 500, 50):
        np.testing.assert_array_equal(slopes.at(whole[[row]], labels[[row]].astype(np.int16))[0], found[row])


def test_slopes_of_ones_own_loss_are_interpolated_between_labels() -> None:
    slopes = ByLabel.of(Poisson(), BoundedLabels((0.0, 20.0)), np.ones(1))
    scores, labels = RNG.uniform(-4, 4, size=2000), RNG.uniform(0, 20, size=2000)
    inner = np.rint((scores - slopes.offset) / slopes.unit * 2.0**SCORE_BITS)
    found = slopes.at(inner, np.rint((labels - 10) / 20 * 2**15).astype(np.int16)) / SLOPE * slopes.steepest
    expected = np.clip(np.exp(scores) - labels, -20, 20)
    assert np.abs(found - expected).max() < 0.01 + np.exp(4) * 8 / 4096
    assert np.abs(found - expected)[scores < 1].max() < 0.01


def test_several_classes_are_learned() -> None:
    coefficients = np.array([[3.0, 0, 0], [0, 3, 0], [-1, -1, 2]])
    labels = (X @ coefficients.T + RNG.gumbel(size=(6000, 3))).argmax(axis=1)
    names = np.array(["a", "b", "c"])
    model = WeightedERM(1.0, feature_bounds=(-1, 1), classes=("a", "b", "c")).fit(X, names[labels], users=USERS)
    assert (model.coef_.shape, model.intercept_.shape) == ((3, 3), (3,))
    centred = coefficients - coefficients.mean(axis=0)
    assert np.abs(model.coef_ - centred).max() < 0.7  # noise of a standard deviation of 0.08, and sampling error
    assert model.score(X, names[labels]) > np.mean((X @ coefficients.T).argmax(axis=1) == labels) - 0.03
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.usable_
    assert "b: x1" in card_text(model_card(model))
    with pytest.raises(UsageError, match="which takes up to"):
        WeightedERM(1.0, loss="huber-svm", feature_bounds=(-1, 1), classes=(0, 1, 2)).fit(X, labels, users=USERS)


def test_two_classes_of_a_softmax_are_a_logistic_regression() -> None:
    """With a third class that nobody has, and without noise."""
    labels = (X @ [3, -2, 1] + RNG.logistic(size=6000) > 0).astype(int)
    with seam.replaced(seam.silent):
        two = WeightedERM(1.0, feature_bounds=(-1, 1)).fit(X, labels, users=USERS)
        three = WeightedERM(1.0, feature_bounds=(-1, 1), classes=(0, 1, 2)).fit(X, labels, users=USERS)
    np.testing.assert_allclose(three.coef_[1] - three.coef_[0], two.coef_[0], rtol=0.1)
    assert three.predict_proba(X)[:, 2].max() < 0.1


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_classes_and_weights_are_the_same_in_tables(protects: str) -> None:
    frame = pd.DataFrame(X[:300], columns=["p", "q", "r"]).assign(id=USERS[:300], y=np.arange(300) % 4)
    options: dict[str, Any] = {"feature_bounds": (-1, 1), "protects": protects}
    three: dict[str, Any] = {"classes": (0, 1, 2), "class_weight": {0: 1, 1: 2, 2: 3}}
    for model in (
        WeightedERM(1.0, steps=3, **three, **options),
        WeightedERM(1.0, steps=3, loss=Pinball(), label_bounds=(0, 3), **options),
        BoundedERM(1.0, rows_per_user=9, regularisation=5.0, class_weight={0: 0.3, 1: 1}, **options),
    ):
        with seam.replaced(seam.silent):
            here = model.fit(frame, "y", users="id").coef_
            np.testing.assert_array_equal(model.fit(eh.read(frame, "id", protects=protects), "y").coef_, here)


@pytest.mark.parametrize(
    ("loss", "low", "high"), [(Poisson(), 0.4, 0.6), (Pinball(), 1.2, 2.2)], ids=["Poisson", "Pinball"]
)
def test_a_loss_of_ones_own(loss: Loss, low: float, high: float) -> None:
    labels = np.random.default_rng(1).poisson(np.exp(X @ TRUTH + 0.5)).astype(float)
    model = WeightedERM(1.0, loss=loss, label_bounds=(0, 20), feature_bounds=(-1, 1)).fit(X, labels, users=USERS)
    assert low < model.intercept_ < high
    assert model.score(X, labels) > 0.4
    if isinstance(loss, Poisson):
        assert np.abs(model.coef_ - TRUTH).max() < 0.2
    assert not hasattr(model, "predict_proba")
    with pytest.raises(UsageError, match="loss of one's own"):
        model_loss(clone(model).fit(X, labels, users=USERS), X, labels, USERS, epsilon=1)


def test_a_classifier_of_ones_own() -> None:
    labels = (X @ [3, -2, 1] + RNG.logistic(size=6000) > 0).astype(int)
    model = WeightedERM(1.0, loss=Exponential(), feature_bounds=(-1, 1)).fit(X, labels, users=USERS)
    assert model.score(X, labels) > 0.75
    assert model_loss(model, X, labels, USERS, epsilon=1).beats_constant == "yes"


class Spy(Loss):
    """Remembers what it was shown, or fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.seen = fails, []  # type: ignore[var-annotated]

    def slope(self, score: np.ndarray, label: np.ndarray) -> np.ndarray:
        self.seen.append((score.copy(), label.copy()))
        return score / 0 if self.fails else score - label


def test_the_code_of_a_loss_sees_public_numbers_once_and_before_the_debit(tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "people.db", epsilon=1, delta=1e-5)
    spy = Spy()
    model = WeightedERM(0.5, loss=spy, label_bounds=(0, 1), feature_bounds=(-1, 1), steps=1, ledger=ledger)
    seen = []
    for rows in (X[:40], 7 * X[:90]):
        model.fit(rows, rows[:, 0], users=range(len(rows)))
        ((score, label),) = spy.seen
        seen.append((score, label))
        spy.seen.clear()
        ledger = eh.Ledger(tmp_path / f"{len(rows)}.db", epsilon=1, delta=1e-5)
        model.set_params(ledger=ledger)
    np.testing.assert_array_equal(seen[0], seen[1])
    model.set_params(loss=Spy(fails=True))
    with pytest.raises(UsageError, match=r"Spy\.slope gave .* not finite"):
        model.fit(X[:40], X[:40, 0], users=range(40))
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("constraint", [Box(0, 0.7), Box(-0.5), Ball(0.4)], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_stay_where_they_may_lie(constraint: Any, classes: int) -> None:
    labels = np.digitize(X @ [3, -2, 1] + RNG.logistic(size=6000), [-2, 2] if classes == 3 else [0])
    wide = X * [1, 10, 0.1]
    bounds = [(-1, 1), (-10, 10), (-0.1, 0.1)]
    model = WeightedERM(1.0, feature_bounds=bounds, constraint=constraint, classes=range(classes), steps=20)
    coefficients = model.fit(wide, labels, users=USERS).coef_
    if isinstance(constraint, Box):
        assert coefficients.min() >= constraint.low - 1e-9
        assert coefficients.max() <= constraint.high + 1e-9
    else:
        assert np.linalg.norm(coefficients) <= constraint.radius * (1 + 1e-9)


def test_the_projection_to_a_ball_is_the_nearest_point() -> None:
    factor = np.array([0.1, 1.0, 30.0])
    for point in RNG.normal(0, 5, size=(20, 3)):
        nearest = Ball(2.0).nearest(point, factor)
        assert np.linalg.norm(nearest * factor) <= 2 * (1 + 1e-12)
        others = RNG.normal(size=(2000, 3))
        others *= 2 / np.linalg.norm(others, axis=1, keepdims=True) / factor
        assert np.linalg.norm(others - point, axis=1).min() >= np.linalg.norm(nearest - point) - 1e-9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"constraint": Box(2, 1)}, "low < high"),
        ({"constraint": Ball(0)}, "radius"),
        ({"constraint": 3}, "Ball"),
        ({"loss": "squared", "label_bounds": (0, 1), "class_weight": {0: 1}}, "losses of classes"),
        ({"loss": Poisson()}, "label_bounds are missing"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        WeightedERM(1.0, feature_bounds=(-1, 1), **options).fit(X, USERS % 2, users=USERS)
    with pytest.raises(UsageError, match="WeightedERM takes it"):
        BoundedERM(1.0, feature_bounds=(-1, 1), loss=Poisson(), label_bounds=(0, 1)).fit(X, X[:, 0], users=USERS)  # type: ignore[arg-type]
