"""The variance of a column: about its mean (`about_mean.py`), or by group two moments about the middle of the range, released together.

For values in ``[lo, hi]`` with middle ``c`` the variance is ``E(x−c)² − (E x − c)²``. About the middle the squares span the
smallest possible range, ``(B/2)²``, so they need the least noise that holds for every table. Each moment is a weighted
mean released as a pair (docs/proofs/mean-pair.md); the four integers share one L1 bound, three quarters of it for the squares,
whose noise enters the variance in full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from evenhand.bounding import Auto, SmoothWeights, choose_smooth
from evenhand.guarantee import Relation, exact_sum, split
from evenhand.noise import IntegerNoise
from evenhand.profiles import Profile, Shelf, Wanted, row_buckets, rows_with, users_by_bucket
from evenhand.release import Error, Interval, OfDeviation, Ratio, Receipt, Rule
from evenhand.release.intervals import Derived, covers, noise_only, why_not
from evenhand.statistics.believed_means import corrected, times
from evenhand.statistics.count import Count
from evenhand.statistics.draft import UNBOUNDED, Draft, Outcome
from evenhand.statistics.mean import Mean
from evenhand.statistics.ratio import quotient
from evenhand.statistics.request import Request
from evenhand.statistics.several import joint_bounding
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.expressions import Integers
from evenhand.tables.grid import bits_for
from evenhand.tables.summaries import per_user, valid_rows

if TYPE_CHECKING:
    from evenhand.statistics.part import Part


_SQUARES = 3  # grid steps of the squares for one of the values


@dataclass(frozen=True)
class Variance(Mean):
    """The variance of a column over rows.

    Without groups and with a chosen bound: 15% of ε for a histogram of users by rows, a seventh of the rest for the mean, then squared
    distances from the released mean. By group, in ``aggregate`` and under a given bound: two weighted means, of values and of squared distances from the middle of the
    bounds, whose noise is many times larger.

    Interval: those of both means, each with half of the allowed failure probability, combined for the worst case; wider than necessary.

    Edge cases: never negative; near zero, not zero, for a constant column.

    Proof: variance, row-weights.
    """

    name = "variance"
    planned_as = None
    unit_power = 2
    noise_power = 2

    def ungrouped(self, request: Request) -> Draft | None:
        """Around the mean, where nothing is said about the bound."""
        if request.named is not None:
            return None
        return variance_about_mean(self, self.column, self.range, request)

    @property
    def rule(self) -> Rule:
        return OfDeviation()

    def road_for(self, request: Request) -> type[Part] | None:
        return None

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("above", "below", "square", "rest")

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        import ibis

        top, half = self.grid.top, self.grid.top / 2
        part = (values[0].cast("float64") - half) / half
        square = (part * part * float(_SQUARES * top) + 0.5).floor().cast("int64")
        square = ibis.least(ibis.greatest(square, 0), _SQUARES * top)
        both = super().integers(weight, values)
        return {
            "above": both["above"],
            "below": both["below"],
            "square": square * weight,
            "rest": (_SQUARES * top - square) * weight,
        }

    def reach(self, relation: Relation) -> int:
        """Under presence the four integers of a row add up to this; under values each pair moves by twice its range."""
        return (1 + _SQUARES) * self.grid.top * relation.moves

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        low, width = self.range[0], self.range[1] - self.range[0]
        noises, middle = (noise, noise), low + width / 2
        mean = Ratio(sums["above"], sums["above"] + sums["below"], noises, (0.0, 1.0), low, width, paired=True)
        square = Ratio(
            sums["square"], sums["square"] + sums["rest"], noises, (0.0, 1.0), 0.0, (width / 2) ** 2, paired=True
        )
        distance = mean.value - middle
        spread = math.hypot(square.spread, 2 * distance * mean.spread)  # squares of squares would overflow
        value = max(square.value - distance**2, 0.0)
        rows = max(sums["above"] + sums["below"], 0) / (self.grid.top * FULL)
        return Estimate(value, VarianceInterval(mean, square, middle, (width / 2) ** 2), spread, rows)


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


@dataclass(frozen=True)
class RootInterval(Derived):
    """The interval of a quantity that is not negative, for its root: roots keep the order, so it covers as often."""

    interval: Interval

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.interval.at(confidence)
        return math.sqrt(max(low, 0.0)), math.sqrt(high)

    def of(self, interval: Interval) -> Interval:
        return RootInterval(interval)


@dataclass(frozen=True)
class Std(Variance):
    """The standard deviation of a column over rows: the root of the variance, and so are the ends of its interval.

    Proof: variance.
    """

    name = "std"
    unit_power = 1

    @property
    def words(self) -> str:
        return f"standard deviation of {self.column}"

    def ungrouped(self, request: Request) -> Draft | None:
        draft = super().ungrouped(request)

        def run(receipt: Receipt) -> Outcome:
            assert draft is not None
            variance = draft.run(receipt)
            details = dict(variance.details)
            value, noise = _root(variance.value, variance.error.noise or 0.0)
            if "correction" in details:
                details["correction"] = corrected(math.sqrt(max(details["correction"]["measured"], 0.0)), value, noise)
            error = Error(noise, None, variance.error.basis)
            return replace(
                variance, value=value, interval=RootInterval(variance.interval), error=error, details=details
            )

        return None if draft is None else replace(draft, run=run)

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        variance = super().read(sums, noise)
        value, spread = _root(variance.value, variance.noise)
        return Estimate(value, RootInterval(variance.interval), spread, variance.rows)


def _root(variance: float, error: float) -> tuple[float, float]:
    """The root, and the standard deviation of its error: to first order that of the variance over twice the root.

    Near zero that says nothing, but |√(v + e) − √v| ≤ √|e| holds everywhere.
    """
    value = math.sqrt(variance)
    return value, min(error / (2 * value) if value else math.inf, math.sqrt(error))
