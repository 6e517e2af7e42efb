"""Audits of the choice among settings and of the loss of a model, and broken twins. False alarms as in `test_learning_audit`."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_learning_audit import caught

from evenhand.audit import BlackBox, Claim, Pair, audit
from evenhand.guarantee import Relation
from evenhand.learning.data.features import feature_map
from evenhand.learning.data.row_sources import MemoryRows
from evenhand.learning.data.targets import Classes
from evenhand.learning.selection import evaluation, search_cv
from evenhand.learning.selection.per_user_loss import SCORINGS, UNIT, Scoring, mean_losses, user_losses
from evenhand.release import Receipt
from evenhand.tables import Secret

CROWD = MemoryRows(np.array([[1.0], [-1.0]] * 3), np.ones(6), np.arange(6), Relation.PRESENCE, ("users",))
GIANT = MemoryRows(
    np.r_[CROWD.X, np.ones((30, 1))], np.ones(36), np.r_[CROWD.users, np.full(30, 6)], Relation.PRESENCE, ("users",)
)
PAIRS = [Pair("a giant who judges", GIANT, CROWD)]


def chosen(judged: Any = user_losses) -> BlackBox:
    """The choice between a model and its opposite, as `PrivateSearchCV._choose` makes it."""
    mapped = feature_map(1, 1.0, None, intercept=False)
    models: Any = [SimpleNamespace(coef_=[slope], intercept_=0.0, feature_map_=mapped) for slope in (9.0, -9.0)]
    scoring, targets = SCORINGS["neg_log_loss"], Classes((0, 1))

    def run(judges: MemoryRows) -> int:
        losses = np.array([judged(model, judges, targets, scoring) for model in models])
        scores = Secret([search_cv.scores(losses, scoring)])
        return Receipt(Decimal(1), Decimal(0), "audit").choices(scores, scoring.regret, Decimal(1), True).places[0]

    return BlackBox("choice among settings", Claim(1.0), run)


def test_the_choice_keeps_its_promise() -> None:
    assert not audit(chosen(), PAIRS, samples=500).refuted


def test_a_choice_by_totals_without_the_clamp_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd that is sure of one candidate, and a giant whose thirty rows outvote it."""

    def totals(model: Any, rows: MemoryRows, *how: Any) -> Any:
        return user_losses(model, rows, *how) * rows.counts

    monkeypatch.setattr(search_cv, "scores", lambda losses, scoring: [-int(total) for total in losses.sum(axis=1)])
    crowd, giant = (replace(rows, targets=np.where(rows.users < 6, -rows.X[:, 0], 1.0)) for rows in (CROWD, GIANT))
    assert caught(chosen(totals), [Pair("a giant against a crowd", giant, crowd)])


def loss(largest: int) -> BlackBox:
    """The released average of users' losses, each at most ``largest``."""

    def run(judges: MemoryRows) -> float:
        margin = np.full(len(judges.targets), -9.0)
        values = mean_losses(margin, judges, Classes((0, 1)), Scoring("neg_log_loss", "", largest))
        receipt = Receipt(Decimal(1), Decimal(0), "audit")
        return evaluation._bought(Secret(values), UNIT, Decimal(1), Relation.PRESENCE, receipt).value

    return BlackBox("loss of a model", Claim(1.0), run)


def told(giants: int) -> MemoryRows:
    """Forty users whom the model is right about, and one with thirty rows whom it is wrong about."""
    users = np.r_[np.arange(40), np.full(30 * giants, 40)]
    return MemoryRows(np.zeros((len(users), 1)), np.where(users < 40, -1.0, 1.0), users, Relation.PRESENCE, ("users",))


WRONG = [Pair("a giant whom the model is wrong about", told(1), told(0))]


def test_the_loss_keeps_its_promise() -> None:
    assert not audit(loss(UNIT), WRONG, samples=500).refuted


def test_a_loss_without_the_clamp_is_caught() -> None:
    assert caught(loss(99 * UNIT), WRONG)
