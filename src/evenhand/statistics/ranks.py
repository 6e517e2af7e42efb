"""The road of quantiles: rows per point of a grid, each user's weight bounded, then a private search for the points (`rank_search.py`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from evenhand.bounding import LARGEST_AMOUNT, Choice, Family, MovedRank, Norm, bound_for_quantiles
from evenhand.guarantee import UsageError
from evenhand.noise import LARGEST_SCALE
from evenhand.profiles import public_sizes
from evenhand.release import Error, OfQuantiles, Receipt, Rule, noise_for
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import GridCells
from evenhand.statistics.histogram import RowsInCells
from evenhand.statistics.keys import ID, Keys
from evenhand.statistics.limits import given_amount, histogram_of, in_words
from evenhand.statistics.part import Prepared
from evenhand.statistics.rank_intervals import rank_interval, rank_intervals
from evenhand.statistics.rank_search import Placed, Search, least_share, moves, rank_deviation
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.statistics.weighted_part import WeightedPart
from evenhand.statistics.weighted_rows import FULL, WEIGHT, WeightedRows, capacity_of
from evenhand.tables import Bounds, Grid, OpenBounds, Secret, Table, parse_bounds, parse_open_bounds
from evenhand.tables.expressions import Rows
from evenhand.tables.saturation import exact_sum

if TYPE_CHECKING:
    import pyarrow as pa

MOST_POINTS = 2**22
"""Groups times points of one release: so many numbers at most are fetched from the engine, those where rows are."""

PROFILE_SHARE = 0.12
"""Of ε, for choosing the bound. A rank needs less of a profile than a total does: its bound lies where there are many users."""

POINT_BITS = 20

_OUTSIDE = 5
"""Bounds that are found leave at most this part of the rows beyond a quantile outside: users differ from rows."""


@dataclass(frozen=True)
class Ranks(WeightedPart):
    """Weighted rows up to the bounded weights; then a search in rounds."""

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
        # The noise of a round must fit 64 bits.
        fits = Fraction(LARGEST_SCALE, FULL * request.relation.moves) * Fraction(least_share(share.epsilon))
        amount = max(min(Fraction(busy.bound), fits, Fraction(LARGEST_AMOUNT)), Fraction(1, FULL))
        strategy, words = in_words(amount, norm, statistic, groups > 1)
        return norm, amount, Choice(strategy, basis, paid, words=words, busy=busy), share.epsilon

    def _placed(self, rows: WeightedRows, users: Rows, norm: Norm, capacity: int, choice: Choice) -> Secret[Placed]:
        """The weight at each point where rows are: of users whose rows have full weight, of those who are cut, and of those far above the bound."""
        weighted = rows.weighted(users, norm, capacity)
        weight, is_public = weighted[WEIGHT], self.request.relation.counts_are_public
        # Whether a user is far above the bound is told apart where the number of rows of each is not public.
        times = 0 if choice.busy is None or is_public else choice.busy.far
        far, full = weight * times < FULL, weight >= FULL
        beyond = (far & ~full & (times > 0)).ifelse(weight, 0)
        kinds = {"full": full.ifelse(weight, 0), "cut": full.ifelse(0, weight - beyond), "far": beyond}
        sums = {name: exact_sum(rows.table, value) for name, value in kinds.items()}

        def placed(answer: pa.Table) -> Placed:
            places, *found = (answer.column(name).to_pandas().astype("int64").to_numpy() for name in (ID, *sums))
            return Placed.of(places, found)

        return rows.table.engine.fetch(weighted.group_by(ID).aggregate(**sums)).map(placed)

    @contextmanager
    def prepare(self, copy: Table, groups: Keys, allocation: Allocation | None, receipt: Receipt) -> Iterator[Prepared]:
        statistic, request = self.statistic, self.request
        keys = statistic.placed(groups, request.table)
        assert isinstance(keys, GridCells)
        assert isinstance(statistic, OfRanks)
        assert allocation is not None
        with self._rows(copy, keys).fixed() as rows, request.table.engine.kept(rows.norms(self.norms)) as users:
            norm, amount, choice, left = self._bound(users, keys, allocation, receipt)
            capacity, grid = capacity_of(amount), keys.grid
            weights = self._placed(rows, users, norm, capacity, choice)
            zero = grid.steps_above(min(max(0.0, grid.low), grid.high))
            search = Search(receipt, weights, keys.cells, zero, groups.groups, capacity, request.relation, choice.busy)
            found = search.find(statistic.wanted, left)
        exact, known = statistic.of_integers(request.table) and grid.exponent == 0, choice.busy is not None
        each = {q: rank_intervals(grid, found, q, exact, known) for q in statistic.wanted}
        estimates = {
            "" if statistic.single else name: [
                Estimate(one.value, rank_interval(one, known), one.spread) for one in each[q]
            ]
            for name, q in zip(statistic.titles, statistic.wanted, strict=True)
        }
        error = Error(None, None, in_sentence(found.moved) if known else Error(None).basis)
        details = corrections(found.moved)
        yield Prepared(keys.inner, (), (), Decimal(0), False, choice.bounding, lambda _: estimates, error, details)


def in_sentence(moved: Mapping[Fraction, MovedRank]) -> str:
    """What is known about the bias."""
    if not any(one.measured for one in moved.values()):
        return "of bounding is in the interval, by a prior about how far busy users differ"
    return "of bounding is corrected and in the interval: how far busy users differ was measured"


def corrections(moved: Mapping[Fraction, MovedRank]) -> dict[str, Any]:
    """For the details of a release: at which rank among the bounded rows each quantile was looked for, if at another than its own."""
    ranks = {float(q): float(one.rank) for q, one in moved.items() if one.rank != q}
    if not ranks:
        return {}
    words = ", ".join(f"{q:g} was looked for at rank {rank:.3f}" for q, rank in ranks.items())
    return {"correction": {"words": f"{words} of the bounded rows, since busy users differ", "ranks": ranks}}


class OfRanks(RowsInCells):
    """Quantiles of a column: rows are counted at each point of a grid between the bounds; what matters is their weight."""

    road = Ranks
    unit_power = 1
    single: ClassVar[bool] = False
    """Whether there is one number, not a list."""

    bounds: OpenBounds | Sequence[float | None] | None

    def __post_init__(self) -> None:
        parse_open_bounds(self.bounds)

    def with_bounds(self, found: Sequence[OpenBounds]) -> Self:
        changed: dict[str, Any] = {"bounds": found[0]} if found else {}
        return replace(self, **changed)

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": self.name, "column": self.column, "bounds": list(parse_open_bounds(self.bounds))}

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
        return tuple(rank_deviation(self.wanted, q) for q in self.wanted)

    def placed(self, keys: Keys, table: Table) -> Keys:
        bits = min(POINT_BITS, int(math.log2(MOST_POINTS / keys.groups)))
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
