"""One user moves a search as declared: through the candidates or through the choice, never through both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_learning_outcomes import (
    CROWD,
    DOUBLES,
    OBJECTS,
    Data,
    neighbours,
    of_doubles,
    of_frame,
    of_objects,
    of_polars,
    outcome,
)

from evenhand.guarantee import EvenhandError, Relation
from evenhand.learning import BoundedERM, PrivateSearchCV, model_loss
from evenhand.learning.data.row_sources import MemoryRows
from evenhand.learning.data.targets import BoundedLabels, Classes
from evenhand.learning.selection import search_cv, train_test_split
from evenhand.learning.selection.budget import Division, FitBudget
from evenhand.learning.selection.per_user_loss import SCORINGS, margins, user_losses
from evenhand.ledger import Cost
from evenhand.noise import NoisyMax, seam

WILD = [np.nan, np.inf, -np.inf, 1e308, -3.0, 0.5, 40.0]


@dataclass
class Line:
    """A fitted model, as far as judging looks at it."""

    coef_: np.ndarray
    intercept_: Any
    feature_map_: Any = None

    def __post_init__(self) -> None:
        self.feature_map_ = type("Map", (), {"centre": np.zeros(self.coef_.shape[-1])})


def judged(models: Sequence[Line], X: np.ndarray, y: np.ndarray, users: np.ndarray, scoring: str) -> list[int]:
    one = SCORINGS[scoring]
    targets = (
        BoundedLabels((0.0, 1.0))
        if scoring == "neg_mean_squared_error"
        else Classes(tuple(range(max(2, len(np.ravel(models[0].intercept_))))))
    )
    codes = np.unique(users, return_inverse=True)[1]
    rows = MemoryRows(X, targets.targets(y), codes, Relation.PRESENCE, ("users",))
    return search_cv.scores(np.array([user_losses(model, rows, targets, one) for model in models]), one)


@given(seed=st.integers(0, 10**6), scoring=st.sampled_from(list(SCORINGS)), classes=st.sampled_from([2, 3]))
def test_a_judge_moves_every_score_as_declared(seed: int, scoring: str, classes: int) -> None:
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 9, size=60)
    victim = users == rng.choice(users)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=60).astype(float)
    X[victim] = rng.choice(WILD, size=(int(victim.sum()), 3))
    shape = (classes, 3) if classes > 2 and scoring != "neg_mean_squared_error" else (1, 3)
    models = [Line(rng.normal(scale=5, size=shape), rng.normal(size=shape[0])) for _ in range(4)]
    most = SCORINGS[scoring].regret
    before = judged(models, X, y, users, scoring)
    after = judged(models, X[~victim], y[~victim], users[~victim], scoring)
    assert all(0 <= gone - there <= most for there, gone in zip(before, after, strict=True))
    other = np.where(victim[:, None], rng.choice(WILD, size=X.shape), X)
    changed = judged(models, other, np.where(victim, 1 - y, y), users, scoring)
    assert all(abs(one - two) <= most for one, two in zip(before, changed, strict=True))


def test_the_declared_regret_is_reached() -> None:
    models = [Line(np.array([20.0]), 0.0), Line(np.array([-20.0]), 0.0)]
    good, bad = judged(models, np.ones((1, 1)), np.ones(1), np.zeros(1), "neg_log_loss")
    assert (good, bad) == (0, -SCORINGS["neg_log_loss"].regret)


@given(seed=st.integers(0, 10**6), features=st.integers(1, 70))
def test_a_margin_does_not_depend_on_the_rows_beside_it(seed: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    X, model = rng.normal(size=(50, features)), Line(rng.normal(size=(3, features)), np.full(3, 0.3))
    alone = [margins(model, row[None, :])[0].tolist() for row in X]
    assert margins(model, X).tolist() == alone
    assert margins(model, np.asfortranarray(X[10:])).tolist() == alone[10:]


@dataclass
class Seen:
    """Rows that each fit was given, and scores that were chosen from."""

    fits: list[tuple[Any, ...]] = field(default_factory=list)
    scores: list[list[int]] = field(default_factory=list)


def search(
    monkeypatch: pytest.MonkeyPatch, data: tuple[np.ndarray, ...], judges: np.ndarray, models: bool = False
) -> Seen:
    """A search with these judges, exact minimisers and the exact best; ``models``: what was learned is forgotten."""
    seen, fit = Seen(), BoundedERM.fit

    def watching(self: BoundedERM, X: Any, y: Any = None, users: Any = None) -> BoundedERM:
        if len(X):
            seen.fits.append((X.tolist(), y.tolist(), users.tolist(), self.epsilon))
        fit(self, X, y, users)
        if models:
            self.coef_, self.intercept_ = np.full(2, self.regularisation), 0.1
        return self

    def choose(self: NoisyMax, given: Sequence[int]) -> int:
        seen.scores.append(list(given))
        return 0

    with monkeypatch.context() as patch, seam.replaced(lambda name, values, scale: list(values)):
        patch.setattr(BoundedERM, "fit", watching)
        patch.setattr(NoisyMax, "choose", choose)
        patch.setattr(train_test_split, "coins", lambda users: judges[:users])
        base = BoundedERM(rows_per_user=2, feature_norm=1.0)
        PrivateSearchCV(base, {"regularisation": [1.0, 5.0]}, 1, 0, refit=False).fit(*data)
    return seen


@pytest.mark.parametrize("judge", [True, False])
def test_nobody_trains_and_judges(monkeypatch: pytest.MonkeyPatch, judge: bool) -> None:
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(20), 3)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    coins = np.r_[rng.random(19) < 0.4, judge]
    there = users < 19
    whole = search(monkeypatch, (X, y, users), coins, models=not judge)
    gone = search(monkeypatch, (X[there], y[there], users[there]), coins, models=not judge)
    if judge:
        assert whole.fits == gone.fits
        assert whole.scores != gone.scores
    else:
        assert whole.fits != gone.fits
        assert whole.scores == gone.scores
    assert {user for _, _, own, _ in whole.fits for user in own} == set(np.flatnonzero(~coins))


@given(
    epsilon=st.decimals("0.01", "20", places=4),
    delta=st.sampled_from([Decimal(0), Decimal("1e-6")]),
    refit=st.booleans(),
)
def test_the_division_is_exact(epsilon: Decimal, delta: Decimal, refit: bool) -> None:
    division = Division.of(epsilon, delta, refit)
    cost = division.cost
    whole = Fraction(cost.epsilon) if not delta else Fraction(cost.rho or 0)
    assert division.search + division.refit == whole
    judging = Fraction(division.judging)
    assert (judging**2 / 2 if delta else judging) <= division.search
    purse = FitBudget(division.search, not delta, "event")
    with pytest.raises(EvenhandError):
        purse.debit(Cost.pure(epsilon * 2) if not delta else Cost.zcdp((cost.rho or 0) * 2, epsilon=1, delta=delta),
                    query={}, guarantee=None)  # type: ignore[arg-type]  # fmt: skip
    assert purse.left == division.search


class Judge:
    """`model_loss` as something that is fitted, for `outcome`."""

    def __init__(self, protects: str) -> None:
        X, y = np.array(CROWD.X), np.array(CROWD.y)
        self.model = BoundedERM(1, rows_per_user=1, regularisation=1.0, protects=protects, feature_norm=1.0).fit(
            X, y, range(len(y))
        )

    def fit(self, X: Any, y: Any, users: Any) -> SimpleNamespace:
        names = {"features": ["a", "b"]} if isinstance(y, str) else {}
        found = model_loss(self.model.set_params(**names), X, y, users, epsilon=1)
        return SimpleNamespace(**{f"{name}_": value for name, value in vars(found).items()})


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("kind", ["search", "loss"])
def test_what_is_seen_is_the_same_on_neighbours(kind: str, relation: str) -> None:
    def make() -> Any:
        base = BoundedERM(rows_per_user=1, protects=relation, feature_norm=1.0)
        return Judge(relation) if kind == "loss" else PrivateSearchCV(base, {"regularisation": [1.0, 9.0]}, 1, 0)

    for hold, values in ((of_objects, OBJECTS[::5]), (of_frame, OBJECTS[9:12]), (of_doubles, DOUBLES[:4]),
                         (of_polars, DOUBLES[:1])):  # fmt: skip
        usual = outcome(make(), hold(CROWD))
        assert isinstance(usual[0], list), usual
        assert not usual[1], usual
        for other in neighbours(relation, values, ids=hold in (of_objects, of_frame)):
            assert outcome(make(), hold(other)) == usual, other
    short = of_doubles(CROWD) | {"y": np.zeros(5)}
    assert "differ in their numbers of rows" in outcome(make(), short)[0][1]
    alone = Data(CROWD.X[-2:], CROWD.y[-2:], CROWD.users[-2:])
    if relation == "presence":
        nobody = replace(alone, users=[None, None])
        shown = [outcome(make(), of_objects(data)) for data in (alone, alone.without(), nobody)]
        assert shown == [shown[0]] * 3
