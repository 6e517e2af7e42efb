"""What WeightedERM minimises is a proper loss, and whether a model is worth its ε is said before and after it is paid."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.learning import WeightedERM
from evenhand.learning.descent.preparation import _typical_length
from evenhand.learning.loss_forecast import _gain, curvatures
from evenhand.learning.losses import CappedLogistic, Logistic
from evenhand.learning.model_card import model_card
from evenhand.learning.slopes import ByClass
from evenhand.noise import seam

CAPPED = ByClass.of(CappedLogistic(), np.ones(2))
WHOLE = ByClass.of(Logistic(), np.ones(2))


def test_the_capped_loss_is_convex_bounded_and_best_at_the_true_chance() -> None:
    margins = np.linspace(-9, 9, 361)
    negative, positive = (CappedLogistic().slope(margins, np.full(361, t)) for t in (-1.0, 1.0))
    assert max(np.abs(negative).max(), np.abs(positive).max()) <= CappedLogistic.steepest
    assert np.all(np.diff([negative, positive]) >= 0)
    chance = 1 / (1 + np.exp(-margins))
    assert np.allclose((1 - chance) * negative + chance * positive, 0, atol=1e-12)


@pytest.mark.parametrize("part", [0.5, 0.3, 0.01])
def test_a_constant_model_has_the_log_odds(part: float) -> None:
    for slopes in (CAPPED, WHOLE):
        assert slopes.constant(part) == pytest.approx(np.log(part / (1 - part)), abs=0.02)
    # Class weights move it as if there were so many more of a class.
    assert ByClass.of(CappedLogistic(), np.array([0.25, 1.0])).constant(0.2) == pytest.approx(0, abs=0.02)


def test_curvature_and_gain_are_those_of_a_simulated_table() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=400_000)
    margins = -1 + 2 * scores
    labels = rng.random(400_000) < 1 / (1 + np.exp(-margins))
    curved = Logistic().curvature(margins, np.where(labels, 1.0, -1.0))
    found = curved.mean(), (curved * scores**2).mean(), (curved * scores).mean()
    assert curvatures(WHOLE, -1, 2) == pytest.approx(found, rel=0.02)
    part = labels.mean()
    constant = -part * np.log(part) - (1 - part) * np.log(1 - part)
    assert _gain(WHOLE, -1, 2) == pytest.approx(
        constant - np.mean(np.logaddexp(0, margins) - labels * margins), rel=0.02
    )


def test_a_hopeless_fit_is_announced_while_nothing_has_been_paid(tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=2, delta=1e-5)
    X, y = np.zeros((200, 30)), np.zeros(200)
    hopeless = WeightedERM(
        0.1, 1e-6, feature_bounds=(-1, 1), steps=2, profile=eh.Profile.counts([1] * 200), ledger=ledger
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="too few people for this ε"):
            hopeless.fit(X, y, users=np.arange(200))
    assert ledger.spent.epsilon == 0
    with pytest.warns(UserWarning, match="not likely to be worth"):
        hopeless.fit(X, y, users=np.arange(200))
    assert "not to beat a constant one" in model_card(hopeless)["planned"]["words"]


def test_with_rare_positives_and_no_noise_little_of_what_there_is_to_learn_is_lost() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(0, 0.4, (8000, 5)).clip(-1, 1)
    margins = X @ np.array([5, -4, 3, 0, 0]) - 7.5
    y = (rng.random(8000) < 1 / (1 + np.exp(-margins))).astype(float)
    with seam.replaced(lambda _, values, scale: list(values)):
        model = WeightedERM(1.0, 1e-6, feature_bounds=(-1, 1)).fit(X, y, users=np.arange(8000))
    found = model.decision_function(X)
    constant = -y.mean() * np.log(y.mean()) - (1 - y.mean()) * np.log(1 - y.mean())
    loss, least = (np.mean(np.logaddexp(0, m) - y * m) for m in (found, margins))
    assert y.mean() < 0.03
    assert loss - least < 0.1 * (constant - least)
    assert model.usable_
    assert model.forecast_.gain == pytest.approx(constant - least, rel=0.7)


def test_class_weights_that_leave_nothing_of_a_class_still_give_a_forecast() -> None:
    X, y = np.tile([[-1.0], [1.0]], (200, 1)), np.tile([0.0, 1.0], 200)
    with seam.replaced(seam.silent):
        model = WeightedERM(100, 1e-6, feature_bounds=(-1, 1), steps=5, class_weight={0: 1e6, 1: 1e-6})
        model.fit(X, y, users=np.arange(400))
    assert np.isfinite(model.forecast_.loss_above_constant)
    assert set(model.predict(X)) == {0.0}


def test_a_forecast_beforehand_knows_classes_and_how_rare_they_are(tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=4, delta=1e-4)
    profile = eh.Profile.counts([1] * 1200)
    given: dict[str, Any] = {"feature_bounds": (-1, 1), "steps": 1, "profile": profile, "ledger": ledger}
    rows = np.zeros((3, 5)), np.zeros(3), np.arange(3)
    for classes, prior in (((0, 1), None), ((0, 1, 2), (5, 3, 2))):
        model = WeightedERM(1, classes=classes, class_prior=prior, **given).fit(*rows)
        assert model.plan_ == eh.plan(
            "erm", profile, 1, dimension=5, delta=1e-6, protects="presence", classes=prior or 2
        )
    with pytest.warns(UserWarning, match="not likely to be worth its ε"):
        rare = WeightedERM(1, class_prior=(0.999, 0.001), **given).fit(*rows)
    assert rare.plan_ is not None
    assert not rare.plan_.usable
    spent = ledger.spent
    with pytest.raises(eh.UsageError, match="one part for each of the 2 classes"):
        WeightedERM(1, class_prior=(1, 1, 1), **given).fit(*rows)
    assert ledger.spent == spent


def _with_normal_noise(seed: int, **given: Any) -> WeightedERM:
    """A fit whose noise comes from a seed."""
    rng = np.random.default_rng(seed)

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    X, y, users = (given.pop(name) for name in ("X", "y", "users"))
    with seam.replaced(drawn):
        return WeightedERM(feature_bounds=(-1, 1), **given).fit(X, y, users=users)


def test_a_model_that_noise_alone_may_have_made_is_not_called_usable() -> None:
    rng = np.random.default_rng(6)
    X, users = rng.normal(0, 0.4, (4000, 8)).clip(-1, 1), np.arange(4000)
    y = (rng.random(4000) < 0.02).astype(int)  # nothing to learn
    fits = [_with_normal_noise(seed, epsilon=0.5, X=X, y=y, users=users) for seed in range(3)]
    assert not any(fit.usable_ for fit in fits)
    y = (rng.random(4000) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    assert _with_normal_noise(1, epsilon=0.5, X=X, y=y, users=users).usable_


def test_labels_in_a_corner_of_their_bounds_are_learned() -> None:
    """The first clamp comes from how far labels are from their average, not from the middle of the bounds."""
    rng = np.random.default_rng(7)
    X, users = rng.uniform(-1, 1, (6000, 3)), np.repeat(np.arange(3000), 2)
    y = 1 + 0.5 * X[:, 0] + rng.normal(0, 0.2, 6000)
    model = _with_normal_noise(2, epsilon=1.0, loss="squared", label_bounds=(0, 100), X=X, y=y, users=users)
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * np.var(y)
    assert model.clip_ < 0.1  # in label widths: two rows of 0.005 each, times √4


def test_a_typical_length_is_not_lost_among_empty_octaves() -> None:
    rng = np.random.default_rng(8)

    class Noisy:
        def ask(self, per_user: Any, size: int, l2_squared: int) -> tuple[Any, float]:
            counts = np.zeros(size)
            counts[23:28] = 200, 400, 600, 400, 100
            return counts + rng.normal(0, 85, size), 85.0

    found = [np.log2(_typical_length(Noisy(), np.zeros(6), 1700.0)[0]) for _ in range(200)]  # type: ignore[arg-type]
    assert min(found) >= 24
    assert max(found) <= 28
