"""The list of statistics: session, command line, plan, preview and audit read it."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from keyword import iskeyword
from typing import TypeVar

from evenhand.guarantee import UsageError
from evenhand.statistics.count import Count
from evenhand.statistics.distinct import Distinct
from evenhand.statistics.histogram import Histogram
from evenhand.statistics.mean import Mean
from evenhand.statistics.per_user_mean import PerUserMean
from evenhand.statistics.quantiles import Median, Quantiles
from evenhand.statistics.ratio import RatioOf
from evenhand.statistics.share import Share
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.top import Top
from evenhand.statistics.users import Users
from evenhand.statistics.variance import Std, Variance

STATISTICS: dict[str, type[Statistic]] = {
    kind.name: kind
    for kind in (
        *(Count, Users, Sum, Mean, Share, PerUserMean, Variance, Std, RatioOf, Median, Quantiles, Histogram),
        *(Top, Distinct),
    )
}
"""All of them, by name."""

_OF_A_QUESTION = {"epsilon", "delta", "bounding", "by", "keys", "other", "groups_per_user"}
_OF_A_SESSION = ("aggregate", "ask", "describe", "ledger", "preview", "profile", "sql", "table")

S = TypeVar("S", bound=type[Statistic])


def register(statistic: S) -> S:
    """Put a statistic from outside on the list; usable as a class decorator."""
    if not (is_dataclass(statistic) and issubclass(statistic, Statistic)):
        raise UsageError(f"register({statistic!r}): expected a dataclass below evenhand.statistics.Statistic.")
    clash = sorted({field.name for field in fields(statistic)} & _OF_A_QUESTION)
    if clash:
        raise UsageError(
            f"{statistic.__name__} has fields {clash}, which every question has already; give them other names."
        )
    taken = [*STATISTICS, *_OF_A_SESSION]
    if statistic.name in taken or not re.fullmatch(r"[a-z]\w*", statistic.name) or iskeyword(statistic.name):
        raise UsageError(
            f"name={statistic.name!r} can't name a statistic: expected a Python name that is not among {taken}."
        )
    STATISTICS[statistic.name] = statistic
    return statistic
