"""The desk where analysts ask a ledger's keeper: sub-budgets, periods, approvals, and answers that are drawn once.

What is promised to people is the ledger's total, all analysts together. Sub-budgets and approvals only say who may use how
much of it; a budget per period is a promise for each period, and k times it over k of them.

Everything here happens in transactions of the ledger itself. A question has a key, bound to its analyst and its text: asked
again with the same key it is never debited again, and its answer is the one that was stored first. A process killed between
the debit and the stored answer leaves a question that is paid for; whoever asks again draws, because nobody has seen
anything of the first drawing.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import BudgetExceeded, Guarantee, LedgerError, UsageError, plain
from evenhand.ledger.composition import Budget, Cost
from evenhand.ledger.events import Event
from evenhand.ledger.ledger import Ledger

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from evenhand.ledger.state import State

EVERYBODY = "*"
"""The holder under which the spending of all analysts is added up."""


class Standing(StrEnum):
    """Where a question stands."""

    WAITING = "waiting"
    """For the keeper's approval."""
    APPROVED = "approved"
    DENIED = "denied"
    PAID = "paid"
    """Debited; no answer is stored yet."""
    ANSWERED = "answered"


class NeedsApproval(BudgetExceeded):
    """The question waits for the keeper. Nothing was read or spent."""


@dataclass(frozen=True)
class Limits:
    """What a keeper grants an analyst, beside the population's total. ε and δ simply add up here.

    Args:
        total: of all questions, ever.
        per_period: of all questions in one period; None for no limit but the total.
        per_question: the largest ε of one question.
        unapproved: ε in sum, ever, of questions that the keeper did not approve one by one; None if none needs approval.
            A sum, so that a question split into parts needs approval as soon as the whole would.
    """

    total: Budget
    per_period: Budget | None = None
    per_question: Decimal | None = None
    unapproved: Decimal | None = None


@dataclass(frozen=True)
class StoredQuestion:
    """A question as it is stored.

    Args:
        id: random.
        analyst: who asked.
        key: given by the analyst; with the analyst's name it is unique.
        question: the normalised question, as text.
        cost: what it costs.
        standing: where it stands.
        time: when it was asked, UTC.
        decided_by: who approved or denied it.
        event: the number of its debit.
        answer: as stored, to be sent as often as wanted.
    """

    id: str
    analyst: str
    key: str
    question: str
    cost: Budget
    standing: Standing
    time: str
    decided_by: str | None
    event: int | None
    answer: str | None


