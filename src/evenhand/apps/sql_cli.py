"""``evenhand sql``: a question in SQL about one table, debited from a ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps.options import ReleaseOptions, parse_key_option, parse_strategy, takes_release_options
from evenhand.guarantee import UsageError
from evenhand.tables.views.joins import LARGEST_FAN_OUT

if TYPE_CHECKING:
    import evenhand as eh
    from evenhand.tables import Part, PublicTable

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


@takes_release_options(without=("derive", "where", "by", "groups_per_user"))
def sql(
    query: Annotated[str, typer.Argument(help="The SELECT.")],
    asked: ReleaseOptions,
    user: Annotated[str | None, typer.Option(help="The column (or columns, a,b) that name a person.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="How much of the budget to spend, such as 0.2.")] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(help="A public table that the query joins: NAME=FILE, Parquet or CSV. May be repeated."),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="Rows that belong to those of the table by a key, which the query joins: NAME=FILE, or NAME of a table of the same database. "
            "May be repeated."
        ),
    ] = None,
    fan_out: Annotated[
        int, typer.Option(help="How many rows one row may meet in each join; of a part always its first 1,000.")
    ] = LARGEST_FAN_OUT,
    keys: Annotated[str | None, typer.Option(help="Public groups, by group column: col=a,b;other=x,y.")] = None,
    delta: Annotated[str | None, typer.Option(help="The δ to spend; needed to select hidden group names.")] = None,
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
    asked = replace(asked, user=unit, epsilon=spent, delta=delta or said.delta or "0", join=None)  # the query joins
    asked.check()
    groups = None if keys is None else parse_key_option(keys, [])
    draft = Drafts(asked.rows()).sql(
        query, epsilon=epsilon, delta=delta, bounding=parse_strategy(asked.bounding), keys=groups, other=asked.other,
        tables={**_public(join), **_parts(part, asked.source, asked.engine)}, fan_out=fan_out,
    )  # fmt: skip
    asked.settle(draft)


def _parts(given: list[str] | None, source: str, engine: str | None) -> dict[str, eh.Table | Part | PublicTable]:
    """The parts that ``--part`` names."""
    import evenhand as eh

    found: dict[str, eh.Table | Part | PublicTable] = {}
    for text in given or []:
        name, equals, path = text.partition("=")
        if not name.strip() or (equals and not path):
            raise UsageError(
                f"--part {text!r}: expected NAME=FILE, such as --part items=items.parquet, or a table's NAME."
            )
        if equals:
            found[name.strip()] = eh.read_part(path, name=name.strip(), engine=engine)
        else:
            found[name.strip()] = eh.read_part(source, table=name.strip(), engine=engine)
    return found


def _public(given: list[str] | None) -> dict[str, eh.Table | Part | PublicTable]:
    """The public tables that ``--join`` names."""
    import evenhand as eh

    found: dict[str, eh.Table | Part | PublicTable] = {}
    for text in given or []:
        name, equals, path = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--join {text!r}: expected NAME=FILE, such as --join products=products.parquet.")
        found[name.strip()] = eh.read_public(path)
    return found
