"""One user, with all labels or all rows changed, never moves a model's inputs to the noise by more than declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.guarantee import Relation
from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, bounded_erm, hypotheses, sources
from evenhand.learning.features import feature_map
from evenhand.learning.label_grid import label_steps
from evenhand.learning.losses import LOSSES, loss_named
from evenhand.learning.sources import SLOPE_STEPS, MemoryRows
from evenhand.noise import NoisyMax, seam
from evenhand.tables import Grid

seeds = st.integers(0, 10**6)


@dataclass
class Recorder:
    """A sampler that adds nothing and remembers what it was given."""

    seen: list[tuple[str, list[int], Fraction]] = field(default_factory=list)

    def __call__(self, name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        self.seen.append((name, list(values), scale))
        return list(values)


def tables(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    users = np.sort(rng.integers(0, 12, size=int(rng.integers(30, 120))))
    return rng, rng.normal(size=(len(users), 3)), users


def released(fit: Any) -> tuple[list[int], Fraction]:
    recorder = Recorder()
    with seam.replaced(recorder):
        fit()
    ((_, values, scale),) = recorder.seen
    return values, scale


@given(seed=seeds, weighting=st.sampled_from(["optimal", "row-limit", "all"]), epsilon=st.sampled_from([0.01, 1, 50]))
def test_all_labels_of_a_user(seed: int, weighting: str, epsilon: float) -> None:
    rng, X, users = tables(seed)
    one = rng.normal(scale=5, size=len(users))
    victim = users == rng.choice(users)
    wild = rng.choice([np.nan, np.inf, -np.inf, -1.0, 2.0, 0.3], size=len(users))
    other = np.where(victim, wild, one)
    model = LabelPrivateRegression(epsilon, label_bounds=(-1, 2), noise_sd=1.0, weighting=weighting)
    weights = model.fit(X, one, users=users).weights_
    model.set_params(weights=weights)
    first, scale = released(lambda: model.fit(X, one, users=users))
    second, same = released(lambda: model.fit(X, other, users=users))
    assert scale == same
    assert sum(abs(a - b) for a, b in zip(first, second, strict=True)) <= scale * Fraction(str(epsilon))


def test_the_declared_sensitivity_is_reached() -> None:
    """The worst labels of the heaviest user use the whole bound: a smaller one would be wrong."""
    _, X, users = tables(1)
    weights = LabelPrivateRegression(1, label_bounds=(0, 1), noise_sd=1.0).fit(X, users * 0.0, users=users).weights_
    grid = Grid.about((0.0, 1.0), 0.5, weights.label_bits - 1)
    dense = weights.matrix.toarray()
    heaviest = int(np.argmax(np.bincount(users, np.abs(dense).sum(axis=1))))
    moved = 0
    for column in dense.T:  # labels can be extreme for one coefficient at a time
        labels = np.where(users == heaviest, column > 0, 0.5).astype(float)
        opposite = np.where(users == heaviest, column <= 0, 0.5).astype(float)
        j = [np.array_equal(column, c) for c in dense.T].index(True)
        change = weights.apply(label_steps(labels, grid))[j] - weights.apply(label_steps(opposite, grid))[j]
        moved += abs(change)
    assert moved == weights.heaviest_user(users) * grid.width


@given(seed=seeds, loss=st.sampled_from(LOSSES), protects=st.sampled_from(["presence", "values"]))
def test_all_rows_of_a_user_move_the_minimiser_as_declared(seed: int, loss: str, protects: str) -> None:
    rng, X, users = tables(seed)
    labels = rng.integers(0, 2, size=len(users)).astype(float)
    victim = users == rng.choice(users)
    options: dict[str, Any] = {"label_bounds": (0, 1)} if loss == "squared" else {}
    model = BoundedERM(
        1.0, loss=loss, rows_per_user=200, regularisation=float(rng.choice([0.1, 1.0, 30.0])),
        protects=protects, **options,
    )  # fmt: skip
    first, scale = released(lambda: model.fit(X, labels, users=users))
    if protects == "presence":
        second, same = released(lambda: model.fit(X[~victim], labels[~victim], users=users[~victim]))
    else:
        changed = np.where(victim[:, None], rng.normal(scale=100, size=X.shape), X)
        second, same = released(lambda: model.fit(changed, np.where(victim, 1 - labels, labels), users=users))
    assert scale == same
    distance_squared = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    assert distance_squared <= scale**2  # ε = 1: the scale is the sensitivity


@given(seed=seeds, rows=st.integers(30, 60))
def test_a_user_moves_a_fading_model_as_declared(seed: int, rows: int) -> None:
    """As if 40 rows were as many as can be carried: from there to 80 the model fades, and one user still moves it as declared."""
    rng, X, users = tables(seed)
    labels = rng.integers(0, 2, size=len(users)).astype(float)
    victim = users == rng.choice(users)
    model = BoundedERM(1.0, rows_per_user=3, regularisation=0.05)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_erm, "MOST_ROWS", rows)
        patch.setattr(
            sources, "random_ranks", lambda users, counts: np.concatenate([np.arange(k) for k in counts if k])
        )
        first, scale = released(lambda: model.fit(X, labels, users=users))
        second, same = released(lambda: model.fit(X[~victim], labels[~victim], users=users[~victim]))
    assert scale == same
    assert sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) <= scale**2


def test_what_fading_adds_to_the_sensitivity_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A steep hinge, and a user against everybody: gone, the model grows and fades less."""
    monkeypatch.setattr(bounded_erm, "MOST_ROWS", 40)
    X, labels, users = np.ones((63, 1)), np.r_[np.ones(60), np.zeros(3)], np.r_[np.arange(60), [99] * 3]
    model = BoundedERM(1.0, loss="huber-svm", rows_per_user=3, regularisation=100.0, fit_intercept=False)
    first, scale = released(lambda: model.fit(X, labels, users=users))
    second, _ = released(lambda: model.fit(X[:60], labels[:60], users=users[:60]))
    moved = abs(first[0] - second[0]) / scale * Fraction(model.sensitivity_)
    assert Fraction(3, 100) * Fraction(3, 2) < moved <= Fraction(model.sensitivity_)


