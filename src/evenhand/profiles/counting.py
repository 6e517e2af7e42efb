"""Counting users by what they contribute: the one query behind every profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.population.buckets import Buckets
from evenhand.population.support import Support, support_of_counts
from evenhand.release import Measurement, Receipt
from evenhand.tables import Secret, Table
from evenhand.tables.engines.dialect import BEYOND
from evenhand.tables.expressions import Integers, Rows

if TYPE_CHECKING:
    import pyarrow as pa


def users_by_bucket(table: Table, users: Rows, value: Integers, buckets: Buckets, moves: int = 1) -> Measurement:
    """How many users fall into each public bucket of a per-user integer; under presence one user moves it by one.

    Under values a private integer may move a user from one bucket to another: ``moves`` is then 2.
    """
    asked = ("histogram", users.op(), value.op(), buckets)
    counted = table.engine.remembered(asked, lambda: table.engine.histogram(users, value, buckets.edges))
    return _counted(table, counted, [*buckets.edges, BEYOND], moves)


def users_by_place(table: Table, users: Rows, place: Integers, size: int, moves: int) -> Measurement:
    """How many users sit at each place 0 .. size − 1.

    Guarantee: each user sits at exactly one place, so one user moves the vector by 1 under presence and, by changing
    place, by 2 under values (``moves``).
    """
    placed = users.select(place=place)
    return _counted(table, placed.group_by("place").aggregate(users=placed.count()), range(size), moves)


def _counted(table: Table, counted: Rows, places: Sequence[int], moves: int) -> Measurement:
    def counts(found: pa.Table) -> list[int]:
        users_at = dict(zip(found["place"].to_pylist(), found["users"].to_pylist(), strict=True))
        return [int(users_at.get(place, 0)) for place in places]

    return Measurement(lambda: table.engine.fetch(counted).map(counts), l1=moves, l2_squared=moves)


def exact_sizes(table: Table, users: Rows, name: str = "rows") -> Secret[Support]:
    """The exact number of users with each amount in the column ``name``, such as a number of rows."""
    counted = users.group_by(name).aggregate(users=users.count()).order_by(name)
    return table.engine.fetch(counted).map(
        lambda found: Support(
            np.maximum(np.asarray(found[name].to_pylist(), dtype=float), 1e-9),
            np.asarray(found["users"].to_pylist(), dtype=float),
        )
    )


def public_sizes(table: Table, users: Rows, receipt: Receipt, name: str = "rows") -> Support:
    """The same where it is public."""
    return receipt.public(exact_sizes(table, users, name).map(or_one), table.relation)


def or_one(support: Support) -> Support:
    """Of an empty table, where any bound will do: one user with one row."""
    return support if len(support.sizes) else support_of_counts([1])
