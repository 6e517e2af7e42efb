"""``evenhand ledger``: show a budget."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import LedgerError, plain

if TYPE_CHECKING:
    from evenhand.ledger import Event

app = typer.Typer(no_args_is_help=True, help="Show a ledger: what was spent, on what, and what is left.")


@app.command()
def show(
    location: Annotated[str, typer.Argument(help="The ledger: a SQLite file, or postgresql://...")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Recompute all totals from the events first.")] = False,
) -> None:
    """Show the total, what was spent and on what, and what remains.

    Example: evenhand ledger show budget.db
    """
    from evenhand.apps.options import ledger_facts
    from evenhand.ledger import Ledger

    if "://" not in location and not os.path.exists(location):
        raise LedgerError(
            f"there is no ledger {location!r}; it is created by the first `evenhand release ... --ledger {location}`."
        )
    book = Ledger(location)
    if verify:
        book.verify()
    if as_json:
        show_json({**ledger_facts(book), "events": [event.to_dict() for event in book.events]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("#", "time (UTC)", "what", "epsilon", "delta", "protects", box=None, pad_edge=False)
    events = book.events
    numbers = {event.id: event.number for event in events}
    for event in events:
        table.add_row(
            str(event.number), event.time[:19].replace("T", " "), _what(event, numbers),
            plain(event.cost.epsilon), plain(event.cost.delta), _protects(event),
        )  # fmt: skip
    console = Console(highlight=False)
    console.print(f"Ledger {book.location}")
    console.print(f"  total epsilon {plain(book.total.epsilon)}, delta {plain(book.total.delta)}")
    console.print(f"  spent         {book.spent}\n  remaining     {book.remaining}")
    console.print(table if events else "  nothing has been released yet")


def _what(event: Event, numbers: Mapping[str, int]) -> str:
    """The question, and the earlier events that decided how users are bounded."""
    what = " ".join(str(event.query[name]) for name in ("statistic", "column", "by") if event.query.get(name))
    known = [numbers.get(purchase.event or "") for purchase in event.guarantee.earlier]
    rests = ", ".join(f"#{number}" if number else "an event elsewhere" for number in known)
    return f"{what} (bound from {rests})" if rests else what


def _protects(event: Event) -> str:
    """The relation, and which columns count as public."""
    public = ", ".join(event.guarantee.declared)
    return f"{event.guarantee.relation.value} (public: {public})" if public else event.guarantee.relation.value
