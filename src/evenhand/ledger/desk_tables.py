"""The tables of a desk, beside those of its ledger in the same database, and the statements on them.

Importing this module imports SQLAlchemy; `Desk` waits with that until it is opened.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Row,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    select,
)

from evenhand.guarantee import exact_text, fixed_context
from evenhand.ledger.composition import Budget, Cost

Place = tuple[str, int, bool]
"""A holder, a period, and whether the keeper approved."""
Spent = dict[Place, Budget]

_SUMS = fixed_context(160, exact=True)

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

# Written once: putting a statement together takes longer than SQLite takes to run it.
_BY_ID = select(asked_table).where(asked_table.c.id == bindparam("at"))
_BY_KEY = select(asked_table).where(asked_table.c.analyst == bindparam("by"), asked_table.c.key == bindparam("under"))
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


def by_id(connection: Connection, id: str) -> Row[Any] | None:
    """A question by its id."""
    return connection.execute(_BY_ID, {"at": id}).one_or_none()


def by_key(connection: Connection, analyst: str, key: str) -> Row[Any] | None:
    """A question by its analyst and key."""
    return connection.execute(_BY_KEY, {"by": analyst, "under": key}).one_or_none()


def listed(connection: Connection, analyst: str | None, standing: str | None) -> list[Row[Any]]:
    """Questions, oldest first."""
    query = select(asked_table).order_by(asked_table.c.time, asked_table.c.id)
    if analyst is not None:
        query = query.where(asked_table.c.analyst == analyst)
    if standing is not None:
        query = query.where(asked_table.c.standing == standing)
    return list(connection.execute(query))


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
    values = {"epsilon": exact_text(after.epsilon), "delta": exact_text(after.delta)}
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
