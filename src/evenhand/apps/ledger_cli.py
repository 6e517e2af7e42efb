"""``evenhand ledger``: create, show, verify and export a budget."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import LedgerError, UsageError, plain

if TYPE_CHECKING:
    from evenhand.ledger import Event, Ledger

app = typer.Typer(no_args_is_help=True, help="A ledger: what was spent, on what, and what is left.")

_WIDE = 400

Location = Annotated[str, typer.Argument(help="The ledger: a SQLite file, or postgresql://...")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command()
def create(
    location: Location,
    epsilon: Annotated[str, typer.Option(help="The total epsilon; it can't be changed later.")],
    delta: Annotated[str, typer.Option(help="The total delta; 0 for pure differential privacy only.")] = "0",
) -> None:
    """Create a ledger with a total. There must not be one yet.

    Example: evenhand ledger create budget.db --epsilon 1 --delta 1e-6
    """
    from evenhand.ledger import Ledger

    if "://" not in location and os.path.exists(location) and os.path.getsize(location):
        raise UsageError(f"there is a file {location!r} already, and a total can't be changed; give another path.")
    book = Ledger(location, epsilon=epsilon, delta=delta)
    if book.events:
        raise UsageError(f"there is a ledger in {book.location} already, with the total {book.total}; it is as it was.")
    print(f"Ledger {book.location}: {book.total}")


@app.command()
def divide(
    location: Location,
    times: Annotated[int, typer.Option(help="How many releases are to come, such as 365.")],
) -> None:
    """Say how large each of many equal releases may be, for a job that recurs. Nothing is spent.

    Example: evenhand ledger divide budget.db --times 365
    """
    book = _opened(location)
    print(
        f"epsilon {plain(book.each(times))} for each of {times:,} releases, of {book.remaining} left in {book.location}"
    )


@app.command()
def verify(
    location: Location,
    head: Annotated[
        str | None, typer.Option(help="A head noted earlier, elsewhere: notices a restored backup.")
    ] = None,
) -> None:
    """Recompute all totals and the chain of hashes from the events; fails if anything was edited or lost.

    Prints the head, a digest of the whole history: note it outside the ledger.

    Example: evenhand ledger verify budget.db
    """
    book = _opened(location)
    book.verify(head)
    print(f"{len(book.events)} events agree with the totals; head {book.head}")


@app.command()
def export(
    location: Location,
    out: Annotated[Path, typer.Option(help="Where to write all events: a path that ends in .csv or .jsonl.")],
) -> None:
    """Write all events to a file, one per line; nothing is overwritten.

    Example: evenhand ledger export budget.db --out events.csv
    """
    if out.suffix not in (".csv", ".jsonl"):
        raise UsageError(f"--out {out}: expected a path that ends in .csv or .jsonl.")
    book = _opened(location)
    numbers = {event.id: event.number for event in book.events}
    try:
        with out.open("x", encoding="utf-8", newline="") as file:
            if out.suffix == ".jsonl":
                file.writelines(
                    json.dumps(event.to_dict(), ensure_ascii=False, default=str) + "\n" for event in book.events
                )
                return
            rows = csv.DictWriter(file, _EXPORTED)
            rows.writeheader()
            rows.writerows(_row(event, numbers) for event in book.events)
    except OSError as error:
        raise UsageError(f"--out {out} can't be written: {error.strerror}; give a new, writable path.") from None


_EXPORTED = ("number", "time", "what", "epsilon", "delta", "protects", "who", "table", "note", "query", "id")


def _row(event: Event, numbers: Mapping[str, int]) -> dict[str, object]:
    return {
        "number": event.number,
        "time": event.time,
        "what": _what(event, numbers),
        "epsilon": plain(event.cost.epsilon),
        "delta": plain(event.cost.delta),
        "protects": _protects(event),
        "query": json.dumps(event.query, ensure_ascii=False, sort_keys=True),
        "id": event.id,
        **event.asked.to_dict(),
    }


def _opened(location: str) -> Ledger:
    from evenhand.ledger import Ledger

    if "://" not in location and not os.path.exists(location):
        raise LedgerError(
            f"there is no ledger {location!r}; make one with `evenhand ledger create {location} --epsilon ...`, or by the first "
            f"`evenhand release ... --ledger {location}`."
        )
    return Ledger(location)


@app.command()
def show(
    location: Location,
    as_json: AsJson = False,
    verify: Annotated[bool, typer.Option("--verify", help="Recompute all totals from the events first.")] = False,
) -> None:
    """Show the total, what was spent and on what, and what remains.

    Example: evenhand ledger show budget.db
    """
    from evenhand.apps.options import ledger_facts

    book = _opened(location)
    if verify:
        book.verify()
    if as_json:
        show_json({**ledger_facts(book), "events": [event.to_dict() for event in book.events]})
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    events = book.events
    asked = [name for name in ("who", "table", "note") if any(name in event.asked.to_dict() for event in events)]
    table = Table("#", "time (UTC)", "what", "epsilon", "delta", "protects", *asked, box=None, pad_edge=False)
    numbers = {event.id: event.number for event in events}
    for event in events:
        table.add_row(
            str(event.number), event.time[:19].replace("T", " "), _what(event, numbers),
            plain(event.cost.epsilon), plain(event.cost.delta), _protects(event),
            *(escape(event.asked.to_dict().get(name, "")) for name in asked),
        )  # fmt: skip
    person = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if person else _WIDE)  # a program reads lines: none is broken
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
