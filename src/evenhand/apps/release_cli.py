"""``evenhand release``: one statistic from one table, debited from a ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.apps.console import parse_list, parse_pair, progress, show_json, write_page
from evenhand.guarantee import UsageError, suggest

STATISTICS = ("count", "users", "sum", "mean")

_HELP = """Release one statistic about people.

The ledger is debited before the noise is drawn. A ledger that does not exist yet is created with the total --budget,
by default this release's epsilon, so that nothing more can be spent by accident.

Exit codes: 0 released, 2 bad usage, 3 budget refused, 4 data unreadable.
"""

_EXAMPLES = """Examples:

evenhand release mean ratings.parquet --user userId --value rating --bounds 0.5:5 --epsilon 0.2 --ledger budget.db

evenhand release count ratings.csv --user userId --epsilon 0.1 --ledger budget.db --budget 1 --json

evenhand release sum ratings.parquet --user userId --value rating --bounds 0:5 --epsilon 0.5 --bounding total-cap:500 --ledger budget.db

evenhand release mean 'logs/*.parquet' --user account,device --value minutes --bounds 0:600 --epsilon 1 --engine spark --ledger budget.db
"""


def release(
    statistic: Annotated[str, typer.Argument(help="One of: " + ", ".join(STATISTICS) + ".")],
    source: Annotated[str, typer.Argument(help="A path or glob of Parquet, CSV or JSON files.")],
    user: Annotated[str, typer.Option(help="The column (or columns, a,b) that name a person.")],
    epsilon: Annotated[str, typer.Option(help="How much of the budget to spend, such as 0.2.")],
    ledger: Annotated[str, typer.Option(help="The budget: a SQLite file, or postgresql://...")],
    value: Annotated[str | None, typer.Option(help="The column to sum or average.")] = None,
    bounds: Annotated[str | None, typer.Option(help="LOW:HIGH for one value; values outside are clamped.")] = None,
    bounding: Annotated[
        str, typer.Option(help="auto, or STRATEGY:BOUND such as smooth-weights:100 or total-cap:500.")
    ] = "auto",
    delta: Annotated[str, typer.Option(help="The δ to spend; 0 is pure differential privacy.")] = "0",
    protects: Annotated[str, typer.Option(help="presence, or values (row counts are public).")] = "presence",
    public: Annotated[str | None, typer.Option(help="Columns that are public with --protects values: a,b.")] = None,
    budget: Annotated[str | None, typer.Option(help="Total epsilon of a ledger that does not exist yet.")] = None,
    budget_delta: Annotated[str | None, typer.Option(help="Total delta of a ledger that does not exist yet.")] = None,
    engine: Annotated[str | None, typer.Option(help="duckdb (default) or spark.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what it would cost; spend nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the release as a small HTML page.")] = None,
) -> None:
    """See _HELP."""
    import evenhand as eh
    from evenhand.session import Drafts

    if statistic not in STATISTICS:
        raise UsageError(
            f"{statistic!r} is not a statistic; expected one of {', '.join(STATISTICS)}.{suggest(statistic, STATISTICS)}"
        )
    eh.guarantee.parse_epsilon(epsilon)
    eh.guarantee.parse_delta(delta)
    pair = parse_pair(bounds, "bounds")
    arguments: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    if statistic != "users":
        arguments["bounding"] = parse_strategy(bounding)
    positional = []
    if statistic in ("sum", "mean"):
        if value is None:
            raise UsageError(f"--value is missing: which column is the {statistic} of? For example --value rating.")
        positional, arguments["bounds"] = [value], eh.tables.parse_bounds(pair)
    with progress(f"Reading {source}"):
        table = eh.read(source, user=parse_list(user), protects=protects, public=parse_list(public), engine=engine)
    # Everything that can be wrong is found here, before a ledger file is made.
    draft = getattr(Drafts(table), statistic)(*positional, **arguments)
    book = open_ledger(ledger, epsilon, delta, budget, budget_delta)
    with progress(f"Computing the {statistic}"):
        result = draft.preview(book) if preview else draft.release(book)
    if html is not None and not preview:
        write_page(html, result.statistic, result.to_html())
    if as_json:
        show_json({**result.to_dict(), "ledger": ledger_facts(book)})
    else:
        print(result)
        left = book.remaining
        print(f"  {'ledger':<16} {left} left of {book.total} in {book.location}")


release.__doc__ = _HELP


def open_ledger(location: str, epsilon: str, delta: str, budget: str | None, budget_delta: str | None) -> Any:
    """Open the ledger, or create it with the given total."""
    import evenhand as eh

    exists = "://" not in location and os.path.exists(location) and os.path.getsize(location) > 0
    if exists and budget is None:
        return eh.Ledger(location)
    if "://" in location and budget is None:
        try:
            return eh.Ledger(location)
        except UsageError:
            pass  # an empty database: make the ledger there, as for a new file
    total = budget if budget is not None else epsilon
    return eh.Ledger(location, epsilon=total, delta=budget_delta if budget_delta is not None else delta)


def ledger_facts(book: Any) -> dict[str, Any]:
    """What a program wants to know about the ledger after a release."""
    return {
        "location": book.location,
        "total": {"epsilon": float(book.total.epsilon), "delta": float(book.total.delta)},
        "spent": {"epsilon": float(book.spent.epsilon), "delta": float(book.spent.delta)},
        "remaining": {"epsilon": float(book.remaining.epsilon), "delta": float(book.remaining.delta)},
    }


def parse_strategy(text: str) -> Any:
    """Read ``auto`` or ``strategy:bound``."""
    import evenhand as eh

    strategies = {"total-cap": eh.TotalCap, "smooth-weights": eh.SmoothWeights}
    name, _, bound = text.partition(":")
    if name == "auto":
        return eh.Auto(share=float(bound)) if bound else "auto"
    if name not in strategies:
        raise UsageError(
            f"--bounding {text!r} is not known; expected auto, or one of {', '.join(strategies)} with a bound, such as "
            f"smooth-weights:100.{suggest(name, strategies)}"
        )
    return strategies[name](bound or None)
