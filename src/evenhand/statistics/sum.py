"""The sum of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from evenhand.bounding import Auto
from evenhand.guarantee import Relation, UsageError
from evenhand.noise import IntegerNoise
from evenhand.release import Additive, Receipt
from evenhand.statistics.believed_means import times
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.mean import Mean
from evenhand.statistics.per_user import Total
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, OfColumn
from evenhand.statistics.weighted_rows import FULL, VALUE_BITS
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.expressions import Integers
from evenhand.tables.grid import bits_for

if TYPE_CHECKING:
    from evenhand.statistics.part import Part

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
