"""Quantiles: choose a grid point whose weighted rank is close to the wanted one, privately.

One pass counts weighed rows at each point of a public grid inside the bounds. The score of a point v for a quantile q is
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
from fractions import Fraction
from functools import partial
from typing import Any

from evenhand.bounding import Auto
from evenhand.guarantee import Relation, UsageError, divide, parse_fraction
from evenhand.planning import Support, quantile_bound
from evenhand.release import Error, Receipt
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import MOST_CELLS, CellCount, GridCells
from evenhand.statistics.choosing import pending
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.frames import frame
from evenhand.statistics.grouped import Grouped, allocate, bounded_sums, reading
from evenhand.statistics.keys import Keys
from evenhand.statistics.limits import given_limit
from evenhand.statistics.profiles import with_known
from evenhand.statistics.request import Request
from evenhand.statistics.weighted_rows import FULL, Norm
from evenhand.tables import Bounds, Grid, parse_bounds
from evenhand.tables.numbers import number

_POINT_BITS = 12


@dataclass(frozen=True)
class QuantileInterval:
    """The public bounds: how far the noise reaches in the column's unit depends on how dense the private rows are."""

    covers = "the bounds; how far the noise reaches depends on private rows"

    bounds: Bounds
    values: dict[str, list[float]]
    keys: Keys

    def at(self, confidence: float) -> Any:
        if not self.keys.columns:
            return [self.bounds] * len(self.values)
        low, high = ([bound] * self.keys.groups for bound in self.bounds)
        return frame(
            self.keys,
            {f"{name}{end}": column for name, value in self.values.items()
             for end, column in (("", value), ("_low", low), ("_high", high))},
        )  # fmt: skip


class RankError(Error):
    """The error of a quantile is one of ranks."""

    def __str__(self) -> str:
        return f"bias {self.basis}"


@dataclass(frozen=True)
class RankCount(CellCount):
    """Rows at each grid point, for one or several quantiles; what matters is their weight, not their number."""

    quantiles: tuple[Fraction, ...]

    @property
    def words(self) -> str:
        return f"quantiles {', '.join(f'{float(quantile):g}' for quantile in self.quantiles)} of {self.column}"

    @property
    def is_average(self) -> bool:
        return True

    def best_weight(self, support: Support, epsilon: float) -> Fraction:
        share = epsilon / len(self.quantiles)
        return max(quantile_bound(support, float(quantile), share) for quantile in self.quantiles)


def parse_quantiles(given: Any) -> tuple[Fraction, ...]:
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


def draft_quantiles(request: Request, column: str, wanted: Any, bounds: Any, keys: Keys) -> Draft:
    """The quantiles of a column, ε shared equally among them."""
    quantiles, (low, high) = parse_quantiles(wanted), parse_bounds(bounds)
    number(request.table, column)
    bits = min(_POINT_BITS, int(math.log2(MOST_CELLS / keys.groups)))
    if bits < 4:
        raise UsageError(f"{keys.groups:,} groups are too many for quantiles; release fewer groups at a time.")
    cells = GridCells(keys.columns, keys.rows, keys.other, keys, column, Grid.about((low, high), low, bits))
    grouped = Grouped(request, (RankCount("rows", column, quantiles),), keys.columns, cells)
    allocation = allocate(grouped, cells, keys.groups, laplace=True)
    bounding = request.bounding
    described = (
        pending(bounding, request, grouped.profile(cells, Norm.ROWS))
        if isinstance(bounding, Auto)
        else given_limit(bounding, Norm.ROWS, grouped.parts[0]).bounding
    )
    query = {
        "statistic": "quantiles",
        "column": column,
        "bounds": [low, high],
        "quantiles": [float(quantile) for quantile in quantiles],
        "bounding": described.to_dict(),
        **({"by": list(keys.columns), "keys": len(keys.rows)} if keys.columns else {}),
    }

    def run(receipt: Receipt) -> Outcome:
        return _run(grouped, cells, allocation, quantiles, receipt)

    return Draft(
        grouped.label,
        with_known(request, allocation.known).guarantee(),
        allocation.cost,
        query,
        described,
        Error(None),
        run,
    )


def _run(
    grouped: Grouped, cells: GridCells, allocation: Allocation, quantiles: Sequence[Fraction], receipt: Receipt
) -> Outcome:
    share = divide(allocation.epsilon, len(quantiles))
    groups = cells.inner.groups
    with (
        reading(grouped) as copy,
        bounded_sums(grouped, copy, cells, allocation, Norm.ROWS, receipt, groups) as (limit, capacity, sums),
    ):
        weights = sums().map(lambda found: found["rows.rows"])
    found: list[list[float]] = []
    for quantile in quantiles:
        scores = weights.map(partial(_scores, quantile, cells.cells))
        chosen = receipt.choices(scores, _sensitivity(quantile, capacity, grouped.request.relation), share)
        found.append([cells.grid.origin + cells.grid.units(point) for point in chosen.places])
    found = _increasing(found, quantiles)
    ranks = float(chosen.scale) / (quantiles[-1].denominator * FULL) * math.log(cells.cells)
    error = RankError(None, None, f"of bounding not known; the noise moves ranks by up to about {ranks:,.0f} rows")
    named = {f"q{float(quantile):g}": column for quantile, column in zip(quantiles, found, strict=True)}
    interval = QuantileInterval((cells.grid.low, cells.grid.high), named, cells.inner)
    value: Any = [column[0] for column in found]
    if cells.inner.columns:
        value = frame(cells.inner, named)
    return Outcome(value, interval, limit.bounding, error)


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
