"""What one user may add to the groups that `top` looks for: in how many of them, and how much in each."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from evenhand.bounding import best_cap
from evenhand.guarantee import split
from evenhand.noise import LARGEST_SCALE
from evenhand.profiles import About, Histogram, Wanted, row_buckets, users_by_bucket
from evenhand.release import Bounding, Receipt
from evenhand.tables import Table
from evenhand.tables.expressions import Rows

PROFILE = Fraction(1, 20)
"""The part of ε for each profile: of groups per user, and for rows of the most rows of a user in one group."""

LARGEST = 2**30
"""Rows of a user in one group that may count, at most."""

_FEW = 0.01  # the part of all memberships that a bound on groups per user may cost


class Limits(NamedTuple):
    """What one user may add: in how many groups (None for any number), and how much in each; and what choosing it cost."""

    groups: int | None
    each: int
    paid: Decimal

    def bounding(self, of: str) -> Bounding:
        """The limits in words, for what is counted."""
        words = "each user counts once in each group"
        if of == "rows":
            words = f"each user counts with at most {self.each:,} rows in each group"
        if self.groups is not None:
            words += f", in at most {self.groups} of their groups, drawn at random"
        basis = "given"
        if self.paid:
            basis = "chosen from a noisy histogram of users by contribution, bought with part of ε"
        return Bounding(
            "GroupLimit", None if self.groups is None else float(self.groups), words, basis, self.paid or None
        )


def given_groups(given: int | None, k: int) -> int | None:
    """The bound on groups per user that is in force: one of k or more would need more noise than none."""
    return None if given is None or given >= k else given


def chosen_limits(
    table: Table, users: Rows, k: int, of: str, given: int | None, epsilon: Decimal, receipt: Receipt
) -> tuple[Limits, Decimal]:
    """The limits, and the ε that is left.

    Args:
        table: the copy that the users come from.
        users: one row per user: their number of ``groups``, and the ``most`` that they have in one.
        k: how many groups are wanted.
        of: "users" or "rows".
        given: the number of groups per user, if the analyst gave it.
        epsilon: of the release.
        receipt: of the debit.
    """
    share, left, each = split(epsilon, PROFILE)[0], epsilon, 1
    groups = given_groups(given, k)
    if given is None:
        left -= share
        groups = _few(_profile(table, users, "groups", share, receipt), k)
    if of == "rows":
        left -= share
        histogram = _profile(table, users, "most", share, receipt)
        # What is cut off spreads over the groups, of which at least k matter; each gets all the noise.
        spread = min(groups or k, k) * k
        fits = int(LARGEST_SCALE * Fraction(left) / (4 * k))  # the noise of choice and counts must fit 64 bits
        each = max(1, min(best_cap(histogram, float(left) / (3 * spread)).cap, LARGEST, fits))
    return Limits(groups, each, epsilon - left), left


def _few(histogram: Histogram, k: int) -> int | None:
    """The smallest number of groups per user, below k, that hardly anybody is above; None if there is none."""
    sizes, users = histogram.support.sizes, histogram.support.users
    for groups in range(1, k):
        if (users * np.maximum(sizes - groups, 0)).sum() <= _FEW * (users * sizes).sum():
            return groups
    return None


def _profile(table: Table, users: Rows, name: str, epsilon: Decimal, receipt: Receipt) -> Histogram:
    buckets = row_buckets()
    measurement = users_by_bucket(table, users, users[name], buckets)
    return Wanted(About("groups")).get(receipt, buckets, measurement, epsilon)
