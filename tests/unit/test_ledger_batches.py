"""Many debits in one transaction: each decides on what those before it have left, each row is read and written once, all or nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

import evenhand as eh
from evenhand.guarantee import Guarantee, Relation
from evenhand.ledger import Budget, Cost, pending
from evenhand.ledger.desk import AlreadyPaid, Desk, Limits, NeedsApproval, Standing

PROMISE = Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    place = str(tmp_path / "b.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return Desk(eh.Ledger(place, epsilon=20), per_period=Budget(Decimal(19)), period=lambda: "2026-11")


def pay(desk: Desk, key: str, limits: Limits, analyst: str = "ann", epsilon: str = "1", text: str = "{}") -> str:
    question_ledger = desk.question_ledger(analyst, key, text, limits, stored_first=True)
    question_ledger.debit(Cost.pure(epsilon), {"statistic": "count"}, PROMISE)
    assert question_ledger.asked is not None
    return question_ledger.asked.id


def together(desk: Desk, *works: Callable[[], Any]) -> list[Any]:
    """Run these in one transaction, in this order; what each returned or raised."""
    found: list[Any] = [None] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        try:
            found[place] = work()
        except eh.EvenhandError as error:
            found[place] = error

    with desk.batches._turn:  # somebody else's transaction is under way
        threads = []
        for place, work in enumerate(works):
            threads.append(threading.Thread(target=run, args=(place, work)))
            threads[-1].start()
            until = time.monotonic() + 10
            while len(desk.batches._waiting) <= place:
                assert time.monotonic() < until
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return found


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is sent to databases meanwhile; many rows of one statement count once."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_each_debit_goes_on_from_the_one_before(desk: Desk) -> None:
    limits = Limits(Budget(Decimal(3)))
    found = together(
        desk,
        lambda: pay(desk, "a", limits),
        lambda: pay(desk, "b", limits, epsilon="5"),  # refused, and leaves nothing
        lambda: pay(desk, "a", limits),  # the same question
        lambda: pay(desk, "a", limits, text='{"other": 1}'),
        lambda: pay(desk, "c", limits),
        lambda: pay(desk, "d", limits),
        lambda: pay(desk, "e", limits),  # beyond the analyst's three
        lambda: pay(desk, "a", limits, analyst="bob"),
        lambda: pay(
            desk, "f", Limits(Budget(Decimal(30))), analyst="eve", epsilon="16"
        ),  # beyond the period's nineteen
        lambda: desk.find("nobody"),  # reads
        lambda: pay(desk, "g", Limits(Budget(Decimal(30))), analyst="eve", epsilon="15"),
        lambda: pay(desk, "h", Limits(Budget(Decimal(30))), analyst="eve", epsilon="1"),
    )
    kinds = [type(one).__name__ for one in found]
    assert kinds == ["str", "BudgetExceeded", "AlreadyPaid", "UsageError", "str", "str", "BudgetExceeded", "str", "BudgetExceeded", "NoneType", "str", "BudgetExceeded"]  # fmt: skip
    assert isinstance(found[2], AlreadyPaid)
    assert found[2].question.id == found[0]
    assert desk.ledger.spent.epsilon == 19
    assert {one.event: one.key for one in desk.asked()} == dict(enumerate("acdag", start=1))
    desk.verify()


def test_what_the_ledger_refuses_in_the_end_leaves_nothing(desk: Desk) -> None:
    """It has the last word, after the desk has added the question to what its analyst spent."""
    desk.per_period, limits = None, Limits(Budget(Decimal(30)))
    found = together(
        desk,
        lambda: pay(desk, "a", limits, epsilon="15"),
        lambda: pay(desk, "b", limits, epsilon="6"),
        lambda: pay(desk, "c", limits, epsilon="5"),
    )
    assert [isinstance(one, eh.BudgetExceeded) for one in found] == [False, True, False]
    assert sorted(one.key for one in desk.asked()) == ["a", "c"]
    assert desk.spent("ann").epsilon == desk.ledger.spent.epsilon == 20
    desk.verify()


def test_all_that_a_desk_does_may_share_a_transaction(desk: Desk) -> None:
    plenty, asks = Limits(Budget(Decimal(10))), Limits(Budget(Decimal(10)), unapproved=Decimal(1))
    with pytest.raises(NeedsApproval):
        pay(desk, "waits", asks, epsilon="2")
    (waiting,) = desk.asked()
    first = pay(desk, "first", plenty)
    found = together(
        desk,
        lambda: desk.store(first, "an answer"),
        lambda: desk.store(first, "another"),
        lambda: pay(desk, "second", plenty),
        lambda: desk.asked(standing=Standing.PAID),
        lambda: desk.note_started("a worker", first),
        lambda: desk.spent("ann"),
        lambda: pay(desk, "third", plenty),
    )
    assert found[:2] == ["an answer", "an answer"]
    assert [one.key for one in found[3]] == ["second"], "what was stored and paid before is seen"
    assert found[5].epsilon == 2
    assert desk.decide(waiting.id, approve=True, by="keeper").standing is Standing.APPROVED
    twice = together(desk, lambda: pay(desk, "waits", asks, epsilon="2"), lambda: pay(desk, "waits", asks, epsilon="2"))
    assert twice[0] == waiting.id
    assert isinstance(twice[1], AlreadyPaid), "it was approved once, and is paid once"
    assert desk.ledger.spent.epsilon == 5
    desk.verify()


def test_a_debit_more_costs_one_statement_more(desk: Desk) -> None:
    limits = Limits(Budget(Decimal(10)))
    pay(desk, "before", limits)
    sent = []
    for number in (2, 12):
        works = [
            lambda number=number, one=one: pay(desk, f"{number} {one}", limits, epsilon="0.1") for one in range(number)
        ]
        with statements() as seen:
            together(desk, *works)
        sent.append(len(seen))
    assert sent[1] - sent[0] == 10, "for each, whether its key is known"
    assert sent[0] <= 16
    desk.verify()


def test_a_transaction_that_fails_leaves_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of none of those who shared it; and whoever waited is told so before anything could be read."""
    limits = Limits(Budget(Decimal(10)))
    pay(desk, "before", limits)
    flush = pending.Pending.flush

    def fails(self: pending.Pending, connection: Any) -> None:
        paid = bool(self.events)
        flush(self, connection)
        if paid:
            connection.exec_driver_sql("SELECT * FROM no_such_table")

    with monkeypatch.context() as broken:
        broken.setattr(pending.Pending, "flush", fails)
        found = together(desk, *(lambda one=one: pay(desk, str(one), limits) for one in range(3)))
    assert [type(one) for one in found] == [eh.LedgerError] * 3
    assert [one.key for one in desk.asked()] == ["before"]
    assert desk.ledger.spent.epsilon == 1
    desk.verify()


def test_any_order_of_debits_and_refusals_adds_up(desk: Desk) -> None:
    """A model: what is paid is what fits, in the order of the transaction."""
    draw, left, expected = random.Random(31), {"ann": Decimal(3), "bob": Decimal(2)}, []
    works: list[Callable[[], Any]] = []
    for number in range(30):
        analyst, epsilon = draw.choice(["ann", "bob"]), Decimal(draw.choice(["0.1", "0.5", "1.5"]))
        limits = Limits(Budget({"ann": Decimal(3), "bob": Decimal(2)}[analyst]))
        works.append(lambda n=number, a=analyst, e=epsilon, by=limits: pay(desk, str(n), by, a, str(e)))  # type: ignore[misc]
        fits = epsilon <= left[analyst]
        left[analyst] -= epsilon if fits else 0
        expected.append(fits)
    found = [one for start in range(0, 30, 10) for one in together(desk, *works[start : start + 10])]
    assert [isinstance(one, str) for one in found] == expected
    assert desk.ledger.spent.epsilon == 5 - sum(left.values())
    desk.verify()
