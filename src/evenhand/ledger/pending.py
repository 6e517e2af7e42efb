"""What the debits of one transaction have read, and will write: each row is read once and written once, however many debits share it.

A debit reads the ledger's totals and those of its analyst, and changes them. Twenty debits in one transaction would read and write the same
rows twenty times, and on Postgres each statement is a journey to the server. So the first one reads; those that follow go on from what it left
here, and the end of the transaction writes. Until then nothing is durable, and nobody is told of anything.

The transaction holds the ledger's lock from the first debit on, so nobody else changes what is remembered here. What is asked of the
database in other words (lists, sums) is asked after `flush`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from evenhand.ledger.composition import Budget
    from evenhand.ledger.state import State

Write = Callable[["Connection", "Pending"], None]


@dataclass
class Pending:
    """Rows that were read under the lock, with what is to be written.

    Args:
        state: the ledger after the last debit; None before the first.
        links: of events, by number, as far as they were asked for.
        events: that are new.
        period: number and name of the latest period.
        periods: that are new.
        spent: what holders spent, by place, for the holders that were read.
        holders: that were read.
        grown: places where more was spent; True where there was no row before.
        asked: new questions, by id.
        changed: columns of questions that are there already, by id.
    """

    state: State | None = None
    links: dict[int, str | None] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    period: tuple[int, str] | None = None
    periods: list[tuple[int, str]] = field(default_factory=list)
    spent: dict[tuple[str, int, bool], Budget] = field(default_factory=dict)
    holders: set[str] = field(default_factory=set)
    grown: dict[tuple[str, int, bool], bool] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def copy(self) -> Pending:
        """The same, to come back to."""
        return Pending(
            self.state,
            dict(self.links),
            list(self.events),
            self.period,
            list(self.periods),
            dict(self.spent),
            set(self.holders),
            dict(self.grown),
            {id: dict(values) for id, values in self.asked.items()},
            {id: dict(values) for id, values in self.changed.items()},
        )

    def back_to(self, earlier: Pending) -> None:
        """Forget what came after a `copy`."""
        vars(self).update(vars(earlier))

    def question(self, row: Any) -> Any:  # noqa: ANN401 - a row, or what stands for one
        """A question as it will be, from its row."""
        if row is None or row.id not in self.changed:
            return row
        return SimpleNamespace(**{**row._mapping, **self.changed[row.id]})

    def new_question(self, **known: str) -> Any:  # noqa: ANN401 - as above
        """A question that is yet to be written, by some of its columns."""
        for values in self.asked.values():
            if all(values[name] == value for name, value in known.items()):
                return SimpleNamespace(**values)
        return None

    def flush(self, connection: Connection) -> None:
        """Write what is to be written, and forget what was read: what comes next may change it in other words."""
        if self.state is not None or self.asked or self.changed:
            written = self.copy()
            self.back_to(Pending())
            for write in writers:
                write(connection, written)


writers: list[Write] = []
"""What writes: the ledger's own rows, and those of its desk."""

_pending: WeakKeyDictionary[Connection, Pending] = WeakKeyDictionary()


def begin(connection: Connection) -> Pending:
    """At the start of a transaction that writes."""
    _pending[connection] = found = Pending()
    return found


def of(connection: Connection) -> Pending:
    """What is pending in a transaction; in one that only reads, nothing ever is."""
    found = _pending.get(connection)
    return Pending() if found is None else found
