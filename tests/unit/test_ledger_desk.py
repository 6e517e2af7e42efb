"""The keeper's desk: limits hold in the transaction that debits, keys pay once, answers are stored once."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.guarantee import Guarantee, Relation
from evenhand.ledger import Budget, Cost
from evenhand.ledger.desk import AlreadyPaid, Desk, Limits, NeedsApproval, QuestionLedger, Standing

PROMISE = Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))
PLENTY = Limits(Budget(Decimal(100)))


def budget(epsilon: object) -> Budget:
    return Budget(Decimal(str(epsilon)))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "b.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def desk(place: str) -> Desk:
    return Desk(eh.Ledger(place, epsilon=10))


def pay(
    desk: Desk, key: str, epsilon: object = 1, limits: Limits = PLENTY, analyst: str = "ann", text: str = "{}"
) -> QuestionLedger:
    question_ledger = desk.question_ledger(analyst, key, text, limits)
    question_ledger.debit(Cost.pure(str(epsilon)), {"statistic": "count"}, PROMISE)
    return question_ledger


def test_a_question_is_paid_once(desk: Desk) -> None:
    pay(desk, "k")
    with pytest.raises(AlreadyPaid, match="debited before"):
        pay(desk, "k")
    assert desk.ledger.spent.epsilon == 1
    assert len(desk.ledger.events) == 1
    assert desk.asked()[0].standing is Standing.DRAWN


def test_a_question_pays_once_in_a_run(desk: Desk) -> None:
    """Whatever a release does: what is found under its key must not pay for a second debit."""
    question_ledger = pay(desk, "k")
    with pytest.raises(eh.EvenhandError, match="debited once"):
        question_ledger.debit(Cost.pure(1), {}, PROMISE)
    assert desk.ledger.spent.epsilon == 1


@pytest.mark.parametrize(("text", "epsilon"), [('{"other": 1}', 1), ("{}", 2)])
def test_a_key_is_bound_to_its_question(desk: Desk, text: str, epsilon: int) -> None:
    pay(desk, "k")
    with pytest.raises(eh.UsageError, match="another question"):
        pay(desk, "k", epsilon, text=text)
    pay(desk, "k", epsilon, text=text, analyst="bob")  # keys are an analyst's own
    assert desk.ledger.spent.epsilon == 1 + epsilon


LIMITS: dict[str, tuple[Limits, str]] = {
    "total": (Limits(budget(2)), "the budget of ann is"),
    "period": (Limits(budget(9), per_period=budget(2)), "for this period"),
    "question": (Limits(budget(9), per_question=Decimal(1)), "one question may cost"),
}


@pytest.mark.parametrize("kind", LIMITS)
def test_limits(desk: Desk, kind: str) -> None:
    limits, words = LIMITS[kind]
    pay(desk, "a", 1, limits)
    question_ledger = desk.question_ledger("ann", "b", "{}", limits)
    assert not question_ledger.can_afford(Cost.pure("1.5"), PROMISE)
    assert question_ledger.can_afford(Cost.pure("1"), PROMISE)
    with pytest.raises(eh.BudgetExceeded, match=words):
        pay(desk, "b", "1.5", limits)
    pay(desk, "b", "1", limits)
    assert desk.spent("ann").epsilon == desk.spent().epsilon == desk.ledger.spent.epsilon == 2
    desk.verify()


def test_the_ledger_has_the_last_word(desk: Desk) -> None:
    with pytest.raises(eh.BudgetExceeded, match="has ε = 10 left"):
        pay(desk, "k", 11)
    assert desk.asked() == []
    assert desk.spent().epsilon == 0


def test_periods_never_go_back(place: str) -> None:
    clock = ["2026-11"]
    desk = Desk(eh.Ledger(place, epsilon=10), per_period=budget(1), period=lambda: clock[0])
    pay(desk, "a")
    with pytest.raises(eh.BudgetExceeded, match="all analysts for this period"):
        pay(desk, "b", analyst="bob")
    clock[0] = "2026-12"
    pay(desk, "b", analyst="bob")
    for earlier in ("2026-11", "2020-01", ""):
        clock[0] = earlier
        with pytest.raises(eh.BudgetExceeded, match="for this period"):
            pay(desk, "c")
    desk.verify()
    assert [event.query["desk"]["period"] for event in desk.ledger.events] == [1, 2]


def test_splitting_a_question_does_not_avoid_approval(desk: Desk) -> None:
    limits = Limits(budget(9), unapproved=Decimal(1))
    pay(desk, "a", "0.6", limits)
    with pytest.raises(NeedsApproval, match=r"may spend ε = 1 in sum, has spent 0\.6"):
        pay(desk, "b", "0.6", limits)
    assert desk.ledger.spent.epsilon == Decimal("0.6")
    (waiting,) = desk.asked(standing=Standing.WAITING)
    with pytest.raises(NeedsApproval):
        pay(desk, "b", "0.6", limits)
    desk.decide(waiting.id, approve=True, by="keeper")
    with pytest.raises(eh.UsageError, match="does not wait"):
        desk.decide(waiting.id, approve=False, by="keeper")
    assert pay(desk, "b", "0.6", limits).id == waiting.id
    pay(desk, "c", "0.4", limits)  # what was approved does not count among what needed no approval
    with pytest.raises(NeedsApproval):
        pay(desk, "d", "0.1", limits)
    desk.decide(desk.asked(standing=Standing.WAITING)[0].id, approve=False, by="keeper")
    with pytest.raises(eh.BudgetExceeded, match="denied"):
        pay(desk, "d", "0.1", limits)
    desk.verify()


def test_the_first_answer_is_kept(desk: Desk) -> None:
    question_ledger = pay(desk, "k")
    assert question_ledger.id is not None
    assert desk.store(question_ledger.id, "one") == "one"
    assert desk.store(question_ledger.id, "two") == "one"
    found = desk.find(question_ledger.id)
    assert found is not None
    assert (found.answer, found.standing) == ("one", Standing.ANSWERED)
    with pytest.raises(eh.EvenhandError, match="not debited"):
        desk.store("unknown", "x")


def test_threads_share_a_limit(desk: Desk) -> None:
    """Twelve questions of ε = 1 by three analysts, four of them each: 2 each and 5 in all are allowed."""
    desk.per_period = budget(5)
    outcomes: list[str] = []

    def ask(number: int) -> None:
        try:
            pay(desk, f"k{number}", 1, Limits(budget(2)), analyst=f"analyst{number % 3}")
            outcomes.append("paid")
        except eh.BudgetExceeded:
            outcomes.append("refused")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("paid") == 5
    assert max(desk.spent(f"analyst{number}").epsilon for number in range(3)) <= 2
    desk.verify()


def test_verifying_goes_on_beside_debits(desk: Desk) -> None:
    """Events and sums are read at one moment."""
    ended = threading.Event()

    def debits() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            pay(desk, key=f"k{number}", epsilon="0.000001")

    thread = threading.Thread(target=debits)
    thread.start()
    try:
        for _ in range(25):
            desk.verify()
    finally:
        ended.set()
        thread.join()
    desk.verify()


def test_a_desk_that_was_edited_is_noticed(tmp_path: Path) -> None:
    import sqlite3

    desk = Desk(eh.Ledger(tmp_path / "b.db", epsilon=10))
    pay(desk, "k")
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("UPDATE evenhand_spent SET epsilon = '0'")
    with pytest.raises(eh.EvenhandError, match="does not agree"):
        desk.verify()


TABLE = {"u": list(range(1000))}


def ask(desk: Desk | QuestionLedger) -> eh.Release:
    paid = desk.question_ledger("ann", "k", "{}", PLENTY, stored_first=True) if isinstance(desk, Desk) else desk
    return eh.Session(eh.read(pa.table(TABLE), user="u"), paid).users(epsilon="0.5")


def redrawn(desk: Desk, seen: list[str] | None = None) -> str:
    """The answer after a kill; what was drawn goes to ``seen``."""

    def draw(paid: QuestionLedger) -> str:
        text = str(ask(paid).value)
        if seen is not None:
            seen.append(text)
        return text

    return desk.redraw(desk.asked("ann")[0].id, draw)


def test_one_debit_is_drawn_once(desk: Desk) -> None:
    """Whether an answer is stored or not: asking again with the key reads nothing, and a new key pays."""
    ask(desk)
    for _ in range(2):
        with pytest.raises(AlreadyPaid, match="Nothing was read or spent") as refused:
            ask(desk)
        desk.store(refused.value.question.id, "42")
    assert refused.value.question.answer == "42"
    assert len(desk.ledger.events) == 1
    assert desk.ledger.spent.epsilon == Decimal("0.5")


def test_what_was_drawn_for_a_debit_and_stored_is_all_that_is_drawn(desk: Desk) -> None:
    with pytest.raises(eh.EvenhandError, match="not debited"):
        desk.redraw("unknown", lambda paid: "x")
    ask(desk)
    seen: list[str] = []
    assert {redrawn(desk, seen) for _ in range(20)} == set(seen)
    assert len(seen) == 1
    assert (len(desk.ledger.events), desk.ledger.spent.epsilon) == (1, Decimal("0.5"))


def test_the_means_to_draw_again_ends_with_the_stored_answer(desk: Desk) -> None:
    """Kept back until an answer is stored, used twice, by threads, or as a copy: it draws nothing more."""
    ask(desk)
    kept: list[QuestionLedger] = []
    assert desk.redraw(desk.asked()[0].id, lambda paid: kept.append(paid) or "42") == "42"  # type: ignore[func-returns-value]
    with pytest.raises(AlreadyPaid):
        ask(kept[0])
    with pytest.raises(eh.EvenhandError, match="debited once"):
        ask(kept[0])
    with pytest.raises(eh.UsageError, match="can't be pickled"):
        pickle.dumps(kept[0])


def test_an_answer_that_another_process_has_stored_meanwhile(desk: Desk) -> None:
    ask(desk)

    def draw(paid: QuestionLedger) -> str:
        desk.store(desk.asked()[0].id, "theirs")
        return str(ask(paid).value)

    assert desk.redraw(desk.asked()[0].id, draw) == "theirs"


def test_threads_with_one_key_draw_once(desk: Desk) -> None:
    paid = desk.question_ledger("ann", "k", "{}", PLENTY)
    outcomes: list[str] = []

    def one(ledger: Desk | QuestionLedger) -> None:
        try:
            ask(ledger)
            outcomes.append("drawn")
        except eh.EvenhandError:
            outcomes.append("refused")

    threads = [threading.Thread(target=one, args=(paid if number % 2 else desk,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["drawn"] + ["refused"] * 5


PROCESS = """
import sys
from decimal import Decimal
import pyarrow as pa
import evenhand as eh
from evenhand.ledger.desk import AlreadyPaid, Budget, Desk, Limits
desk = Desk(eh.Ledger(sys.argv[1]))
paid = desk.question_ledger("ann", "k", "{}", Limits(Budget(Decimal(100))))
try:
    eh.Session(eh.read(pa.table({"u": [1, 2]}), user="u"), paid).users(epsilon="0.5")
    print("drawn")
