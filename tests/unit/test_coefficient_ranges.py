"""Ranges of WeightedERM's coefficients: the arithmetic behind them, what they hold, and where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.guarantee import UsageError
from evenhand.learning import Ball, WeightedERM
from evenhand.learning.descent.coefficient_ranges import CURVATURE_SHARE, _believed
from evenhand.learning.descent.descent import MOMENTUM, Descent, responses
from evenhand.learning.model_card import card_text, model_card
from evenhand.noise import seam

STEPS, FIRST, LENGTH = 30, 12, 0.02


def averaged(curvature: float, start: float, noise: np.ndarray) -> float:
    """The averaged iterate of a descent to 0, step by step."""
    f, speed, found = start, 0.0, []
    for z in noise:
        speed = MOMENTUM * speed - LENGTH * (curvature * f + z)
        f += speed
        found.append(f)
    return float(np.mean(found[FIRST:]))


@pytest.mark.parametrize("curvature", [0.5, 3.0, 40.0])
def testresponses_are_those_of_the_steps(curvature: float) -> None:
    sizes = np.linspace(1.0, 2.0, STEPS)
    done = Descent(np.zeros(1), np.zeros(1), 1.0, sizes, LENGTH, FIRST, 0.0, np.zeros(1))
    variance, left = responses(np.array([curvature]), done)
    assert left[0] == pytest.approx(averaged(curvature, 1.0, np.zeros(STEPS)))
    assert variance[0] == pytest.approx(sum(averaged(curvature, 0.0, z) ** 2 for z in np.diag(sizes)))


def test_a_curvature_is_drawn_to_what_is_expected_by_as_much_as_noise_hides() -> None:
    rng, size = np.random.default_rng(3), 12
    noise = rng.normal(size=(size, size))
    noise = (noise + noise.T) / 2  # off the diagonal half the variance
    correlated = 100 * np.eye(size) + 40
    hidden, clear = (
        _believed(100 * np.eye(size) + noise, np.eye(size), 1.0),
        _believed(correlated + noise, np.eye(size), 1.0),
    )
    assert np.abs(hidden.matrix - 100 * np.eye(size)).max() < 1
    assert hidden.uncertain < 0.8
    assert np.abs(clear.matrix - correlated).max() < 3
    assert clear.drawn < 0.01


def rows(rng: np.random.Generator, users: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    who = np.repeat(np.arange(users), rng.integers(1, 4, users))
    X = rng.uniform(-1, 1, (len(who), 3))
    return X, np.clip(X @ [0.3, -0.2, 0.0] + 0.1 + rng.normal(0, 0.2, len(who)), -1, 1), who


def test_ranges_hold_the_weighted_minimum_and_are_not_much_wider_than_the_errors() -> None:
    """All rows have weight 1 here, and no label is far off: the minimum is that of least squares. Noise comes from a seed."""
    rng = np.random.default_rng(11)
    X, y, who = rows(rng, 3000)
    truth = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0]

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    held, parts = [], []
    for _ in range(6):
        with seam.replaced(drawn):
            model = WeightedERM(loss="squared", label_bounds=(-1, 1), feature_bounds=(-2, 2)).fit(X, y, users=who)
        low, high = model.interval().T
        held += list((low <= truth) & (truth <= high))
        parts += list(np.abs([*model.coef_, model.intercept_] - truth) / (high - low) * 2)
    assert np.mean(held) >= 0.9
    assert np.median(parts) > 0.15  # 0.34 where a range is just wide enough
    narrow, wide = np.diff(model.interval(0.5)), np.diff(model.interval(0.99))
    assert (narrow < wide).all()
    card = model_card(model, "y", confidence=0.9)
    assert [row["low"] for row in card["coefficients"]] == model.interval(0.9)[:, 0].tolist()
    assert "not sampling error" in card_text(card)


@pytest.mark.parametrize(
    "options",
    [
        {"clip": 1.0},
        {"constraint": Ball(1.0)},
        {"loss": "logistic", "classes": (0, 1, 2)},
        {"users": 5},
        {"features": 65},
    ],
)
def test_where_there_is_none_it_is_said_and_nothing_is_bought(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X, y, who = rows(rng, options.pop("users", 50))
    X = np.resize(X, (len(X), options.pop("features", 3)))
    bought = len(who) < 20  # too few users show only afterwards
    asked: dict[str, Any] = {
        "loss": "squared",
        "label_bounds": (-1, 1),
        "feature_bounds": (-2, 2),
        "steps": 2,
    } | options
    if asked["loss"] == "logistic":
        del asked["label_bounds"]
    model = WeightedERM(**asked).fit(X, y, users=who)
    with pytest.raises(UsageError, match="no interval"):
        model.interval()
    assert model_card(model)["coefficients"][0]["low"] is None
    assert (model.curvature_ is not None) == bought
    shares = model._shares(model._slopes(model._targets()), model.feature_map_)
    assert (shares[-1] == CURVATURE_SHARE) == bought
