"""The road of quantiles: rows per point of a grid, each user's weight bounded, then a private search for the points."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from evenhand.bounding import Norm, rank_bias, weight_for_quantiles
from evenhand.guarantee import UsageError
from evenhand.noise import LARGEST_SCALE
from evenhand.profiles import Support
from evenhand.release import Error, Receipt, noise_for
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import GridCells
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.finding import SHAPE_SHARE, WEIGHTS_SHARE, Cost, find, moved
from evenhand.statistics.histogram import RowsInCells
from evenhand.statistics.keys import Keys
from evenhand.statistics.per_row import BoundedSums, PerRow
from evenhand.statistics.rank_intervals import Found, RankInterval
from evenhand.statistics.search import rounds
from evenhand.statistics.selection import Selection
from evenhand.statistics.shape import Tree
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables import Bounds, Grid, Table, parse_bounds

MOST_POINTS = 2**22
"""Groups times points of one release: a number is drawn for each of them in every round."""

PROFILE_SHARE = 0.12
"""Of ε, for choosing the bound. A rank needs less of a profile than a total does: its bound lies where there are many users."""

_POINT_BITS = 12


@dataclass(frozen=True)
class Ranks(PerRow):
    """The road per row up to the bounded weights; then points are chosen instead of noise being added."""

    laplace: ClassVar[bool] = True

    def spread(self, keys: Keys) -> int:
        """Each quantile is one number per group."""
        assert isinstance(keys, GridCells)
        return keys.inner.groups

    def draft(self) -> Draft:
        request = self.request
        if request.auto.share is not None:
            return super().draft()
        return PerRow.draft(replace(self, request=replace(request, auto=replace(request.auto, share=PROFILE_SHARE))))

    def check_noise(self, allocation: Allocation, norm: Norm, capacity: int) -> None:
        """Refuse, before any debit, a bound whose noise would not fit 64 bits."""
        cost = Cost.of(allocation.epsilon, self.request.relation)
        for levels, share in ((Tree.levels, cost.shape), (1, cost.weights)):
            if share:
                noise_for(*moved(levels, capacity, self.request.relation), share)

    def leave(self, bounded: BoundedSums, selection: Selection | None, receipt: Receipt) -> Outcome:
        keys, (statistic,) = bounded.keys, self.parts.values()
        assert isinstance(keys, GridCells)
        assert isinstance(statistic, OfRanks)
        weights = bounded.sums().map(lambda cells: cells["rows.rows"])
        points = find(
            receipt,
            weights,
            keys.cells,
            statistic.wanted,
            bounded.capacity,
            self.request.relation,
            bounded.allocation.epsilon,
        )
        bias = bounded.choice.bias
        found = {
            name: Found(points.places[q], points.scales[q], None if bias is None else bias * math.sqrt(q * (1 - q)))
            for name, q in zip(statistic.titles, statistic.wanted, strict=True)
        }
        interval = RankInterval(keys.grid, points, found, keys.inner, statistic.single)
        return Outcome(interval.released, interval, bounded.choice.bounding, _error(interval))


def _error(interval: RankInterval) -> Error:
    spreads = {name: interval.spread(found) for name, found in interval.found.items()}
    alone = next(iter(spreads.values())) if len(spreads) == 1 else None
    basis = "of bounding is in the interval, by a prior" if interval.bias_known else Error(None).basis
    return Error(alone, None, basis, parts=spreads if interval.keys.columns or alone is None else {})


class OfRanks(RowsInCells):
    """Quantiles of a column: rows are counted at each point of a grid between the bounds; what matters is their weight."""

    shown_as = "rows"
    road = Ranks
    single: ClassVar[bool] = False
    """Whether there is one number, not a list."""

    bounds: Bounds | Sequence[float] | None

    @property
    @abstractmethod
    def wanted(self) -> tuple[Fraction, ...]:
        """The quantiles, exactly."""

    @property
    @abstractmethod
    def titles(self) -> tuple[str, ...]:
        """Their columns in a frame."""

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
        low, high = parse_bounds(self.bounds)
        return GridCells(keys.columns, keys.rows, keys.other, keys, self.column, Grid.about((low, high), low, bits))
