"""``evenhand ledger``: look into a budget."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import LedgerError, plain

app = typer.Typer(no_args_is_help=True, help="Look into a ledger: what was spent, on what, and what is left.")


@app.command()
def show(
    location: Annotated[str, typer.Argument(help="The ledger: a SQLite file, or postgresql://...")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Recompute all totals from the events first.")] = False,
) -> None:
    """Show the total, what was spent and on what, and what remains.

    Example: evenhand ledger show budget.db
    """
    from evenhand.apps.release_cli import ledger_facts
    from evenhand.ledger import Ledger

    if "://" not in location and not os.path.exists(location):
        raise LedgerError(
            f"there is no ledger {location!r}; one is made by the first `evenhand release ... --ledger {location}`."
        )
    book = Ledger(location)
    if verify:
        book.verify()
    if as_json:
        show_json({**ledger_facts(book), "events": [event.to_dict() for event in book.events]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=None, box=None, pad_edge=False)
    for name in ("#", "time (UTC)", "what", "epsilon", "delta", "protects"):
        table.add_column(name)
    for event in book.events:
        what = " ".join(str(event.query[name]) for name in ("statistic", "column", "by") if event.query.get(name))
        table.add_row(
            str(event.number), event.time[:19].replace("T", " "), what,
            plain(event.cost.epsilon), plain(event.cost.delta), event.guarantee.relation.value,
        )  # fmt: skip
    console = Console()
    console.print(f"Ledger {book.location}", highlight=False)
    console.print(f"  total epsilon {plain(book.total.epsilon)}, delta {plain(book.total.delta)}", highlight=False)
    console.print(f"  spent         {book.spent}\n  remaining     {book.remaining}", highlight=False)
    console.print(table if book.events else "  nothing has been released yet")
