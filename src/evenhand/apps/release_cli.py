"""``evenhand release``: one statistic from one table, debited from a ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from inspect import Parameter
from typing import Annotated, Any, NamedTuple

import typer

from evenhand.apps.console import parse_list, parse_open_pair
from evenhand.apps.options import (
    ReleaseOptions,
    numbers,
    parse_key_option,
    parse_statistic,
    parse_strategy,
    takes_release_options,
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


def _column(text: str, statistic: str) -> str | list[str]:
    several = parse_list(text)
    if not several:
        raise UsageError(f"--value is missing: which column is the {statistic} of? For example --value rating.")
    return several[0] if len(several) == 1 else several


def _condition(text: str, _statistic: str) -> str:
    if not text:
        raise UsageError("--condition is missing: what has to be true? For example --condition 'amount > 100'.")
    return text


class StatisticParameter(NamedTuple):
    """A parameter of statistics as an option: its help, and how it is read, given the statistic's name."""

    help: str
    read: Callable[[Any, str], Any] = lambda given, _statistic: given
    kind: type = str
    default: object = None
    flag: str | None = None

    def option(self, name: str) -> Parameter:
        flag = self.flag or f"--{name.replace('_', '-')}"
        kind = self.kind if self.default is not None else self.kind | None
        annotation = Annotated[kind, typer.Option(flag, help=self.help)]  # type: ignore[valid-type]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=self.default, annotation=annotation)


_RATIO = ("count", "users", "sum")
PARAMETERS = {
    "column": StatisticParameter("The column (or columns, a,b) that the statistic is of.", _column, flag="--value"),
    "bounds": StatisticParameter(
        "LOW:HIGH for one value, or LOW: or :HIGH; found privately where left out.",
        lambda text, _: parse_open_bounds(parse_open_pair(text, "bounds")),
    ),
    "condition": StatisticParameter("Of a share: what has to be true, as SQL: 'amount > 100'.", _condition),
    "quantiles": StatisticParameter(
        "Which quantiles: numbers between 0 and 1.", lambda text, _: parse_list(text), default="0.5"
    ),
    "edges": StatisticParameter(
        "Edges of a histogram: 0,1,2,5; found privately if left out.", lambda text, _: numbers(text, "edges")
    ),
    "of": StatisticParameter("A per_user_mean of each user's mean or total; a top or a share of users or rows."),
    "numerator": StatisticParameter(
        "Of a ratio: count, users or sum:COLUMN:LOW:HIGH; bounds may be left out.",
        lambda text, _: parse_statistic(text, "numerator", _RATIO),
    ),
    "denominator": StatisticParameter(
        "The same, below the line.", lambda text, _: parse_statistic(text, "denominator", _RATIO)
    ),
    "k": StatisticParameter("For top: how many groups.", kind=int, default=10),
    "values_per_user": StatisticParameter(
        "For distinct: how many values one user may support; chosen unless given.", kind=int
    ),
}
"""The parameters that statistics have, by the names of their fields."""


@takes_release_options({name: parameter.option(name) for name, parameter in PARAMETERS.items()})
def release(
    statistic: Annotated[str, typer.Argument(help="One of: " + ", ".join(STATISTICS) + ".")],
    asked: ReleaseOptions,
    totals: Annotated[
        bool, typer.Option("--totals", help="With --by: also the total, fitted to the groups; of counts and sums.")
    ] = False,
    **more: Any,  # noqa: ANN401 - the parameters of the statistic
) -> None:
    """Release one statistic about people (the help text is `HELP`)."""
    from evenhand.session import Drafts

    if statistic not in STATISTICS:
        raise UsageError(
            f"{statistic!r} is not a statistic; expected one of {', '.join(STATISTICS)}."
            f"{suggest(statistic, STATISTICS)}"
        )
    kind = STATISTICS[statistic]
    asked.check()
    bounding = parse_strategy(asked.bounding)
    given = {"epsilon": asked.epsilon, "delta": asked.delta, "bounding": bounding, **_parameters(kind, more)}
    if kind.has_groups and asked.by is not None:
        raise UsageError(f"--by with {statistic}: the column that names its groups is --value; leave --by out.")
    if kind.has_groups:
        given["keys"] = parse_key_option(asked.keys, parse_list(more["column"]))
    else:
        given |= asked.groups()
    if kind.has_groups or (asked.by is not None and kind.selects_keys):
        given["groups_per_user"] = asked.groups_per_user
    if totals and not kind.additive:
        raise UsageError(f"--totals with {statistic}: its groups don't add up; expected a count or a sum.")
    given |= {"totals": True} if totals else {}
    # Everything that can be wrong is found here, before a ledger file is made.
    asked.settle(getattr(Drafts(asked.rows()), statistic)(**given))


def _parameters(kind: type[Statistic], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the statistic has parameters for; what it can't do without and was not given is read too, and refused."""
    own = {field.name: field.default is MISSING for field in fields(kind)}  # type: ignore[arg-type]
    return {
        name: parameter.read("" if given[name] is None else given[name], kind.name)
        for name, parameter in PARAMETERS.items()
        if name in own and (given[name] is not None or own[name])
    }
