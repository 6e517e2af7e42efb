"""What a keeper offers, and what it grants to whom."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.ledger.desk import Desk, Limits
from evenhand.service.slots import DECLARED_ROWS
from evenhand.tables import Table


@dataclass(frozen=True)
class Offered:
    """A table that analysts may ask about.

    Args:
        table: the rows.
        desk: where the population's budget is kept.
        description: for analysts.
        rows: how many it is declared to hold at most; public, and what the time of a question is computed from.
        part_rows: how many its parts are declared to hold at most, all together.
    """

    table: Table
    desk: Desk
    description: str = ""
    rows: int = DECLARED_ROWS
    part_rows: int = 0


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
