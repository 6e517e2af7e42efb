"""The road of quantiles: rows per point of a grid, each user's weight bounded, then a private search for the points."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from evenhand.bounding import LARGEST_AMOUNT, Choice, Family, Norm, bound_for_quantiles
from evenhand.guarantee import UsageError, split
from evenhand.noise import LARGEST_SCALE
from evenhand.profiles import public_sizes
from evenhand.release import Error, OfQuantiles, Receipt, Rule, noise_for
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.busy_ranks import (
    Far,
    Measured,
    corrections,
    in_sentence,
    informed,
    measured_ranks,
    moved_ranks,
    moves,
    near_and_far,
)
from evenhand.statistics.cells import GridCells
from evenhand.statistics.finding import Measure, find, least_share, rank_deviations
from evenhand.statistics.histogram import RowsInCells
from evenhand.statistics.keys import Keys
from evenhand.statistics.limits import given_amount, histogram_of, in_words
from evenhand.statistics.part import Prepared
from evenhand.statistics.rank_intervals import RankInterval, rank_interval
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.statistics.weighted_part import Sums, WeightedPart
from evenhand.statistics.weighted_rows import FULL, WEIGHT, WeightedRows, capacity_of, fetch_groups
from evenhand.tables import Bounds, Grid, OpenBounds, Table, parse_bounds, parse_open_bounds
from evenhand.tables.expressions import Rows

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
        noise_for(*moves(capacity_of(amount), self.request.relation), least_share(allocation.shares[self.name].epsilon))

    def _bound(
        self, users: Rows, keys: Keys, allocation: Allocation, receipt: Receipt
    ) -> tuple[Norm, Fraction, Choice, Decimal]:
        """The bound and what is known about the users it cuts, by the posterior over contributions."""
        request, statistic, share = self.request, self.statistic, allocation.shares[self.name]
        assert isinstance(statistic, OfRanks)
        if request.strategy is not None:
            return super()._bound(users, keys, allocation, receipt)
        (norm,), groups = self.norms, self.spread(keys)
        basis, paid = "the public number of rows of each user", Decimal(0)
        if self.wanted:
            if self.groups is None and share.profile:
                share = share.divided(self.share(groups))
            profile = histogram_of(request, receipt, users, norm, statistic, self.wanted[0], share.profile, groups)
            family, basis, paid = Family.of_posterior(profile.posterior), profile.basis, profile.paid
        else:
            family = Family.of_support(public_sizes(request.table, users, receipt, norm.name))
        quantiles = [float(q) for q in statistic.wanted]
        busy = bound_for_quantiles(family, quantiles, float(share.epsilon), statistic.deviations, groups)
        fits = Fraction(LARGEST_SCALE, FULL * 128) * Fraction(share.epsilon)  # the noise must fit 64 bits
        amount = max(min(Fraction(busy.bound), fits, Fraction(LARGEST_AMOUNT)), Fraction(1, FULL))
        strategy, words = in_words(amount, norm, statistic, groups > 1)
        return norm, amount, Choice(strategy, basis, paid, words=words, busy=busy), share.epsilon

    def _sums(self, rows: WeightedRows, users: Rows, norm: Norm, capacity: int, choice: Choice | None = None) -> Sums:
        """The weight at each point, and that of users who are cut, those whose rows have less than full weight, and of users far above the bound."""
        weighted = rows.weighted(users, norm, capacity)
        weight = weighted[WEIGHT]
        integers = {"rows": weight, "cut": (weight < FULL).ifelse(weight, 0)}
        if choice is not None and choice.busy is not None:
            integers["far"] = (weight * choice.busy.far < FULL).ifelse(weight, 0)
        return functools.cache(lambda: fetch_groups(rows.table, weighted, rows.keys.groups, integers))

    def bounded(
        self, keys: Keys, sums: Sums, norm: Norm, capacity: int, choice: Choice, left: Decimal, receipt: Receipt
    ) -> Prepared:
        statistic, relation = self.statistic, self.request.relation
        assert isinstance(keys, GridCells)
        assert isinstance(statistic, OfRanks)
        weights = sums().map(lambda cells: cells["rows"])
        busy, quantiles = choice.busy, sorted(set(statistic.wanted))
        believed = None if busy is None else moved_ranks(busy, quantiles)
        left, measure = self._busy_measured(sums, keys, capacity, choice, left, receipt)
        apart = None
        if busy is not None and not relation.counts_are_public:
            apart = sums().map(lambda cells: near_and_far(cells, keys.cells))
        points = find(
            receipt,
            weights,
            keys.cells,
            keys.inner.groups,
            quantiles,
            capacity,
            relation,
            left,
            believed,
            measure,
            apart,
        )
        known, estimates = choice.busy is not None, {}
        exact = statistic.of_integers(self.request.table) and keys.grid.exponent == 0
        for name, q in zip(statistic.titles, statistic.wanted, strict=True):
            intervals = [RankInterval(keys.grid, *one, exact=exact) for one in points.of(q)]
            estimates["" if statistic.single else name] = [
                Estimate(one.value, rank_interval(one, known), one.spread) for one in intervals
            ]
        basis = in_sentence(points.moved) if known else Error(None).basis
        error, details = Error(None, None, basis), corrections(points.moved)
        return Prepared(keys.inner, (), (), Decimal(0), False, choice.bounding, lambda _: estimates, error, details)

    def _busy_measured(
        self, sums: Sums, keys: GridCells, capacity: int, choice: Choice, left: Decimal, receipt: Receipt
    ) -> tuple[Decimal, Measure | None]:
        """What is left of ε, and how to learn how far bounding moves the rank of each quantile: it is measured if that is worth its price."""
        busy, statistic, relation = choice.busy, self.statistic, self.request.relation
        assert isinstance(statistic, OfRanks)
        if busy is None:
            return left, None
        quantiles = sorted(set(statistic.wanted))
        share = busy.best_share([float(q) for q in quantiles], float(left), statistic.deviations, keys.inner.groups)
        paid, rest = split(left, share) if share else (Decimal(0), left)

        def measure(places: Sequence[int], far: Far | None) -> Measured:
            told = informed(busy, far, capacity)
            if not share:
                return Measured(moved_ranks(told, quantiles))
            return measured_ranks(receipt, sums(), places, keys.cells, quantiles, told, capacity, relation, paid)

        return rest, measure


class OfRanks(RowsInCells):
    """Quantiles of a column: rows are counted at each point of a grid between the bounds; what matters is their weight."""

    road = Ranks
    unit_power = 1
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
        return OfQuantiles(*self.range)

    @property
    def is_average(self) -> bool:
        return True

    @property
    def deviations(self) -> tuple[float, ...]:
        """How precisely each quantile's rank is found, for a weight of 1 per user and ε = 1; in the order of ``wanted``."""
        return rank_deviations(tuple(float(q) for q in self.wanted))

    def placed(self, keys: Keys, table: Table) -> Keys:
        bits = min(_POINT_BITS, int(math.log2(MOST_POINTS / keys.groups)))
        if bits < 4:
            raise UsageError(f"{keys.groups:,} groups are too many for quantiles; release fewer groups at a time.")
        low, high = self.range
        grid = Grid.about((low, high), low, bits)
        if self.of_integers(table):
            grid = replace(grid, exponent=min(grid.exponent, 0))
        return GridCells(keys.columns, keys.rows, keys.other, keys, self.column, grid)

    def of_integers(self, table: Table) -> bool:
        """Whether values and bounds are whole numbers by their declared type: then answers are, too."""
        low, high = self.range
        whole = float(low).is_integer() and float(high).is_integer()
        return whole and bool(table.expression.schema()[self.column].is_integer())
