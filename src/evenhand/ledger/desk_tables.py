"""The tables of a desk, beside those of its ledger in the same database, and the statements on them.

Importing this module imports SQLAlchemy; `Desk` waits with that until it is opened.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Row,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    func,
    null,
    or_,
    select,
)

from evenhand.ledger.composition import Budget, Cost

Place = tuple[str, int, bool]
"""A holder, a period, and whether the keeper approved."""
Spent = dict[Place, Budget]

_SUMS = Context(prec=160, traps=[Inexact])

metadata = MetaData()

asked_table = Table(
    "evenhand_asked",
    metadata,
    Column("id", Text, primary_key=True),
    Column("analyst", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("standing", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("decided_by", Text),
    Column("event", Integer, unique=True),
    Column("answer", Text),
    UniqueConstraint("analyst", "key"),
)

_IN_ORDER = Index("evenhand_asked_in_order", asked_table.c.time, asked_table.c.id)

spent_table = Table(
    "evenhand_spent",
    metadata,
    Column("holder", Text, nullable=False),
    Column("period", Integer, nullable=False),
    Column("approved", Boolean, nullable=False),
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    PrimaryKeyConstraint("holder", "period", "approved"),
)

period_table = Table(
    "evenhand_period",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
)

alive_table = Table(
    "evenhand_alive",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
)
"""When a keeper's server was last known to run: one row."""

started_table = Table(
    "evenhand_started",
    metadata,
    Column("worker", Text, primary_key=True),
    Column("id", Text, nullable=False),
    Column("times", Integer, nullable=False),
)
"""What each worker of a keeper's server began last, and which time it is: where there is no answer, the server died meanwhile."""

# Written once: putting a statement together takes longer than SQLite takes to run it.
_BY_ID = select(asked_table).where(asked_table.c.id == bindparam("at"))
_BY_KEY = select(asked_table).where(asked_table.c.analyst == bindparam("by"), asked_table.c.key == bindparam("under"))
_LISTED = select(*(null().label("answer") if one.name == "answer" else one for one in asked_table.c))
_WAITING = select(func.count(), func.sum(func.length(asked_table.c.question))).where(
    asked_table.c.analyst == bindparam("by"), asked_table.c.standing == bindparam("how")
)
_ENTER = asked_table.insert()
_CHANGE = asked_table.update().where(asked_table.c.id == bindparam("at"))
_LATEST = select(period_table).order_by(period_table.c.number.desc()).limit(1)
_SPENT = select(spent_table)
_SPENT_BY = _SPENT.where((spent_table.c.holder == bindparam("one")) | (spent_table.c.holder == bindparam("other")))
_FIRST_SPENT = spent_table.insert()
_MORE_SPENT = spent_table.update().where(
    spent_table.c.holder == bindparam("who"),
    spent_table.c.period == bindparam("when"),
    spent_table.c.approved == bindparam("how"),
)


def create(connection: Connection) -> None:
    """Create the tables that are not there yet."""
    metadata.create_all(connection)
    _IN_ORDER.create(connection, checkfirst=True)  # the ledger may be older than it is


def by_id(connection: Connection, id: str) -> Row[Any] | None:
    """A question by its id."""
    return connection.execute(_BY_ID, {"at": id}).one_or_none()


def by_key(connection: Connection, analyst: str, key: str) -> Row[Any] | None:
    """A question by its analyst and key."""
    return connection.execute(_BY_KEY, {"by": analyst, "under": key}).one_or_none()


def listed(connection: Connection, analyst: str | None, standing: str | None) -> list[Row[Any]]:
    """Questions, oldest first."""
    query = _chosen(select(asked_table), analyst, standing)
    return list(connection.execute(query.order_by(asked_table.c.time, asked_table.c.id)))


def latest(
    connection: Connection,
    analyst: str | None,
    standing: str | None,
    before: tuple[str, str] | None,
    limit: int,
    text: int,
) -> list[Row[Any]]:
    """The latest questions before a time and an id, oldest first, without answers: at most ``limit``, and ``text`` characters or one."""
    time, id = asked_table.c.time, asked_table.c.id
    query = _chosen(select(id, func.length(asked_table.c.question)), analyst, standing)
    if before is not None:
        query = query.where(or_(time < before[0], (time == before[0]) & (id < before[1])))
    chosen: list[str] = []
    for name, length in connection.execute(query.order_by(time.desc(), id.desc()).limit(limit)):
        text -= length
        if chosen and text < 0:
            break
        chosen.append(name)
    return list(connection.execute(_LISTED.where(id.in_(chosen)).order_by(time, id)))


