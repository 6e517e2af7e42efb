"""Sums over users: from per-user integers to the few integers that leave the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evenhand.bounding import Contribution
from evenhand.planning import Buckets
from evenhand.release import Measurement
from evenhand.tables import Secret, Table
from evenhand.tables.summaries import exact_sum


def measure(table: Table, users: Any, contribution: Contribution) -> Measurement:
    """The totals of a bounded contribution, with its declared sensitivity."""
    return Measurement(fetch_totals(table, users, contribution.integers), contribution.l1, contribution.l2_squared)


def fetch_totals(table: Table, users: Any, integers: Sequence[Any]) -> Callable[[], Secret[list[int]]]:
    """Sum each per-user expression over all users, in the engine."""
    sums = users.aggregate(**{f"total_{index}": exact_sum(value) for index, value in enumerate(integers)})

    def run() -> Secret[list[int]]:
        row = table.engine.fetch(sums).reveal().to_pylist()[0]
        return Secret([int(row[f"total_{index}"] or 0) for index in range(len(integers))])

    return run


def bucket_counts(table: Table, users: Any, value: Any, buckets: Buckets) -> Measurement:
    """How many users fall into each public bucket of a per-user integer.

    Guarantee: each user is in exactly one bucket, so one user moves the vector by 1 under presence.
    """
    import functools
    import operator

    above = functools.reduce(operator.add, ((value > edge).cast("int64") for edge in buckets.edges))
    placed = users.select(bucket=above)
    histogram = placed.group_by("bucket").aggregate(users=placed.count())

    def run() -> Secret[list[int]]:
        found = {row["bucket"]: row["users"] for row in table.engine.fetch(histogram).reveal().to_pylist()}
        return Secret([int(found.get(index, 0)) for index in range(buckets.size)])

    return Measurement(run, l1=1, l2_squared=1)
