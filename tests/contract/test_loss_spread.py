"""One user moves the sums behind a spread of losses by no more than declared; with much ε it is Var(H)."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.guarantee import BudgetExceeded, UsageError
from evenhand.learning import HypothesisSelection
from evenhand.learning.selection.hypotheses import loss_parts
from evenhand.learning.selection.per_user_loss import UNIT
from evenhand.ledger import Ledger
from evenhand.planning import plan
from evenhand.profiles import Profile

LOSSES = st.lists(st.integers(0, UNIT) | st.sampled_from([0, UNIT]), max_size=8)


def summed(people: list[list[int]], limit: int) -> list[int]:
    users = list(itertools.chain.from_iterable([code] * len(rows) for code, rows in enumerate(people)))
    return loss_parts(list(itertools.chain.from_iterable(people)), users, limit)


@given(people=st.lists(LOSSES, max_size=4), own=LOSSES, changed=st.data(), limit=st.integers(1, 6))
def test_one_user_moves_the_three_sums_as_declared(
    people: list[list[int]], own: list[int], changed: st.DataObject, limit: int
) -> None:
    with_them, without = summed([*people, own], limit), summed(people, limit)
    moved = [a - b for a, b in zip(with_them, without, strict=True)]
    assert min(moved) >= 0
    assert sum(moved) <= limit * UNIT
    other = changed.draw(st.lists(st.integers(0, UNIT), min_size=len(own), max_size=len(own)))
    moved = [a - b for a, b in zip(with_them, summed([*people, other], limit), strict=True)]
    assert sum(map(abs, moved)) <= 2 * limit * UNIT
    assert sum(move**2 for move in moved) <= 2 * (limit * UNIT) ** 2


def test_a_twin_that_forgets_the_limit_moves_more() -> None:
    alone = summed([[UNIT] * 8], 8)
    assert sum(alone) > 3 * UNIT
    assert sum(summed([[UNIT] * 8], 3)) == 3 * UNIT


def test_with_much_epsilon_it_is_the_variance_of_users_losses() -> None:
    """Rows of a user are wrong with a probability of their own, 0.2 or 0.6; their scatter, 0.2 of variance in a row, is not counted."""
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(3000), 4)
    wrong = rng.random(len(users)) < np.where(np.arange(3000) % 2, 0.2, 0.6)[users]
    X, y = np.ones((len(users), 1)), 1 - wrong.astype(int)
    model = HypothesisSelection([lambda rows: rows[:, 0] > 0], 100, rows_per_user=4).fit(X, y, users=users)
    spread = model.loss_spread(X, y, users=users, epsilon=100)
    assert spread.sd == pytest.approx(0.2, rel=0.05)
    low, high = spread.interval()
    assert low <= spread.sd <= high
    assert high - low < 0.02
    noisy = model.loss_spread(X, y, users=users, epsilon="0.2")
    low, high = noisy.interval()
    assert low <= noisy.sd <= high
    assert high - low > 0.02
    shown = plan("selection", Profile.counts([4] * 3000), 1, hypotheses=10, heterogeneity=spread.sd)
    assert shown.heterogeneity == spread.sd


def test_it_is_paid_for_first_and_features_are_checked(tmp_path: Path) -> None:
    X, y, users = np.ones((40, 2)), np.ones(40, dtype=int), np.repeat(np.arange(10), 4)
    ledger = Ledger(tmp_path / "budget.db", epsilon=1.5)
    model = HypothesisSelection([lambda rows: rows[:, 0] > 0], 1, rows_per_user=2, ledger=ledger).fit(X, y, users=users)
    with pytest.raises(UsageError, match="expected 2, as in the fit"):
        model.loss_spread(X[:, :1], y, users=users, epsilon=0.4)
    assert model.loss_spread(X, y, users=users, epsilon=0.4).rows_per_user == 2
    assert float(ledger.spent.epsilon) == pytest.approx(1.4)
    with pytest.raises(BudgetExceeded):
        model.loss_spread(X, y, users=users, epsilon=0.4)
