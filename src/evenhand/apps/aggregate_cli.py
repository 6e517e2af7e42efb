"""``evenhand aggregate``: several statistics from one reading of a table, in one debit."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.apps import options
from evenhand.apps.options import Paid, group_options, open_table, parse_statistic, parse_strategy, viewed
from evenhand.guarantee import UsageError
from evenhand.statistics import Request, Statistic, ask_together

HELP = """Release several statistics about people together, from one reading of the table and in one debit.

Each --ask is NAME=STATISTIC, or NAME=STATISTIC:COLUMN, or NAME=STATISTIC:COLUMN:LOW:HIGH; they share epsilon equally.

Exit codes: 0 released, 2 bad usage, 3 budget refused, 4 data unreadable.
"""

EXAMPLES = """Examples:

evenhand aggregate ratings.parquet --user userId --ask n=count --ask average=mean:rating:0.5:5 --by genre --keys drama,comedy
--epsilon 0.5 --ledger budget.db --csv genres.csv

evenhand aggregate sales.parquet --user household --join products.parquet:product_id --where "amount > 0" --ask n=count
--ask spent=sum:amount:0:500 --by department --keys food,toys --epsilon 0.5 --ledger budget.db
"""


def aggregate(
    source: options.Source,
    user: options.User,
    epsilon: options.Epsilon,
    ledger: options.LedgerAt,
    ask: Annotated[list[str], typer.Option(help="NAME=STATISTIC[:COLUMN[:LOW:HIGH]], once for each statistic.")],
    table: options.TableName = None,
    join: options.Join = None,
    derive: options.Derive = None,
    where: options.Where = None,
    by: options.By = None,
    keys: options.Keys = None,
    other: options.Other = None,
    groups_per_user: options.GroupsPerUser = None,
    bounding: options.BoundingName = "auto",
    delta: options.Delta = "0",
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
    """Release several statistics together (the help text is `HELP`)."""
    paid = Paid(ledger, epsilon, delta, budget, budget_delta, preview, as_json, html, csv, who, note)
    paid.check()
    statistics = _named(ask)
    by_keys = group_options(by, keys, other)
    rows = viewed(
        open_table(source, user, table, columns, protects, public, population, engine, types), join, derive, where
    )
    request = Request.parse(rows, epsilon, delta, parse_strategy(bounding))
    draft = ask_together(request, statistics, by_keys.get("by"), by_keys.get("keys"), other, groups_per_user)
    paid.settle(draft)


def _named(asked: list[str]) -> dict[str, Statistic]:
    found: dict[str, Statistic] = {}
    for text in asked:
        name, equals, statistic = text.partition("=")
        if not equals or not name.strip() or name in found:
            raise UsageError(
                f"--ask {text}: expected a name of its own and a statistic, such as --ask average=mean:rating:0.5:5."
            )
        found[name.strip()] = parse_statistic(statistic, f"ask {name}=")
    return found
