"""Means by group on tables with a handful of users, where nothing would be located by itself.

Every centre, bound and share must be safe, so they may be anything here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from evenhand.audit.pairs import GROUPS, HIGH, LOW
from evenhand.bounding import Distances
from evenhand.guarantee import Amount, parse_delta
from evenhand.ledger import Cost
from evenhand.profiles import Support, support_of_counts
from evenhand.release import Bounding, Error, Exact, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft, Mean, Outcome, Request
from evenhand.statistics.group_means import GroupMeans
from evenhand.statistics.keys import parse_keys
from evenhand.statistics.located_groups import LocatedGroups, Purse, Shares
from evenhand.statistics.pairs import Centres, Pairs
from evenhand.statistics.part import Part
from evenhand.statistics.per_row import PerRow
from evenhand.tables.expressions import Rows


@dataclass(frozen=True)
class _Always(GroupMeans):
    """Locates however few people there are, with Gaussian noise if there is a δ."""

    too_rough: ClassVar[float] = math.inf

    @staticmethod
    def gaussian_wins(epsilon: Decimal, delta: Decimal, groups: float) -> bool:
        return True


@dataclass(frozen=True)
class _LocatedByGroup(Mean):
    """A mean that takes this road."""

    def road_for(self, request: Request) -> type[Part] | None:
        return _Always


def located_by_group(
    ask: Drafts,
    column: str,
    bounds: tuple[float, float],
    by: str,
    keys: Sequence[str],
    other: str | None = None,
    epsilon: Amount = 1,
    delta: Amount = 0,
) -> Draft:
    """The mean by group around located centres, all of its steps."""
    mean, groups = _LocatedByGroup(column, bounds), parse_keys(ask.table, (by,), keys, other)
    return PerRow(Request.parse(ask.table, epsilon, delta), {"mean": mean}, (by,), groups).draft()


@dataclass(frozen=True)
class GivenBound(LocatedGroups):
    """Bounds a user's distances by one usual row over the whole range."""

    def _distances(self, users: Rows, support: Support, share: Fraction) -> tuple[Distances, Sequence[int]]:
        wanted = Distances.of(support, 1.0)
        return wanted, [0] * wanted.size


def distances(
    ask: Drafts, steps: type[LocatedGroups] = GivenBound, centre: float = 0.5, epsilon: int = 1, delta: float = 0.0
) -> Draft:
    """Distances by group from given centres: the last step alone, with all of ε.

    Args:
        ask: the table.
        steps: the steps, or a broken twin of them.
        centre: as a part of the range, the same for all groups.
        epsilon: all for this step.
        delta: with it, the noise is Gaussian.
    """
    request, mean = Request.parse(ask.table, epsilon, delta), Mean("v", (LOW, HIGH))
    keys, exact = parse_keys(ask.table, ("g",), list(GROUPS)), parse_delta(delta)
    words = Bounding("LocatedMean", 1.0, "one usual row")

    def run(receipt: Receipt) -> Outcome:
        with request.table.once(["v"], ("g",)) as copy, Pairs.of(copy, keys, "v", mean.grid, bool(exact)) as pairs:
            purse = Purse.of(receipt, request.epsilon, exact)
            none = Fraction(0)
            shares = Shares(none, none, none, (none, none), (none, Fraction(1)))
            everybody = support_of_counts([1])
            located = steps(pairs, purse, shares, everybody, 1.0, receipt)
            centres = Centres(np.full(keys.groups, round(centre * mean.grid.width)), np.ones(keys.groups))
            placed = pairs.about(centres)
            with located._norms(placed) as users:
                around = located._around(centres, placed, users, everybody, 1)
        return Outcome([float(value) for value in around.distances.values], Exact(0.0), words, Error(None))

    cost = Cost.approximate(request.epsilon, exact) if exact else Cost.pure(request.epsilon)
    promise = request.guarantee(exact if exact else Decimal(0))
    return Draft("distances by group", promise, cost, {"statistic": "distances"}, words, Error(None), run)
