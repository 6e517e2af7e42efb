"""A variance without groups: the mean first, then the mean squared distance from it.

Around the middle of the range a variance is the difference of two numbers that may both be far larger than it, and so is its noise. Around the
mean that was just released nothing is subtracted but the square of the mean's own error. Squares are often skewed, a few large ones among many small: a sum's
buckets, which grow by a factor, see them where a mean's equal bins don't. Where they fill their range, one mean of all of them has less noise than a quotient
of a sum and a count (docs/proofs/variance.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from evenhand.bounding import Auto, SmoothWeights, choose_smooth
from evenhand.guarantee import exact_sum, split
from evenhand.profiles import Profile, Shelf, Wanted, row_buckets, rows_with, users_by_bucket
from evenhand.release import Error, Interval, Receipt
from evenhand.release.intervals import covers, noise_only, why_not
from evenhand.statistics.believed_means import corrected, times
from evenhand.statistics.count import Count
from evenhand.statistics.draft import UNBOUNDED, Draft, Outcome
from evenhand.statistics.mean import Mean
from evenhand.statistics.ratio import quotient
from evenhand.statistics.request import Request
from evenhand.statistics.several import joint_bounding
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.sum import Sum
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.grid import bits_for
from evenhand.tables.summaries import per_user, valid_rows

SQUARE = "squared_distance"
_USUAL = (1e-100, 1e100)
"""Squared distances are in the unit of the column's square, or, where doubles end, parts of the largest."""
ROWS_PART = Decimal("0.15")
"""Of ε for a profile of rows, which serves the mean and the number of rows."""
MEAN_PART = Fraction(4, 25)
"""Of the rest for the mean: its error enters squared."""
SQUARES_PART = Fraction(3, 4)
"""Of what is left then for the squares: a few users hold many times more of them than their share of the rows."""


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
    lent = replace(request, shelf=request.shelf.lent())
    wanted = lent.wants(rows_with([column], statistic.words))  # settled here, once, for the mean and the number of rows
    paid, left = (
        (Decimal(0), request.epsilon)
        if wanted is None
        else wanted.price(request.epsilon, request.auto.share or ROWS_PART)
    )
    for_mean, for_square = (replace(request, epsilon=part, shelf=Shelf()) for part in split(left, MEAN_PART))
    grid = Grid.about(bounds, origin=low, bits=bits_for(request.epsilon))

    def run(receipt: Receipt) -> Outcome:
        with request.table.once([column]) as copy:
            auto = request.auto
            if wanted is not None:
                auto = replace(auto, profile=_profile(wanted, copy, (column, grid), paid, receipt))
            around = _run(Mean(column, bounds).ungrouped(replace(for_mean, table=copy, auto=auto)), receipt)
            centre = min(max(grid.steps_above(around.value), 0), grid.width)
            farthest = max(centre, grid.width - centre)
            largest = grid.units(farthest) ** 2
            unit = largest if _USUAL[0] < largest < _USUAL[1] else 1.0
            squared = with_squares(copy, column, grid, centre, farthest, unit)
            square, parts = _mean_square(replace(for_square, table=squared, auto=auto), unit, receipt)
        square = times(square, largest / unit)
        bounded = {"mean": around, **parts}
        bounding = joint_bounding(
            {name: one.bounding for name, one in bounded.items() if one.bounding is not UNBOUNDED}
        )
        bounding = replace(bounding, epsilon=exact_sum([bounding.epsilon or Decimal(0), paid]) or None)
        return replace(_variance(around, square, low + grid.units(centre), ((high - low) / 2) ** 2), bounding=bounding)

    bounding = request.pending(wanted, ROWS_PART, located=True)
    query = {**statistic.query, "bounding": bounding.to_dict()}
    rules = {statistic.name: statistic.rule}
    return Draft(statistic.words, request.promise(wanted), request.pure(), query, bounding, Error(None), run, rules)


def _mean_square(request: Request, unit: float, receipt: Receipt) -> tuple[Outcome, dict[str, Outcome]]:
    """The mean of the squared distances, and the outcomes that it is made of.

    Public numbers of rows: a sum over them. Otherwise a histogram of users by their total of squares is bought, and tells which of two ways has the smaller forecast
    error: a capped total over the number of rows, for squares most of which are small; or one mean of all squares, for those that nearly fill their range.
    """
    squares, mean = Sum(SQUARE, (0, unit)), Mean(SQUARE, (0, unit))
    if request.relation.counts_are_public:
        parts = {
            "squares": _run(squares.ungrouped(request), receipt),
            "rows": _run(Count().ungrouped(request), receipt),
        }
        return quotient(parts, nonnegative=True), parts
    profile = request.auto.profile
    assert profile is not None
    total = squares.total(replace(request, auto=replace(request.auto, profile=None)))  # that is one of rows
    with total.users() as (_, users):
        histogram, left = total.histogram(users, Wanted(total.about()), receipt)
        for_squares, for_rows = split(left, SQUARES_PART)
        capped = total.best(users, histogram, for_squares)
        smooth = choose_smooth(profile.support, unit, float(left), request.relation)
        count = Count().ungrouped(replace(request, epsilon=for_rows))
        assert count is not None
        noise = total.forecast(users, capped.strategy).noise or 0.0
        rows = max(profile.rows, 1.0)
        each = histogram.support.rows * total.unit / rows  # about what is to be found
        forecast = math.hypot(capped.error(noise).total or math.inf, each * (count.error.total or 0.0)) / rows
        if smooth.forecast < min(forecast, each):
            auto = Auto(profile=profile, strategy=SmoothWeights())
            outcome = _run(mean.ungrouped(replace(request, epsilon=left, auto=auto)), receipt)
            return outcome, {"squares": replace(outcome, bounding=replace(outcome.bounding, epsilon=histogram.paid))}
        parts = {"squares": total.finish(users, capped, for_squares, receipt), "rows": _run(count, receipt)}
    return quotient(parts, nonnegative=True), parts


def _run(draft: Draft | None, receipt: Receipt) -> Outcome:
    assert draft is not None
    return draft.run(receipt)


def _profile(wanted: Wanted, table: Table, column: tuple[str, Grid], paid: Decimal, receipt: Receipt) -> Profile:
    """Users by number of rows: known, or bought."""
    buckets, users = row_buckets(), per_user(table, (column,))
    histogram = wanted.get(receipt, buckets, users_by_bucket(table, users, users.rows, buckets), paid)
    if wanted.known is not None:
        return wanted.known
    return Profile.bought(buckets, [int(count) for count in histogram.counts], table.guarantee(paid, Decimal(0)))


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
