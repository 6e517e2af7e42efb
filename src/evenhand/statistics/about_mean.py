"""A variance without groups: the mean first, then the mean squared distance from it, as a quotient of a sum and a count.

Around the middle of the range a variance is the difference of two numbers that may both be far larger than it, and so is its noise. Around the
mean that was just released nothing is subtracted but the square of the mean's own error. Squares are skewed, a few large ones among many small: a sum's
buckets, which grow by a factor, see them where a mean's equal bins don't (docs/proofs/variance.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from evenhand.guarantee import split
from evenhand.profiles import Shelf
from evenhand.release import Error, Interval, Receipt
from evenhand.release.intervals import covers, noise_only, why_not
from evenhand.statistics.believed_means import corrected, times
from evenhand.statistics.count import Count
from evenhand.statistics.draft import UNBOUNDED, Draft, Outcome
from evenhand.statistics.mean import Mean
from evenhand.statistics.ratio import RatioOf, quotient
from evenhand.statistics.request import Request
from evenhand.statistics.several import joint_bounding
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.sum import Sum
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.grid import bits_for
from evenhand.tables.summaries import valid_rows

SQUARE = "squared_distance"
_USUAL = (1e-100, 1e100)
"""Squared distances are in the unit of the column's square, or, where doubles end, parts of the largest."""
MEAN_PART = Fraction(1, 5)
"""Of ε for the mean: its error enters squared."""


@dataclass(frozen=True)
class VarianceInterval:
    """Both moments at once: each at half the allowed failure, combined at their worst.

    Args:
        mean: of the values.
        square: of the squared distances from ``centre``.
        centre: a public number.
        most: the largest variance within the bounds.
    """

    mean: Interval
    square: Interval
    centre: float
    most: float

    @property
    def noise_only(self) -> VarianceInterval:
        """The noise alone."""
        return replace(self, mean=noise_only(self.mean), square=noise_only(self.square))

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        return covers(self.square)

    @property
    def why(self) -> str:
        """Why it can't tell."""
        return "; ".join(dict.fromkeys(filter(None, (why_not(self.mean), why_not(self.square)))))

    def at(self, confidence: float) -> tuple[float, float]:
        each = (1 + confidence) / 2
        low, high = self.mean.at(each)
        distances = [abs(low - self.centre), abs(high - self.centre)]
        nearest = 0.0 if low <= self.centre <= high else min(distances)
        least, most = self.square.at(each)
        ends = least - max(distances) ** 2, most - nearest**2
        return min(max(ends[0], 0.0), self.most), min(max(ends[1], 0.0), self.most)


def variance_about_mean(statistic: Statistic, column: str, bounds: Bounds, request: Request) -> Draft:
    """Worked out from public facts."""
    low, high = bounds
    for_mean, for_square = (replace(request, epsilon=part) for part in split(request.epsilon, MEAN_PART))
    for_mean = replace(for_mean, shelf=request.shelf.lent())  # settled here, once
    mean = Mean(column, bounds).ungrouped(for_mean)
    assert mean is not None

    def run(receipt: Receipt) -> Outcome:
        with request.table.once([column]) as copy:
            drafted = Mean(column, bounds).ungrouped(replace(for_mean, table=copy))
            assert drafted is not None
            around = drafted.run(receipt)
            grid = Grid.about(bounds, origin=low, bits=bits_for(request.epsilon))
            centre = min(max(grid.steps_above(around.value), 0), grid.width)
            farthest = max(centre, grid.width - centre)
            largest = grid.units(farthest) ** 2
            unit = largest if _USUAL[0] < largest < _USUAL[1] else 1.0
            squared = with_squares(copy, column, grid, centre, farthest, unit)
            both = {"squares": Sum(SQUARE, (0, unit)), "rows": Count()}
            shares = RatioOf(*both.values()).shares(request.relation, for_square.epsilon)
            outcomes = {}
            for share, (name, part) in zip(shares, both.items(), strict=True):
                # A profile that was given is one of rows: it says nothing about squares.
                auto = replace(request.auto, profile=None) if name == "squares" else request.auto
                draft = part.ungrouped(replace(for_square, epsilon=share, auto=auto, table=squared, shelf=Shelf()))
                assert draft is not None
                outcomes[name] = draft.run(receipt)
        square = times(quotient(outcomes, nonnegative=True), largest / unit)
        bounded = {"mean": around, **outcomes}
        bounding = joint_bounding(
            {name: one.bounding for name, one in bounded.items() if one.bounding is not UNBOUNDED}
        )
        return replace(_variance(around, square, low + grid.units(centre), ((high - low) / 2) ** 2), bounding=bounding)

    query = {**statistic.query, "bounding": mean.bounding.to_dict()}
    guarantee = request.guarantee().resting_on(*mean.guarantee.earlier)
    rules = {statistic.name: statistic.rule}
    return Draft(statistic.words, guarantee, request.pure(), query, mean.bounding, Error(None), run, rules)


def _variance(mean: Outcome, square: Outcome, centre: float, most: float) -> Outcome:
    """What the two say together: E(x − c)² − (E x − c)², of which the second is the squared error of the mean."""
    interval = VarianceInterval(mean.interval, square.interval, centre, most)
    value = min(max(square.value - (mean.value - centre) ** 2, 0.0), most)
    if math.isnan(
        value
    ):  # the number of rows is lost in noise: any number inside the interval will do, and is not usable
        value = sum(interval.at(0.5)) / 2
    details = {}
    if "correction" in square.details:
        details["correction"] = corrected(square.details["correction"]["measured"], value, square.error.noise or 0.0)
    return Outcome(value, interval, square.bounding, square.error, details)


def with_squares(table: Table, column: str, grid: Grid, centre: int, farthest: int, unit: float) -> Table:
    """The rows that count, with the squared distance of each from the centre; ``unit`` is that of the farthest."""
    rows, (steps,) = valid_rows(table, ((column, grid),))
    part = (steps.cast("float64") - float(centre)) / float(farthest)
    return replace(table, expression=rows.mutate(**{SQUARE: part * part * unit}))
