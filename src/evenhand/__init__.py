"""Evenhand: statistics and models about people under user-level differential privacy.

A release is a bounded per-user aggregate, plus noise scaled to that bound, debited from the ledger before it leaves.

    import evenhand as eh

    ratings = eh.read("ratings.parquet", user="userId")
    session = eh.Session(ratings, eh.Ledger("budget.db", epsilon=1.0))
    print(session.mean("rating", bounds=(0.5, 5.0), epsilon=0.2))
"""

from typing import TYPE_CHECKING, Any

from evenhand.bounding import Auto, CentredInterval, NormClip, RowLimit, SmoothWeights, TotalCap
from evenhand.guarantee import (
    BudgetExceeded,
    DataError,
    EngineError,
    EvenhandError,
    Guarantee,
    LedgerError,
    UsageError,
)
from evenhand.ledger import Ledger
from evenhand.planning import Plan, plan
from evenhand.profiles import Profile
from evenhand.release import Release, load
from evenhand.service.client import connect
from evenhand.session import Session
from evenhand.statistics import Count, Mean, Median, PerUserMean, Quantiles, RatioOf, Share, Std, Sum, Users, Variance
from evenhand.tables import Column, Table, read, read_part, read_public
from evenhand.tables.engines import limit_duckdb

# What `session.aggregate`, `session.ratio` and `session.ask` are given: eh.count(), eh.mean("rating", bounds=(0.5, 5)), ...
count, users, sum, mean, share, variance, std = Count, Users, Sum, Mean, Share, Variance, Std
per_user_mean, ratio, median, quantiles = PerUserMean, RatioOf, Median, Quantiles

if TYPE_CHECKING:
    _: Any
    """The rows of a table in expressions of views: ``table.where(eh._.amount > 0)``. It is Ibis' own."""
else:

    def __getattr__(name: str) -> object:
        if name != "_":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import ibis  # only when it is asked for: it loads slowly

        return ibis._


__version__ = "0.1.0"

__all__ = [
    "Auto",
    "BudgetExceeded",
    "CentredInterval",
    "Column",
    "DataError",
    "EngineError",
    "EvenhandError",
    "Guarantee",
    "Ledger",
    "LedgerError",
    "NormClip",
    "Plan",
    "Profile",
    "Release",
    "RowLimit",
    "Session",
    "SmoothWeights",
    "Table",
    "TotalCap",
    "UsageError",
    "_",
    "connect",
    "count",
    "limit_duckdb",
    "load",
    "mean",
    "median",
    "per_user_mean",
    "plan",
    "quantiles",
    "ratio",
    "read",
    "read_part",
    "read_public",
    "share",
    "std",
    "sum",
    "users",
    "variance",
]
