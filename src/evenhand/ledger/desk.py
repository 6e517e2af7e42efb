"""The desk where analysts ask a ledger's keeper: sub-budgets, periods, approvals, and answers that are drawn once.

What is promised to people is the ledger's total, all analysts together. Sub-budgets and approvals only say who may use how
much of it; a budget per period is a promise for each period, and k times it over k of them.

Everything here happens in transactions of the ledger itself. A question has a key, bound to its analyst and its text: asked
again with the same key it is neither debited nor drawn again, and its answer is the one that was stored first. A process
killed between the debit and the stored answer leaves a question that is paid for. `Desk.redraw` draws for it, and stores what
it draws before anybody sees it: of all that is drawn for one debit, one answer leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from evenhand.guarantee import LedgerError, UsageError
from evenhand.ledger import failures
from evenhand.ledger.batches import Batches
from evenhand.ledger.composition import Budget
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.question_ledger import Drawing, QuestionLedger
from evenhand.ledger.questions import (
    EVERYBODY,
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

    from evenhand.ledger.events import Record

Written = TypeVar("Written")

__all__ = ["AlreadyPaid", "Busy", "Desk", "Limits", "NeedsApproval", "QuestionLedger", "Standing", "StoredQuestion"]


PAGE_TEXT = 1_000_000
"""Characters of questions on one page of a list."""


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
        self.batches = Batches(ledger._store)
        self._run = self.batches.run
        self._write(desk_tables.create)

    def question_ledger(
        self, analyst: str, key: str, question: str, limits: Limits, *, stored_first: bool = False
    ) -> QuestionLedger:
        """The ledger as one question of one analyst sees it: for a `Session` that asks this question and no other, once.

        Args:
            analyst, key, question, limits: who asks what, under which key, and what the analyst may spend.
            stored_first: what is drawn is shown to nobody; it goes to `store`, and what comes back is shown. Only then can
                `redraw` make good what a kill has lost. Otherwise the release counts as seen as soon as it is debited.
        """
        return QuestionLedger(
            self, analyst, key, question, limits, Drawing.STORED_FIRST if stored_first else Drawing.SEEN
        )

    def find(self, id: str) -> StoredQuestion | None:
        """A question by its id."""
        from evenhand.ledger import desk_tables

        row = self._run(lambda connection: desk_tables.by_id(connection, id))
        return None if row is None else stored(row)

    def asked(self, analyst: str | None = None, standing: Standing | None = None) -> list[StoredQuestion]:
        """All questions, oldest first; of one analyst, or of one standing."""
        from evenhand.ledger import desk_tables

        return [stored(row) for row in self._run(lambda c: desk_tables.listed(c, analyst, standing))]

    def page(
        self,
        analyst: str | None = None,
        standing: Standing | None = None,
        *,
        before: StoredQuestion | None = None,
        limit: int,
    ) -> list[StoredQuestion]:
        """The latest questions, oldest first, without their answers; those that are older than ``before``.

        At most ``limit``, and no more than `PAGE_TEXT` characters of questions, but always one if there is one.
        """
        from evenhand.ledger import desk_tables

        place = None if before is None else (before.time, before.id)
        rows = self._run(lambda c: desk_tables.latest(c, analyst, standing, place, limit, PAGE_TEXT))
        return [stored(row) for row in rows]

    def by_key(self, analyst: str, key: str) -> StoredQuestion | None:
        """A question by its analyst and key."""
        from evenhand.ledger import desk_tables

        row = self._run(lambda connection: desk_tables.by_key(connection, analyst, key))
        return None if row is None else stored(row)

    def alive(self) -> str | None:
        """When the keeper's server was last known to run: everything that was due by then was stored by then."""
        from evenhand.ledger import desk_tables

        return self._run(desk_tables.alive)

    def note_alive(self, time: str) -> None:
        """Note that the keeper's server runs."""
        from evenhand.ledger import desk_tables

        self._run(lambda connection: desk_tables.enter_alive(connection, time), write=True)

    def note_started(self, worker: str, id: str, times: int = 1) -> None:
        """Note durably, before a worker begins a question, that it does: if that takes the server down, the next one knows which it was.

        Args:
            worker: works on one question at a time.
            id: the question.
            times: which time it is begun.
        """
        from evenhand.ledger import desk_tables

        self._run(lambda connection: desk_tables.enter_started(connection, worker, id, times), write=True)

    def forget_started(self, id: str) -> None:
        """Take that back, for a question that was left in good order."""
        from evenhand.ledger import desk_tables

        self._run(lambda connection: desk_tables.forget_started(connection, id), write=True)

    def started(self) -> dict[str, int]:
        """The questions without an answer that workers began last, each with which time it was."""
        from evenhand.ledger import desk_tables

        return self._run(lambda connection: desk_tables.started(connection, Standing.PAID))

    def decide(self, id: str, *, approve: bool, by: str) -> StoredQuestion:
        """Approve or deny a question that waits; decided once."""
        from evenhand.ledger import desk_tables

        standing = Standing.APPROVED if approve else Standing.DENIED

        def work(connection: Connection) -> None:
            row = desk_tables.by_id(connection, id)
            if row is None or row.standing != Standing.WAITING:
                raise UsageError(f"question {id} does not wait for approval; nothing was decided.")
            desk_tables.change(connection, id, standing=standing, decided_by=by)

        self._write(work)
        found = self.find(id)
        assert found is not None
        return found

    def store(self, id: str, answer: str) -> str:
        """Keep an answer durably before it is sent, unless there is one: what comes back is what may be sent."""
        from evenhand.ledger import desk_tables

        def work(connection: Connection) -> str:
            row = desk_tables.by_id(connection, id, lock=True)
            if row is None or row.event is None:
                raise LedgerError(f"question {id} was not debited, so it has no answer to store.")
            if row.answer is not None:
                return str(row.answer)
            desk_tables.change(connection, id, standing=Standing.ANSWERED, answer=answer)
            return answer

        return self._write(work, collects=True)

    def redraw(self, id: str, draw: Callable[[QuestionLedger], str]) -> str:
        """The answer to a question that was paid for: the stored one, or what ``draw`` makes of its earlier debit, stored first.

        For the keeper, where a process was killed, or failed, between a debit and its stored answer. ``draw`` is given the
        question's ledger, shows nothing of what it draws to anybody, and returns the answer as it is to be stored. A question
        that was not debited as ``stored_first`` is refused: its release may have been seen.

        Example:
            >>> desk.redraw(id, lambda paid: written(eh.Session(table, paid).count(epsilon=0.1)))  # doctest: +SKIP
        """
        asked = self.find(id)
        if asked is None or asked.event is None:
            raise LedgerError(f"question {id} was not debited, so there is nothing to draw for it.")
        if asked.answer is not None:
            return asked.answer
        if asked.standing is not Standing.PAID:
            raise LedgerError(
                f"question {id} was debited by whoever saw its release, so nothing is drawn for it again; debit with "
                "desk.question_ledger(..., stored_first=True) what is stored before anybody sees it."
            )
        try:
            text = draw(self.earlier(asked))
        except AlreadyPaid as earlier:  # stored by another process since
            if earlier.question.answer is None:
                raise
            return earlier.question.answer
        return self.store(id, text)

    def _write(self, work: Callable[[Connection], Written], *, collects: bool = False) -> Written:
        """Run a transaction while nobody else debits, decides or stores: on Postgres, two would both find no answer and store theirs."""
        from evenhand.ledger import state as ledger_state

        def alone(connection: Connection) -> Written:
            ledger_state.lock(connection)
            return work(connection)

        return self._run(alone, write=True, collects=collects)

    def earlier(self, asked: StoredQuestion) -> QuestionLedger:
        """The ledger of a question that was paid for and has no stored answer, as `redraw` hands it to what draws."""
        return QuestionLedger(self, asked.analyst, asked.key, asked.question, Limits(asked.cost), Drawing.AGAIN)

    def spent(self, analyst: str | None = None, *, now: bool = False, approved: bool | None = None) -> Budget:
        """What an analyst, or all of them, spent at this desk: ever or in the present period; ε and δ added up."""
        from evenhand.ledger import desk_tables

        holder = analyst or EVERYBODY

        def work(connection: Connection) -> Budget:
            period = desk_tables.period(connection, self.period()) if now else None
            return desk_tables.total(desk_tables.spent(connection, holder), holder, period=period, approved=approved)

        return self._run(work)

    def verify(self) -> None:
        """Recompute who spent what from the ledger's events, and raise LedgerError where the desk says otherwise."""
        from evenhand.ledger import desk_tables
        from evenhand.ledger import state as ledger_state

        def work(
            connection: Connection,
        ) -> tuple[list[tuple[Record, str]], Mapping[tuple[str, int, bool], Budget]]:  # of one moment: debits go on
            return ledger_state.records(connection), desk_tables.spent(connection)

        self.ledger.verify()
        records, spent = self._run(work)
        sums: dict[tuple[str, int, bool], Budget] = {}
        with failures.damaged(self.ledger.location):
            events = [record.read() for record, _ in records]
        for event in events:
            signed = event.query.get("desk")
            if isinstance(signed, Mapping):
                for holder in (str(signed["by"]), EVERYBODY):
                    place = (holder, int(signed["period"]), bool(signed["approved"]))
                    before = sums.get(place, Budget(Decimal(0)))
                    sums[place] = desk_tables.plus(before, event.cost)
        if sums != spent:
            raise LedgerError(f"ledger {self.ledger.location}: what analysts spent does not agree with its events.")
