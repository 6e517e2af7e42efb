"""What analysts see of time and failure: an answer at its deadline, whatever happened meanwhile."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.guarantee import Guarantee, Relation
from evenhand.learning.selection.budget import PaidFit
from evenhand.ledger import Budget, Cost, question_ledger
from evenhand.ledger.desk import Desk, Limits
from evenhand.noise import seam
from evenhand.release import Receipt, Release
from evenhand.service import keeper as keeper_module
from evenhand.service.accounts import Account, Role
from evenhand.service.answers import Desks
from evenhand.service.client import Remote
from evenhand.service.fits import FitDraft
from evenhand.service.granted import Analyst, Offered
from evenhand.service.jobs import Lane
from evenhand.service.keeper import Keeper
from evenhand.statistics import Draft
from evenhand.tables.engines.copied import CopiedEngine, copied

BOB = Account("bob", Role.ANALYST)
COUNT = {"key": "k", "question": {"ask": "count", "epsilon": "5", "bounding": {"strategy": "TotalCap", "T": 3}}}
FIT: dict[str, Any] = {
    "ask": "fit", "estimator": "BoundedERM", "label": "y", "features": ["x"], "feature_norm": 1, "epsilon": "4",
    "loss": "squared", "label_bounds": [-1, 1], "regularisation": 30, "rows_per_user": 3, "method": "output",
}  # fmt: skip
ROWS = 600
DEADLINE = 3600.0


class Clock(datetime):
    """A clock that tests put forward, so that nobody has to wait for a deadline, and none is missed on a slow machine."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + cls.ahead

    @classmethod
    def later(cls) -> None:
        """All deadlines so far are over."""
        cls.ahead += timedelta(seconds=2 * DEADLINE)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clock, "ahead", timedelta(0))
    for module in (keeper_module, question_ledger):
        monkeypatch.setattr(module, "datetime", Clock)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(eh.Ledger(tmp_path / "b.db", epsilon=20))


