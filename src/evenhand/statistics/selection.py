"""Private selection of group keys: which groups may be shown at all.

A user alone in a group would be revealed by the group's name. So each user supports at most k groups, chosen at random, the
number of supporters of each group gets noise, and only groups above a threshold are shown, which a user alone in up
to k groups passes with probability at most δ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from evenhand.bounding import best_cap
from evenhand.guarantee import UsageError, split
from evenhand.profiles import About, Wanted, row_buckets, users_by_bucket
from evenhand.release import Measurement, Receipt
from evenhand.statistics.keys import PLACE, Keys, distinct_keys, found_keys, placed
from evenhand.tables import Table
from evenhand.tables.expressions import Rows
from evenhand.tables.sampling import sampled_rows
from evenhand.tables.table import key_names

if TYPE_CHECKING:
    import pyarrow as pa

SHARE_OF_CHOICE = Fraction(1, 5)
"""Of the ε of a selection, for choosing how many groups a user may support."""

MOST_GROUPS = 1024
"""The largest k that is chosen; more groups per user would need so much noise that small groups are lost."""


@dataclass(frozen=True)
class Selection:
    """The groups that may be shown, and how they were found."""

    keys: Keys
    groups_per_user: int
    threshold: int

    def to_dict(self) -> dict[str, Any]:
        """For the release: how keys were selected."""
        return {"groups_per_user": self.groups_per_user, "users_needed": self.threshold}


def threshold(k: int, epsilon: Decimal, delta: Decimal) -> int:
    """The noisy number of supporters from which a group is shown.

    A group with one supporter is shown with probability P(noise ≥ τ − 1) = q^(τ−1)/(1+q), q = e^(−ε/k). Over the k groups of
    one user that must not exceed δ: τ = 1 + ⌈(k/ε)·ln(k/(δ(1+q)))⌉.
    """
    scale = k / float(epsilon)
    needed = scale * math.log(k / (float(delta) * (1 + math.exp(-1 / scale))))
    return 1 + max(1, math.ceil(needed * (1 + 1e-12)))


@contextmanager
def select_keys(
    table: Table,
    copy: Table,
    by: tuple[str, ...],
    share: tuple[Decimal, Decimal],
    limit: int | None,
    receipt: Receipt,
) -> Iterator[Selection]:
    """Select groups with (ε, δ); ``limit`` is the number of groups a user may support, chosen privately if None.

    Guarantee: (ε, δ) under presence. Sorted output; of groups that are not shown nothing is released: their keys
    stay in the engine, and only those that pass are turned into values.

    Args:
        table: where from.
        copy: one reading of it.
        by: the group columns.
        share: ε and δ of the selection.
        limit: groups per user.
        receipt: of the debit.
    """
    (epsilon, delta), engine = share, table.engine
    with engine.kept(distinct_keys(copy, by)) as pairs:
        if limit is None:
            for_limit, epsilon = split(epsilon, SHARE_OF_CHOICE)
            limit = _choose_limit(copy, pairs, for_limit, epsilon, receipt)
        supported = sampled_rows(copy, pairs, limit)
        counted = supported.group_by(key_names(len(by))).aggregate(supporters=supported.count())
        with engine.kept(placed(counted)) as groups:
            # In the order of their places, so that the position of a number is the place of its key.
            tested = groups.select(PLACE, "supporters").order_by(PLACE)
            needed = threshold(limit, epsilon, delta)
            measured = Measurement(lambda: engine.fetch(tested).map(_supporters), limit, limit)
            places = receipt.selected(measured, needed, epsilon, delta)
            yield Selection(receipt.passed(found_keys(table, by, groups, places)), limit, needed)


def _supporters(tested: pa.Table) -> list[int]:
    return [int(count) for count in tested["supporters"].to_pylist()]


def _choose_limit(table: Table, pairs: Rows, epsilon: Decimal, left: Decimal, receipt: Receipt) -> int:
    """How many groups a user may support: balances the noise on every group against the support that is lost."""
    users = pairs.group_by(list(table.user_names)).aggregate(groups=pairs.count())
    buckets = row_buckets()
    measurement = users_by_bucket(table, users, users.groups, buckets)
    histogram = Wanted(About("groups")).get(receipt, buckets, measurement, epsilon)
    return max(1, min(best_cap(histogram, float(left) / 10).cap, MOST_GROUPS))


def parse_groups_per_user(given: object) -> int | None:
    """Read ``groups_per_user=``."""
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= 10_000:
        raise UsageError(f"groups_per_user={given!r}: expected a whole number between 1 and 10000, such as 10.")
    return given