class Desk:
    """The keeper's view of a ledger that analysts ask.

    Args:
        ledger: the population's budget.
        per_period: what all analysts together may spend in one period; None for no promise per period.
        period: the name of the present period, such as ``"2026-11"``, by the clock; names are compared as text.

    Example:
        >>> desk = Desk(Ledger("budget.db", epsilon=10), period=lambda: "2026-11")  # doctest: +SKIP
        >>> question_ledger = desk.question_ledger("ann", "first-question", '{"statistic": "count"}', Limits(Budget(Decimal(1))))  # doctest: +SKIP
        >>> eh.Session(table, question_ledger).count(epsilon=0.1)  # doctest: +SKIP
    """

    def __init__(
        self, ledger: Ledger, *, per_period: Budget | None = None, period: Callable[[], str] = lambda: ""
    ) -> None:
        from evenhand.ledger import desk_tables

        self.ledger, self.per_period, self.period = ledger, per_period, period
        self._run = ledger._store.run
        # Threads that write to one SQLite file at once spend their time waiting for its lock: 200 of them manage 19 debits
        # a second, one after the other 657.
        self.turn = threading.Lock()
        self._run(desk_tables.create, write=True)

    def question_ledger(self, analyst: str, key: str, question: str, limits: Limits) -> QuestionLedger:
        """The ledger as one question of one analyst sees it: for a `Session` that asks this question and no other."""
        return QuestionLedger(self, analyst, key, question, limits)

    def find(self, id: str) -> StoredQuestion | None:
        """A question by its id."""
        from evenhand.ledger import desk_tables

        row = self._run(lambda connection: desk_tables.by_id(connection, id))
        return None if row is None else _asked(row)

    def asked(self, analyst: str | None = None, standing: Standing | None = None) -> list[StoredQuestion]:
        """All questions, oldest first; of one analyst, or of one standing."""
        from evenhand.ledger import desk_tables

        return [_asked(row) for row in self._run(lambda c: desk_tables.listed(c, analyst, standing))]

    def decide(self, id: str, *, approve: bool, by: str) -> StoredQuestion:
        """Approve or deny a question that waits; decided once."""
        from evenhand.ledger import desk_tables

        standing = Standing.APPROVED if approve else Standing.DENIED

        def work(connection: Connection) -> Row[Any]:
            row = desk_tables.by_id(connection, id)
            if row is None or row.standing != Standing.WAITING:
                raise UsageError(f"question {id} does not wait for approval; nothing was decided.")
            desk_tables.change(connection, id, standing=standing, decided_by=by)
            return row

        self._run(work, write=True)
        found = self.find(id)
        assert found is not None
        return found

    def store(self, id: str, answer: str) -> str:
        """Keep an answer durably before it is sent, unless there is one: what comes back is what may be sent."""
        from evenhand.ledger import desk_tables

        def work(connection: Connection) -> str:
            row = desk_tables.by_id(connection, id)
            if row is None or row.event is None:
                raise LedgerError(f"question {id} was not debited, so it has no answer to store.")
            if row.answer is not None:
                return str(row.answer)
            desk_tables.change(connection, id, standing=Standing.ANSWERED, answer=answer)
            return answer

        with self.turn:
            return self._run(work, write=True)

    def spent(self, analyst: str | None = None) -> Budget:
        """What an analyst, or all of them, spent at this desk; ε and δ added up."""
        from evenhand.ledger import desk_tables

        return self._run(lambda c: desk_tables.spent(c, analyst or EVERYBODY))

    def verify(self) -> None:
        """Recompute who spent what from the ledger's events, and raise LedgerError where the desk says otherwise."""
        from evenhand.ledger import desk_tables

        self.ledger.verify()
        sums: dict[tuple[str, int, bool], Budget] = {}
        for event in self.ledger.events:
            signed = event.query.get("desk")
            if isinstance(signed, Mapping):
                for holder in (str(signed["by"]), EVERYBODY):
                    place = (holder, int(signed["period"]), bool(signed["approved"]))
                    before = sums.get(place, Budget(Decimal(0)))
                    sums[place] = desk_tables.plus(before, event.cost)
        if sums != self._run(desk_tables.all_spent):
            raise LedgerError(f"ledger {self.ledger.location}: what analysts spent does not agree with its events.")


