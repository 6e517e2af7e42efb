"""The loss of a model: close to the exact one, covered by its interval, a verdict that can be relied on, and cards."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.guarantee import UsageError
from evenhand.learning import BoundedERM, WeightedERM, model_loss
from evenhand.learning.model_card import card_text, model_card
from evenhand.learning.selection.per_user_loss import UNIT
from evenhand.noise import seam
from evenhand.pages.card import card_page

SHARES = (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5))
BOX: dict[str, Any] = {"feature_bounds": (-1, 1)}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    users = np.repeat(np.arange(1500), rng.integers(1, 4, size=1500))
    X = rng.uniform(-1, 1, size=(len(users), 2))
    return X, (rng.random(len(users)) < 1 / (1 + np.exp(-X @ [5.0, -3.0] - 1))).astype(int), users


def line(coef: Any, intercept: float, **parameters: Any) -> BoundedERM:
    """A model with given coefficients."""
    model = BoundedERM(100.0, rows_per_user=1, regularisation=1.0, **BOX, **parameters)
    model.fit(np.zeros((4, 2)), np.array([0, 1, 0, 1]), users=np.arange(4))
    model.coef_, model.intercept_ = np.array(coef, dtype=float), intercept
    return model


def test_public_rows_give_the_exact_average_over_users(rows: Any) -> None:
    X, y, users = rows
    found = model_loss(line([5.0, -3.0], 1.0), X, y, users, public=True)
    signs = (2 * y - 1) * (X @ [5.0, -3.0] + 1)
    each = np.minimum(np.logaddexp(0, -signs), 3 * np.log(2))
    exact = np.mean(np.bincount(users, each) / np.bincount(users))
    assert found.value == pytest.approx(exact, abs=1e-3)
    assert found.constant == pytest.approx(np.mean(np.bincount(users, y) / np.bincount(users)), abs=1e-5)
    assert found.beats_constant == "yes"
    assert found.guarantee is None


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_what_is_bought_is_close_and_covered(rows: Any, protects: str, tmp_path: Path) -> None:
    """At ε = 20 noise of more than 0.02 has probability below 1e-7: scales are at most 2.1/8 for 1,500 users."""
    X, y, users = rows
    model = line([5.0, -3.0], 1.0, protects=protects)
    exact = model_loss(model, X, y, users, public=True)
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=20)
    found = model_loss(model, X, y, users, epsilon=20, ledger=ledger)
    assert found.value == pytest.approx(exact.value, abs=0.02)
    assert found.gain.value == pytest.approx(exact.gain.value, abs=0.02)
    low, high = found.interval(1 - 1e-7)
    assert low <= exact.value <= high
    assert found.beats_constant == "yes"
    assert ledger.spent.epsilon == 20
    assert "Better than a constant model: yes" in str(found)


def test_a_model_that_is_wrong_is_told_apart(rows: Any) -> None:
    X, y, users = rows
    assert model_loss(line([-5.0, 3.0], -1.0), X, y, users, epsilon=20).beats_constant == "no"
    few = model_loss(line([0.1, 0.0], 1.0), X[:20], y[:20], users[:20], epsilon=0.01)
    assert few.beats_constant == "can't tell"


def test_numbers_in_units_of_their_bounds(rows: Any) -> None:
    X, _, users = rows
    labels = 4 + 2 * X[:, 0]
    model = line([2.0, 0.0], 4.0)
    model.set_params(loss="squared", label_bounds=(0, 8))
    exact = model_loss(model, X, labels, users, public=True)
    assert exact.value == pytest.approx(0, abs=1e-5)
    assert exact.gain.value == pytest.approx(np.var(labels) / 64, rel=0.1)
    assert exact.constant == pytest.approx(4, abs=0.1)


def three(coef: Any, **parameters: Any) -> WeightedERM:
    """A model of three classes with given coefficients."""
    model = WeightedERM(1.0, 1e-6, classes=(0, 1, 2), steps=1, **BOX, **parameters)
    model.fit(np.zeros((4, 2)), np.array([0, 1, 2, 1]), users=np.arange(4))
    model.coef_, model.intercept_ = np.array(coef, dtype=float), np.array([0.0, 0.5, 0.0])
    return model


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_three_classes(protects: str) -> None:
    """Public rows give the exact average; at ε = 60 noise of more than 0.03 has probability below 1e-7 (scales at most 4.8/24 for 600 users)."""
    rng = np.random.default_rng(2)
    users, coef = np.repeat(np.arange(600), 2), np.array([[4.0, 0.0], [0.0, 0.0], [0.0, -4.0]])
    X = rng.uniform(-1, 1, size=(1200, 2))
    scores = X @ coef.T + [0.0, 0.5, 0.0]
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    model = three(coef, protects=protects)
    exact = model_loss(model, X, y, users, public=True)
    each = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(1200), y]
    assert exact.value == pytest.approx(np.minimum(each, np.log(12)).mean(), abs=2e-3)
    parts = np.bincount(y) / 1200
    assert exact.constant == pytest.approx(tuple(parts), abs=1e-4)
    gains = (-np.log(parts[y]) - np.minimum(each, np.log(12))).reshape(600, 2).mean(axis=1)
    assert exact.gain.value == pytest.approx(np.clip(gains, -np.log(12) / 6, np.log(12) / 6).mean(), abs=2e-3)
    bought = model_loss(model, X, y, users, epsilon=60)
    assert bought.value == pytest.approx(exact.value, abs=0.03)
    assert bought.gain.value == pytest.approx(exact.gain.value, abs=0.03)
    assert bought.beats_constant == "yes"
    assert json.loads(json.dumps(model_card(model, loss=bought)))["loss"]["beats_constant"] == "yes"
    assert model_loss(model, X, y, users, public=True, scoring="accuracy").value == pytest.approx(
        np.mean(scores.argmax(axis=1) != y), abs=1e-5
    )


@given(seed=st.integers(0, 10**6), protects=st.sampled_from(["presence", "values"]), classes=st.sampled_from([2, 3]))
def test_one_user_moves_the_sums_as_declared(seed: int, protects: str, classes: int) -> None:
    """The three releases, whatever the ones before them said; the noise of each covers what one user can do with its share."""
    rng = np.random.default_rng(seed)
    users = np.r_[np.sort(rng.integers(0, 6, size=30)), [7] * 5]
    X, y = rng.normal(size=(35, 2)), rng.integers(0, classes, 35).astype(float)
    X[30:] = rng.choice([np.nan, np.inf, -1e308, 3.0, -0.5], size=(5, 2)) if protects == "values" else 50.0
    model: Any = line(rng.normal(scale=4, size=2), 0.2, protects=protects)
    if classes == 3:
        model = three(rng.normal(scale=4, size=(3, 2)), protects=protects)

    def sums(*data: Any) -> list[tuple[list[int], Fraction]]:
        seen: list[tuple[list[int], Fraction]] = []

        def said(name: str, values: Any, scale: Fraction) -> list[int]:
            seen.append((list(values), scale))
            return [10 * UNIT] * len(values)

        with seam.replaced(said):
            model_loss(model, *data, epsilon=1)
        return seen

    first = sums(X, y, users)
    if protects == "presence":
        second = sums(X[:30], y[:30], users[:30])
    else:
        second = sums(np.r_[X[:30], -X[30:]], np.r_[y[:30], (y[30:] + 1) % classes], users)
    for (one, scale), (other, same), share in zip(first, second, SHARES, strict=True):
        assert scale == same
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= scale * share


def test_what_is_refused(rows: Any) -> None:
    X, y, users = rows
    model = line([1.0, 0.0], 0.0)
    with pytest.raises(UsageError, match="public=True"):
        model_loss(model, X, y, users)
    with pytest.raises(UsageError, match="not both"):
        model_loss(model, X, y, users, epsilon=1, public=True)
    with pytest.raises(UsageError, match="expected a fitted BoundedERM"):
        model_loss(WeightedERM, X, y, users, epsilon=1)  # type: ignore[arg-type]


def test_a_card_says_whether_the_model_is_worth_using(rows: Any) -> None:
    X, y, users = rows
    model = line([5.0, -3.0], 1.0)
    bare = model_card(model)
    assert "Not known: nobody forecast" in card_text(bare)
    plan = eh.plan("erm", eh.Profile.counts([2] * 1500), 1.0, dimension=2, delta=1e-6)
    card = model_card(model, plan=plan, loss=model_loss(model, X, y, users, public=True))
    assert card["loss"]["beats_constant"] == "yes"
    for text in (card_text(card), card_page(card)):
        assert "Before the fit: A linear model of 2 features" in text
        assert "Better than a constant model: yes" in text
    assert json.loads(json.dumps(card))["planned"]["usable"] is True
