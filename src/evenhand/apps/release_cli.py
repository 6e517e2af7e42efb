"""``evenhand release``: one statistic from one table, debited from a ledger."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from evenhand.apps import options
from evenhand.apps.console import parse_list, parse_open_pair
from evenhand.apps.options import (
    Paid,
    group_options,
    numbers,
    open_table,
    parse_key_option,
    parse_statistic,
    parse_strategy,
    viewed,
)
from evenhand.guarantee import UsageError, suggest
from evenhand.statistics import STATISTICS, Statistic
from evenhand.tables import parse_open_bounds

HELP = """Release one statistic about people.

The ledger is debited before the noise is drawn. A ledger that does not exist yet is created with the total --budget,
by default this release's epsilon, so that nothing more can be spent by accident.

Exit codes: 0 released, 2 bad usage, 3 budget refused, 4 data unreadable.
"""

EXAMPLES = """Examples:

evenhand release mean ratings.parquet --user userId --value rating --bounds 0.5:5 --epsilon 0.2 --ledger budget.db

evenhand release count ratings.csv --user userId --epsilon 0.1 --ledger budget.db --budget 1 --json

evenhand release mean ratings.csv --user userId --value rating --bounds 0.5:5 --by genre --keys drama,comedy
--epsilon 0.5 --ledger budget.db

evenhand release count ratings.csv --user userId --by movieId --epsilon 0.5 --delta 1e-6 --ledger budget.db

evenhand release quantiles ratings.csv --user userId --value rating --bounds 0.5:5 --quantiles 0.5,0.9
--epsilon 0.5 --ledger budget.db

evenhand release per_user_mean sales.parquet --user customer --value price --of total --bounds 0:1000
--epsilon 0.5 --ledger budget.db

evenhand release ratio visits.parquet --user visitor --numerator sum:clicks:0:50 --denominator users --epsilon 0.5
--ledger budget.db

evenhand release mean shop.duckdb --table sales --user household --where "amount > 0" --derive "month=date_trunc('month', day)"
--value amount --bounds 0:500 --by month --epsilon 0.5 --delta 1e-6 --ledger budget.db

evenhand release top ratings.csv --user userId --value movieId --k 10 --epsilon 0.5 --delta 1e-6 --ledger budget.db

evenhand release sum 'logs/*.parquet' --user account,device --value minutes --bounds 0:600 --bounding total-cap:500
--epsilon 1 --engine spark --ledger budget.db
"""


def release(
    statistic: Annotated[str, typer.Argument(help="One of: " + ", ".join(STATISTICS) + ".")],
    source: options.Source,
    user: options.User,
    epsilon: options.Epsilon,
    ledger: options.LedgerAt,
    table: options.TableName = None,
    join: options.Join = None,
    derive: options.Derive = None,
    where: options.Where = None,
    value: Annotated[str | None, typer.Option(help="The column (or columns, a,b) that the statistic is of.")] = None,
    bounds: Annotated[
        str | None, typer.Option(help="LOW:HIGH for one value, or LOW: or :HIGH; found privately where left out.")
    ] = None,
    condition: Annotated[
        str | None, typer.Option(help="Of a share: what has to be true, as SQL: 'amount > 100'.")
    ] = None,
    quantiles: Annotated[str, typer.Option(help="Which quantiles: numbers between 0 and 1.")] = "0.5",
    edges: Annotated[
        str | None, typer.Option(help="Edges of a histogram: 0,1,2,5; found privately if left out.")
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(help="A per_user_mean of each user's mean or total; a top or a share of users or rows."),
    ] = None,
    numerator: Annotated[
        str | None, typer.Option(help="Of a ratio: count, users or sum:COLUMN:LOW:HIGH; bounds may be left out.")
    ] = None,
    denominator: Annotated[str | None, typer.Option(help="The same, below the line.")] = None,
    k: Annotated[int, typer.Option("--k", help="For top: how many groups.")] = 10,
    values_per_user: Annotated[
        int | None, typer.Option(help="For distinct: how many values one user may support; chosen unless given.")
    ] = None,
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
    """Release one statistic about people (the help text is `HELP`)."""
    from evenhand.session import Drafts

    if statistic not in STATISTICS:
        raise UsageError(
            f"{statistic!r} is not a statistic; expected one of {', '.join(STATISTICS)}."
            f"{suggest(statistic, STATISTICS)}"
        )
    kind = STATISTICS[statistic]
    paid = Paid(ledger, epsilon, delta, budget, budget_delta, preview, as_json, html, csv, who, note)
    paid.check()
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "bounding": parse_strategy(bounding)}
    given = {"value": value, "condition": condition, "bounds": bounds, "quantiles": quantiles, "edges": edges, "of": of}
    asked |= _parameters(
        kind,
        {**given, "numerator": numerator, "denominator": denominator},
        {"k": k, "values_per_user": values_per_user},
    )
    if kind.has_groups and by is not None:
        raise UsageError(f"--by with {statistic}: the column that names its groups is --value; leave --by out.")
    if kind.has_groups:
        asked |= {"keys": parse_key_option(keys, parse_list(value)), "groups_per_user": groups_per_user}
    else:
        asked |= group_options(by, keys, other)
        if by is not None and kind.selects_keys:
            asked["groups_per_user"] = groups_per_user
    rows = viewed(
        open_table(source, user, table, columns, protects, public, population, engine, types), join, derive, where
    )
    # Everything that can be wrong is found here, before a ledger file is made.
    paid.settle(getattr(Drafts(rows), statistic)(**asked))


def _parameters(kind: type[Statistic], given: dict[str, str | None], plain: dict[str, Any]) -> dict[str, Any]:
    """The options that the statistic has parameters for; ``plain`` ones as they are."""
    own = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    parameters: dict[str, Any] = {name: value for name, value in plain.items() if name in own}
    if "column" in own:
        several = parse_list(given["value"])
        if not several:
            raise UsageError(f"--value is missing: which column is the {kind.name} of? For example --value rating.")
        parameters["column"] = several[0] if len(several) == 1 else several
    if "condition" in own:
        if not given["condition"]:
            raise UsageError("--condition is missing: what has to be true? For example --condition 'amount > 100'.")
        parameters["condition"] = given["condition"]
    if "bounds" in own:
        parameters["bounds"] = parse_open_bounds(parse_open_pair(given["bounds"], "bounds"))
    if "quantiles" in own:
        parameters["quantiles"] = parse_list(given["quantiles"])
    if "edges" in own:
        parameters["edges"] = None if given["edges"] is None else numbers(given["edges"], "edges")
    if "of" in own and given["of"] is not None:
        parameters["of"] = given["of"]
    for part in {"numerator", "denominator"} & own:
        parameters[part] = parse_statistic(given[part], part, ("count", "users", "sum"))
    return parameters
