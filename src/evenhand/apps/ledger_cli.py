"""``evenhand ledger``: create, show, verify and export a budget."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps.console import AsJson, show_json
from evenhand.guarantee import LedgerError, UsageError, plain

if TYPE_CHECKING:
    from evenhand.ledger import Ledger

app = typer.Typer(no_args_is_help=True, help="A ledger: what was spent, on what, and what is left.")

_WIDE = 400

Location = Annotated[str, typer.Argument(help="The ledger: a SQLite file, or postgresql://...")]


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
    _check_ending(out, ".csv", ".jsonl")
    from evenhand.ledger import handout

    book = _opened(location)
    _write(out, handout.as_csv(book) if out.suffix == ".csv" else handout.as_jsonl(book))


@app.command()
def compliance(
    location: Location,
    out: Annotated[Path, typer.Option(help="Where to write the page: a path that ends in .html.")],
) -> None:
    """Write a page for whoever has to be convinced: who is protected from what, totals, every release, how it was bounded.

    The history is verified first. Nothing is overwritten.

    Example: evenhand ledger compliance budget.db --out compliance.html
    """
    _check_ending(out, ".html")
    from evenhand.ledger import handout
    from evenhand.pages.compliance import compliance_page

    _write(out, compliance_page(handout.compliance(_opened(location))))


@app.command()
def registry(
    location: Location,
    out: Annotated[Path, typer.Option(help="Where to write the entry: a path that ends in .yaml.")],
    name: Annotated[str | None, typer.Option(help="Of what is published.")] = None,
    curator: Annotated[str | None, typer.Option(help="Who publishes it.")] = None,
    use: Annotated[str | None, typer.Option(help="What it is meant for.")] = None,
    region: Annotated[str | None, typer.Option(help="Which region it describes, or whose law applies.")] = None,
    author: Annotated[str | None, typer.Option(help="Who writes the entry.")] = None,
    why: Annotated[str | None, typer.Option(help="Who chose the budget, and why.")] = None,
) -> None:
    """Write a draft for the public registry of deployments (arXiv 2509.13509): what the ledger knows, the rest to be filled in.

    Example: evenhand ledger registry budget.db --out entry.yaml --name "Views of films" --curator "A streaming service"
    """
    _check_ending(out, ".yaml")
    from evenhand.ledger.registry import Told, entry, yaml

    told = Told(name, curator, use, region, author, why)
    _write(out, yaml(entry(_opened(location), told, out.stem)))


def _check_ending(out: Path, *endings: str) -> None:
    if out.suffix not in endings:
        raise UsageError(f"--out {out}: expected a path that ends in {' or '.join(endings)}.")


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"--out {out} can't be written: {error.strerror}; give a new, writable path.") from None


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

    from evenhand.ledger import handout

    events = handout.rows(book)
    asked = [name for name in ("who", "table", "note") if any(name in event for event in events)]
    table = Table("#", "time (UTC)", "what", "epsilon", "delta", "protects", *asked, box=None, pad_edge=False)
    for event in events:
        table.add_row(
            str(event["number"]), event["time"][:19].replace("T", " "), event["what"],
            event["epsilon"], event["delta"], event["protects"], *(escape(event.get(name, "")) for name in asked),
        )  # fmt: skip
    person = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if person else _WIDE)  # a program reads lines: none is broken
    console.print(f"Ledger {book.location}")
    console.print(f"  total epsilon {plain(book.total.epsilon)}, delta {plain(book.total.delta)}")
    console.print(f"  spent         {book.spent}\n  remaining     {book.remaining}")
    console.print(table if events else "  nothing has been released yet")
