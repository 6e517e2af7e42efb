"""Audits of the choice among settings, and broken twins. False alarms as in `test_learning_audit`."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_learning_audit import caught

from evenhand.audit import BlackBox, Claim, Pair, audit
from evenhand.guarantee import Relation
from evenhand.learning import search_cv
from evenhand.learning.features import feature_map
from evenhand.learning.judging import SCORINGS, user_losses
from evenhand.learning.sources import MemoryRows
from evenhand.learning.targets import Classes
from evenhand.release import Receipt
from evenhand.tables import Secret

CROWD = MemoryRows(np.array([[1.0], [-1.0]] * 3), np.ones(6), np.arange(6), Relation.PRESENCE, ("users",))
GIANT = MemoryRows(
    np.r_[CROWD.X, np.ones((30, 1))], np.ones(36), np.r_[CROWD.users, np.full(30, 6)], Relation.PRESENCE, ("users",)
)
PAIRS = [Pair("a giant who judges", GIANT, CROWD)]


def chosen() -> BlackBox:
    """The choice between a model and its opposite, as `PrivateSearchCV._choose` makes it."""
    mapped = feature_map(1, 1.0, None, intercept=False)
    models: Any = [SimpleNamespace(coef_=[slope], intercept_=0.0, feature_map_=mapped) for slope in (9.0, -9.0)]
    scoring, targets = SCORINGS["neg_log_loss"], Classes((0, 1))

    def run(judges: MemoryRows) -> int:
        losses = np.array([user_losses(model, judges, targets, scoring) for model in models])
        scores = Secret([search_cv.scores(losses, scoring)])
        return Receipt(Decimal(1), Decimal(0), "audit").choices(scores, scoring.regret, Decimal(1), True).places[0]

    return BlackBox("choice among settings", Claim(1.0), run)


def test_the_choice_keeps_its_promise() -> None:
    assert not audit(chosen(), PAIRS, samples=500).refuted


def test_a_choice_without_the_clamp_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_cv, "scores", lambda losses, scoring: [-int(total) for total in losses.sum(axis=1)])
    assert caught(chosen(), PAIRS)
