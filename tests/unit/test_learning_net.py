"""The net of linear hypotheses covers the ball, and the choice from it is near the best of the ball."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenhand.guarantee import UsageError
from evenhand.learning import HypothesisSelection, linear_net


@pytest.mark.parametrize(("dimension", "distance"), [(1, 0.1), (2, 0.1), (3, 0.3), (4, 0.6), (2, 1.0)])
def test_every_point_of_the_ball_has_one_near(dimension: int, distance: float) -> None:
    net = np.array([one.weights for one in linear_net(dimension, distance)])
    assert np.linalg.norm(net, axis=1).max() <= 1 + 1e-12
    rng = np.random.default_rng(dimension)
    points = rng.normal(size=(2000, dimension))
    points *= (rng.random(2000) ** rng.choice([0.0, 1 / dimension], 2000) / np.linalg.norm(points, axis=1))[:, None]
    nearest = np.linalg.norm(points[:, None, :] - net[None, :, :], axis=2).min(axis=1)
    assert nearest.max() <= distance + 1e-12


def test_the_choice_is_near_the_best_of_the_ball() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 2))
    y = (X @ np.array([0.6, -0.8]) > 0).astype(int)
    model = HypothesisSelection(linear_net(2, 0.25, classes=(0, 1)), epsilon=50, rows_per_user=1)
    model.fit(X, y, users=np.arange(400))
    chosen = np.array(model.best_hypothesis_.weights)
    assert math.acos(chosen @ [0.6, -0.8] / np.linalg.norm(chosen)) < 0.4


@pytest.mark.parametrize(("dimension", "distance"), [(0, 0.1), (2, 0), (2, 1.5), (10, 0.1), (4, 0.05)])
def test_what_is_refused(dimension: int, distance: float) -> None:
    with pytest.raises(UsageError, match="linear_net"):
        linear_net(dimension, distance)
