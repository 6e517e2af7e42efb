"""The two tables of a ledger, the same on SQLite and Postgres. Amounts are text: exact decimals."""

from __future__ import annotations

from sqlalchemy import DDL, Boolean, Column, Integer, MetaData, Table, Text, event

FORMAT = 2
"""Raised when the tables or the meaning of a column change; a newer format is refused, never guessed at.

1: public facts left no event, and columns could become public on the way; a ρ covered all δ of its event.
2: public facts are events with ε = 0; what the first event made public is all that is public; an event may hold δ beyond its ρ.

Ledgers of format 1 are read as they are. The first debit raises them to 2, so that a version which knows only 1, and would
hand out public facts without asking, refuses them from then on.
"""

metadata = MetaData()

ledger = Table(
    "evenhand_ledger",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1: a single row
    Column("format", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("total_epsilon", Text, nullable=False),
    Column("total_delta", Text, nullable=False),
    Column("renyi_order", Text),
    Column("unit", Text),  # who is protected: set by the first debit
    Column("relation", Text),
    Column("events", Integer, nullable=False),  # from here on: running totals, so that a debit is O(1)
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("renyi", Text, nullable=False),
    Column("summing", Boolean, nullable=False),
    Column("head", Text, nullable=False),  # the link of the latest event
)

events = Table(
    "evenhand_event",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("guarantee", Text, nullable=False),
    Column("cost", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("link", Text, nullable=False, unique=True),
)

_REFUSAL = "events of a privacy ledger are never changed or deleted"

_SQLITE = [
    f"CREATE TRIGGER evenhand_event_{verb.lower()} BEFORE {verb} ON evenhand_event "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    for verb in ("UPDATE", "DELETE")
]
_POSTGRES = [
    "CREATE OR REPLACE FUNCTION evenhand_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER evenhand_event_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON evenhand_event "
    "FOR EACH STATEMENT EXECUTE FUNCTION evenhand_refuse()",
]

for _dialect, _statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRES)):
    for _statement in _statements:
        event.listen(events, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]
