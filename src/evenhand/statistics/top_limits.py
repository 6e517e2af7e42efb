"""What one user may add to the groups that `top` looks for: in how many of them, and how much in each."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from evenhand.bounding import ONCE_EACH, Breadth, Lost
from evenhand.guarantee import exact_difference, split
from evenhand.noise import LARGEST_SCALE, TopK
from evenhand.profiles import About, Histogram, Support, Wanted, row_buckets, users_by_bucket
from evenhand.release import Additive, Bounding, Error, Noisy, Receipt
from evenhand.statistics.believed_groups import IN_INTERVAL, believed_totals, of_given_bound
from evenhand.statistics.count import Count
from evenhand.statistics.draft import UNKNOWN
from evenhand.statistics.statistic import Estimate
from evenhand.tables import Table
from evenhand.tables.expressions import Rows

PROFILE = Fraction(1, 20)
"""The part of ε for each profile: of groups per user, and for rows of a user's rows in one group."""

LARGEST = 2**30
"""Rows of a user in one group that may count, at most."""

CHOICE = Fraction(2, 3)
"""The part of the rest that chooses the groups; what is left counts them."""

_FEW = 0.01  # the part of all memberships that a bound on groups per user may cost the numbers
_ONE_GROUP = (Breadth(1.0, 1.0, 1.0),)  # what is known about users is how much they have in one group
_SMALL = 4  # a wanted group is taken to hold one in 4k users


class Limits(NamedTuple):
    """What one user may add.

    Args:
        groups: in how many groups, drawn at random; None for any number.
        each: how much in each.
        paid: what choosing it cost.
        counted: whether chosen groups are counted by these users' drawn groups too; otherwise by all of their groups.
        lost: what that takes from the numbers, as far as the profiles tell; None if nothing, or if nothing was bought.
    """

    groups: int | None
    each: int
    paid: Decimal
    counted: bool = True
    lost: Lost | None = None

    def believed(self, noisy: Noisy) -> list[Estimate]:
        """The numbers of the chosen groups, with what the limits took from them: the same part as from all, give or take."""
        deviation = noisy.noise.variance**0.5
        plain = [Estimate(value, Additive(value, noisy.noise, 1), deviation) for value in noisy.values]
        if self.lost is not None:
            return believed_totals(Count(), plain, self.lost.of_total(max(sum(noisy.values), 0)))
        return of_given_bound(Count(), plain) if self.cuts else plain

    @property
    def cuts(self) -> bool:
        """Whether something of a user may be missing from the numbers."""
        return self.lost is not None or (self.groups is not None and self.counted)

    @property
    def error(self) -> Error:
        """What is known about the bias of the numbers."""
        if self.lost is not None:
            return IN_INTERVAL
        return UNKNOWN if self.cuts else Error(None, 0.0, "no user is cut off")

    def bounding(self, of: str) -> Bounding:
        """The limits in words, for what is counted."""
        words = "each user counts once in each group"
        if of == "rows":
            words = f"each user counts with at most {self.each:,} rows in each group"
        if self.groups is not None:
            when = "" if self.counted else " when groups are chosen"
            words += f", in at most {self.groups} of their groups, drawn at random,{when}".rstrip(",")
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
    table: Table, users: Rows, k: int, of: str, given: int | None, epsilon: Decimal, delta: Decimal, receipt: Receipt
) -> tuple[Limits, Decimal]:
    """The limits, and the ε that is left.

    Args:
        table: the copy that the users come from.
        users: one row per user: their number of ``groups``, and how much they have in ``each``: in one of them.
        k: how many groups are wanted.
        of: "users" or "rows".
        given: the number of groups per user, if the analyst gave it.
        epsilon: of the release.
        delta: of the choice, if names are hidden.
        receipt: of the debit.
    """
    share, left, each, counted = split(epsilon, PROFILE)[0], epsilon, 1, True
    groups, lost = given_groups(given, k), None
    if given is None:
        left = exact_difference(left, share)
        histogram = _profile(table, users, "groups", share, receipt)
        groups, counted = best_groups(histogram.support, k, left, delta)
        if groups is not None and counted:
            lost = Lost.of(histogram.posterior, ONCE_EACH, groups, gaussian=False)
    if of == "rows":
        left = exact_difference(left, share)
        histogram = _profile(table, users, "each", share, receipt)
        # What is cut off spreads over the groups, of which at least k matter; each gets all the noise.
        spread = min(groups or k, k) * k
        fits = int(LARGEST_SCALE * Fraction(left) / (4 * k))  # the noise of choice and counts must fit 64 bits
        each = max(1, min(histogram.posterior.best(math.sqrt(2) * 3 * spread / float(left)), LARGEST, fits))
        lost = Lost.of(histogram.posterior, _ONE_GROUP, each, gaussian=False)
    return Limits(groups, each, exact_difference(epsilon, left), counted, lost), left


def best_groups(support: Support, k: int, epsilon: Decimal, delta: Decimal) -> tuple[int | None, bool]:
    """The number of groups per user, below k, that forecasts the best choice, or None; and whether it hardly cuts anybody off.

    Drawing c groups of each user keeps a part p of all memberships and of a group's users. In numbers of users, the scores
    are then blurred by the draw and by noise c/(p·ε) instead of k/ε, and hidden names need margin(c)/p users. How large
    the wanted groups are is private; a public fraction of the number of users stands for it.
    """
    typical = max(float(support.users.sum()) / (_SMALL * k), 1.0)
    share = split(epsilon, CHOICE)[0]

    def cost(groups: int | None, kept: float) -> float:
        top = TopK(k, 1, groups, share)
        noise = float(top.scale) * (math.sqrt(2) if top.at_once else 1) / kept
        unseen = max(top.margin(delta) / kept - typical, 0.0) if delta else 0.0
        return math.hypot(noise, math.sqrt(typical * (1 - kept) / kept)) + unseen

    whole = float((support.users * support.sizes).sum())
    part = {c: float((support.users * np.minimum(support.sizes, c)).sum()) / max(whole, 1e-9) for c in range(1, k)}
    costs = {c: cost(c, min(max(kept, 1e-9), 1.0)) for c, kept in part.items()}
    best = min(costs, key=lambda c: (costs[c], c), default=None)
    if best is None or costs[best] >= cost(None, 1.0):
        return None, True
    return best, part[best] >= 1 - _FEW


def _profile(table: Table, users: Rows, name: str, epsilon: Decimal, receipt: Receipt) -> Histogram:
    buckets = row_buckets()
    measurement = users_by_bucket(table, users, users[name], buckets)
    return Wanted(About("groups")).get(receipt, buckets, measurement, epsilon)