class QuestionLedger(Ledger):
    """A ledger as one question sees it: limits of its analyst are checked in the transaction that debits, once.

    Guarantee: that of the ledger. A second debit is refused; a debit that was made before by the same analyst, under the same
    key, for the same question at the same cost, is found instead of made again.
    """

    def __init__(self, desk: Desk, analyst: str, key: str, question: str, limits: Limits) -> None:
        for name, text in (("analyst", analyst), ("key", key)):
            if not text or len(text) > 200 or text == EVERYBODY:
                raise UsageError(f"{name}={text[:40]!r}: expected a name of 1 to 200 characters.")
        self._store, self._seen = desk.ledger._store, desk.ledger._seen
        self.desk, self.analyst, self.key, self.question, self.limits = desk, analyst, key, question, limits
        self.id: str | None = None
        self.who = analyst
        self._used, self._charged = False, Cost.pure(0)

    def debit(self, cost: Cost, query: Mapping[str, Any], guarantee: Guarantee, table: str | None = None) -> Event:
        """As `Ledger.debit`, for this question."""
        if self._used:
            raise LedgerError(f"question {self.key}: a question is debited once; nothing more was spent.")
        self._used = True
        with self.desk.turn:
            try:
                return self._debit(cost, query, guarantee, table, self._admit)
            except NeedsApproval as needed:
                raise NeedsApproval(f"{needed} Its number is {self._wait()}.") from None

    def can_afford(self, cost: Cost, guarantee: Guarantee) -> bool:
        """Whether the ledger and the analyst's own limits would allow it now, approval aside."""
        from evenhand.ledger import desk_tables

        def work(connection: Connection) -> str | None:
            return self._beyond(connection, cost, desk_tables.period(connection, self.desk.period()))

        return super().can_afford(cost, guarantee) and self._store.run(work) is None

    def _admit(self, connection: Connection, state: State, cost: Cost) -> Event | Mapping[str, Any]:
        """Inside the debit: find what was paid, refuse what is beyond a limit, or add up what is spent now."""
        from evenhand.ledger import desk_tables
        from evenhand.ledger import state as ledger_state

        self._charged = cost
        row = desk_tables.by_key(connection, self.analyst, self.key)
        if row is not None:
            self._check_same(_asked(row), cost)
            self.id = row.id
            if row.event is not None:
                return ledger_state.record_at(connection, row.event).read()
            if row.standing == Standing.DENIED:
                raise BudgetExceeded(f"the keeper denied this question ({row.id}). Nothing was read or spent.")
        period = desk_tables.enter_period(connection, self.desk.period())
        beyond = self._beyond(connection, cost, period)
        if beyond is not None:
            raise BudgetExceeded(f"{beyond}. Nothing was read or spent.")
        approved = row is not None and row.standing == Standing.APPROVED
        affordable = state.account.after(cost) is not None  # else the ledger refuses it, in its own words
        if affordable and not approved:
            self._check_free(connection, cost)
        if row is None:
            self._enter(connection, cost, Standing.PAID)
        assert self.id is not None
        for holder in (self.analyst, EVERYBODY):
            desk_tables.add(connection, holder, period, approved, cost)
        desk_tables.change(connection, self.id, standing=Standing.PAID, event=state.events + 1)
        return {"desk": {"by": self.analyst, "question": self.id, "period": period, "approved": approved}}

    def _check_same(self, earlier: StoredQuestion, cost: Cost) -> None:
        if (earlier.question, earlier.cost) != (self.question, Budget(cost.epsilon, cost.delta)):
            raise UsageError(
                f"the key {self.key!r} was used for another question; expected a new key for a new question, and the same key "
                "only to ask the same question again."
            )

    def _check_free(self, connection: Connection, cost: Cost) -> None:
        """Refuse what needs the keeper's approval first."""
        from evenhand.ledger import desk_tables

        free = self.limits.unapproved
        if free is None:
            return
        before = desk_tables.spent(connection, self.analyst, approved=False)
        if desk_tables.plus(before, cost).epsilon > free:
            raise NeedsApproval(
                f"this question waits for the keeper's approval: without it, {self.analyst} may spend ε = {plain(free)} in "
                f"sum, has spent {plain(before.epsilon)}, and this costs {plain(cost.epsilon)}. Nothing was read or spent. It is "
                "answered once it is approved."
            )

    def _wait(self) -> str:
        """Enter a question that waits for approval, unless it does already; the debit that found so was rolled back."""
        from evenhand.ledger import desk_tables

        def work(connection: Connection) -> None:
            row = desk_tables.by_key(connection, self.analyst, self.key)
            if row is None:
                self._enter(connection, self._charged, Standing.WAITING)
            else:
                self._check_same(_asked(row), self._charged)
                self.id = row.id

        self._store.run(work, write=True)
        return str(self.id)

    def _enter(self, connection: Connection, cost: Cost, standing: Standing) -> None:
        from evenhand.ledger import desk_tables

        self.id = str(uuid.uuid4())
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        values = {"analyst": self.analyst, "key": self.key, "question": self.question, "time": now}
        amounts = {"epsilon": str(cost.epsilon), "delta": str(cost.delta)}
        desk_tables.enter(connection, id=self.id, standing=standing, **values, **amounts)

    def _beyond(self, connection: Connection, cost: Cost, period: int) -> str | None:
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
            before = desk_tables.spent(connection, holder, period=when)
            after = desk_tables.plus(before, cost)
            if after.epsilon > allowed.epsilon or after.delta > allowed.delta:
                return f"this question costs {Budget(cost.epsilon, cost.delta)}, but {words} is {allowed}, with {before} spent"
        return None


def _asked(row: Row[Any]) -> StoredQuestion:
    return StoredQuestion(
        row.id,
        row.analyst,
        row.key,
        row.question,
        Budget(Decimal(row.epsilon), Decimal(row.delta)),
        Standing(row.standing),
        row.time,
        row.decided_by,
        row.event,
        row.answer,
    )