def keeper(desk: Desk, unapproved: str | None = None, immediate: bool = False, rows: int = 1_000_000) -> Keeper:
    table = copied(eh.read(pd.DataFrame({"u": [number // 3 for number in range(ROWS)], "y": 1.0, "x": 1.0}), user="u"))
    free = None if unapproved is None else Decimal(unapproved)
    bob = Analyst(Limits(Budget(Decimal(9)), unapproved=free), immediate=immediate)
    return Keeper({"t": Offered(table, desk, rows=rows)}, {"bob": bob}, DEADLINE)


def stored_value(desk: Desk, id: str) -> float:
    """The answer, once it is stored."""
    until = time.monotonic() + 60
    while (found := desk.find(id)) is None or found.answer is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    return float(json.loads(found.answer)["value"])


def value_of(kept: Keeper, desk: Desk, id: str) -> float:
    """The answer, which is stored before its deadline and seen after it."""
    stored_value(desk, id)
    assert "answer" not in Desks(kept).shown(BOB, {"id": id})
    Clock.later()
    return float(Desks(kept).shown(BOB, {"id": id})["answer"]["value"])


def fails_once(monkeypatch: pytest.MonkeyPatch, kind: type[Draft]) -> list[int]:
    """The first answer fails after its debit; how often one was drawn."""
    drawn, tries = kind.drawn, list[int]()

    def fails(self: Draft, receipt: Receipt) -> Release:
        tries.append(1)
        if len(tries) == 1:
            raise MemoryError("a secret of some row")
        return drawn(self, receipt)

    monkeypatch.setattr(kind, "drawn", fails)
    return tries


def test_nobody_waits_for_a_query(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a request takes would tell how long the query does; this one never ends."""
    kept = keeper(desk)
    monkeypatch.setattr(Lane, "add", lambda *arguments: None)
    started = time.monotonic()
    shown = Desks(kept).ask(BOB, COUNT, wait=30)
    assert time.monotonic() - started < 15
    assert "ready" in shown
    assert "answer" not in shown


def test_an_answer_that_takes_longer_than_its_slot_is_one_of_an_empty_table(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is stopped, in the middle of Python, and what comes after it has its own slot."""
    kept, drawn = keeper(desk, rows=1000), Draft.drawn

    def endless(self: Draft, receipt: Receipt) -> Release:
        while len(tries) == 0:
            with contextlib.suppress(Exception):
                sum(range(1000))
        return drawn(self, receipt)

    tries: list[int] = []
    monkeypatch.setattr(Draft, "drawn", endless)
    first = Desks(kept).ask(BOB, COUNT)
    until = time.monotonic() + 30
    while "question was stopped at the end of its slot" not in caplog.text and time.monotonic() < until:
        time.sleep(0.02)
    assert "question was stopped at the end of its slot" in caplog.text
    tries.append(1)
    assert abs(value_of(kept, desk, first["id"])) < 100
    again = {"ask": "count", "epsilon": "4", "bounding": {"strategy": "TotalCap", "T": 3}}
    second = Desks(kept).ask(BOB, {"key": "second", "question": again})
    assert abs(value_of(kept, desk, second["id"]) - ROWS) < 100


def test_an_answer_that_is_not_stored_at_its_deadline_is_shown_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keeper(desk)
    monkeypatch.setattr(Lane, "add", lambda *arguments: None)
    asked = Desks(kept).ask(BOB, COUNT)
    Clock.later()
    started = time.monotonic()
    for reader in (BOB, Account("audit", Role.READER), Account("keeper", Role.KEEPER)):
        shown = Desks(kept).shown(reader, {"id": asked["id"]}, wait=30)
        assert "will be stored" in shown["note"]
        assert "answer" not in shown
    assert time.monotonic() - started < 15  # nobody waits, and nothing is drawn for whoever asks


def test_what_is_approved_has_its_whole_time(desk: Desk) -> None:
    """The deadline counts from the payment: else an answer that is not there yet would be about the empty table."""
    kept = keeper(desk, unapproved="1")
    with pytest.raises(eh.BudgetExceeded, match="approval"):
        Desks(kept).ask(BOB, COUNT)
    (waiting,) = desk.asked()
    Clock.later()
    Desks(kept).decide(Account("keeper", Role.KEEPER), {"id": waiting.id, "approve": True})
    assert "ready" in Desks(kept).shown(BOB, {"id": waiting.id})
    assert abs(value_of(kept, desk, waiting.id) - ROWS) < 100


def test_what_a_stopped_server_left_is_drawn_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Lane, "add", lambda *arguments: None)  # killed after the debit
        asked = Desks(keeper(desk)).ask(BOB, COUNT)
    Clock.later()
    again = keeper(desk)
    assert again.resume() == 1
    assert abs(value_of(again, desk, asked["id"]) - ROWS) < 100
    assert desk.ledger.spent.epsilon == 5


@pytest.mark.parametrize("times", [1, 2])
def test_a_question_during_which_a_server_died_is_set_aside(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It is answered as one that fails; if the server dies of that as well, it is left. Others are drawn as usual."""
    other = {"key": "beside", "question": {"ask": "count", "epsilon": "4"}}
    with monkeypatch.context() as stopped:
        stopped.setattr(Lane, "add", lambda *arguments: None)  # killed after the debit
        asked, beside = (Desks(keeper(desk)).ask(BOB, each) for each in ({**COUNT, "key": "killer"}, other))
    desk.note_started("a worker", beside["id"])
    desk.note_started("a worker", asked["id"], times)  # by then the one before was done
    assert desk.started() == {asked["id"]: times}
    Clock.later()
    again = keeper(desk)
    assert again.resume() == 2
    assert abs(stored_value(desk, beside["id"]) - ROWS) < 100
    if times == 1:
        assert abs(stored_value(desk, asked["id"])) < 100
        assert desk.started() == {}
    else:
        again.close()
        found = desk.find(asked["id"])
        assert found is not None
        assert found.answer is None
        assert desk.started() == {asked["id"]: 2}
    assert desk.ledger.spent.epsilon == 9


def test_what_a_server_leaves_in_good_order_is_not_set_aside(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that outlasts the patience of a server that is told to stop."""
    kept = keeper(desk)
    with monkeypatch.context() as stopped:
        stopped.setattr(Lane, "add", lambda *arguments: None)
        Desks(kept).ask(BOB, COUNT)
    (asked,) = desk.asked()
    kept._begun.note(desk, asked, "a worker")
    assert desk.started() == {asked.id: 1}
    kept.close()
    assert (
        desk._run(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM evenhand_started").scalar()) == 0
    )


def test_an_analyst_who_left_keeps_no_server_from_starting(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Lane, "add", lambda *arguments: None)  # killed after the debit
        asked = Desks(keeper(desk)).ask(BOB, COUNT)
    later = keeper(desk)
    later.analysts = {}
    assert later.resume() == 0
    Clock.later()
    shown = Desks(later).shown(Account("keeper", Role.KEEPER), {"id": asked["id"]})
    assert (shown["standing"], shown["answer"]) == ("paid", None)


def test_a_failure_looks_like_an_empty_table(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = fails_once(monkeypatch, Draft)
    kept = keeper(desk)
    asked = Desks(kept).ask(BOB, COUNT)
    assert abs(value_of(kept, desk, asked["id"])) < 100
    assert len(tries) == 2
    assert "secret" not in caplog.text


def test_a_fit_that_fails_is_one_of_an_empty_table(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same form as any model; without noise, nothing is in it."""
    monkeypatch.setattr(seam, "current", lambda: seam.silent)
    desks = Desks(keeper(desk, immediate=True, rows=ROWS))
    whole = desks.ask(BOB, {"key": "whole", "question": FIT}, wait=60)["answer"]["model"]
    tries = fails_once(monkeypatch, FitDraft)
    empty = desks.ask(BOB, {"key": "fails", "question": FIT}, wait=60)["answer"]["model"]
    assert empty.keys() == whole.keys()
    assert [len(tries), desk.ledger.spent.epsilon] == [2, 8]
    assert sum(whole["coefficients"]) + whole["intercept"] > 0.8  # every label is 1
    assert sum(empty["coefficients"]) + empty["intercept"] == 0


def test_no_row_is_read_before_a_fit_is_paid(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for its price, nor if the budget refuses it; a debit serves one fit, at its cost."""
    kept = keeper(desk, immediate=True, rows=ROWS)
    engine = type(kept.tables["t"].table.engine)
    for reads in ("fetch", "kept"):
        monkeypatch.setattr(engine, reads, lambda *_, **__: pytest.fail("rows were read"))
    assert Desks(kept).preview(BOB, {"question": FIT})["affordable"]
    with pytest.raises(eh.BudgetExceeded):
        Desks(kept).ask(BOB, {"key": "much", "question": {**FIT, "epsilon": "10"}})
    assert desk.asked() == []
    promise = Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))
    paid, other = (PaidFit(Cost.pure("1"), "event") for _ in range(2))
    assert paid.debit(Cost.pure("1"), {}, promise).id == "event"
    for payer, cost in ((paid, "1"), (other, "2")):
        with pytest.raises(eh.EvenhandError, match="not the one that was paid for"):
            payer.debit(Cost.pure(cost), {}, promise)


def test_an_answer_that_breaks_off_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is killed while it sends: the same request again, and an error of ours if it never comes whole."""
    monkeypatch.setattr("evenhand.service.client.time.sleep", lambda _: None)
    whole = b'{"value": 1}'
    parts = [whole[:5], whole, *[whole[:5]] * 9]
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            for part in parts:
                with contextlib.suppress(OSError):
                    caller, _ = door.accept()
                    with caller:
                        caller.recv(65536)
                        caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(whole), part))

        threading.Thread(target=serve, daemon=True).start()
        remote = Remote(f"http://127.0.0.1:{door.getsockname()[1]}", "token", None)
        assert remote._call("GET", "/") == {"value": 1}
        with pytest.raises(eh.DataError, match="can't be reached"):
            remote._call("GET", "/")


def test_counts_are_short_from_the_start(desk: Desk) -> None:
    """What a server reads when it starts is what the first count finds."""
    kept = keeper(desk, immediate=True, rows=3_000_000)
    kept.warm()
    engine = kept._workers.tables["short questions"]["t"].engine
    assert isinstance(engine, CopiedEngine)
    (summary,) = engine._summaries
    question = {"ask": "count", "epsilon": "0.1", "bounding": {"strategy": "TotalCap", "T": 3}}
    planned = kept._planned("bob", "t", question)
    assert planned.lane.name == "short questions"
    assert planned.slot < 0.2
    Desks(kept).ask(BOB, {"key": "a", "question": question}, wait=60)
    assert list(engine._summaries) == [summary]
