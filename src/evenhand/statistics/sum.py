"""The sum of a column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenhand.bounding import PROFILE_SHARE, Auto, Choice, TotalCap
from evenhand.guarantee import Relation, UsageError, split
from evenhand.noise import IntegerNoise
from evenhand.population.buckets import LARGEST_TOTAL
from evenhand.population.priors import TOO_WIDE
from evenhand.profiles import Array, Buckets, Histogram, users_by_place
from evenhand.profiles.extent import surprise
from evenhand.release import Additive, Bounding, Error, NothingFound, Receipt, Unknown, noise_for
from evenhand.release.intervals import noise_only
from evenhand.statistics.believed_means import times
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.level_cells import OPEN, TOTALS, exact_totals
from evenhand.statistics.mean import Mean
from evenhand.statistics.per_user import Total
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, OfColumn
from evenhand.statistics.weighted_rows import FULL, VALUE_BITS
from evenhand.tables import Bounds, Grid, OpenBounds, Table, parse_open_bounds
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.grid import LARGEST_OPEN, bits_for
from evenhand.tables.summaries import CEILING, MOST_ROWS

if TYPE_CHECKING:
    from evenhand.statistics.part import Part

_ROOM = 16
"""How many times further than what is usual for a user's total, or than its cap, the grid of a sum without bounds reaches."""
_RUNS, _ANY = (1, 2, 3, 4, 6, 10), 8.0
"""Cells that stand out together, and the evidence that takes, as −ln of a probability: there are some thousand such runs."""
BOUGHT = "chosen from a noisy histogram of users by their total, bought with part of ε"

_FEWEST_STEPS = 2**8
"""Of the grid of a sum by group, between the bounds: fewer would round away what makes values differ."""


@dataclass(frozen=True)
class Sum(OfColumn):
    """The sum of a column; a list for several columns, which share ε equally.

    Each user's total is capped. ``bounds`` are those of one value; a range that is far too wide costs next to nothing without groups.

    Interval: as of a count.

    Under values: the public number of rows times the mean, so nothing is cut off.

    Proof: total-cap, row-weights.
    """

    name = "sum"
    additive = True
    planned_as: ClassVar[str | None] = "sum"
    ease: ClassVar[float] = 10.0
    narrowest: ClassVar[int] = 64  # the grid is seen from zero
    unit_power: ClassVar[int] = 1

    def ungrouped(self, request: Request) -> Draft | None:
        named = request.strategy
        # A strategy that is for means alone moves a total either way, by what public row counts bound.
        if request.relation.counts_are_public and (named is None or named.chosen_for == {"mean"}):
            return self._rows_times_mean(request)
        return self.total(request).draft()

    def without_bounds(self, request: Request) -> Draft | None:
        """Under presence a cap on users' totals is all that is needed: how large one value may be does not matter."""
        strategy, given, named = request.strategy, parse_open_bounds(self.bounds), request.named
        capped = named is None or (named.bounds_values and "total" in named.chosen_for)
        if (
            not self.wants_bounds
            or not capped
            or request.relation.counts_are_public
            or request.auto.profile is not None
        ):
            return None
        self.check(request.table)
        if strategy is None:
            return OpenTotal(self, given, request).draft()
        cap = strategy.caps_rows_at
        if cap is None:
            return None
        # A value that is far beyond the cap fills it whatever else the user has.
        low, high = (-_ROOM * cap if given[0] is None else given[0]), (_ROOM * cap if given[1] is None else given[1])
        return self.with_bounds([(low, high)]).ungrouped(request) if low < high else None

    def road_for(self, request: Request) -> type[Part] | None:
        """The public number of rows times a mean around a centre of each group, where nothing is said about the bound."""
        from evenhand.statistics.group_means import GroupSums  # which is made of roads that know statistics

        public = request.relation.counts_are_public
        return GroupSums if public and request.strategy is None and request.auto == Auto() else None

    def total(self, request: Request) -> Total:
        """The road of a sum whose number of rows is not public, or whose bound is given."""
        grid = Grid.about(_reachable(request, self.range), origin=0.0, bits=bits_for(request.epsilon))
        return Total(
            self,
            request,
            ((self.column, grid),),
            contribute=lambda strategy, summary: strategy.of_sum(summary, request.relation),
            unit=grid.units(1),
        )

    def _rows_times_mean(self, request: Request) -> Draft:
        """The mean can be located."""
        named = request.auto.strategy
        if named is not None and "mean" not in named.chosen_for:
            raise UsageError(
                f"{named.title}() without a bound can't be chosen under protects='values', where a sum is the public number of "
                f"rows times a mean; give the bound, as in eh.{named.title}(500), or leave bounding='auto'."
            )
        mean = Mean(self.column, self.bounds).ungrouped(request)
        assert mean is not None

        def run(receipt: Receipt) -> Outcome:
            outcome = mean.run(receipt)
            return times(outcome, outcome.public_rows or 0)

        rules = {self.name: self.rule}
        return replace(mean, statistic=self.words, query={**mean.query, **self.query}, run=run, rules=rules)

    @property
    def grid(self) -> Grid:
        """Seen from zero, so that integers are proportional to values."""
        return Grid.about(self.range, origin=0.0, bits=VALUE_BITS)

    @property
    def sum_grid(self) -> Grid | None:
        return self.grid

    def check(self, table: Table, by_row: bool = False) -> None:
        super().check(table)
        if by_row and table.relation.counts_are_public and self.grid.width < _FEWEST_STEPS:
            raise UsageError(
                f"bounds={self.range} are too close together for their distance from zero: a sum by group would be rounded "
                "more coarsely than its values differ. Ask for the mean, and multiply it by the public number of rows."
            )

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("sum",)

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ("weight", "exact") if relation.counts_are_public else ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {"sum": values[0] * weight, "weight": weight, "exact": weight * 0 + 1}

    def reach(self, relation: Relation) -> int:
        return self.grid.width if relation.counts_are_public else self.grid.reach

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        weight = sums.get("weight")
        unit = self.grid.units(1) * (sums["exact"] / weight if weight else 1 / FULL)
        value = sums["sum"] * unit
        rows = sums["exact"] if weight else None
        return Estimate(value, Additive(value, noise, unit), noise.variance**0.5 * unit, rows)


