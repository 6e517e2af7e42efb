"""What analysts see of time and failure: an answer at its deadline, whatever happened meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import Future
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.ledger import Budget
from evenhand.ledger.desk import Desk, Limits
from evenhand.noise import seam
from evenhand.release import Receipt, Release
from evenhand.service.accounts import Account, Role
from evenhand.service.answers import Desks
from evenhand.service.fits import FitDraft, Fitted
from evenhand.service.jobs import Jobs
from evenhand.service.keeper import Analyst, Keeper, Offered
from evenhand.statistics import Draft

BOB = Account("bob", Role.ANALYST)
COUNT = {"key": "k", "question": {"ask": "count", "epsilon": "5"}}
ROWS = 600


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(eh.Ledger(tmp_path / "b.db", epsilon=20))


def keeper(desk: Desk, deadline: float = 1.0, unapproved: str | None = None, immediate: bool = False) -> Keeper:
    table = eh.read(pd.DataFrame({"u": [number // 3 for number in range(ROWS)], "y": 1.0, "x": 1.0}), user="u")
    free = None if unapproved is None else Decimal(unapproved)
    bob = Analyst(Limits(Budget(Decimal(9)), unapproved=free), immediate=immediate)
    return Keeper({"t": Offered(table, desk)}, {"bob": bob}, deadline)


def value_of(kept: Keeper, id: str) -> float:
    """The answer, once its deadline is over."""
    shown = Desks(kept).shown(BOB, {"id": id})
    while not shown.get("answer"):
        assert "ready" in shown
        time.sleep(0.05)
        shown = Desks(kept).shown(BOB, {"id": id})
    return float(shown["answer"]["value"])


def test_nobody_waits_for_a_query(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a request takes would tell how long the query does; this one never ends."""
    kept = keeper(desk, deadline=60)
    monkeypatch.setattr(Jobs, "add", lambda *arguments, **options: Future())
    started = time.monotonic()
    shown = Desks(kept).ask(BOB, COUNT, wait=30)
    assert time.monotonic() - started < 15
    assert "ready" in shown
    assert "answer" not in shown


def test_what_is_approved_has_its_whole_time(desk: Desk) -> None:
    """The deadline counts from the payment: else an answer that is not there yet would be about the empty table."""
    kept = keeper(desk, deadline=0.8, unapproved="1")
    with pytest.raises(eh.BudgetExceeded, match="approval"):
        Desks(kept).ask(BOB, COUNT)
    (waiting,) = desk.asked()
    time.sleep(1)
    Desks(kept).decide(Account("keeper", Role.KEEPER), {"id": waiting.id, "approve": True})
    assert "ready" in Desks(kept).shown(BOB, {"id": waiting.id})
    assert abs(value_of(kept, waiting.id) - ROWS) < 100


def test_what_a_stopped_server_left_is_drawn_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Jobs, "add", lambda *arguments, **options: Future())  # killed after the debit
        asked = Desks(keeper(desk, deadline=0.8)).ask(BOB, COUNT)
    time.sleep(1)
    again = keeper(desk, deadline=0.8)
    assert again.resume() == 1
    assert abs(value_of(again, asked["id"]) - ROWS) < 100
    assert desk.ledger.spent.epsilon == 5


def test_an_analyst_who_left_keeps_no_server_from_starting(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Jobs, "add", lambda *arguments, **options: Future())  # killed after the debit
        asked = Desks(keeper(desk, deadline=0.01)).ask(BOB, COUNT, wait=0)
    later = keeper(desk, deadline=0.01)
    later.analysts = {}
    assert later.resume() == 0
    time.sleep(0.02)
    shown = Desks(later).shown(Account("keeper", Role.KEEPER), {"id": asked["id"]})
    assert (shown["standing"], shown["answer"]) == ("paid", None)


def test_a_failure_looks_like_an_empty_table(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drawn, tries = Draft.drawn, list[int]()

    def fails_once(self: Draft, receipt: Receipt) -> Release:
        tries.append(1)
        if len(tries) == 1:
            raise MemoryError("a secret of some row")
        return drawn(self, receipt)

    monkeypatch.setattr(Draft, "drawn", fails_once)
    kept = keeper(desk)
    asked = Desks(kept).ask(BOB, COUNT)
    assert abs(value_of(kept, asked["id"])) < 100
    assert len(tries) == 2
    assert "secret" not in caplog.text


def test_a_fit_that_fails_is_one_of_an_empty_table(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same form as any model; without noise, nothing is in it."""
    drawn, tries = FitDraft.drawn, list[int]()

    def fails_once(self: FitDraft, receipt: Receipt) -> Fitted:
        tries.append(1)
        if len(tries) == 1:
            raise MemoryError("a secret of some row")
        return drawn(self, receipt)

    fit = {"ask": "fit", "estimator": "BoundedERM", "label": "y", "features": ["x"], "feature_norm": 1, "epsilon": "4"}
    fit |= {"loss": "squared", "label_bounds": [-1, 1], "regularisation": 30, "rows_per_user": 3, "method": "output"}
    monkeypatch.setattr(seam, "current", lambda: seam.silent)
    desks = Desks(keeper(desk, immediate=True))
    whole = desks.ask(BOB, {"key": "whole", "question": fit}, wait=60)["answer"]["model"]
    monkeypatch.setattr(FitDraft, "drawn", fails_once)
    empty = desks.ask(BOB, {"key": "fails", "question": fit}, wait=60)["answer"]["model"]
    assert empty.keys() == whole.keys()
    assert [len(tries), desk.ledger.spent.epsilon] == [2, 8]
    assert sum(whole["coefficients"]) + whole["intercept"] > 0.8  # every label is 1
    assert sum(empty["coefficients"]) + empty["intercept"] == 0
