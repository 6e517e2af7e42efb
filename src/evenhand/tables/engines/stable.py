"""Refusing sources whose rows are not determined by what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError

if TYPE_CHECKING:
    import ibis.expr.operations as ops


def refuse_unstable(source: ops.Node) -> None:
    """Refuse an Ibis expression that gives other rows each time it is evaluated."""
    import ibis.expr.operations as ops

    order = (
        *(ops.RowNumber, ops.NTile, ops.Lag, ops.Lead, ops.First, ops.Last, ops.NthValue, ops.Arbitrary, ops.RowID),
        *(ops.ArrayCollect, ops.GroupConcat, ops.Mode, ops.ArgMin, ops.ArgMax, ops.ApproxQuantile, ops.ApproxMedian),
    )
    reasons: dict[tuple[type, ...], str] = {
        (ops.Sample,): "a random sample",
        (ops.RandomScalar, ops.RandomUUID): "random numbers",
        (ops.TimestampNow, ops.DateNow): "the current time",
        (ops.Limit,): "a limited number of rows",
        order: "the order in which rows happen to be read",
    }
    for kinds, reason in reasons.items():
        if source.find(kinds):
            raise unstable(reason)


def unstable(reason: str) -> UsageError:
    """The refusal of a source whose rows are not determined by what is stored."""
    return UsageError(
        f"the source depends on {reason}, so each reading may be another table, and no bound on a user would hold. Expected "
        "a source that is a function of stored rows: store its result as a table or a Parquet file first, and read that."
    )