@dataclass(frozen=True)
class OpenTotal:
    """A sum of values without bounds: users are counted by their totals, a cap is chosen from the noisy numbers, and capped totals are released.

    Args:
        statistic: the sum.
        given: the end that the analyst gave, if any.
        request: its request.
    """

    statistic: Sum
    given: OpenBounds
    request: Request

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        request, statistic, name = self.request, self.statistic, self.statistic.name
        request.auto.require("total", f"a {statistic.words}")
        noise_for(1, 1, self._split[0])  # refuses an ε whose noise does not fit 64 bits
        self._total(request.table, -1.0, 1.0)
        words = "each user's total is capped, which needs no bounds on values; the cap will be chosen privately"
        bounding = Bounding(TotalCap.title, None, words, f"auto, for {float(self._share):.0%} of ε")
        query = {**statistic.query, "bounding": bounding.to_dict()}
        return Draft(
            statistic.words,
            request.guarantee(),
            request.pure(),
            query,
            bounding,
            Error(None),
            self._release,
            {name: statistic.rule},
        )

    @property
    def _share(self) -> Decimal:
        return Decimal(self.request.auto.share or PROFILE_SHARE)

    @property
    def _split(self) -> tuple[Decimal, Decimal]:
        return split(self.request.epsilon, self._share)

    def _release(self, receipt: Receipt) -> Outcome:
        column, (paid, left) = self.statistic.column, self._split
        with self.request.table.once([column]) as copy, exact_totals(copy, column, self.given) as users:
            measured = users_by_place(copy, users, users.cell, 2 * len(TOTALS) + 1, 1)
            noisy = np.array(receipt.numbers(measured, paid).values, dtype=np.float64)
            seen = _sides(noisy * float(paid), self.given)
            if not seen:
                # Noise over the whole outer range, so that the interval is true.
                total, summed = self._summed(copy, users, -LARGEST_OPEN, LARGEST_OPEN)
                outcome = total.finish(summed, Choice(TotalCap(LARGEST_OPEN), BOUGHT, paid), left, receipt)
                nothing = NothingFound("no totals", help="give bounds=(low, high), a cap, or more ε")
                return replace(outcome, value=math.nan, rules={self.statistic.name: nothing})
            usual = max(TOTALS[min(last + 1, len(TOTALS) - 1)] for last in seen.values())
            low, high = (_ROOM * usual * sign if sign in seen else 0.0 for sign in (-1, 1))
            total, summed = self._summed(copy, users, low, high)
            counts = np.sum([_side(noisy, sign) for sign in seen], axis=0)
            histogram = _in_steps(counts, total.columns[0][1], usual, float(paid) / math.sqrt(len(seen)), paid)
            outcome = total.finish(summed, total.best(summed, histogram, left), left, receipt)
            return _open(outcome, self.statistic.name) if max(seen.values()) == len(counts) - 1 else outcome

    def _total(self, table: Table, low: float, high: float) -> Total:
        return self.statistic.with_bounds([(low, high)]).total(replace(self.request, table=table))

    def _summed(self, copy: Table, users: Rows, low: float, high: float) -> tuple[Total, Rows]:
        """Users' totals as integers on a grid that is fine enough for these bounds; totals may lie beyond."""
        import ibis

        total = self._total(copy, low, high)
        grid = total.columns[0][1]
        # Clamped before they become integers: 64 bits don't hold a huge total on a fine grid, and an engine would raise.
        farthest = ibis.literal(float(CEILING), "float64")
        scaled = users.total * ibis.literal(grid.factor, "float64") + 0.5
        steps = ibis.least(ibis.greatest(scaled, -farthest), farthest).floor().cast("int64")
        return total, users.select(rows=users.rows, above_0=steps - ibis.least(users.rows, MOST_ROWS) * grid.bottom)


