"""The keeper: tables, who may ask about them, and questions that are paid for, drawn and stored once.

What an analyst sees must not depend on a row, and time and failure are things that an analyst sees (method: a server adds
outputs). So an answer appears at its deadline, which is public: the time of the question plus what the keeper allows. A question is
taken on if the slots that were declared for it and for those before it fit (`schedule.py`); it is refused before it is paid if they do
not. One that fails, or takes longer than its slot, is answered from the empty table, with the same noise and form. Whoever stores
first wins, so nothing is ever sent twice in two versions.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from evenhand.guarantee import DataError, UsageError, plain
from evenhand.ledger import Cost
from evenhand.ledger.desk import AlreadyPaid, Busy, Desk, Limits, Standing, StoredQuestion
from evenhand.profiles import Profile
from evenhand.service import questions
from evenhand.service.begun import MARKED, Begun
from evenhand.service.granted import Analyst, Offered
from evenhand.service.jobs import Job, Lane
from evenhand.service.pricing import Price, Prices
from evenhand.service.schedule import SHARE, Place
from evenhand.service.stored import Answer, answer_text
from evenhand.service.storing import Closing, Storing
from evenhand.service.workers import Planned, Workers
from evenhand.tables.engines.copied import CopiedEngine
from evenhand.tables.engines.stopping import Stopped, Work

log = logging.getLogger("evenhand.keeper")

LEAST_EPSILON = Decimal("0.0001")
"""What a question costs at least, unless the keeper says otherwise: a tenth of the smallest ε that is of use, and 10,000 questions for ε = 1."""
ALIVE_EVERY = 30.0
"""Seconds between two notes in the ledgers that the server runs, while there are debits."""
LATE_AGAIN = 2.0
"""Seconds after which to ask again for an answer that the store has not taken yet."""


@dataclass
class Keeper:
    """Answers questions about the tables it keeps.

    Args:
        tables: by name.
        analysts: by name.
        deadline: seconds after which an answer appears.
        model_deadline: the same for models.
        least_epsilon: the smallest ε that a question may cost, if it costs any.
        price_workers: processes that work prices out; 0 for doing so in this one.
        slowness: how many times slower the machine is than the one that slots were measured on.
    """

    tables: Mapping[str, Offered]
    analysts: Mapping[str, Analyst]
    deadline: float = 10.0
    model_deadline: float = 120.0
    least_epsilon: Decimal = LEAST_EPSILON
    slowness: float = 1.0
    price_workers: int = 0
    prices: Prices = field(init=False, repr=False)
    _opened: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)
    _alive: dict[int, datetime] = field(
        default_factory=dict, repr=False
    )  # by desk: when the server before this one ran
    _behind: dict[bool, float] = field(
        default_factory=dict, repr=False
    )  # for models and others: what a stopped server left
    _storing: Storing = field(default_factory=Storing, repr=False)
    _running: dict[str, tuple[StoredQuestion, Future[str]]] = field(default_factory=dict, repr=False)
    _asking: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    _unsure: bool = field(default=False, repr=False)  # whether a debit may have been recorded that nobody was told of
    _begun: Begun = field(default_factory=Begun, repr=False)
    _late: set[str] = field(default_factory=set, repr=False)
    _due: datetime | None = field(default=None, repr=False)  # the last deadline of what this server was paid for
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _profiles: dict[tuple[str, str], list[tuple[datetime, Profile]]] = field(default_factory=dict, repr=False)
    _pricing: dict[str, threading.Lock] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.prices = Prices({name: one.table for name, one in self.tables.items()}, self.price_workers)
        self._workers = Workers(
            {name: offered.table for name, offered in self.tables.items()},
            {name: offered.rows for name, offered in self.tables.items()},
            self.deadline,
            self.model_deadline,
            self.slowness,
            {name: offered.part_rows for name, offered in self.tables.items()},
        )
        for desk in self._desks():
            known = desk.alive()
            if known is not None:
                self._alive[id(desk)] = datetime.fromisoformat(known)

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
        price = self._priced(analyst, name, text, question)
        self._check_price(price.cost)
        return price.told(offered.desk.question_ledger(analyst, "preview", text, self._analyst(analyst).limits))

    def ask(
        self,
        analyst: str,
        table: str | None,
        key: str,
        question: Mapping[str, Any],
        decided: Callable[[], object] = lambda: None,
    ) -> StoredQuestion:
        """Debit a question and have it answered; asked again with its key, it is only found.

        Raises what is wrong with the question, or with the budget, or that there is no room for it now, at once: that depends on
        public parameters only. ``decided`` is called once there is room, before the debit.
        """
        name, offered = self._table(analyst, table)
        text, desk = self._text(name, question), offered.desk
        question_ledger = desk.question_ledger(analyst, key, text, self._analyst(analyst).limits, stored_first=True)
        query = None
        if self.prices.are_work(text, question) and desk.by_key(analyst, key) is None:
            query = self._priced(analyst, name, text, question).query  # refuses what takes too much
        planned = self._planned(analyst, name, question, query)
        self._check_price(planned.draft.cost)
        with self._being_asked(analyst, key) as alone:
            place = self._reserved(planned, desk, analyst, key)
            try:
                decided()
                receipt = planned.draft.pay(question_ledger)
            except BaseException as error:
                if place is not None:
                    planned.lane.schedule.cancel(place)
                if isinstance(error, AlreadyPaid):
                    if error.question.answer is None and alone():
                        self._again(desk, error.question)
                    return error.question
                if isinstance(error, DataError):
                    self._unsure = True  # the connection may have broken off after the debit
                raise
            asked = question_ledger.asked
            assert asked is not None
            place = place or planned.lane.schedule.insist(
                analyst, planned.slot
            )  # known by its key, and not paid for yet
            self._start(desk, asked, planned.lane, place, lambda: planned.draft.drawn(receipt))
            return asked

    def decide(self, id: str, *, approve: bool, by: str) -> StoredQuestion:
        """Approve or deny a question that waits; what is approved is debited and answered at once, if there is room for it."""
        for offered in self.tables.values():
            desk = offered.desk
            asked = desk.find(id)
            if asked is None:
                continue
            decided = partial(desk.decide, id, approve=approve, by=by)
            if approve and asked.standing is Standing.WAITING:
                stored = json.loads(asked.question)
                self.ask(asked.analyst, stored["table"], asked.key, stored["question"], decided)
            else:
                decided()
            return self._found(desk, id)
        raise UsageError(f"there is no question {id!r}.")

    def lock(self) -> None:
        """From now on no question can make DuckDB read or write a file, or change its settings."""
        for offered in self.tables.values():
            if isinstance(offered.table.engine, CopiedEngine):
                offered.table.engine.lock()

    def warm(self) -> None:
        """Read what first counts would have to read."""
        self._workers.warm()

    def resume(self) -> int:
        """Start again what was paid for and not answered when the server stopped; how many questions that is.

        What a server had begun when it died is not worked out again: it may be why.
        """
        self._begun.recall(self._desks())
        return sum(self._resumed(desk) for desk in self._desks())

    def find(self, analyst: str | None, id: str) -> tuple[StoredQuestion, datetime | None]:
        """A question of an analyst, and until when its answer is kept back; None if it may be seen. Never waits for an answer."""
        for offered in self.tables.values():
            try:
                asked = offered.desk.find(id)
            except DataError:
                with self._lock:
                    running = self._running.get(id)
                if running is None or analyst not in (None, running[0].analyst):
                    raise
                return running[0], self._later(running[0])
            if asked is not None and analyst in (None, asked.analyst):
                return asked, self.held(asked)
        raise UsageError(f"there is no question {id!r} of yours.")

    def asked_by_key(self, analyst: str, table: str | None, key: str) -> StoredQuestion:
        """A question of an analyst by its key, which may wait for approval."""
        found = self._table(analyst, table)[1].desk.by_key(analyst, key)
        if found is None:
            raise UsageError(f"there is no question of yours with the key {key[:40]!r}.")
        return found

    def running(self, analyst: str, id: str) -> Future[str] | None:
        """What can be waited for: nothing for analysts who may not see how long an answer takes."""
        found = self._running.get(id) if self._immediate(analyst) else None
        return None if found is None else found[1]

    def watch(self) -> None:
        """Look after the ledgers while the server runs: note that it does, and find debits whose fate an outage left open."""

        def work() -> None:
            noted = self._opened
            while not self._stop.wait(1.0):
                try:
                    noted = self._looked_after(noted)
                except DataError as error:
                    log.error("the store does not answer", extra={"error": type(error).__name__})
                    self._stop.wait(5.0)

        threading.Thread(target=work, name="watch", daemon=True).start()

    def trouble(self) -> str:
        """What whoever watches the server has to know, in words; empty if all is well."""
        if any(desk.batches.stalled() for desk in self._desks()):
            return "the store does not answer"
        if self._storing.away:
            return f"{self._storing.away} answers are kept until the store takes them"
        return ""

    def close(self) -> None:
        """Let running questions end; what is not stored by then is drawn again when the server is back."""
        self._stop.set()
        self.prices.close()
        self._workers.close()
        self._begun.close()
        self._storing.close()
        if self._due is not None:
            for desk in self._desks():
                try:
                    desk.note_alive(datetime.now(UTC).isoformat())
                except DataError as error:
                    log.error("the store does not answer", extra={"error": type(error).__name__})

    def held(self, asked: StoredQuestion, *, anybody: bool = False) -> datetime | None:
        """Until when an answer is kept back, from its analyst or from anybody who may not see time."""
        if asked.event is None or (self._immediate(asked.analyst) and not anybody):
            return None
        ready = self._ready(asked)
        if datetime.now(UTC) < ready:
            return ready
        if asked.standing is Standing.PAID and asked.analyst in self.analysts:
            return self._later(asked)  # the store has not taken it, or the machine was slower than its slots
        return None

    def _ready(self, asked: StoredQuestion) -> datetime:
        """When an answer is shown: its debit and its deadline, unless a stopped server left it unsettled.

        Then all that were paid for and not due have a new deadline, those that were stored too: which of them were there when the server
        was killed depends on how long they took.
        """
        paid = datetime.fromisoformat(asked.time)
        model = _is_fit(asked)
        allowed = timedelta(seconds=self.model_deadline if model else self.deadline)
        if paid >= self._opened:
            return paid + allowed
        offered = self.tables.get(json.loads(asked.question)["table"])
        alive = None if offered is None else self._alive.get(id(offered.desk))
        if alive is not None and paid + allowed <= alive:
            return paid + allowed
        return self._opened + max(allowed, timedelta(seconds=self._behind.get(model, 0.0)))

    def _later(self, asked: StoredQuestion) -> datetime:
        """When to ask again for an answer that should be there."""
        if asked.id not in self._late:
            self._late.add(asked.id)
            log.warning("question is late: it is shown once it is stored", extra={"question": asked.id})
        return datetime.now(UTC) + timedelta(seconds=LATE_AGAIN)

    def late(self, asked: StoredQuestion) -> bool:
        """Whether an answer was not stored when it should have been shown."""
        return asked.id in self._late and asked.standing is Standing.PAID

    def _priced(self, analyst: str, name: str, text: str, question: Mapping[str, Any]) -> Price:
        """The price of a question; one at a time for each analyst, who else could take all that works prices out."""
        with self._lock:
            turn = self._pricing.setdefault(analyst, threading.Lock())
        with turn:
            return self.prices.price(name, text, question, self._profile(analyst, name))

    def _planned(
        self, analyst: str, name: str, question: Mapping[str, Any], query: Mapping[str, Any] | None = None
    ) -> Planned:
        """What a question is before it is paid for, from public facts alone."""
        return self._workers.planned(name, self._profile(analyst, name), question, query)

    def _reserved(self, planned: Planned, desk: Desk, analyst: str, key: str) -> Place | None:
        """A place for a question; None for one that is known by its key already, which is not kept from its answer."""
        try:
            return planned.lane.schedule.reserve(analyst, planned.slot)
        except (Busy, UsageError):
            known = desk.by_key(analyst, key)
            if known is not None and known.event is not None:
                return None
            raise

    def _check_price(self, cost: Cost | None) -> None:
        if cost and 0 < cost.epsilon < self.least_epsilon:
            raise UsageError(
                f"this question costs ε = {plain(cost.epsilon)}; expected at least ε = {plain(self.least_epsilon)}, the keeper's "
                "least_epsilon: a question takes its time whatever it costs. Nothing was read or spent."
            )

    @contextmanager
    def _being_asked(self, analyst: str, key: str) -> Iterator[Callable[[], bool]]:
        """While a question is debited and started; yields what tells whether nobody else does so with the same key."""
        with self._lock:
            self._asking[analyst, key] += 1
        try:
            yield lambda: self._asking[analyst, key] == 1
        finally:
            with self._lock:
                self._asking[analyst, key] -= 1
                if not self._asking[analyst, key]:
                    del self._asking[analyst, key]

    def _resumed(self, desk: Desk) -> int:
        """Start what was paid for at a desk and is neither answered nor on its way."""
        started = 0
        for asked in desk.asked(standing=Standing.PAID):
            with self._lock:
                busy = asked.id in self._running or (asked.analyst, asked.key) in self._asking
            if busy:
                continue
            if asked.analyst not in self.analysts or json.loads(asked.question)["table"] not in self.tables:
                log.warning(
                    "question is left: keeper.toml has its analyst or table no more", extra={"question": asked.id}
                )
                continue
            started += self._again(desk, asked)
        return started

    def _again(self, desk: Desk, asked: StoredQuestion) -> bool:
        """Have a question drawn that was paid for and has no answer, behind all others; whether it was not on its way already."""
        with self._lock:
            if asked.id in self._running:
                return False
            self._running[asked.id] = (asked, Future())
        self._storing.add(partial(self._prepared, desk, asked))
        return True

    def _prepared(self, desk: Desk, asked: StoredQuestion) -> None:
        """Find the earlier debit of a question, and have it drawn."""
        try:
            stored = json.loads(asked.question)
            planned = self._planned(asked.analyst, stored["table"], stored["question"])
            receipt = self._storing.until_done(asked.id, lambda: planned.draft.pay(desk.earlier(asked)))
        except Exception as error:
            stored_since = isinstance(error, AlreadyPaid) and error.question.answer
            self._ended(asked, stored_since or error)
            return
        times = self._begun.times(asked.id)
        if times:
            self._set_aside(desk, asked, times)
            return
        place = planned.lane.schedule.insist(asked.analyst, planned.slot)
        model = planned.lane is self._workers.models
        with self._lock:
            behind = planned.lane.schedule.waiting() / SHARE
            self._behind[model] = max(self._behind.get(model, 0.0), behind)
        self._start(desk, asked, planned.lane, place, lambda: planned.draft.drawn(receipt), marked=True)

    def _set_aside(self, desk: Desk, asked: StoredQuestion, times: int) -> None:
        """Answer a question during which a server died, as one that fails: about the empty table. If that kills it too, it is left."""
        log.error("question is set aside: a server died while it ran", extra={"question": asked.id, "times": times})
        if times > 1:
            self._ended(asked, DataError("a server died of this question, and of its answer about the empty table"))
            return
        self._storing.until_done(asked.id, lambda: self._begun.note_again(desk, asked))
        self._kept(desk, asked, None)

    def _start(
        self,
        desk: Desk,
        asked: StoredQuestion,
        lane: Lane,
        place: Place,
        draw: Callable[[], Answer],
        *,
        marked: bool = False,
    ) -> None:
        """Have an answer drawn in its slot, and stored; ``marked`` if it is noted in the store before, whatever its slot."""
        with self._lock:
            self._running.setdefault(asked.id, (asked, Future()))
            due = datetime.now(UTC) + timedelta(
                seconds=self.model_deadline if lane is self._workers.models else self.deadline
            )
            self._due = max(self._due or due, due)
        marked |= place.slot > MARKED
        lane.add(Job(place, partial(self._drawn_in, desk, asked, draw, lane.name if marked else None), asked.id))

    def _drawn_in(
        self, desk: Desk, asked: StoredQuestion, draw: Callable[[], Answer], worker: str | None, work: Work
    ) -> None:
        """Draw an answer, in the thread of a worker; or else have one drawn from the empty table."""
        text: str | None = None
        if worker is not None:
            self._begun.note(desk, asked, worker)
        try:
            text = work.run(lambda: answer_text(draw()))
        except Stopped:
            log.error("question was stopped at the end of its slot", extra={"question": asked.id})
        except Exception as error:
            # Whatever it was, it may depend on rows: nobody but the keeper hears of it, and not in which row.
            log.error("question failed after its debit", extra={"question": asked.id, "error": type(error).__name__})
        self._begun.drawn(asked.id)
        self._storing.add(partial(self._kept, desk, asked, text))

    def _kept(self, desk: Desk, asked: StoredQuestion, text: str | None) -> None:
        """Store an answer, however long that takes; without one, that of the empty table."""
        try:
            if text is None:
                text = self._from_nothing(desk, asked)
            stored = self._storing.until_done(asked.id, partial(desk.store, asked.id, text))
            self._note_profile(asked, stored)
        except AlreadyPaid as earlier:  # another process has stored an answer
            self._ended(asked, earlier if earlier.question.answer is None else earlier.question.answer)
        except Exception as error:
            self._ended(asked, error)
        else:
            self._ended(asked, stored)

    def _from_nothing(self, desk: Desk, asked: StoredQuestion) -> str:
        """An answer for an earlier debit, drawn from the empty table."""
        stored = json.loads(asked.question)
        name = self._table(asked.analyst, stored["table"])[0]
        draft = self._workers.about_nothing(name, self._profile(asked.analyst, name), stored["question"])
        receipt = self._storing.until_done(asked.id, lambda: draft.pay(desk.earlier(asked)))
        answer: Answer = draft.drawn(receipt)
        return answer_text(answer)

    def _ended(self, asked: StoredQuestion, outcome: str | Exception) -> None:
        """What became of a question, for whoever waits for it."""
        with self._lock:
            running = self._running.pop(asked.id, None)
            self._late.discard(asked.id)
        if isinstance(outcome, Exception) and not isinstance(outcome, Closing):
            log.error(
                "question has no answer until the server starts again",
                extra={"question": asked.id, "error": type(outcome).__name__},
            )
        if running is None:
            return
        if isinstance(outcome, str):
            running[1].set_result(outcome)
        else:
            running[1].set_exception(
                DataError(
                    f"question {asked.id} was paid for and has no answer yet; it is drawn when the server starts again, under the same "
                    "number, for the same debit."
                )
            )

    def _note_profile(self, asked: StoredQuestion, answer: str) -> None:
        """Use a profile for later questions of the analyst who bought it."""
        if '"profile"' not in answer:
            return
        profile = json.loads(answer).get("profile")
        if profile is not None:
            ready = self.held(asked) or datetime.now(UTC)
            place = (asked.analyst, str(json.loads(asked.question)["table"]))
            with self._lock:
                self._profiles[place] = [*self._profiles.get(place, []), (ready, Profile.from_dict(profile))]

    def _looked_after(self, noted: datetime) -> datetime:
        """One round of `watch`; when it was last noted that the server runs."""
        now = datetime.now(UTC)
        if self._unsure:
            self._unsure = False
            try:
                found = sum(self._resumed(desk) for desk in self._desks())
            except DataError:
                self._unsure = True
                raise
            if found:
                log.warning("debits that an outage left open are answered", extra={"questions": found})
        for desk in self._desks():
            desk.batches.probe()
        every = timedelta(seconds=min(ALIVE_EVERY, self.deadline))
        if self._due is not None and noted < self._due and now - noted >= every:
            for desk in self._desks():
                desk.note_alive(now.isoformat())
            return now
        return noted

    def _desks(self) -> list[Desk]:
        return list({id(offered.desk): offered.desk for offered in self.tables.values()}.values())

    def _profile(self, analyst: str, name: str) -> Profile | None:
        """The latest that the analyst bought of a table and may see; kept until the server stops."""
        now = datetime.now(UTC)
        seen = [profile for ready, profile in self._profiles.get((analyst, name), ()) if ready <= now]
        return seen[-1] if seen else None

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