def _chosen(query: Any, analyst: str | None, standing: str | None) -> Any:  # noqa: ANN401 - a SELECT, of whatever columns
    if analyst is not None:
        query = query.where(asked_table.c.analyst == analyst)
    if standing is not None:
        query = query.where(asked_table.c.standing == standing)
    return query


def waiting(connection: Connection, analyst: str, standing: str) -> tuple[int, int]:
    """How many questions of an analyst there are in a standing, and how long their texts are together."""
    found = connection.execute(_WAITING, {"by": analyst, "how": standing}).one()
    return int(found[0]), int(found[1] or 0)


def alive(connection: Connection) -> str | None:
    """When the server was last known to run."""
    found: str | None = connection.execute(select(alive_table.c.time)).scalar_one_or_none()
    return found


def enter_alive(connection: Connection, time: str) -> None:
    """Note that the server runs."""
    if connection.execute(alive_table.update().values(time=time)).rowcount == 0:
        connection.execute(alive_table.insert().values(number=1, time=time))


def enter_started(connection: Connection, worker: str, id: str, times: int) -> None:
    """Note what a worker begins; whatever it did before is done."""
    change = started_table.update().where(started_table.c.worker == worker).values(id=id, times=times)
    if connection.execute(change).rowcount == 0:
        connection.execute(started_table.insert().values(worker=worker, id=id, times=times))


def forget_started(connection: Connection, id: str) -> None:
    """Note that a question was left in good order."""
    connection.execute(started_table.delete().where(started_table.c.id == id))


def started(connection: Connection, standing: str) -> dict[str, int]:
    """The questions of a standing that were begun last, each with which time it was."""
    of = started_table.join(asked_table, started_table.c.id == asked_table.c.id)
    query = select(started_table.c.id, started_table.c.times).select_from(of).where(asked_table.c.standing == standing)
    return {id: int(times) for id, times in connection.execute(query.order_by(started_table.c.times))}


def enter(connection: Connection, **values: object) -> None:
    """Add a question."""
    connection.execute(_ENTER, values)


def change(connection: Connection, id: str, **values: object) -> None:
    """Move a question on."""
    connection.execute(_CHANGE, {"at": id, **values})


def period(connection: Connection, name: str) -> int:
    """The number of the present period. A clock that went back stays in the latest one."""
    return _period(connection, name)[0]


def enter_period(connection: Connection, name: str) -> int:
    """The same, and from now on no earlier one."""
    number, new = _period(connection, name)
    if new:
        connection.execute(period_table.insert().values(number=number, name=name))
    return number


def _period(connection: Connection, name: str) -> tuple[int, bool]:
    latest = connection.execute(_LATEST).one_or_none()
    if latest is None:
        return 1, True
    later = name > latest.name
    return int(latest.number) + later, later


def add(connection: Connection, spent: Spent, place: Place, cost: Cost) -> None:
    """Add a cost to what was spent at a place."""
    after = plus(spent.get(place, Budget(Decimal(0))), cost)
    values = {"epsilon": str(after.epsilon), "delta": str(after.delta)}
    holder, when, approved = place
    if place in spent:
        connection.execute(_MORE_SPENT, {"who": holder, "when": when, "how": approved, **values})
    else:
        connection.execute(_FIRST_SPENT, {"holder": holder, "period": when, "approved": approved, **values})


def spent(connection: Connection, one: str | None = None, other: str | None = None) -> Spent:
    """What was spent, by holder, period and approval; by one holder or two, or by all."""
    holders = {"one": one, "other": other or one}
    rows = connection.execute(_SPENT) if one is None else connection.execute(_SPENT_BY, holders)
    return {
        (row.holder, row.period, bool(row.approved)): Budget(Decimal(row.epsilon), Decimal(row.delta)) for row in rows
    }


def total(spent: Spent, holder: str, *, period: int | None = None, approved: bool | None = None) -> Budget:
    """What a holder spent: ever or in one period, with or without approval."""
    found = Budget(Decimal(0))
    for (who, when, how), amount in spent.items():
        if who == holder and period in (None, when) and approved in (None, how):
            found = plus(found, amount)
    return found


def plus(one: Budget, other: Budget | Cost) -> Budget:
    """ε and δ added up, exactly."""
    return Budget(_SUMS.add(one.epsilon, other.epsilon), _SUMS.add(one.delta, other.delta))