def _open(outcome: Outcome, name: str) -> Outcome:
    """A sum of totals that lie beyond all cells."""
    interval = Unknown(noise_only(outcome.interval), f"covers anything: {OPEN}", -math.inf, math.inf)
    words = f"no bound on users' totals could be found: {OPEN}. Give bounds=(low, high)"
    details = {**outcome.details, "finding": {"words": words}}
    rules = {name: NothingFound(why=OPEN, help="give bounds=(low, high)")}
    return replace(outcome, interval=interval, details=details, rules=rules, value=math.nan)


def _side(noisy: Array, sign: int) -> Array:
    """The noisy numbers of users on one side of zero, from there on: the first lie between the first two ends of `TOTALS`."""
    middle = len(TOTALS)
    return noisy[middle + 1 :] if sign > 0 else noisy[:middle][::-1]


def _sides(evidence: Array, given: OpenBounds) -> dict[int, int]:
    """On which sides of zero users stand out from the noise, and up to which cell most of them lie there."""
    seen = {}
    for sign, end in ((-1, given[0]), (1, given[1])):
        if end is not None and sign * end <= 0:
            continue
        sums = np.concatenate([[0.0], np.cumsum(_side(evidence, sign))])
        best, last = max(
            (float(found.max()), int(found.argmax()) + run - 1)
            for run in _RUNS
            for found in [surprise(sums[run:] - sums[:-run], run)]
        )
        if best >= _ANY:
            seen[sign] = last
    return seen


def _in_steps(counts: Array, grid: Grid, usual: float, epsilon: float, paid: Decimal) -> Histogram:
    """The noisy numbers of users by the size of their total, as a histogram in steps of a grid: what is below a step counts as nothing."""
    ends = [math.floor(end * grid.factor) for end in TOTALS[1:]]  # totals up to the first are too small to count
    kept = [place for place, end in enumerate(ends) if 0 < end <= LARGEST_TOTAL and end > ([0, *ends])[place]]
    edges = (0, *(ends[place] for place in kept))
    # Of a histogram by bounds that were given, what is usual for a user is taken to lie this far below one value's largest; here it was seen.
    largest = (math.log(usual * grid.factor) - TOO_WIDE * math.log(edges[1])) / (1 - TOO_WIDE)
    unit = min(edges[1:], key=lambda edge: abs(math.log(edge) - largest))
    return Histogram(Buckets(edges, unit), [0.0, *counts[kept].tolist(), 0.0], epsilon, BOUGHT, paid)


def _reachable(request: Request, bounds: Bounds) -> Bounds:
    """The values that a cap lets through: no finer grid is lost on bounds that were set far too wide.

    Where all values have one sign, a row beyond the cap fills it alone, so cutting the row changes nothing. Under values
    a null stands for the middle of the bounds, so they stay as they were declared.
    """
    low, high = bounds
    cap = None if request.strategy is None else request.strategy.caps_rows_at
    if request.relation.counts_are_public or cap is None:
        return bounds
    if 0 <= low < cap < high:
        return low, cap
    if low < -cap < high <= 0:
        return -cap, high
    return bounds
