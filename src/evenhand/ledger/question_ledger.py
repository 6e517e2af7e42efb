"""The ledger as one question of one analyst sees it: limits are checked in the transaction that debits."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from evenhand.guarantee import BudgetExceeded, Guarantee, LedgerError, UsageError, exact_text, plain
from evenhand.ledger import admission
from evenhand.ledger.composition import Budget, Cost
from evenhand.ledger.events import Event
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.questions import (
    EVERYBODY,
    MOST_WAITING_TEXT,
    AlreadyPaid,
    Busy,
    Limits,
    NeedsApproval,
    Standing,
    StoredQuestion,
    stored,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from evenhand.ledger.desk import Desk
    from evenhand.ledger.desk_tables import Spent
    from evenhand.ledger.state import State


class Drawing(Enum):
    """What becomes of what is drawn for a debit, and so whether it may be drawn again."""

    SEEN = Standing.DRAWN
    """Whoever debits sees it at once: never again."""
    STORED_FIRST = Standing.PAID
    """It is stored before anybody sees it: again, until something is stored."""
    AGAIN = None
    """It is drawn for an earlier debit; no debit is made."""


class QuestionLedger(Ledger):
    """A ledger as one question sees it: limits of its analyst are checked in the transaction that debits, once.

    Guarantee: that of the ledger. What was debited under this key before, here or in another process, is refused with
    `AlreadyPaid`: an answer was drawn for it. Only `Desk.redraw` makes one that finds an earlier debit, while no answer is stored.
    """

    def __init__(
        self, desk: Desk, analyst: str, key: str, question: str, limits: Limits, drawing: Drawing = Drawing.SEEN
    ) -> None:
        for name, text in (("analyst", analyst), ("key", key)):
            if not text or len(text) > 200 or text == EVERYBODY or not _storable(text):
                raise UsageError(
                    f"{name}={text[:40]!r}: expected a name of 1 to 200 characters, none of them a control character."
                )
        if not _storable(question):
            raise UsageError(
                "the text of a question holds a control character; expected JSON, which writes them as \\u0000."
            )
        self._store, self._seen = desk.batches, desk.ledger._seen
        self.desk, self.analyst, self.key, self.question, self.limits = desk, analyst, key, question, limits
        self.id: str | None = None
        self.asked: StoredQuestion | None = None
        """The question, once it is paid for."""
        self.who = analyst
        self._drawing, self._charged = drawing, Cost.pure(0)
        self._unused = threading.Lock()  # taken once and never given back: threads can't both debit

    def debit(  # type: ignore[override]
        self, cost: Cost, query: Mapping[str, Any], guarantee: Guarantee, table: str | None = None
    ) -> Event:
        """As `Ledger.debit`, for this question."""
        if not self._unused.acquire(blocking=False):
            raise LedgerError(f"question {self.key}: a question is debited once; nothing more was spent.")
        try:
            event = super().debit(cost, query, guarantee, table, admit=self._admit)
            if self._seen is not None:
                self.desk.ledger._remember(self._seen)  # the next question need not look it up
            return event
        except NeedsApproval as needed:
            raise NeedsApproval(f"{needed} Its number is {self._wait()}.") from None

    def can_afford(self, cost: Cost, guarantee: Guarantee) -> bool:
        """Whether the ledger and the analyst's own limits would allow it now, approval aside."""
        from evenhand.ledger import desk_tables

        seen = self._seen

        def work(connection: Connection) -> bool:
            state = self._read(connection, seen)
            charged = admission.charge(self.location, state, cost, guarantee)
            admission.check_parts(connection, self.location, guarantee)
            spent = desk_tables.spent(connection, self.analyst, EVERYBODY)
            beyond = self._beyond(spent, charged, desk_tables.period(connection, self.desk.period()))
            return beyond is None and state.account.after(charged) is not None

        return self._store.run(work)

    def _admit(self, connection: Connection, state: State, cost: Cost) -> Event | Mapping[str, Any]:
        """Inside the debit: refuse what was paid before or is beyond a limit, or add up what is spent now."""
        from evenhand.ledger import desk_tables
        from evenhand.ledger import state as ledger_state

        self._charged = cost
        row = desk_tables.by_key(connection, self.analyst, self.key)
        if row is not None:
            self._check_same(stored(row), cost)
            self.id = row.id
            if row.event is not None:
                self.asked = stored(row)
                if self._drawing is not Drawing.AGAIN or row.answer is not None or row.standing != Standing.PAID:
                    raise AlreadyPaid(self.asked)
                return ledger_state.record_at(connection, row.event).read()
            if row.standing == Standing.DENIED:
                raise BudgetExceeded(f"the keeper denied this question ({row.id}). Nothing was read or spent.")
        if self._drawing is Drawing.AGAIN:
            raise LedgerError(f"question {self.key} was not debited, so there is nothing to draw for it.")
        period = desk_tables.enter_period(connection, self.desk.period())
        spent = desk_tables.spent(connection, self.analyst, EVERYBODY)
        beyond = self._beyond(spent, cost, period)
        if beyond is not None:
            raise BudgetExceeded(f"{beyond}. Nothing was read or spent.")
        approved = row is not None and row.standing == Standing.APPROVED
        affordable = state.account.after(cost) is not None  # else the ledger refuses it, in its own words
        if affordable and not approved:
            self._check_free(spent, cost)
        for holder in (self.analyst, EVERYBODY):
            desk_tables.add(connection, (holder, period, approved), cost)
        paid: dict[str, Any] = {"standing": self._drawing.value, "event": state.events + 1, "time": _now()}
        if row is None:
            self._enter(connection, cost, **paid)
        else:
            desk_tables.change(connection, row.id, **paid)
        assert self.id is not None
        decided = None if row is None else row.decided_by
        charged = Budget(cost.epsilon, cost.delta)
        self.asked = StoredQuestion(
            self.id, self.analyst, self.key, self.question, charged, decided_by=decided, answer=None, **paid
        )
        return {"desk": {"by": self.analyst, "question": self.id, "period": period, "approved": approved}}

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            f"question {self.key}: the ledger of a question can't be pickled, since a copy would know none of its analyst's "
            "limits; make it with desk.question_ledger where it is used."
        )

    def _check_same(self, earlier: StoredQuestion, cost: Cost) -> None:
        if (earlier.question, earlier.cost) != (self.question, Budget(cost.epsilon, cost.delta)):
            raise UsageError(
                f"the key {self.key!r} was used for another question; expected a new key for a new question, and the same key "
                "only to ask the same question again."
            )

    def _check_free(self, spent: Spent, cost: Cost) -> None:
        """Refuse what needs the keeper's approval first."""
        from evenhand.ledger import desk_tables

        free = self.limits.unapproved
        if free is None:
            return
        before = desk_tables.total(spent, self.analyst, approved=False)
        if desk_tables.plus(before, cost).epsilon > free:
            raise NeedsApproval(
                f"this question waits for the keeper's approval: without it, {self.analyst} may spend ε = {plain(free)} in "
                f"sum, has spent {plain(before.epsilon)}, and this costs {plain(cost.epsilon)}. Nothing was read or spent. It is "
                "answered once it is approved."
            )

    def _wait(self) -> str:
        """Enter a question that waits for approval, unless it does already; the debit that found so was rolled back."""
        from evenhand.ledger import desk_tables
        from evenhand.ledger import state as ledger_state

        def work(connection: Connection) -> None:
            ledger_state.lock(connection)
            row = desk_tables.by_key(connection, self.analyst, self.key)
            if row is None:
                self._check_waiting(connection)
                self._enter(connection, self._charged, standing=Standing.WAITING, time=_now())
            else:
                self._check_same(stored(row), self._charged)
                self.id = row.id

        self._store.run(work, write=True)
        return str(self.id)

    def _check_waiting(self, connection: Connection) -> None:
        """Refuse a question when its analyst has as many waiting as the keeper will read."""
        from evenhand.ledger import desk_tables

        number, text = desk_tables.waiting(connection, self.analyst, Standing.WAITING)
        if number >= self.limits.waiting:
            raise Busy(
                f"this question would wait for the keeper's approval, and {number} of yours wait already, the most that may; ask again "
                "once the keeper has decided some. Nothing was read or spent.",
                retry_after=60,
            )
        if number and text + len(self.question) > MOST_WAITING_TEXT:
            raise Busy(
                f"this question would wait for the keeper's approval, and with those of yours that wait already it has more than "
                f"{MOST_WAITING_TEXT:,} characters, the most that may; ask again once the keeper has decided some. Nothing was read or spent.",
                retry_after=60,
            )

    def _enter(self, connection: Connection, cost: Cost, **where: Any) -> None:  # noqa: ANN401 - columns
        from evenhand.ledger import desk_tables

        self.id = str(uuid.uuid4())
        values = {"analyst": self.analyst, "key": self.key, "question": self.question}
        amounts = {"epsilon": exact_text(cost.epsilon), "delta": exact_text(cost.delta)}
        desk_tables.enter(connection, id=self.id, **values, **amounts, **where)

    def _beyond(self, spent: Spent, cost: Cost, period: int) -> str | None:
        """Which limit the question is beyond, in words."""
        from evenhand.ledger import desk_tables

        limits, whole = self.limits, self.desk.per_period
        if limits.per_question is not None and cost.epsilon > limits.per_question:
            return (
                f"this question costs ε = {plain(cost.epsilon)}; one question may cost ε = {plain(limits.per_question)}"
            )
        checked = [
            (self.analyst, None, limits.total, f"the budget of {self.analyst}"),
            (self.analyst, period, limits.per_period, f"the budget of {self.analyst} for this period"),
            (EVERYBODY, period, whole, "the budget of all analysts for this period"),
        ]
        for holder, when, allowed, words in checked:
            if allowed is None:
                continue
            before = desk_tables.total(spent, holder, period=when)
            after = desk_tables.plus(before, cost)
            if after.epsilon > allowed.epsilon or after.delta > allowed.delta:
                return f"this question costs {Budget(cost.epsilon, cost.delta)}, but {words} is {allowed}, with {before} spent"
        return None


def _storable(text: str) -> bool:
    """Whether every database can store a text: Postgres takes no NUL, and nothing takes half a character."""
    return all(character >= " " and not "\ud800" <= character <= "\udfff" for character in text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