except AlreadyPaid:
    print("refused")
"""


def test_processes_with_one_key_draw_once(tmp_path: Path) -> None:
    place = str(tmp_path / "b.db")
    desk = Desk(eh.Ledger(place, epsilon=10))
    command = [sys.executable, "-c", PROCESS, place]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sorted(one.communicate()[0].strip() for one in running) == ["drawn", "refused", "refused"]
    assert len(desk.ledger.events) == 1


def test_two_processes_that_store_at_once_show_one_answer(place: str) -> None:
    """Each has a connection and a batch of its own; a writer that nobody let finish holds them until both have begun."""
    desks = [Desk(eh.Ledger(place, epsilon=10)) for _ in range(2)]
    id = pay(desks[0], "k").id
    assert id is not None
    shown = held_while(place, [lambda desk=desk, n=n: desk.store(id, f"answer {n}") for n, desk in enumerate(desks)])  # type: ignore[misc]
    found = desks[0].find(id)
    assert found is not None
    assert set(shown) == {found.answer}


def test_a_question_is_decided_once_by_two_processes(place: str) -> None:
    desks = [Desk(eh.Ledger(place, epsilon=10)) for _ in range(2)]
    with pytest.raises(NeedsApproval):
        pay(desks[0], "k", limits=Limits(budget(9), unapproved=Decimal(0)))
    id = desks[0].asked()[0].id

    def decide(desk: Desk, approve: bool) -> str:
        try:
            return desk.decide(id, approve=approve, by="keeper").standing
        except eh.UsageError:
            return "too late"

    said = held_while(place, [lambda: decide(desks[0], True), lambda: decide(desks[1], False)])
    assert sorted(said) == sorted(["too late", desks[0].asked()[0].standing])


def held_while(place: str, doing: Sequence[Callable[[], str]]) -> list[str]:
    """What each returns, all begun while another connection holds the questions, so that each has read before any has written."""
    from sqlalchemy import create_engine

    url = place.replace("postgresql://", "postgresql+psycopg://") if "://" in place else f"sqlite:///{place}"
    with ThreadPoolExecutor(len(doing)) as pool:
        with create_engine(url).begin() as connection:
            if "://" in place:
                connection.exec_driver_sql("SELECT * FROM evenhand_asked FOR UPDATE")
            running = [pool.submit(one) for one in doing]
            time.sleep(0.3)
        return [one.result() for one in running]


def test_what_was_seen_is_not_drawn_again(desk: Desk) -> None:
    """The release of a plain session leaves at once: neither a crash nor the keeper brings a second one."""
    pay(desk, "seen")
    asked = desk.asked()[0]
    assert asked.standing is Standing.DRAWN
    seen: list[str] = []
    with pytest.raises(eh.EvenhandError, match="saw its release"):
        redrawn(desk, seen)
    assert seen == []
    assert desk.store(asked.id, "42") == "42"
    assert redrawn(desk, seen) == "42"


@pytest.mark.parametrize("text", ["\x00", "a\nb", "\ud800"])
def test_names_that_a_database_cannot_store_are_refused(desk: Desk, text: str) -> None:
    with pytest.raises(eh.UsageError, match="control character"):
        desk.question_ledger("ann", text, "{}", PLENTY)
    with pytest.raises(eh.UsageError, match="control character"):
        desk.question_ledger("ann", "k", text, PLENTY)


def test_one_refused_statement_leaves_the_others_of_its_batch_alone(desk: Desk) -> None:
    """What one asks for, the database can't store; the others wait in the same batch, and are paid."""
    begun, outcomes = threading.Event(), dict[str, str]()

    def run(name: str, work: Callable[[], object]) -> None:
        try:
            work()
            outcomes[name] = "ok"
        except eh.EvenhandError as error:
            outcomes[name] = type(error).__name__

    def hold(connection: object) -> None:
        begun.set()
        time.sleep(0.3)

    def twice(connection: Any) -> None:
        for _ in range(2):
            connection.exec_driver_sql("INSERT INTO evenhand_period (number, name) VALUES (7, 'x')")

    todo = {
        "holder": lambda: desk.batches.run(hold, write=True),
        "refused": lambda: desk.batches.run(twice, write=True),
        "paid": lambda: pay(desk, "k"),
        "other": lambda: pay(desk, "k2"),
    }
    threads = [threading.Thread(target=run, args=one) for one in todo.items()]
    for thread in threads:
        thread.start()
        begun.wait()
    for thread in threads:
        thread.join()
    assert outcomes == {"holder": "ok", "refused": "LedgerError", "paid": "ok", "other": "ok"}
    assert len(desk.ledger.events) == 2
    desk.verify()
