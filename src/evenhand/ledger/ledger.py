"""The durable budget: every debit is on disk before the caller may draw noise."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import (
    Amount,
    BudgetExceeded,
    EvenhandError,
    Guarantee,
    LedgerError,
    Relation,
    UsageError,
    parse_delta,
    parse_epsilon,
)
from evenhand.ledger import admission, failures
from evenhand.ledger.composition import Budget, Cost
from evenhand.ledger.dividing import largest_epsilon
from evenhand.ledger.events import Asked, Event, Record, account_name
from evenhand.ledger.shown import ShownInNotebooks
from evenhand.ledger.store import Store
from evenhand.ledger.verifying import verify_history

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from evenhand.ledger.state import State

LARGEST_TOTAL = Decimal(10**9)


class Ledger(ShownInNotebooks):
    """A privacy budget for one population, kept in a SQLite file or a Postgres database.

    Guarantee: all releases debited to one ledger, by any number of processes and chosen in view of each
    other's results, together are (``total.epsilon``, ``total.delta``)-differentially private for its unit and
    neighbour relation. A debit is on disk when ``debit`` returns: a crash may cost budget, never privacy.

    Edge cases: the first debit fixes the user columns (or population), the relation and the public columns, also when it
    is a public fact that costs nothing; what promises less is refused. A presence release on a ledger of values counts as
    two steps. ε sums are exact decimals. A ledger restored from an old backup forgets debits: an open ``Ledger`` notices, a
    new process can't unless it is given a ``head`` noted earlier (see ``verify``). A pickle holds no password.

    Args:
        location: path of a SQLite file, or ``postgresql://user@host/database``.
        epsilon: the total ε of a new ledger, at most 1e9; for an existing one leave it out, or it must agree.
        delta: the total δ; 0 allows pure differential privacy only.
        who: who asks, for the events: a person or a job; the name of the account that runs this unless given.
        note: one line for the events, such as ``"nightly, 2026-11-16"``; ``ledger.note`` may be set later, too.

    Example:
        >>> ledger = Ledger("budget.db", epsilon=1.0)  # doctest: +SKIP
        >>> ledger.remaining.epsilon  # doctest: +SKIP
        Decimal('1')

    Reference: docs/ledger.md, docs/proofs/composition.md.
    """

    who: str | None = None
    note: str | None = None

    def __init__(
        self,
        location: str | os.PathLike[str],
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        *,
        who: str | None = None,
        note: str | None = None,
    ) -> None:
        self.who, self.note = who or account_name(), note
        Asked(self.who, note=note)  # refuses what can't be written
        given = None
        if epsilon is not None:
            given = Budget(parse_epsilon(epsilon, largest=LARGEST_TOTAL), parse_delta(0 if delta is None else delta))
        elif delta is not None:
            raise UsageError(f"delta={delta} without epsilon: give both totals, or neither to open an existing ledger.")
        self._store = Store(location)
        self._seen: State | None = None
        state = self._open(given)
        if given is not None and state.account.total != given:
            raise UsageError(
                f"ledger {self.location} was created with a total of {state.account.total}, but {given} was "
                "given: a total can't be changed. Leave epsilon= and delta= out to use the ledger as it is."
            )

    @property
    def location(self) -> str:
        """The path or URL, without any password."""
        return self._store.name

    @property
    def total(self) -> Budget:
        """The (ε, δ) that the ledger was created with."""
        return self._state().account.total

    @property
    def spent(self) -> Budget:
        """The (ε, δ) that all debits so far add up to."""
        return self._state().account.spent

    @property
    def remaining(self) -> Budget:
        """Total minus spent."""
        return self._state().account.remaining

    @property
    def unit(self) -> tuple[str, ...] | None:
        """The user columns or population that the first debit named; None before it."""
        return self._state().unit

    @property
    def relation(self) -> Relation | None:
        """The neighbour relation of the first debit; None before it."""
        return self._state().relation

    @property
    def public(self) -> tuple[str, ...] | None:
        """The columns that releases may treat as public, as the first debit named them; None before it."""
        return self._state().public

    @property
    def head(self) -> str:
        """A digest of the whole history. Noted elsewhere, it lets ``verify`` notice a restored backup."""
        return self._state().head

    @property
    def events(self) -> tuple[Event, ...]:
        """All debits, oldest first."""
        from evenhand.ledger import state as ledger_state

        records = self._store.run(ledger_state.records)
        with failures.damaged(self.location):
            return tuple(record.read() for record, _ in records)

    def each(self, times: int) -> Decimal:
        """The largest ε, to three digits, for each of so many equal releases to come; without δ in each.

        On a ledger with δ this is more than what remains over ``times``, because many small releases compose better.

        Example:
            >>> session.count(epsilon=ledger.each(365))  # doctest: +SKIP
        """
        return largest_epsilon(self._state().account, times)

    def can_afford(self, cost: Cost, guarantee: Guarantee) -> bool:
        """Whether ``debit`` would succeed now. Spends nothing; raises UsageError where ``debit`` would."""
        state = self._state()
        charged = admission.charge(self.location, state, cost, guarantee)
        if guarantee.parts:
            self._store.run(lambda connection: admission.check_parts(connection, self.location, guarantee))
        return state.account.after(charged) is not None

    def debit(
        self,
        cost: Cost,
        query: Mapping[str, Any],
        guarantee: Guarantee,
        table: str | None = None,
        *,
        admit: admission.Admit | None = None,
    ) -> Event:
        """Record the cost of a release durably, before its noise is drawn.

        Guarantee: when this returns, the debit survives the death of the process or the machine. When it
        raises, the caller must not release anything.

        A public fact is debited too, with a cost of 0: it must be public for this ledger, and leaves an event.

        Args:
            cost: what the release costs under ``guarantee.relation``.
            query: public parameters of the release, kept in the event; never data.
            guarantee: what the release promises by itself.
            table: the name of its source, for the event.
            admit: has a say in the same transaction (`QuestionLedger`).

        Raises:
            BudgetExceeded: the total would not hold; nothing was spent.
            UsageError: another unit, a relation that implies nothing here, columns that are not public here, or δ on a
                ledger without δ.
            LedgerError: the ledger could not be written.
        """
        from evenhand.ledger import state as ledger_state

        seen, asked = self._seen, Asked(self.who, table, self.note)

        def work(connection: Connection) -> tuple[Event, State]:
            state = self._read(connection, seen, lock=True)
            charged = admission.charge(self.location, state, cost, guarantee)
            admission.check_parts(connection, self.location, guarantee)
            noted = {} if admit is None else admit(connection, state, charged)
            if isinstance(noted, Event):
                return noted, state
            account = state.account.after(charged)
            if account is None:
                raise BudgetExceeded(admission.refusal(self.location, charged, state.account))
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            record = Record.write(
                state.events + 1, str(uuid.uuid4()), now, guarantee, charged, {**query, **noted}, asked
            )
            after = replace(
                state,
                account=account,
                unit=state.unit or guarantee.unit,
                relation=state.relation or guarantee.relation,
                public=admission.public_after(state, guarantee),
                events=record.number,
                head=record.link(state.head),
            )
            ledger_state.append(connection, record, after)
            return record.read(), after

        event, after = self._store.run(work, write=True, collects=True)
        self._remember(after)
        return event

    def verify(self, head: str | None = None) -> None:
        """Recompute the ledger from its events, and raise LedgerError if anything was edited or lost.

        Args:
            head: a ``ledger.head`` noted earlier, outside the ledger; raises if that history is no longer
                part of this one, as after restoring an older backup.
        """
        from evenhand.ledger import state as ledger_state

        seen = self._seen

        def work(connection: Connection) -> tuple[State, list[tuple[Record, str]]]:
            return self._read(connection, seen), ledger_state.records(connection)

        state, records = self._store.run(work)
        verify_history(self.location, state, records, head)

    def __repr__(self) -> str:
        try:
            account = self._state().account
        except EvenhandError:
            return f"Ledger({self.location!r}, unreadable)"
        return f"Ledger({self.location!r}, total: {account.total}; spent: {account.spent})"

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[object, ...]]:
        return _reopened, (self._store, self.who, self.note)

    def __copy__(self) -> Ledger:
        return self  # a copy is the same ledger; scikit-learn's clone must not lose the password on the way

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def _open(self, given: Budget | None) -> State:
        from evenhand.ledger import state as ledger_state

        if self._store.is_new or not self._store.run(ledger_state.exists):
            if given is None:
                raise UsageError(
                    f"there is no ledger at {self.location} yet: check the path, or create it by giving its "
                    "total, such as Ledger(..., epsilon=1.0)."
                )
            self._store.run(partial(ledger_state.create, name=self.location, total=given), write=True, create=True)
        return self._state()

    def _state(self) -> State:
        seen = self._seen
        state = self._store.run(lambda connection: self._read(connection, seen))
        self._remember(state)
        return state

    def _read(self, connection: Connection, seen: State | None, *, lock: bool = False) -> State:
        """Read the state, and refuse one that does not continue what was seen before the transaction."""
        from evenhand.ledger import state as ledger_state

        state = ledger_state.read(connection, self.location, lock=lock)
        if seen is None or (state.id, state.head) == (seen.id, seen.head):
            return state
        kept = not seen.events or ledger_state.link_at(connection, seen.events) == seen.head
        if state.id != seen.id or not kept:
            raise LedgerError(
                f"ledger {self.location} went back in time: it was replaced or restored from a backup while "
                "in use. Debits are missing; put the newer file back, or count what was released since as "
                "spent."
            )
        return state

    def _remember(self, state: State) -> None:
        # No lock: if two threads race, the older state wins and the next check is merely weaker.
        if self._seen is None or state.events >= self._seen.events:
            self._seen = state


def _reopened(store: Store, who: str | None = None, note: str | None = None) -> Ledger:
    """An unpickled ledger: nothing is opened before it is used, so that models can be read where their ledger is not."""
    ledger = Ledger.__new__(Ledger)
    ledger._store, ledger._seen = store, None
    ledger.who, ledger.note = who, note
    return ledger
