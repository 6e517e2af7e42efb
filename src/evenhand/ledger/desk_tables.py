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
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Row,
    Table,
    Text,
    UniqueConstraint,
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


def create(connection: Connection) -> None:
    """Create the tables that are not there yet."""
    metadata.create_all(connection)


def by_id(connection: Connection, id: str) -> Row[Any] | None:
    """A question by its id."""
    return connection.execute(select(asked_table).where(asked_table.c.id == id)).one_or_none()


def by_key(connection: Connection, analyst: str, key: str) -> Row[Any] | None:
    """A question by its analyst and key."""
    mine = (asked_table.c.analyst == analyst) & (asked_table.c.key == key)
    return connection.execute(select(asked_table).where(mine)).one_or_none()


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
    connection.execute(asked_table.insert().values(**values))


def change(connection: Connection, id: str, **values: object) -> None:
    """Move a question on."""
    connection.execute(asked_table.update().where(asked_table.c.id == id).values(**values))


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
    latest = connection.execute(select(period_table).order_by(period_table.c.number.desc()).limit(1)).one_or_none()
    if latest is None:
        return 1, True
    later = name > latest.name
    return int(latest.number) + later, later


def add(connection: Connection, spent: Spent, place: Place, cost: Cost) -> None:
    """Add a cost to what was spent at a place."""
    after = plus(spent.get(place, Budget(Decimal(0))), cost)
    values = {"epsilon": str(after.epsilon), "delta": str(after.delta)}
    named = dict(zip(("holder", "period", "approved"), place, strict=True))
    if place in spent:
        connection.execute(spent_table.update().filter_by(**named).values(**values))
    else:
        connection.execute(spent_table.insert().values(**named, **values))


def spent(connection: Connection, *holders: str) -> Spent:
    """What was spent, by holder, period and approval; by these holders, or by all."""
    query = select(spent_table)
    rows = connection.execute(query.where(spent_table.c.holder.in_(holders)) if holders else query)
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
