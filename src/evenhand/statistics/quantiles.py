"""Quantiles: choose a grid point whose weighted rank is close to the wanted one, privately.

One pass counts weighted rows at each point of a public grid inside the bounds. The score of a point v for a quantile q is
minus the distance of the rank q·W from the ranks that v covers, ``[W(x < v), W(x ≤ v)]``: zero for the true quantile even
where many rows share one value. Permute-and-flip picks a point with a high score.

Under presence both ends, seen from q·W, are ``(1−q)·W(below) − q·W(rest)``; a user of total weight N moves them, and hence
the score, by at most ``N·max(q, 1−q)``. Under values W is public and only the ends move, by at most N. Over several groups
the loss in a group is proportional to the user's weight there, and the weights add up to N: groups cost nothing extra.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from evenhand.bounding import Choice, Norm, weight_for_quantile
from evenhand.guarantee import Relation, UsageError, divide, parse_fraction
from evenhand.profiles import Support
from evenhand.release import Ends, Error, OfSpread, Receipt, Rule
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import MOST_CELLS, GridCells
from evenhand.statistics.histogram import RowsInCells
from evenhand.statistics.keys import Keys
from evenhand.statistics.part import Prepared, Sums, WeightedPart
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables import Bounds, Grid, Table, parse_bounds

_POINT_BITS = 12


@dataclass(frozen=True)
class Anywhere:
    """The public bounds: how far the noise reaches in the column's unit depends on how dense the private rows are."""

    bounds: Bounds

    def at(self, confidence: float) -> Ends:
        return self.bounds


class RankError(Error):
    """The error of a quantile is one of ranks."""

    def __str__(self) -> str:
        return f"bias {self.basis}"


@dataclass(frozen=True)
class Ranks(WeightedPart):
    """Weighted rows up to the bounded weights; then points are chosen instead of noise being added."""

    def can_be_gaussian(self, keys: Keys | None) -> bool:
        return False

    def spread(self, keys: Keys) -> int:
        """Each quantile is one number per group."""
        assert isinstance(keys, GridCells)
        return keys.inner.groups

    def check(self, allocation: Allocation) -> None:
        """Any bound will do: scores are clamped."""

    def bounded(
        self, keys: Keys, sums: Sums, norm: Norm, capacity: int, choice: Choice, left: Decimal, receipt: Receipt
    ) -> Prepared:
        assert isinstance(keys, GridCells)
        assert isinstance(self.statistic, Quantiles)
        quantiles = self.statistic.wanted
        share = divide(left, len(quantiles))
        weights = sums().map(lambda cells: cells["rows"])
        found: list[list[float]] = []
        for quantile in quantiles:
            scores = weights.map(partial(_scores, quantile, keys.cells))
            chosen = receipt.choices(scores, _sensitivity(quantile, capacity, self.request.relation), share)
            found.append([keys.grid.origin + keys.grid.units(point) for point in chosen.places])
        found = _increasing(found, quantiles)
        ranks = float(chosen.scale) / (quantiles[-1].denominator * FULL) * math.log(keys.cells)
        error = RankError(None, None, f"of bounding not known; the noise moves ranks by up to about {ranks:,.0f} rows")
        interval = Anywhere((keys.grid.low, keys.grid.high))
        estimates = {
            f"q{float(quantile):g}": [Estimate(value, interval, math.nan) for value in column]
            for quantile, column in zip(quantiles, found, strict=True)
        }
        return Prepared(keys.inner, (), (), Decimal(0), False, choice.bounding, lambda _: estimates, error)


@dataclass(frozen=True)
class Quantiles(RowsInCells):
    """Rows at each grid point, for one or several quantiles, which share ε equally; what matters is their weight.

    Args:
        column: a numeric column.
        quantiles: numbers strictly between 0 and 1.
        bounds: (low, high); the answers lie on a public grid of about 4,000 points between them.
    """

    name = "quantiles"
    shown_as = "rows"
    road = Ranks

    quantiles: float | Sequence[float] = (0.5,)
    bounds: Bounds | Sequence[float] | None = None

    def __post_init__(self) -> None:
        parse_quantiles(self.quantiles)  # refuse what is none
        parse_bounds(self.bounds)

    @property
    def wanted(self) -> tuple[Fraction, ...]:
        """The quantiles, exactly."""
        return parse_quantiles(self.quantiles)

    @property
    def words(self) -> str:
        return f"quantiles {', '.join(f'{float(quantile):g}' for quantile in self.wanted)} of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        quantiles = [float(quantile) for quantile in self.wanted]
        bounds = list(parse_bounds(self.bounds))
        return {"statistic": self.name, "column": self.column, "bounds": bounds, "quantiles": quantiles}

    @property
    def rule(self) -> Rule:
        return OfSpread(*parse_bounds(self.bounds))

    @property
    def is_average(self) -> bool:
        return True

    def best_weight(self, support: Support, epsilon: float) -> Fraction:
        share = epsilon / len(self.wanted)
        return max(weight_for_quantile(support, float(quantile), share) for quantile in self.wanted)

    def placed(self, keys: Keys, table: Table) -> Keys:
        bits = min(_POINT_BITS, int(math.log2(MOST_CELLS / keys.groups)))
        if bits < 4:
            raise UsageError(f"{keys.groups:,} groups are too many for quantiles; release fewer groups at a time.")
        low, high = parse_bounds(self.bounds)
        return GridCells(keys.columns, keys.rows, keys.other, keys, self.column, Grid.about((low, high), low, bits))


def parse_quantiles(given: object) -> tuple[Fraction, ...]:
    """Read one or several numbers strictly between 0 and 1."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    try:
        wanted = tuple(parse_fraction(str(quantile)) for quantile in several)
    except ValueError:
        wanted = ()
    if not wanted or not all(0 < quantile < 1 and quantile.denominator <= 1000 for quantile in wanted):
        raise UsageError(
            f"quantiles={given!r}: expected numbers strictly between 0 and 1 with at most three decimals, such as [0.5, 0.9]."
        )
    return wanted


def _sensitivity(quantile: Fraction, capacity: int, relation: Relation) -> int:
    """How far one user moves each score, in the integers of `_scores`."""
    a, b = quantile.numerator, quantile.denominator
    return capacity * (max(a, b - a) if relation is Relation.PRESENCE else b)


def _scores(quantile: Fraction, points: int, weights: Sequence[int]) -> list[list[int]]:
    """The score of each grid point, group by group; for q = a/b they are b times those above, so that they are integers."""
    a, b = quantile.numerator, quantile.denominator
    scores = []
    for start in range(0, len(weights), points):
        running = [0, *itertools.accumulate(weights[start : start + points])]
        offsets = [b * below - a * running[-1] for below in running]
        scores.append([-max(0, before, -upto) for before, upto in itertools.pairwise(offsets)])
    return scores


def _increasing(found: list[list[float]], quantiles: Sequence[Fraction]) -> list[list[float]]:
    """Put the values of each group into the order of their quantiles: free, and never further from the truth."""
    order = sorted(range(len(quantiles)), key=lambda index: quantiles[index])
    result = [list(column) for column in found]
    for group in range(len(found[0])):
        for index, value in zip(order, sorted(column[group] for column in found), strict=True):
            result[index][group] = value
    return result
