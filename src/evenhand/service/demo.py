"""A keeper's server for the bundled streaming table: nothing to configure, nothing real behind it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from evenhand.ledger import Budget, Ledger
from evenhand.ledger.desk import Desk, Limits
from evenhand.service.accounts import Accounts, Role
from evenhand.service.keeper import Analyst, Keeper, Offered
from evenhand.tables import Column, Table
from evenhand.tables.engines.copied import copied

ANALYST = "ann"
ROWS = 1_500_000
"""That the table is declared to have at most; it is generated."""
COLUMNS = {
    "stars": Column(bounds=(0.5, 5), unit="stars", description="what the viewer gave the film"),
    "minutes": Column(bounds=(0, 240), unit="minutes", description="how long it was watched"),
    "genre": Column(keys=("drama", "comedy", "crime", "nature"), description="of the film"),
}
"""What is publicly known about the demo's columns."""


def demo_keeper(folder: Path, table: Table) -> tuple[Keeper, Accounts, str, str]:
    """A keeper of one table, its accounts, and the tokens of an analyst and of the keeper."""
    desk = Desk(Ledger(folder / "budget.db", epsilon=10, delta="1e-5"))
    limits = Limits(Budget(Decimal(5), Decimal("5e-6")), unapproved=Decimal(3))
    keeper = Keeper(
        {"views": Offered(copied(table), desk, "Views of films on a streaming service (synthetic).", ROWS)},
        {ANALYST: Analyst(limits, immediate=True)},
    )
    accounts = Accounts(folder / "accounts.db")
    return keeper, accounts, accounts.issue(ANALYST, Role.ANALYST, 1), accounts.issue("keeper", Role.KEEPER, 1)
