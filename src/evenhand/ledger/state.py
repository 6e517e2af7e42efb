"""The single row that a debit reads and updates, and the statements that do so.

Importing this module imports SQLAlchemy; `Ledger` waits with that until it is opened.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, bindparam, inspect, select

from evenhand.guarantee import LedgerError, Reach, Relation, exact_text
from evenhand.ledger import failures, pending, schema
from evenhand.ledger.composition import Account, Budget
from evenhand.ledger.events import Record, digest, read_guarantee

# Written once: putting a statement together takes longer than SQLite takes to run it.
_LEDGER = select(schema.ledger)
_LOCKED = _LEDGER.with_for_update()
_APPEND, _MOVE_ON = schema.events.insert(), schema.ledger.update()
_LINK = select(schema.events.c.link).where(schema.events.c.number == bindparam("at"))


@dataclass(frozen=True)
class State:
    """A ledger at one moment.

    Args:
        id: random, given at creation: a ledger that was deleted and created anew is another one.
        account: the running totals.
        unit: whose privacy it is; None before the first debit.
        relation: the neighbour relation; None before the first debit.
        public: the columns that may be treated as public; None while no release has named any, which leaves that open.
        events: how many debits there are.
        head: the link of the latest event, or of the creation.
    """

    id: str
    account: Account
    unit: tuple[str, ...] | None
    relation: Relation | None
    public: tuple[str, ...] | None
    events: int
    head: str


def genesis(id: str, total: Budget, order: Decimal | None) -> str:
    """The link that the first event continues: binds the history to this ledger and its total."""
    return digest(id, exact_text(total.epsilon), exact_text(total.delta), _order_text(order) or "None")


def _order_text(order: Decimal | None) -> str | None:
    return None if order is None else exact_text(order)


def exists(connection: Connection) -> bool:
    """Whether the database holds a ledger."""
    return inspect(connection).has_table("evenhand_ledger")


def create(connection: Connection, name: str, total: Budget) -> None:
    """Create the tables and the first state, unless another process was faster."""
    if exists(connection):
        return
    if connection.dialect.name == "sqlite" and inspect(connection).get_table_names():
        raise LedgerError(
            f"ledger {name}: this is a SQLite database, but not a ledger; give another path, and leave this file alone."
        )
    schema.metadata.create_all(connection)
    account, id = Account.open(total), str(uuid.uuid4())
    state = State(id, account, None, None, None, 0, genesis(id, total, account.order))
    connection.execute(
        schema.ledger.insert().values(
            one=1,
            id=id,
            total_epsilon=exact_text(total.epsilon),
            total_delta=exact_text(total.delta),
            renyi_order=_order_text(account.order),
            **_running(state),
        )
    )


def lock(connection: Connection) -> None:
    """Wait for the other writers of this ledger, and keep them waiting until this transaction ends."""
    collected = pending.of(connection)
    if collected.state is None and not collected.locked:
        connection.execute(_LOCKED)
        collected.locked = True


def read(connection: Connection, name: str, *, lock: bool = False) -> State:
    """Read the state; with ``lock`` no other transaction can change it before this one ends."""
    collected = pending.of(connection)
    if lock and collected.state is not None:
        return collected.state
    row = connection.execute(_LOCKED if lock else _LEDGER).one_or_none()
    if row is None:
        raise LedgerError(f"ledger {name} has lost its totals: it is damaged; restore it from a backup.")
    with failures.damaged(name):
        newer = int(row.format) > schema.FORMAT
    if newer:
        raise LedgerError(
            f"ledger {name} has format {row.format}, this version of Evenhand knows {schema.FORMAT}: upgrade "
            "Evenhand where it is used."
        )
    with failures.damaged(name):
        account = Account(
            total=Budget(Decimal(row.total_epsilon), Decimal(row.total_delta)),
            order=None if row.renyi_order is None else Decimal(row.renyi_order),
            epsilon=Decimal(row.epsilon),
            delta=Decimal(row.delta),
            renyi=Decimal(row.renyi),
            summing=row.summing,
        )
        unit = None if row.unit is None else tuple(json.loads(row.unit))
        relation = None if row.relation is None else Relation(row.relation)
        public = _first_public(connection, relation)
        found = State(row.id, account, unit, relation, public, row.events, row.head)
    if lock:
        collected.state, collected.links[found.events] = found, found.head
    return found


def _first_public(connection: Connection, relation: Relation | None) -> tuple[str, ...] | None:
    """The columns that the first event treats as public.

    Under labels, events about arrays name no columns and so say nothing: the first one that names some counts.
    """
    if relation is None or relation is Relation.PRESENCE:
        return None if relation is None else ()
    stored = schema.events.c.guarantee
    query = select(stored).order_by(schema.events.c.number).limit(1)
    if relation is Relation.LABELS:
        # As written by Record.write; a quote inside a name is escaped, so no name looks like this.
        query = query.where(~stored.contains('"public": []'), ~stored.contains('"protects": "presence"'))
    text = connection.execute(query).scalar()
    return None if text is None else read_guarantee(text).declared


def reach(connection: Connection, part: str) -> Reach | None:
    """How the first event that names a part reaches its rows; None if none does."""
    stored = schema.events.c.guarantee
    # As written by Record.write; a quote inside a name is escaped, so no name looks like this.
    named = f"[{json.dumps(part)}, ["
    query = select(stored).where(stored.contains(named, autoescape=True)).order_by(schema.events.c.number).limit(1)
    waiting = [each["guarantee"] for each in pending.of(connection).events if named in each["guarantee"]]
    text = connection.execute(query).scalar() or next(iter(waiting), None)
    return None if text is None else next(each for each in read_guarantee(text).parts if each.part == part)


def append(connection: Connection, record: Record, after: State) -> None:
    """Add one event and move the state on, at the end of the transaction: both or, if it fails, neither."""
    collected = pending.of(connection)
    collected.events.append({**vars(record), "link": after.head})
    collected.state, collected.links[after.events] = after, after.head


def _write(connection: Connection, collected: pending.Pending) -> None:
    if collected.events:
        assert collected.state is not None
        connection.execute(_APPEND, collected.events)
        connection.execute(_MOVE_ON, _running(collected.state))


pending.writers.append(_write)


def records(connection: Connection) -> list[tuple[Record, str]]:
    """All events with their stored links, oldest first."""
    rows = connection.execute(select(schema.events).order_by(schema.events.c.number))
    return [(Record(*row[:-1]), row[-1]) for row in rows]


def record_at(connection: Connection, number: int) -> Record:
    """One event."""
    for values in pending.of(connection).events:
        if values["number"] == number:
            return Record(**{name: value for name, value in values.items() if name != "link"})
    return Record(*connection.execute(select(schema.events).where(schema.events.c.number == number)).one()[:-1])


def link_at(connection: Connection, number: int) -> str | None:
    """The stored link of one event, or None if there is no such event."""
    links = pending.of(connection).links
    if number not in links:
        links[number] = connection.execute(_LINK, {"at": number}).scalar()
    return links[number]


def _running(state: State) -> dict[str, object]:
    """The columns of the state that a debit changes."""
    account = state.account
    return {
        "format": schema.FORMAT,
        "unit": None if state.unit is None else json.dumps(state.unit),
        "relation": None if state.relation is None else state.relation.value,
        "events": state.events,
        "epsilon": exact_text(account.epsilon),
        "delta": exact_text(account.delta),
        "renyi": exact_text(account.renyi),
        "summing": account.summing,
        "head": state.head,
    }
