"""``evenhand sql``: a question in SQL about one table, debited from a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps import options
from evenhand.apps.options import Paid, open_table, parse_key_option, parse_strategy
from evenhand.guarantee import UsageError
from evenhand.tables.views.joins import LARGEST_FAN_OUT

if TYPE_CHECKING:
    import evenhand as eh
    from evenhand.tables import PublicTable

HELP = """Ask in SQL: one SELECT with aggregates from one table, with WITH, JOIN, WHERE, GROUP BY, and HAVING, ORDER BY and LIMIT on what is released.

The table is called table, or as its file or database calls it. All aggregates share epsilon and one debit. BigQuery's SELECT WITH
DIFFERENTIAL_PRIVACY OPTIONS (...) is understood; --user, --epsilon and --delta may then be left out.

Exit codes: 0 released, 2 bad usage, 3 budget refused, 4 data unreadable.
"""

EXAMPLES = """Examples:

evenhand sql "SELECT genre, AVG(rating) AS mean, COUNT(*) AS n FROM ratings WHERE rating > 0 GROUP BY genre ORDER BY n DESC"
ratings.parquet --user userId --columns ratings.toml --epsilon 0.5 --delta 1e-6 --ledger budget.db

evenhand sql "SELECT COUNT(DISTINCT household) FROM sales" shop.duckdb --table sales --user household --epsilon 0.1 --ledger budget.db
"""


def sql(
    query: Annotated[str, typer.Argument(help="The SELECT.")],
    source: options.Source,
    ledger: options.LedgerAt,
    user: Annotated[str | None, typer.Option(help="The column (or columns, a,b) that name a person.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="How much of the budget to spend, such as 0.2.")] = None,
    table: options.TableName = None,
    join: Annotated[
        list[str] | None,
        typer.Option(help="A public table that the query joins: NAME=FILE, Parquet or CSV. May be repeated."),
    ] = None,
    fan_out: Annotated[int, typer.Option(help="How many rows one row may meet in each join.")] = LARGEST_FAN_OUT,
    keys: Annotated[str | None, typer.Option(help="Public groups, by group column: col=a,b;other=x,y.")] = None,
    other: options.Other = None,
    bounding: options.BoundingName = "auto",
    delta: Annotated[str | None, typer.Option(help="The δ to spend; needed to select hidden group names.")] = None,
    protects: options.Protects = "presence",
    public: options.Public = None,
    population: options.Population = None,
    columns: options.Columns = None,
    types: options.Types = None,
    budget: options.Budget = None,
    budget_delta: options.BudgetDelta = None,
    engine: options.EngineName = None,
    preview: options.OnlyPreview = False,
    as_json: options.AsJson = False,
    html: options.Html = None,
    csv: options.Csv = None,
    who: options.Who = None,
    note: options.Note = None,
) -> None:
    """Ask in SQL (the help text is `HELP`)."""
    from evenhand.session import Drafts
    from evenhand.sql import parsed_options

    said = parsed_options(query)
    unit, spent = user or said.user, epsilon or said.epsilon
    if unit is None or spent is None:
        raise UsageError(
            "--user and --epsilon are missing, and the query does not say: expected --user userId --epsilon 0.5, or SELECT WITH "
            "DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, privacy_unit_column = userId)."
        )
    paid = Paid(ledger, spent, delta or said.delta or "0", budget, budget_delta, preview, as_json, html, csv, who, note)
    paid.check()
    groups = None if keys is None else parse_key_option(keys, [])
    rows = open_table(source, unit, table, columns, protects, public, population, engine, types)
    draft = Drafts(rows).sql(
        query, epsilon=epsilon, delta=delta, bounding=parse_strategy(bounding), keys=groups, other=other, tables=_public(join),
        fan_out=fan_out,
    )  # fmt: skip
    paid.settle(draft)


def _public(given: list[str] | None) -> dict[str, eh.Table | PublicTable]:
    """The public tables that ``--join`` names."""
    import evenhand as eh

    found: dict[str, eh.Table | PublicTable] = {}
    for text in given or []:
        name, equals, path = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--join {text!r}: expected NAME=FILE, such as --join products=products.parquet.")
        found[name.strip()] = eh.read_public(path)
    return found
