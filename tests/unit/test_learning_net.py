"""The net of linear hypotheses covers the ball; all of it is judged at once, as if row by row; the choice is near the best of the ball."""

from __future__ import annotations

import math
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from evenhand.guarantee import UsageError
from evenhand.learning import HypothesisSelection, linear_net
from evenhand.learning.data.targets import BoundedLabels, Classes
from evenhand.learning.selection import linear_hypotheses, per_user_loss
from evenhand.learning.selection.linear_hypotheses import LinearHypotheses
from evenhand.noise import NoisyMax
from evenhand.profiles import Profile


@pytest.mark.parametrize(("dimension", "distance"), [(1, 0.1), (2, 0.1), (3, 0.3), (4, 0.6), (2, 1.0), (6, 0.5)])
def test_every_point_of_the_ball_has_one_near(dimension: int, distance: float) -> None:
    net = linear_net(dimension, distance).weights
    assert np.linalg.norm(net, axis=1).max() <= 1 + 1e-12
    rng = np.random.default_rng(dimension)
    points = rng.normal(size=(800, dimension))
    points *= (rng.random(800) ** rng.choice([0.0, 1 / dimension], 800) / np.linalg.norm(points, axis=1))[:, None]
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


@pytest.mark.parametrize(("dimension", "distance"), [(0, 0.1), (2, 0), (2, 1.5), (10, 0.1), (4, 0.05), (6, 0.2)])
def test_what_is_refused(dimension: int, distance: float) -> None:
    with pytest.raises(UsageError, match="linear_net"):
        linear_net(dimension, distance)


def test_a_net_is_small() -> None:
    """The lattice A*_d: of squares and cubes a net for 2 features and 0.1 had 681 hypotheses, for 6 and 0.5 over 12,000."""
    assert len(linear_net(2, 0.1)) == 151
    assert len(linear_net(6, 0.5)) < 2000
    one = linear_net(2, 0.1, classes=("no", "yes"))[3]
    assert one.predict([[*one.weights]]).tolist() == ["yes"]
    assert [*linear_net(2, 0.1)[:2]] == [*linear_net(2, 0.1)][:2]


@pytest.mark.parametrize("loss", ["zero-one", "absolute", "squared"])
def test_linear_hypotheses_are_judged_at_once_as_if_each_were_called_with_each_row(loss: str) -> None:
    rng = np.random.default_rng(7)
    X = np.where(rng.random((60, 2)) < 0.1, rng.choice([1e30, -1e30, 0.0], (60, 2)), rng.normal(size=(60, 2)))
    y = (X[:, 0] > X[:, 1]).astype(float)
    if loss == "zero-one":
        models = [*linear_net(2, 0.5, (0, 1)), LogisticRegression().fit(X % 3, y), LinearRegression().fit(X % 3, y)]
    else:
        models = [*linear_net(2, 0.5), LinearRegression().fit(X % 3, y), LogisticRegression().fit(X % 3, y)]
    given: dict[str, Any] = {"loss": loss, "label_bounds": (0, 1), "rows_per_user": 1}
    targets: Classes | BoundedLabels = Classes.parse((0, 1)) if loss == "zero-one" else BoundedLabels.parse((0, 1))
    truth = targets.targets(y)
    called = HypothesisSelection([model.predict for model in models], **given)
    at_once = HypothesisSelection(models, **given)
    none, some = (LinearHypotheses.of(model.hypotheses, 2, targets) for model in (called, at_once))
    assert (len(none.places), len(some.places)) == (0, len(models) - 1)  # the last predicts the other kind of thing
    assert called._scores(none, X, truth, targets) == at_once._scores(some, X, truth, targets)


def test_no_row_changes_the_losses_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a product that looks at other rows is found out."""
    rng, targets = np.random.default_rng(3), BoundedLabels.parse((-1, 1))
    X, y = rng.normal(size=(500, 3)), rng.uniform(-1, 1, 500)
    hypotheses = LinearHypotheses.of(linear_net(3, 0.4), 3, targets)

    def alike() -> bool:
        apart = sum(hypotheses.total_losses(X[i : i + 1], y[i : i + 1], targets, True) for i in range(len(X)))
        return bool(np.array_equal(apart, hypotheses.total_losses(X, y, targets, True)))

    assert alike()
    monkeypatch.setattr(linear_hypotheses, "products", lambda X, weights: (X - 1e-6 * X.mean(axis=0)) @ weights.T)
    assert not alike()


def test_a_net_for_six_features_is_judged_in_seconds() -> None:
    """A million products in well under the second that calling 681 hypotheses took; a bound that a loop over rows would miss a hundredfold."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 6))
    start = time.process_time()
    net = linear_net(6, 0.4, classes=(0, 1))
    HypothesisSelection(net, 1, rows_per_user=1).fit(X, X[:, 0] > 0, users=np.arange(2000))
    assert len(net) > 3000
    assert time.process_time() - start < 10


def test_what_a_choice_loses_is_forecast_and_holds() -> None:
    """Mean excess over 200 choices among 50 hypotheses, of which one is right: at most the proved bound; and at a tenth of the noise far from it."""
    rng = np.random.default_rng(5)
    X, users = rng.uniform(-1, 1, (400, 1)), np.arange(400)
    y = (X[:, 0] > 0).astype(int)
    hypotheses = [lambda rows, cut=cut: rows[:, 0] > cut for cut in np.linspace(-1, 1, 51)]
    model = HypothesisSelection(hypotheses, 0.2, profile=Profile.counts([1] * 400))
    losses = np.array([np.mean((X[:, 0] > cut) != y) for cut in np.linspace(-1, 1, 51)])
    model.fit(X, y, users=users)
    assert model.forecast_ is not None
    assert model.forecast_.noise == pytest.approx(math.log(51) / (0.2 * 400))
    assert model.usable_ is False
    assert HypothesisSelection(hypotheses, 20, rows_per_user=2).fit(X, y, users=users).usable_ is None
    assert HypothesisSelection(hypotheses, 20).fit(X, y, users=users).usable_ is True
    targets = Classes.parse((0, 1))
    scores = model._scores(LinearHypotheses.of(hypotheses, 1, targets), X, targets.targets(y), targets)
    noise = NoisyMax.calibrated(per_user_loss.UNIT, Decimal("0.2"), True)
    excess = np.mean([losses[noise.choose(scores)] for _ in range(200)])
    assert 0 < excess <= model.forecast_.noise
