"""The road of quantiles: rows per point of a grid, each user's weight bounded, then a private search for the points."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from evenhand.bounding import Choice, Norm, rank_bias, weight_for_quantiles
from evenhand.guarantee import UsageError
from evenhand.noise import LARGEST_SCALE
from evenhand.profiles import Support
from evenhand.release import Error, OfSpread, Receipt, Rule, noise_for
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import GridCells
from evenhand.statistics.finding import SHAPE_SHARE, WEIGHTS_SHARE, Cost, find, moved
from evenhand.statistics.histogram import RowsInCells
from evenhand.statistics.keys import Keys
from evenhand.statistics.limits import given_amount
from evenhand.statistics.part import Prepared
from evenhand.statistics.rank_intervals import Found, RankInterval
from evenhand.statistics.search import rounds
from evenhand.statistics.shape import Tree
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.statistics.weighted_part import Sums, WeightedPart
from evenhand.statistics.weighted_rows import FULL, capacity_of
from evenhand.tables import Bounds, Grid, OpenBounds, Table, parse_bounds, parse_open_bounds

MOST_POINTS = 2**22
"""Groups times points of one release: a number is drawn for each of them in every round."""

PROFILE_SHARE = 0.12
"""Of ε, for choosing the bound. A rank needs less of a profile than a total does: its bound lies where there are many users."""

_POINT_BITS = 12

_OUTSIDE = 5
"""Bounds that are found leave at most this part of the rows beyond a quantile outside: users differ from rows."""


@dataclass(frozen=True)
class Ranks(WeightedPart):
    """Weighted rows up to the bounded weights; then points are chosen instead of noise being added."""

    laplace: ClassVar[bool] = True

    def spread(self, keys: Keys) -> int:
        """Each quantile is one number per group."""
        assert isinstance(keys, GridCells)
        return keys.inner.groups

    def share(self, groups: int) -> float | Decimal:
        return self.request.auto.share or PROFILE_SHARE

    def check(self, allocation: Allocation) -> None:
        """Refuse, before any debit, a bound whose noise would not fit 64 bits."""
        if self.request.strategy is None:
            return
        amount, _ = given_amount(self.request.strategy, self.norms[0], self.statistic)
        cost = Cost.of(allocation.shares[self.name].epsilon, self.request.relation)
        for levels, share in ((Tree.levels, cost.shape), (1, cost.weights)):
            if share:
                noise_for(*moved(levels, capacity_of(amount), self.request.relation), share)

    def bounded(
        self, keys: Keys, sums: Sums, norm: Norm, capacity: int, choice: Choice, left: Decimal, receipt: Receipt
    ) -> Prepared:
        statistic = self.statistic
        assert isinstance(keys, GridCells)
        assert isinstance(statistic, OfRanks)
        weights = sums().map(lambda cells: cells["rows"])
        points = find(receipt, weights, keys.cells, statistic.wanted, capacity, self.request.relation, left)
        found = {
            name: Found(
                points.places[q],
                points.scales[q],
                None if choice.bias is None else choice.bias * math.sqrt(q * (1 - q)),
            )
            for name, q in zip(statistic.titles, statistic.wanted, strict=True)
        }
        intervals = {
            name: [RankInterval(keys.grid, points, one, group) for group in range(keys.inner.groups)]
            for name, one in found.items()
        }
        estimates = {
            "" if statistic.single else name: [Estimate(one.value, one, one.spread) for one in column]
            for name, column in intervals.items()
        }
        known = all(one.bias is not None for one in found.values())
        basis = "of bounding is in the interval, by a prior" if known else Error(None).basis
        return Prepared(
            keys.inner, (), (), Decimal(0), False, choice.bounding, lambda _: estimates, Error(None, None, basis)
        )


class OfRanks(RowsInCells):
    """Quantiles of a column: rows are counted at each point of a grid between the bounds; what matters is their weight."""

    road = Ranks
    single: ClassVar[bool] = False
    """Whether there is one number, not a list."""

    bounds: OpenBounds | Sequence[float | None] | None

    @property
    def wants_bounds(self) -> tuple[WantedBounds, ...]:
        """Values outside count as being at the end: only some beyond the quantile have to lie inside."""
        given = parse_open_bounds(self.bounds)
        outside = min(min(q, 1 - q) for q in self.wanted) / _OUTSIDE
        return (WantedBounds(self.column, given, outside=float(outside)),) if None in given else ()

    @property
    def range(self) -> Bounds:
        """The bounds as numbers."""
        low, high = parse_open_bounds(self.bounds)
        return parse_bounds(None if low is None or high is None else (low, high))

    @property
    @abstractmethod
    def wanted(self) -> tuple[Fraction, ...]:
        """The quantiles, exactly."""

    @property
    @abstractmethod
    def titles(self) -> tuple[str, ...]:
        """Their columns in a frame."""

    @property
    def rule(self) -> Rule:
        return OfSpread(*self.range)

    @property
    def is_average(self) -> bool:
        return True

    def best_weight(self, support: Support, epsilon: float) -> Fraction:
        shares = float((1 - SHAPE_SHARE) * (1 - WEIGHTS_SHARE)) / len(rounds(sorted(set(self.wanted))))
        weight = weight_for_quantiles(support, [float(q) for q in self.wanted], epsilon * shares)
        return min(weight, Fraction(LARGEST_SCALE, FULL * 64) * Fraction(epsilon))  # the noise must fit 64 bits

    def bias_of_weight(self, support: Support, weight: Fraction) -> float:
        return rank_bias(support, float(weight))

    def placed(self, keys: Keys, table: Table) -> Keys:
        bits = min(_POINT_BITS, int(math.log2(MOST_POINTS / keys.groups)))
        if bits < 4:
            raise UsageError(f"{keys.groups:,} groups are too many for quantiles; release fewer groups at a time.")
        low, high = self.range
        return GridCells(keys.columns, keys.rows, keys.other, keys, self.column, Grid.about((low, high), low, bits))
