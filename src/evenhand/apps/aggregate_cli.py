"""``evenhand aggregate``: several statistics from one reading of a table, in one debit."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.apps.options import ReleaseOptions, parse_statistic, parse_strategy, takes_release_options
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


@takes_release_options()
def aggregate(
    asked: ReleaseOptions,
    ask: Annotated[list[str], typer.Option(help="NAME=STATISTIC[:COLUMN[:LOW:HIGH]], once for each statistic.")],
) -> None:
    """Release several statistics together (the help text is `HELP`)."""
    asked.check()
    statistics, groups = _named(ask), asked.groups()
    request = Request.parse(asked.rows(), asked.epsilon, asked.delta, parse_strategy(asked.bounding))
    by, keys = groups.get("by"), groups.get("keys")
    asked.settle(ask_together(request, statistics, by, keys, asked.other, asked.groups_per_user))


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
