"""The road of a mean by group alone: distances from a centre of each group, in four steps (`located_groups.py`).

1. *Rough means.* Each user counts once in each group, up to a number of groups: noisy sums of user means give a centre for each group,
   shrunk towards the common one, and how many rows a user there usually has, in which everything else is counted.
2. *Rows*, bounded over all groups of a user together, where they are not public.
3. *Distances* of the users' sums from rows × centre, bounded over all groups together, give better centres.
4. *Distances* from those, with most of ε. An error of the rows counts in proportion to what the centres still lack, which is little.

Before that, a histogram of groups per user decides between Laplace noise on L1 norms and, if δ is given, Gaussian noise on L2 norms. With few
people or a small ε centres would be noise: then rows are weighted and released as a pair, as for several statistics together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from evenhand.bounding import PROFILE_SHARE, MovedWeight, SmoothWeights, typical_groups, weight_for_average
from evenhand.guarantee import exact_sum, split
from evenhand.ledger import mechanism_delta
from evenhand.pages.numbers import written
from evenhand.profiles import Population, Support, row_buckets, support_of_histogram, users_by_bucket
from evenhand.release import Bounding, Exact, Measurement, Receipt, Scaled, noise_for
from evenhand.statistics.allocation import Allocation, Mechanism, Share, gaussian_can_win
from evenhand.statistics.believed_groups import IN_INTERVAL, believed_averages, believed_distances
from evenhand.statistics.keys import Keys
from evenhand.statistics.located_groups import GROUPS_SHARE, TOO_ROUGH, LocatedGroups, Purse, Shares, roughness
from evenhand.statistics.mean import Mean
from evenhand.statistics.pairs import PART, Pairs, picked
from evenhand.statistics.part import Part, Prepared
from evenhand.statistics.statistic import Estimate, OfColumn
from evenhand.statistics.weighted_rows import FULL, capacity_of
from evenhand.tables import Table
from evenhand.tables.expressions import Rows
from evenhand.tables.paired import Values

_NONE = Decimal(0)
_FAINT = 1e-9  # the scale of the noise of public counts
_LARGEST = 2**46  # weighted grid steps of a user then fit 62 bits
_BASIS = "released histograms of groups, rows and distances"


@dataclass(frozen=True)
class GroupMeans(Part):
    """One mean by group, its bound left to Evenhand."""

    draws: ClassVar[bool] = True
    too_rough: ClassVar[float] = TOO_ROUGH

    @property
    def mean(self) -> OfColumn:
        """What is asked."""
        assert isinstance(self.statistic, OfColumn)
        return self.statistic

    @property
    def paired(self) -> Values | None:
        return self.mean.columns

    @property
    def forms_pairs(self) -> bool:
        return True

    @cached_property
    def mechanism(self) -> Mechanism:
        """Gaussian noise if it would win where users are in all groups; how many groups there are may not be known yet."""
        request, delta = self.request, mechanism_delta(self.request.delta)
        groups = math.inf if self.groups is None else self.groups.groups
        may = bool(delta) and self.gaussian_wins(request.epsilon, delta, groups)
        return Mechanism.EITHER if may else Mechanism.LAPLACE

    @staticmethod
    def gaussian_wins(epsilon: Decimal, delta: Decimal, groups: float) -> bool:
        """Whether Gaussian noise on the L2 norm of a user in so many groups is smaller than Laplace noise on the L1 norm."""
        return gaussian_can_win(epsilon, delta, groups)

    def described(self) -> Bounding:
        words = "the bound will be chosen privately, around centres of the groups that are found privately"
        return Bounding("auto", None, words, "auto, for 25% to 80% of ε")

    def check(self, allocation: Allocation) -> None:
        """Refuse an ε whose noise fits no integers at all."""
        least, _ = split(allocation.shares[self.name].epsilon, GROUPS_SHARE)
        noise_for(4 * PART, (4 * PART) ** 2, least)

    @contextmanager
    def prepare(self, copy: Table, groups: Keys, allocation: Allocation | None, receipt: Receipt) -> Iterator[Prepared]:
        assert allocation is not None
        mean, share = self.mean, allocation.shares[self.name]
        with Pairs.of(copy, groups, mean.column, mean.grid) as pairs, pairs.groups_per_user() as users:
            estimates, bounding = self._estimates(pairs, users, share, receipt)
        yield Prepared(groups, (), (), _NONE, False, bounding, lambda _: {"": estimates}, IN_INTERVAL)

    def _estimates(self, pairs: Pairs, users: Rows, share: Share, receipt: Receipt) -> tuple[list[Estimate], Bounding]:
        relation, groups = self.request.relation, pairs.keys.groups
        found, paid, left = self._groups_per_user(pairs, users, share.epsilon, receipt)
        typical = min(typical_groups(found), groups)
        gaussian = bool(share.delta) and self.gaussian_wins(left, share.delta, typical)
        purse = Purse.of(receipt, left, share.delta if gaussian else _NONE)
        public = relation.counts_are_public
        if not (public or gaussian) and roughness(purse, groups, typical, found.rows) > self.too_rough:
            return self._weighted(pairs, purse, paid)
        shares = Shares.of(purse, groups, typical, found.people, found.rows, public)
        located = LocatedGroups(replace(pairs, squared=gaussian), purse, shares, found, typical, receipt)
        means, bound, moved, rows_by_group = located.estimates(users)
        choosing = split(left, shares.rough + shares.rows_profile + sum(shares.distances, Fraction(0)))[0]
        reach = pairs.grid.units(bound * pairs.grid.width)
        norm = "root of the summed squares of the distances" if gaussian else "distances"
        words = (
            f"the {norm} of a user's sums from rows × a centre, over all groups together, may be {written(reach)}, counted in "
            "the rows that a user of the group usually has; the centres are found privately first"
        )
        bounding = Bounding("LocatedMean", reach, words, f"chosen from {_BASIS}", exact_sum([paid, choosing]))
        estimates = [
            Estimate(mean.value, mean, mean.spread, rows) for mean, rows in zip(means, rows_by_group, strict=True)
        ]
        return believed_distances(self.mean, estimates, moved), bounding

    def _groups_per_user(
        self, pairs: Pairs, users: Rows, epsilon: Decimal, receipt: Receipt
    ) -> tuple[Support, Decimal, Decimal]:
        """Users by number of groups, public or bought; what was paid, and what is left."""
        table, relation = pairs.table, self.request.relation
        buckets = row_buckets(max(2 * pairs.keys.groups, 4))  # nobody is in more groups than there are
        measured = users_by_bucket(table, users, users.groups, buckets)
        if relation.counts_are_public:
            counts = receipt.public(measured.integers(), relation)
            return support_of_histogram(buckets, counts, _FAINT), _NONE, epsilon
        paid, left = split(epsilon, GROUPS_SHARE)
        noisy = receipt.numbers(measured, paid).values
        return support_of_histogram(buckets, noisy, 1 / float(paid)), paid, left

    def _weighted(self, pairs: Pairs, purse: Purse, paid: Decimal) -> tuple[list[Estimate], Bounding]:
        """Too few people to find centres: rows weighted by user, and how far they lie above and below the bounds."""
        import ibis

        mean, groups, share = self.mean, pairs.keys.groups, Fraction(PROFILE_SHARE)
        rows, buckets = pairs.rows, row_buckets()
        with pairs.users(rows_norm=rows["count"]) as users:
            noisy = purse.draw(users_by_bucket(pairs.table, users, users.rows_norm, buckets), share)
            left = float(purse.epsilon) * float(1 - share)
            support = support_of_histogram(buckets, noisy.values, float(noisy.noise.scale))
            bound = weight_for_average(support, left / groups)
            capacity = max(1, min(capacity_of(bound), purse.largest(1 - share) // pairs.grid.width, _LARGEST))
            reach = rows["count"] * pairs.grid.width
            above = ibis.least(rows.above, reach)  # where counts saturate
            both = {"above": above, "below": reach - above}
            sums = pairs.sums(users, [(name, capacity, "rows_norm") for name in both], **both)
            moved = capacity * pairs.grid.width
            released = purse.draw(Measurement(picked(sums, *both), moved, moved**2), 1 - share)
        values = released.values
        estimates = [
            mean.read({"above": values[group], "below": values[groups + group]}, released.noise)
            for group in range(groups)
        ]
        shown = capacity / FULL
        words = f"all rows of a user are used, weighted to count as at most {written(shown)} rows over all groups"
        paid = exact_sum([paid, split(purse.epsilon, share)[0]])
        plausible = Population.behind(buckets, noisy.values, float(noisy.noise.scale))
        estimates = believed_averages(mean, estimates, MovedWeight.of(plausible, shown))
        return estimates, Bounding(SmoothWeights.title, shown, words, f"chosen from {_BASIS}", paid)


@dataclass(frozen=True)
class GroupSums(GroupMeans):
    """Sums by group where rows are public: the number of rows of a group times its mean."""

    @property
    def mean(self) -> OfColumn:
        return Mean(super().mean.column, super().mean.bounds)

    def _estimates(self, pairs: Pairs, users: Rows, share: Share, receipt: Receipt) -> tuple[list[Estimate], Bounding]:
        means, bounding = super()._estimates(pairs, users, share, receipt)
        return [_times_rows(mean, mean.rows or 0.0) for mean in means], bounding


def _times_rows(mean: Estimate, rows: float) -> Estimate:
    interval = Scaled(mean.interval, rows) if rows else Exact(0.0)
    return Estimate(mean.value * rows, interval, mean.noise * rows, rows, mean.correction * rows)
