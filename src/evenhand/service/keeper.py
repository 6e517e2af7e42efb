"""The keeper: tables, who may ask about them, and questions that are paid for, drawn and stored once.

What an analyst sees must not depend on a row, and time and failure are things that an analyst sees (method: a server adds
outputs). So an answer appears at its deadline, which is public: the time of the question plus what the keeper allows. If
there is no answer by then, for whatever reason, one is drawn from the empty table, with the same noise and form. Whoever
stores first wins, so nothing is ever sent twice in two versions.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.ledger.desk import AlreadyPaid, Desk, Limits, QuestionLedger, Standing, StoredQuestion
from evenhand.profiles import Profile
from evenhand.service import questions
from evenhand.service.jobs import Jobs
from evenhand.service.pricing import Prices, drafts
from evenhand.service.stored import Answer, answer_text
from evenhand.session import Drafts
from evenhand.tables import Table
from evenhand.tables.engines.copied import CopiedEngine

log = logging.getLogger("evenhand.keeper")


@dataclass(frozen=True)
class Offered:
    """A table that analysts may ask about.

    Args:
        table: the rows.
        desk: where the population's budget is kept.
        description: for analysts.
    """

    table: Table
    desk: Desk
    description: str = ""


@dataclass(frozen=True)
class Analyst:
    """What a keeper grants one analyst.

    Args:
        limits: of the budget.
        tables: names of tables; None for all.
        immediate: whether answers may appear as soon as they are there: for analysts whom the keeper trusts with timing.
    """

    limits: Limits
    tables: frozenset[str] | None = None
    immediate: bool = False


@dataclass
class Keeper:
    """Answers questions about the tables it keeps.

    Args:
        tables: by name.
        analysts: by name.
        deadline: seconds after which an answer appears.
        model_deadline: the same for models.
        price_workers: processes that work prices out; 0 for doing so in this one.
    """

    tables: Mapping[str, Offered]
    analysts: Mapping[str, Analyst]
    deadline: float = 10.0
    model_deadline: float = 120.0
    price_workers: int = 0
    prices: Prices = field(init=False, repr=False)
    _opened: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)
    _jobs: Jobs = field(default_factory=Jobs, repr=False)
    _fits: Jobs = field(default_factory=lambda: Jobs(workers=1), repr=False)  # minutes, so that no count waits for one
    _running: dict[str, Future[str]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _profiles: dict[tuple[str, str], list[tuple[datetime, Profile]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.prices = Prices({name: one.table for name, one in self.tables.items()}, self.price_workers)

    def offered(self, analyst: str) -> dict[str, Offered]:
        """The tables that an analyst may ask about."""
        allowed = self._analyst(analyst).tables
        return {name: one for name, one in self.tables.items() if allowed is None or name in allowed}

    def limits(self, analyst: str) -> Limits:
        """What an analyst may spend."""
        return self._analyst(analyst).limits

    def preview(self, analyst: str, table: str | None, question: Mapping[str, Any]) -> dict[str, Any]:
        """What a question would cost; from public facts only."""
        name, offered = self._table(analyst, table)
        text = self._text(name, question)
        price = self.prices.price(name, text, question, self._profile(analyst, name))
        return price.told(offered.desk.question_ledger(analyst, "preview", text, self._analyst(analyst).limits))

    def ask(self, analyst: str, table: str | None, key: str, question: Mapping[str, Any]) -> StoredQuestion:
        """Debit a question and have it answered; asked again with its key, it is only found.

        Raises what is wrong with the question, or with the budget, at once: that depends on public parameters only.
        """
        name, offered = self._table(analyst, table)
        text = self._text(name, question)
        question_ledger = offered.desk.question_ledger(analyst, key, text, self._analyst(analyst).limits)
        self.prices.admit(name, text, question, self._profile(analyst, name))
        draft = questions.ask(self._drafts_for(analyst, name), question)
        desk = offered.desk
        try:
            receipt = draft.pay(question_ledger)
        except AlreadyPaid as earlier:
            if earlier.question.answer is None:
                self._start(desk, earlier.question, partial(self._redrawn, desk, earlier.question))
            return earlier.question
        asked = question_ledger.asked
        assert asked is not None
        self._start(desk, asked, lambda: desk.store(asked.id, self._text_of(desk, asked, lambda: draft.drawn(receipt))))
        return asked

    def decide(self, id: str, *, approve: bool, by: str) -> StoredQuestion:
        """Approve or deny a question that waits; what is approved is debited and answered at once."""
        for offered in self.tables.values():
            if offered.desk.find(id) is not None:
                asked = offered.desk.decide(id, approve=approve, by=by)
                if approve:
                    stored = json.loads(asked.question)
                    self.ask(asked.analyst, stored["table"], asked.key, stored["question"])
                return self._found(offered.desk, id)
        raise UsageError(f"there is no question {id!r}.")

    def lock(self) -> None:
        """From now on no question can make DuckDB read or write a file, or change its settings."""
        for offered in self.tables.values():
            if isinstance(offered.table.engine, CopiedEngine):
                offered.table.engine.lock()

    def resume(self) -> int:
        """Start again what was paid for and not answered when the server stopped; how many questions that is."""
        started = 0
        for desk in {id(offered.desk): offered.desk for offered in self.tables.values()}.values():
            for asked in desk.asked(standing=Standing.PAID):
                if asked.analyst not in self.analysts or json.loads(asked.question)["table"] not in self.tables:
                    log.warning(
                        "question is left: keeper.toml has its analyst or table no more", extra={"question": asked.id}
                    )
                    continue
                started += 1
                self._start(desk, asked, partial(self._redrawn, desk, asked))
        return started

    def find(self, analyst: str | None, id: str) -> tuple[StoredQuestion, datetime | None]:
        """A question of an analyst, and until when its answer is kept back; None if it may be seen."""
        for offered in self.tables.values():
            asked = offered.desk.find(id)
            if asked is not None and analyst in (None, asked.analyst):
                held = self.held(asked)
                late = held is None and asked.standing is Standing.PAID and not self._immediate(asked.analyst)
                if late and asked.analyst in self.analysts:
                    log.warning("question was late", extra={"question": id})
                    self._redrawn_empty(offered.desk, asked)
                    asked = self._found(offered.desk, id)
                return asked, held
        raise UsageError(f"there is no question {id!r} of yours.")

    def running(self, analyst: str, id: str) -> Future[str] | None:
        """What can be waited for: nothing for analysts who may not see how long an answer takes."""
        return self._running.get(id) if self._immediate(analyst) else None

    def close(self) -> None:
        """Let running questions end; what is not stored by then is drawn again when the server is back."""
        self.prices.close()
        self._jobs.close(patience=10)
        self._fits.close(patience=1)

    def _drafts_for(self, analyst: str, name: str) -> Drafts:
        """Questions of an analyst about a table: what one analyst bought is not used for another."""
        return drafts(self.tables[name].table, self._profile(analyst, name))

    def _profile(self, analyst: str, name: str) -> Profile | None:
        """The latest that the analyst bought of a table and may see; kept until the server stops."""
        now = datetime.now(UTC)
        seen = [profile for ready, profile in self._profiles.get((analyst, name), ()) if ready <= now]
        return seen[-1] if seen else None

    def _start(self, desk: Desk, asked: StoredQuestion, answer: Callable[[], str]) -> None:
        """Have an answer drawn and stored, once. Those that have to be there at their deadline come first."""
        with self._lock:
            if asked.id not in self._running:
                first = not self._immediate(asked.analyst)
                jobs = self._fits if _is_fit(asked) else self._jobs
                self._running[asked.id] = jobs.add(partial(self._work, asked, answer), first=first)

    def _work(self, asked: StoredQuestion, answer: Callable[[], str]) -> str:
        try:
            stored = answer()
            profile = json.loads(stored).get("profile")
            if profile is not None:
                ready = self.held(asked) or datetime.now(UTC)
                place = (asked.analyst, str(json.loads(asked.question)["table"]))
                with self._lock:
                    self._profiles[place] = [*self._profiles.get(place, []), (ready, Profile.from_dict(profile))]
            return stored
        finally:
            with self._lock:
                self._running.pop(asked.id, None)

    def _text_of(self, desk: Desk, asked: StoredQuestion, draw: Callable[[], Answer]) -> str:
        """What is drawn, or else the stored answer to a question that can't be answered: one from the empty table."""
        with self._jobs.computing:
            try:
                return answer_text(draw())
            except AlreadyPaid:  # somebody else has stored an answer
                raise
            except Exception as error:
                # Whatever it was, it may depend on rows: nobody but the keeper hears of it, and not in which row.
                log.error(
                    "question failed after its debit", extra={"question": asked.id, "error": type(error).__name__}
                )
        return self._redrawn_empty(desk, asked)

    def _redrawn(self, desk: Desk, asked: StoredQuestion) -> str:
        """The stored answer to a question that was paid for earlier; where there is none, one is drawn."""
        return desk.redraw(asked.id, lambda paid: self._text_of(desk, asked, lambda: self._drawn(asked, paid)))

    def _redrawn_empty(self, desk: Desk, asked: StoredQuestion) -> str:
        """The same, from the empty table."""
        return desk.redraw(asked.id, lambda paid: answer_text(self._drawn(asked, paid, empty=True)))

    def _drawn(self, asked: StoredQuestion, paid: QuestionLedger, *, empty: bool = False) -> Answer:
        """What is drawn for an earlier debit, from the table or from the empty one."""
        stored = json.loads(asked.question)
        asking = self._drafts_for(asked.analyst, self._table(asked.analyst, stored["table"])[0])
        if empty:
            asking.table = replace(asking.table, expression=asking.table.expression.limit(0))
        draft = questions.ask(asking, stored["question"])
        answer: Answer = draft.drawn(draft.pay(paid))
        return answer

    def held(self, asked: StoredQuestion, *, anybody: bool = False) -> datetime | None:
        """Until when an answer is kept back, from its analyst or from anybody who may not see time.

        At that moment one from the empty table takes the place of a missing one.
        """
        if asked.event is None or (self._immediate(asked.analyst) and not anybody):
            return None
        # What a stopped server left behind is drawn again, with the same time for it.
        paid = max(datetime.fromisoformat(asked.time), self._opened)
        ready = paid + timedelta(seconds=self.model_deadline if _is_fit(asked) else self.deadline)
        return ready if datetime.now(UTC) < ready else None

    def _immediate(self, analyst: str) -> bool:
        """Whether an analyst may see time; one who is not in the file any more may not."""
        return analyst in self.analysts and self.analysts[analyst].immediate

    def _found(self, desk: Desk, id: str) -> StoredQuestion:
        found = desk.find(id)
        assert found is not None
        return found

    def _analyst(self, name: str) -> Analyst:
        if name not in self.analysts:
            raise UsageError(f"{name} is not an analyst of this keeper.")
        return self.analysts[name]

    def _table(self, analyst: str, name: str | None) -> tuple[str, Offered]:
        offered = self.offered(analyst)
        if name is None and len(offered) == 1:
            return next(iter(offered.items()))
        if name is None or name not in offered:
            given = "no table was named" if name is None else f"there is no table {name!r} for you"
            raise UsageError(f"{given}; expected one of {sorted(offered)}.")
        return name, offered[name]

    def _text(self, table: str, question: Mapping[str, Any]) -> str:
        return questions.normalised({"table": table, "question": question})


def _is_fit(asked: StoredQuestion) -> bool:
    return bool(json.loads(asked.question)["question"].get("ask") == "fit")
