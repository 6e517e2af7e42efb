"""A store that fails after a debit, or a server that stops: what was drawn is kept, stored when the store is back, and nothing is drawn twice."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.ledger import Budget, desk_tables, failures, store
from evenhand.ledger.desk import Busy, Desk, Limits, Standing, StoredQuestion
from evenhand.release import Receipt, Release
from evenhand.service.accounts import Account, Role
from evenhand.service.answers import Desks
from evenhand.service.keeper import Analyst, Keeper, Offered
from evenhand.statistics import Draft

ANN, BOB = Account("ann", Role.ANALYST), Account("bob", Role.ANALYST)
READER = Account("audit", Role.READER)
COUNT = {"ask": "count", "epsilon": "1", "bounding": {"strategy": "TotalCap", "T": 3}}
ROWS = 600
Away = Callable[[], AbstractContextManager[None]]


def until(true: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "b.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def away(place: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Away:
    """Takes the store away for a while: another process holds the file's lock; a database takes no connections and ends those it has."""

    @contextmanager
    def locked() -> Iterator[None]:
        monkeypatch.setattr(store, "PATIENCE", 0.1)
        with closing(sqlite3.connect(place, isolation_level=None, timeout=10)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            try:
                yield
            finally:
                monkeypatch.setattr(store, "PATIENCE", 60.0)
                connection.execute("ROLLBACK")

    @contextmanager
    def refused() -> Iterator[None]:
        import psycopg

        name = place.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(request.getfixturevalue("postgres_server").get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            try:
                yield
            finally:
                connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    return refused if "://" in place else locked


def opened(place: str, deadline: float = 3600, **limits: Any) -> tuple[Keeper, Desk]:
    desk = Desk(eh.Ledger(place, epsilon=40))
    table = eh.read(pd.DataFrame({"u": [number // 3 for number in range(ROWS)]}), user="u")
    allowed = Limits(Budget(Decimal(20)), **limits)
    analysts = {"ann": Analyst(allowed, immediate=True), "bob": Analyst(allowed)}
    return Keeper({"t": Offered(table, desk, rows=ROWS)}, analysts, deadline), desk


def slowly(monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], threading.Event]:
    """What is drawn, and what lets a drawing go on."""
    drawn, values, go = Draft.drawn, list[float](), threading.Event()

    def draws(self: Draft, receipt: Receipt) -> Release:
        assert go.wait(30)
        release = drawn(self, receipt)
        values.append(float(release.value))
        return release

    monkeypatch.setattr(Draft, "drawn", draws)
    return values, go


def test_a_draw_is_kept_until_the_store_has_it(
    place: str, away: Away, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    values, go = slowly(monkeypatch)
    keeper, desk = opened(place)
    ids = [keeper.ask(name, None, "k", COUNT).id for name in ("ann", "bob")]
    with away():
        go.set()
        until(lambda: keeper._storing.away == 2)
        assert "2 answers are kept" in keeper.trouble() or "does not answer" in keeper.trouble()
        for account, id in zip((ANN, BOB), ids, strict=True):
            began = time.monotonic()
            shown = Desks(keeper).shown(account, {"id": id}, wait=0)
            assert shown["standing"] == "paid"
            assert "was paid for, and its answer is kept and will be stored" in shown["note"]
            assert "answer" not in shown
            assert time.monotonic() - began < 5
        with pytest.raises(eh.EvenhandError):
            keeper.find("bob", ids[0])  # ann's
    until(lambda: all((found := desk.find(id)) and found.answer for id in ids))
    until(lambda: not keeper.trouble() and not keeper._running)
    assert len(values) == 2
    answers = [Desks(keeper).shown(ANN, {"id": ids[0]})["answer"]["value"]]
    assert answers[0] in values
    assert abs(answers[0] - ROWS) < 100  # about the table
    assert caplog.text.count("the store failed: the question was spent, its answer is kept and will be stored") == 2
    assert caplog.text.count("the store is back: the answer that was kept is stored") == 2
    assert desk.ledger.spent.epsilon == 2


def test_a_commit_whose_fate_is_unknown_is_read_back(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer was stored, and the connection was lost before that was said."""
    values, go = slowly(monkeypatch)
    go.set()
    keeper, desk = opened(place)
    stored, lost = Desk.store, list[str]()

    def loses(self: Desk, id: str, answer: str) -> str:
        found = stored(self, id, answer)
        if len(lost) < 2:
            lost.append(found)
            raise failures.LEDGER.failed(place, "lost")
        return found

    monkeypatch.setattr(Desk, "store", loses)
    shown = Desks(keeper).ask(ANN, {"key": "k", "question": COUNT}, wait=30)
    assert len(lost) == 2
    assert [shown["answer"]["value"]] == values
    found = desk.find(shown["id"])
    assert found is not None
    assert found.answer == lost[0]


def test_a_debit_whose_fate_is_unknown_is_answered(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The debit was recorded, the analyst was told that the connection was lost, and never asks again."""
    values, go = slowly(monkeypatch)
    go.set()
    keeper, desk = opened(place)
    pay = Draft.pay

    def loses(self: Draft, ledger: Any) -> Receipt:
        pay(self, ledger)
        monkeypatch.setattr(Draft, "pay", pay)
        raise failures.LEDGER.failed(place, "the connection was lost")

    monkeypatch.setattr(Draft, "pay", loses)
    with pytest.raises(eh.EvenhandError, match="lost"):
        keeper.ask("bob", None, "k", COUNT)
    (paid,) = desk.asked(standing=Standing.PAID)
    keeper._looked_after(datetime.now(UTC))
    until(lambda: (found := desk.find(paid.id)) and found.answer)
    assert len(values) == 1
    assert len(desk.ledger.events) == 1


def test_a_debit_that_is_being_started_is_not_started_twice(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks for debits that an outage left open leaves those alone that a request is about to start."""
    values, go = slowly(monkeypatch)
    keeper, desk = opened(place)
    start, found = Keeper._start, list[int]()

    def looks(self: Keeper, *given: Any) -> None:
        found.append(self._resumed(desk))
        start(self, *given)

    monkeypatch.setattr(Keeper, "_start", looks)
    id = keeper.ask("bob", None, "k", COUNT).id
    go.set()
    until(lambda: (one := desk.find(id)) and one.answer)
    assert found == [0]
    assert len(values) == 1


def test_what_was_seen_before_a_restart_is_seen_after_it(place: str) -> None:
    """What was due while the server ran; the rest has a new deadline, whether it was stored or not."""
    keeper, desk = opened(place)
    old, fresh = (keeper.ask("bob", None, key, COUNT).id for key in ("old", "fresh"))
    keeper.close()
    _debited(desk, old, datetime.now(UTC) - timedelta(hours=3))
    again, _ = opened(place)
    assert abs(Desks(again).shown(BOB, {"id": old})["answer"]["value"] - ROWS) < 100
    assert abs(Desks(again).shown(READER, {"id": old})["answer"]["value"] - ROWS) < 100
    held = Desks(again).shown(BOB, {"id": fresh})
    assert "answer" not in held
    # Killed three hours ago, when the old one was stored and not due: nobody sees which ones were.
    desk.note_alive((datetime.now(UTC) - timedelta(hours=2.5)).isoformat())
    killed, _ = opened(place)
    assert "answer" not in Desks(killed).shown(BOB, {"id": old})


def _debited(desk: Desk, id: str, when: datetime) -> None:
    desk.batches.run(lambda c: desk_tables.change(c, id, time=when.isoformat(timespec="milliseconds")), write=True)


def test_few_questions_wait_for_approval(place: str) -> None:
    keeper, desk = opened(place, unapproved=Decimal("0.1"), waiting=3)
    desks = Desks(keeper)

    def ask(key: str, question: Any = COUNT, who: Account = BOB) -> None:
        desks.ask(who, {"key": key, "question": question}, wait=0)

    for number in range(3):
        with pytest.raises(eh.BudgetExceeded, match="waits for the keeper"):
            ask(f"k{number}")
    with pytest.raises(Busy, match="3 of yours wait already"):
        ask("k3")
    with pytest.raises(eh.BudgetExceeded, match="waits for the keeper"):
        ask("k0")  # it is among them
    with pytest.raises(eh.BudgetExceeded, match="waits for the keeper"):
        ask("k0", who=ANN)  # they are counted by analyst
    waiting = desks.history(BOB, {"standing": "waiting"})["questions"]
    desks.decide(Account("keeper", Role.KEEPER), {"id": waiting[0]["id"], "approve": False})
    with pytest.raises(eh.BudgetExceeded, match="waits for the keeper"):
        ask("k3")
    assert len(desk.asked("bob")) == 4


def test_what_waits_is_not_long_in_all(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.ledger.question_ledger.MOST_WAITING_TEXT", 1000)
    keeper, _ = opened(place, unapproved=Decimal("0.1"))
    question = {"ask": "count", "by": "u", "keys": list(range(150)), "epsilon": "1"}
    with pytest.raises(eh.BudgetExceeded, match="waits for the keeper"):
        keeper.ask("bob", None, "a", question)
    with pytest.raises(Busy, match="more than 1,000 characters"):
        keeper.ask("bob", None, "b", question)


def test_lists_come_in_pages(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, desk = opened(place)
    for number in range(7):
        desk.question_ledger("bob", f"k{number}", '{"table":"t","question":{}}', Limits(Budget(Decimal(9)))).debit(
            *_priced(keeper)
        )
    desks = Desks(keeper)
    seen: list[str] = []
    page = desks.history(BOB, {"limit": 3})
    while True:
        assert len(page["questions"]) <= 3
        seen = [one["key"] for one in page["questions"]] + seen
        if "before" not in page:
            break
        page = desks.history(BOB, {"limit": 3, "before": page["before"]})
    assert seen == [f"k{number}" for number in range(7)]
    assert [one.key for one in desk.page("bob", limit=2)] == ["k5", "k6"]
    assert desks.history(ANN)["questions"] == []
    with pytest.raises(eh.UsageError, match="no such question of yours"):
        desks.history(ANN, {"before": page["questions"][0]["id"]})
    with pytest.raises(eh.UsageError, match="limit='101'"):
        desks.history(BOB, {"limit": 101})
    monkeypatch.setattr("evenhand.ledger.desk.PAGE_TEXT", 60)
    assert len(desks.history(BOB)["questions"]) == 2


def _priced(keeper: Keeper) -> Any:
    from evenhand.guarantee import Guarantee, Relation
    from evenhand.ledger import Cost

    return Cost.pure("0.01"), {"statistic": "count"}, Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))


def test_what_costs_next_to_nothing_is_refused(place: str) -> None:
    keeper, desk = opened(place)
    for refused in (keeper.ask, lambda who, table, key, question: keeper.preview(who, table, question)):
        with pytest.raises(
            eh.UsageError, match=r"costs ε = 1e-5; expected at least ε = 0\.0001, the keeper's least_epsilon"
        ):
            refused("bob", None, "k", {**COUNT, "epsilon": "0.00001"})
    assert desk.asked() == []


def test_what_was_paid_for_is_found_though_there_is_no_room(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, _ = opened(place)
    first: StoredQuestion = keeper.ask("bob", None, "k", COUNT)

    def full(*_: object) -> None:
        raise Busy("the server is busy; ask again in 1 s.")

    monkeypatch.setattr("evenhand.service.schedule.Schedule.reserve", full)
    assert keeper.ask("bob", None, "k", COUNT).id == first.id
    with pytest.raises(Busy):
        keeper.ask("bob", None, "other", COUNT)
