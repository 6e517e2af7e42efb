"""One user, with all labels or all rows changed, never moves a model's inputs to the noise by more than declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.guarantee import Relation
from evenhand.learning import Ball, BoundedERM, HypothesisSelection, LabelPrivateRegression, Loss, WeightedERM
from evenhand.learning.data import engine_rows, row_sources
from evenhand.learning.data.features import STEPS, feature_map
from evenhand.learning.data.targets import label_steps
from evenhand.learning.data.user_rows import FULL, clamped
from evenhand.learning.losses import LOSSES
from evenhand.learning.perturbation import output_perturbation
from evenhand.learning.selection.linear_hypotheses import LinearHypothesis
from evenhand.learning.selection.per_user_loss import UNIT
from evenhand.ledger import mechanism_delta
from evenhand.noise import NoisyMax, seam
from evenhand.noise.steps import noise_multiplier
from evenhand.profiles import Profile
from evenhand.tables import Grid

seeds = st.integers(0, 10**6)


@dataclass
class Recorder:
    """A sampler that remembers what it was given, and adds nothing, or noise that a test can repeat."""

    noise: np.random.Generator | None = None
    seen: list[tuple[str, list[int], Fraction]] = field(default_factory=list)
    released: list[tuple[str, list[int], Fraction]] = field(default_factory=list)

    def __call__(self, name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        self.seen.append((name, list(values), scale))
        size = 0.0 if self.noise is None else float(scale) * float(self.noise.choice([0.001, 0.03, 1.0]))
        drawn = [0] * len(values) if self.noise is None else self.noise.normal(0.0, size, len(values))
        released = [value + round(float(more)) for value, more in zip(values, drawn, strict=True)]
        self.released.append((name, released, scale))
        return released


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
    options: dict[str, Any] = {"label_bounds": (0, 1)} if loss == "squared" else {"class_weight": {0: 20, 1: 1}}
    X[:, 2] = np.rint(X[:, 2])
    model = BoundedERM(
        1.0, loss=loss, rows_per_user=200, regularisation=float(rng.choice([0.1, 1.0, 30.0])),
        protects=protects, method="output", feature_bounds=(-1, 1), categories={2: [-1, 0, 1]}, **options,
    )  # fmt: skip
    first, scale = released(lambda: model.fit(X, labels, users=users))
    if protects == "presence":
        second, same = released(lambda: model.fit(X[~victim], labels[~victim], users=users[~victim]))
    else:
        changed = np.where(victim[:, None], rng.choice([100.0, -100.0, 0.0, 1.0, np.nan], size=X.shape), X)
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
    model = BoundedERM(1.0, rows_per_user=3, regularisation=0.05, method="output", feature_norm=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_perturbation, "MOST_ROWS", rows)
        patch.setattr(
            row_sources, "random_ranks", lambda users, counts: np.concatenate([np.arange(k) for k in counts if k])
        )
        first, scale = released(lambda: model.fit(X, labels, users=users))
        second, same = released(lambda: model.fit(X[~victim], labels[~victim], users=users[~victim]))
    assert scale == same
    assert sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) <= scale**2


def test_what_fading_adds_to_the_sensitivity_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A steep hinge, and a user against everybody: gone, the model grows and fades less."""
    monkeypatch.setattr(output_perturbation, "MOST_ROWS", 40)
    X, labels, users = np.ones((63, 1)), np.r_[np.ones(60), np.zeros(3)], np.r_[np.arange(60), [99] * 3]
    model = BoundedERM(
        1.0,
        loss="huber-svm",
        rows_per_user=3,
        regularisation=100.0,
        fit_intercept=False,
        method="output",
        feature_norm=1.0,
    )
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
    weights = tuple(rng.normal(size=(X.shape[1],)).tolist())
    linear = LinearHypothesis(weights, (0, 1) if loss == "zero-one" else None)
    model = HypothesisSelection(
        [across, picky, linear], rows_per_user=tau, protects=protects, loss=loss, label_bounds=(0, 1)
    )
    wild = np.where(victim[:, None], rng.choice([1e300, -1e9, np.inf, np.nan, 0.5], size=X.shape), X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoisyMax, "choose", scores.choose)
        patch.setattr(
            row_sources, "random_ranks", lambda users, counts: np.concatenate([np.arange(k) for k in counts if k])
        )
        model.fit(X, labels, users=users)
        model.fit(
            wild, np.where(victim, rng.choice([1 - labels[0], 7.0, np.nan], size=len(labels)), labels), users=users
        )
        model.fit(X[~victim], labels[~victim], users=users[~victim])
    first, changed, absent = scores.seen
    others = [changed] if protects == "values" else [absent]
    for other in others:
        assert all(abs(a - b) <= tau * UNIT for a, b in zip(first, other, strict=True))
    if protects == "presence":
        assert all(a <= b for a, b in zip(first, absent, strict=True)), "a user only lowers scores"


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_a_user_of_a_table_moves_each_score_of_a_selection_as_declared(
    protects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an engine: users with as many rows as are kept, and one with more; and a twin that keeps all rows."""
    tau, scores = 2, Scores()
    frame = pd.DataFrame({"id": np.r_[np.repeat(np.arange(5), tau), [9] * 20], "a": np.tile([0.5, -0.5], 15), "y": 1})
    other = frame.iloc[:10] if protects == "presence" else frame.assign(y=(frame.id != 9).astype(int))
    model = HypothesisSelection([lambda rows: rows[:, 0] > 9, lambda rows: rows[:, 0] < 9], rows_per_user=tau)
    monkeypatch.setattr(NoisyMax, "choose", scores.choose)

    def moves() -> list[int]:
        for rows in (frame, other):
            model.fit(eh.read(rows, "id", protects=protects), "y")
        return [abs(a - b) for a, b in zip(*scores.seen[-2:], strict=True)]

    assert max(moves()) == tau * UNIT
    monkeypatch.setattr(engine_rows, "sampled_rows", lambda table, rows, tau: rows)
    assert max(moves()) == 20 * UNIT


@dataclass
class Replay:
    """A sampler that hands out what was released before, whatever it is given now, and remembers that."""

    released: list[tuple[str, list[int], Fraction]]
    seen: list[tuple[str, list[int], Fraction]] = field(default_factory=list)

    def __call__(self, name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        self.seen.append((name, list(values), scale))
        return self.released[len(self.seen) - 1][1]


class Jagged(Loss):
    """No convex loss at all: the clamp bounds users whatever it says."""

    def slope(self, score: np.ndarray, label: np.ndarray) -> np.ndarray:
        return 1e9 * np.sin(50 * score) * (label > 0.3)


DESCENTS: dict[str, dict[str, Any]] = {
    "logistic": {"class_weight": {0: 1, 1: 20}},
    "huber-svm": {"loss": "huber-svm", "categories": {1: [0, 1]}},
    "squared": {"loss": "squared", "label_bounds": (0, 1)},
    "multinomial": {"classes": (0, 1, 2), "class_weight": {0: 1, 1: 0.1, 2: 0.5}},
    "own": {"loss": Jagged(), "label_bounds": (0, 1), "constraint": Ball(0.5)},
}


def descent(seed: int, loss: str, protects: str, clip: float | str) -> tuple[list[Fraction], list[Fraction]]:
    """The squared change of each vector of a fit when a user is changed and all releases before stay, and what was declared."""
    rng, X, users = tables(seed)
    X[:, 1] = np.rint(X[:, 1])
    labels = rng.integers(0, 3 if loss == "multinomial" else 2, size=len(users)).astype(float)
    victim = users == rng.choice(users)
    options = DESCENTS[loss]
    h = float(rng.choice([0.3, 1.0, 20.0]))
    profile = Profile.counts([5] * 12) if clip == "lipschitz" else None
    model = WeightedERM(1.0, 1e-6, feature_bounds=(-1, 1), weight_bound=h, clip=clip, steps=4,
                        protects=protects, profile=profile, **options)  # fmt: skip
    first = Recorder(noise=rng)
    with seam.replaced(first):
        model.fit(X, labels, users=users)
    second = Replay(first.released)
    with seam.replaced(second):
        if protects == "presence":
            model.fit(X[~victim], labels[~victim], users=users[~victim])
        else:
            wild = rng.choice([1e9, -1e9, np.inf, np.nan, 0.3], size=X.shape)
            model.fit(np.where(victim[:, None], wild, X), np.where(victim, 1 - labels, labels), users=users)
    moved, declared = [], []
    shares = model._shares(model._slopes(model._targets()), model.feature_map_)
    for share, (_, one, scale), (_, other, same) in zip(shares, first.seen, second.seen, strict=True):
        assert scale == same
        # Under values a sum moves by twice a user's norm, and the multiplier is twice as large.
        bound = scale / noise_multiplier(Decimal(1), mechanism_delta(Decimal("1e-6")), Relation.PRESENCE, share)
        moved.append(Fraction(sum((a - b) ** 2 for a, b in zip(one, other, strict=True))))
        declared.append(bound**2)
    return moved, declared


@given(
    seed=seeds,
    loss=st.sampled_from(list(DESCENTS)),
    protects=st.sampled_from(["presence", "values"]),
    clip=st.sampled_from(["auto", 0.01, 1.0, "lipschitz"]),
)
def test_a_user_moves_every_vector_of_a_descent_as_declared(
    seed: int, loss: str, protects: str, clip: float | str
) -> None:
    moved, declared = descent(seed, loss, protects, clip)
    assert all(change <= bound for change, bound in zip(moved, declared, strict=True))


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_a_descent_that_forgets_the_clamp_moves_further(monkeypatch: pytest.MonkeyPatch, protects: str) -> None:
    assert descent(1, "logistic", protects, 0.01)[0][-1] > descent(1, "logistic", protects, 0.01)[1][-1] / 100
    monkeypatch.setattr(
        "evenhand.learning.descent.descent.clamped",
        lambda vectors, factors: (np.rint(vectors * factors[:, None]), True),
    )
    moved, declared = descent(1, "logistic", protects, 0.01)
    assert moved[-1] > declared[-1]


@pytest.mark.parametrize(
    ("module", "place", "loss"),
    [
        ("preparation", 3, "squared"),
        ("recalibration", -2, "squared"),
        ("recalibration", -2, "logistic"),
        ("coefficient_ranges", -1, "squared"),
    ],
)
def test_a_bought_vector_that_forgets_the_clamp_moves_further(
    module: str, place: int, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Second moments, sums of slopes, also along the model, and second derivatives: only a user who is cut reaches the bound."""
    monkeypatch.setattr("evenhand.learning.descent.recalibration._LEAST", 0.01)  # so that slopes of a few rows are cut
    monkeypatch.setattr("evenhand.learning.descent.recalibration._CLAMPS", np.array([0.01]))
    for shortened in ("preparation._MOMENT_CLAMP", "coefficient_ranges._CLAMP"):
        monkeypatch.setattr(f"evenhand.learning.descent.{shortened}", 0.1)

    def moves() -> list[tuple[Fraction, Fraction]]:
        found = [descent(seed, loss, "presence", "auto") for seed in range(4)]
        return [(moved[place], declared[place]) for moved, declared in found]

    assert all(moved <= declared for moved, declared in moves())
    assert max(moved / declared for moved, declared in moves()) > Fraction(1, 2)
    monkeypatch.setattr(
        f"evenhand.learning.descent.{module}.clamped",
        lambda vectors, factors: (np.rint(vectors * factors[:, None]), True),
    )
    assert any(moved > declared for moved, declared in moves())


def test_a_descent_that_clamps_classes_one_by_one_moves_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user has one clamp for the gradients of all classes together; with three of them √2 to √3 times as much gets through."""

    def separately(vectors: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, Any]:
        return np.hstack([clamped(part, factors)[0] for part in np.split(vectors, 3, axis=1)]), True

    moved, declared = descent(1, "multinomial", "presence", 0.01)
    assert declared[-1] / 2 < moved[-1] <= declared[-1]
    monkeypatch.setattr("evenhand.learning.descent.descent.clamped", separately)
    moved, declared = descent(1, "multinomial", "presence", 0.01)
    assert moved[-1] > declared[-1]


@given(seed=seeds, columns=st.integers(1, 40))
def test_clamped_vectors_are_no_longer_than_declared(seed: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.rint(rng.normal(size=(50, columns)) * 2.0 ** rng.integers(0, 52, size=(50, 1)))
    found, inside = clamped(vectors, 2.0 ** rng.uniform(-40, 20, size=50))
    for row, kept in zip(found, inside, strict=True):
        squares = sum(int(value) ** 2 for value in row)
        assert squares <= FULL**2
        assert kept or squares > (FULL * 0.999 - columns) ** 2, "a longer one keeps nearly the whole norm"


@pytest.mark.parametrize("bounds", [None, (-2, 3)])
@pytest.mark.parametrize("shrunk", [1, 8])
def test_rows_stay_inside_the_ball_in_integers(bounds: Any, shrunk: int) -> None:
    rng = np.random.default_rng(0)
    mapped = feature_map(6, 3.7 if bounds is None else None, bounds, intercept=True).shrunk(shrunk)
    X = rng.normal(size=(2000, 6)) * 10.0 ** rng.integers(-3, 300, size=(2000, 1))
    X[::7] = np.inf
    X[::11, 2] = np.nan
    rows = mapped.integers(X).astype(np.int64)
    assert (np.sum(rows * rows, axis=1) <= mapped.squared_norm).all()
    place = 0
    for size, width in mapped.blocks:
        part = rows[:, place : place + size]
        assert (
            Fraction(99, 100) * (width * STEPS) ** 2 <= int(np.sum(part * part, axis=1).max()) <= (width * STEPS) ** 2
        )
        place += size