@dataclass
class Scores:
    """A chooser that remembers the scores that it was given."""

    seen: list[list[int]] = field(default_factory=list)

    def choose(self, scores: Sequence[int]) -> int:
        self.seen.append(list(scores))
        return 0


def across(X: np.ndarray) -> np.ndarray:
    """A hypothesis that compares rows with each other, if it is shown more than one."""
    return (X[:, 0] > X[:, 0].mean()).astype(int) + (len(X) > 1)


def picky(X: np.ndarray) -> np.ndarray:
    if X[0, 0] > 1:
        raise ValueError(f"too large: {X}")
    return X[:, 1] > 0


@given(seed=seeds, protects=st.sampled_from(["presence", "values"]), loss=st.sampled_from(["zero-one", "squared"]))
def test_a_user_moves_each_score_of_a_selection_as_declared(seed: int, protects: str, loss: str) -> None:
    rng, X, users = tables(seed)
    labels = rng.integers(0, 2, size=len(users)).astype(float)
    victim = users == rng.choice(users)
    tau, scores = int(rng.integers(1, 4)), Scores()
    model = HypothesisSelection([across, picky], rows_per_user=tau, protects=protects, loss=loss, label_bounds=(0, 1))
    wild = np.where(victim[:, None], rng.choice([1e300, -1e9, np.inf, np.nan, 0.5], size=X.shape), X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoisyMax, "choose", scores.choose)
        patch.setattr(
            sources, "random_ranks", lambda users, counts: np.concatenate([np.arange(k) for k in counts if k])
        )
        model.fit(X, labels, users=users)
        model.fit(
            wild, np.where(victim, rng.choice([1 - labels[0], 7.0, np.nan], size=len(labels)), labels), users=users
        )
        model.fit(X[~victim], labels[~victim], users=users[~victim])
    first, changed, absent = scores.seen
    others = [changed] if protects == "values" else [absent]
    for other in others:
        assert all(abs(a - b) <= tau * hypotheses._UNIT for a, b in zip(first, other, strict=True))
    if protects == "presence":
        assert all(a <= b for a, b in zip(first, absent, strict=True)), "a user only lowers scores"


@given(seed=seeds, loss=st.sampled_from(LOSSES), h=st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(7, 2)]))
def test_a_user_moves_the_weighted_gradient_as_declared(seed: int, loss: str, h: Fraction) -> None:
    rng, X, users = tables(seed)
    targets = rng.choice([-1.0, 1.0], size=len(users))
    victim = users == rng.choice(users)
    mapped = feature_map(3, 1.0, None, intercept=True)
    chosen = loss_named(loss, (-1.0, 1.0))
    f = rng.normal(scale=10, size=4)

    def gradient(kept: np.ndarray, features: np.ndarray) -> list[int]:
        codes = np.unique(users[kept], return_inverse=True)[1]
        rows = MemoryRows(features[kept], targets[kept], codes, Relation.VALUES, ("user",))
        with rows.weighted(mapped, h) as weighted:
            return weighted.gradient(f, chosen, 1.0).reveal()

    everyone = np.ones(len(users), dtype=bool)
    full = gradient(everyone, X)
    bound_squared = h**2 * SLOPE_STEPS**2 * mapped.squared_norm
    absent = gradient(~victim, X)
    assert sum((a - b) ** 2 for a, b in zip(full, absent, strict=True)) <= bound_squared
    wild = np.where(victim[:, None], rng.choice([1e9, -1e9, np.inf, 0.0], size=X.shape), X)
    replaced = gradient(everyone, wild)
    assert sum((a - b) ** 2 for a, b in zip(full, replaced, strict=True)) <= 4 * bound_squared


@pytest.mark.parametrize("norm", [1.0, 3.7])
def test_rows_stay_inside_the_ball_in_integers(norm: float) -> None:
    rng = np.random.default_rng(0)
    mapped = feature_map(6, norm, None, intercept=True)
    X = rng.normal(size=(2000, 6)) * 10.0 ** rng.integers(-3, 300, size=(2000, 1))
    X[::7] = np.inf
    X[::11, 2] = np.nan
    rows = mapped.integers(X).astype(np.int64)
    assert (np.sum(rows * rows, axis=1) <= mapped.squared_norm).all()
