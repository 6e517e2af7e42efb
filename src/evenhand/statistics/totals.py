"""Sums over users: from per-user integers to the few integers that leave the engine."""

from __future__ import annotations

import functools
import operator
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
    sums = users.aggregate(**{f"total_{index}": exact_sum(table, value) for index, value in enumerate(integers)})

    def run() -> Secret[list[int]]:
        row = table.engine.fetch(sums).reveal().to_pylist()[0]
        return Secret([int(row[f"total_{index}"] or 0) for index in range(len(integers))])

    return run


def bucket_counts(table: Table, users: Any, value: Any, buckets: Buckets) -> Measurement:
    """How many users fall into each public bucket of a per-user integer."""
    import ibis

    one, zero = ibis.literal(1, "int64"), ibis.literal(0, "int64")  # Postgres does not cast truth to numbers
    above = functools.reduce(operator.add, ((value > edge).ifelse(one, zero) for edge in buckets.edges))
    return histogram(table, users, above, buckets.size, moves=1)


def histogram(table: Table, users: Any, place: Any, size: int, moves: int) -> Measurement:
    """How many users sit at each place 0 .. size − 1.

    Guarantee: each user sits at exactly one place, so one user moves the vector by 1 under presence and, by changing
    place, by 2 under values (``moves``).
    """
    placed = users.select(place=place)
    counted = placed.group_by("place").aggregate(users=placed.count())

    def run() -> Secret[list[int]]:
        found = {row["place"]: row["users"] for row in table.engine.fetch(counted).reveal().to_pylist()}
        return Secret([int(found.get(index, 0)) for index in range(size)])

    return Measurement(run, l1=moves, l2_squared=moves)
