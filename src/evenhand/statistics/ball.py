"""The mean of vectors whose rows lie in an L1 ball: shares of a whole, counts of a few events, one of many categories.

A user's sum is scaled down to an L1 norm of T, so one user who changes moves the vector by at most 2T, whatever the number of columns: a
box would need noise for each column, with a share of ε. This is what rameshwar2024's Lemma III.3 should have said
(docs/proofs/ball.md). With smooth weights users are scaled by their public number of rows, and the sum is divided by the weights; with a
clipped norm by what they add, as in the paper, which pulls the mean to 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from evenhand.bounding import HETEROGENEITY, ROW_SD, NormClip, SmoothWeights, Strategy, smooth_bound
from evenhand.guarantee import UsageError
from evenhand.pages.numbers import written
from evenhand.profiles import Support, public_sizes
from evenhand.release import Additive, Bounding, Error, Measurement, OfSpread, Receipt
from evenhand.statistics.believed_means import Widened
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.frames import ListedInterval
from evenhand.statistics.mean import Mean
from evenhand.statistics.per_user import fetch_totals
from evenhand.statistics.request import Request
from evenhand.statistics.weighted_rows import FULL, VALUE_BITS, quotient
from evenhand.tables import Grid
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.grid import bits_for
from evenhand.tables.summaries import MOST_ROWS, summed, valid_rows

MOST_COLUMNS = 64
"""Norms of so many sums of one user stay inside 64 bits."""

_LARGEST_CAPACITY = 2**52
_LARGEST_NOISE = 2**55  # the scale of the noise, inside what samplers take


@dataclass(frozen=True)
class BallMean:
    """The means of several columns, of rows with ``Σ|x| ≤ radius``; rows outside are scaled to the ball.

    Guarantee: one user moves the vector of sums by at most 2T in L1 norm under values. Under presence it is refused.

    Args:
        request: table, ε and bounding: "auto" or ``SmoothWeights(h)``, or ``NormClip(T)`` with T in the unit of a user's sum.
        columns: their names.
        radius: of the ball, a public number.
    """

    moves: ClassVar[int] = 2
    """How far a user who changes moves the vector, in norms."""

    request: Request
    columns: tuple[str, ...]
    radius: float

    @classmethod
    def parse(cls, request: Request, columns: str | Sequence[str], ball: object, others: Sequence[object]) -> BallMean:
        """Check what was asked for, from public facts."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if any(other is not None for other in others):
            raise UsageError("ball= is for means without bounds= and by=; expected columns, ball= and epsilon= only.")
        if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
            raise UsageError(f"columns {list(names)}: expected up to {MOST_COLUMNS} different names.")
        try:
            radius = float(ball)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            radius = math.nan
        if not 1e-150 < radius < 1e150:
            raise UsageError(
                f"ball={ball!r}; expected the largest Σ|x| of a row, a positive number chosen without looking at the data."
            )
        if not request.relation.counts_are_public:
            raise UsageError(
                "ball= needs protects='values', where the number of rows of each user is public; with protects='presence' give bounds=."
            )
        named = request.named
        if named is not None and (not named.in_ball or named.gaussian):
            raise UsageError(
                f"bounding={named.title}: with ball= expected 'auto', eh.SmoothWeights(h) or eh.NormClip(T)."
            )
        return cls(request, names, radius)

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        request, grid, means = self.request, self.grid, self._means
        for mean in means.values():
            mean.check(request.table)
        given = None if request.strategy is None else self._given(request.strategy)
        users = self._users()

        def run(receipt: Receipt) -> Outcome:
            with request.table.engine.kept(users) as kept:
                support = public_sizes(request.table, kept, receipt)
                capacity = self.best(support) if given is None else given
                return self._release(kept, capacity, support, receipt)

        bounding = request.pending(None) if given is None else self._bounding(given)
        query = {"statistic": "mean", "column": list(self.columns), "ball": self.radius, "bounding": bounding.to_dict()}
        share = self.radius / len(means)  # of a column, if a row is spread over all: one that fills the ball is rare
        rules = {name: OfSpread(-share, share) for name in means}
        words = f"mean of {', '.join(self.columns)} in a ball of {written(grid.high)}"
        return Draft(words, request.guarantee(), request.pure(), query, bounding, Error(None), run, rules)

    @property
    def grid(self) -> Grid:
        """Of each column."""
        return Grid.about((-self.radius, self.radius), origin=0.0, bits=min(VALUE_BITS, bits_for(self.request.epsilon)))

    @property
    def clips(self) -> bool:
        """Whether users are scaled by what they add, not by their public number of rows."""
        return self.request.named is not None and self.request.named.bounds_values

    def best(self, support: Support) -> int:
        """The capacity with the least forecast error; of a clipped norm, the least worst case.

        The latter is Σ max(U·s − T, 0) + 2d·T/ε, so that T is the ⌈2d/ε⌉-th largest U·s.
        """
        columns, epsilon = len(self.columns), float(self.request.epsilon)
        if self.clips:
            rows = support.largest(math.ceil(2 * columns / epsilon - 1e-12))
        else:  # a row in the ball leaves each of d columns a d-th of its square, on average
            rows = smooth_bound(support, ROW_SD**2 / columns, 2.0, epsilon, HETEROGENEITY / math.sqrt(columns))
        return max(1, min(int(rows * self.grid.top * FULL), self._most))

    def capped(self, users: Rows, capacity: int) -> list[Integers]:
        """What a user adds, one integer per column, whose sizes add up to the capacity at most; and the public weight of the user."""
        import ibis

        rows, grid = ibis.least(users.rows, MOST_ROWS), self.grid
        sums = [users[f"above_{index}"] + rows * grid.bottom for index in range(len(self.columns))]
        norm = sums[0].abs()
        for value in sums[1:]:
            norm = norm + value.abs()
        full = rows * grid.top
        if self.clips:
            return [*(value * quotient(norm, capacity) for value in sums), rows * FULL]
        # Rows are in the ball, so a norm is never larger; if one were, it would count.
        weight = quotient(ibis.greatest(norm, full), capacity)
        return [*(value * weight for value in sums), rows * quotient(full, capacity)]

    def _users(self) -> Rows:
        """One row per user: rows, and for each column the sum of its steps above the grid's bottom, of rows in the ball."""
        import ibis

        grid, floor = self.grid, self.request.table.engine.floor
        rows, above = valid_rows(self.request.table, tuple((name, grid) for name in self.columns))
        steps = {f"evenhand_step_{index}": value + float(grid.bottom) for index, value in enumerate(above)}
        rows = rows.mutate(**steps)
        norm: Column = ibis.literal(0.0, "float64")
        for name in steps:
            norm = norm + rows[name].abs()
        rows = rows.mutate(evenhand_inside=ibis.least(float(grid.top) / ibis.greatest(norm, 1.0), 1.0))
        # Toward zero, so that no row leaves the ball; whole numbers still.
        scaled = {name: floor(rows[name].abs() * rows.evenhand_inside) * rows[name].sign() for name in steps}
        return summed(self.request.table, rows, [value - float(grid.bottom) for value in scaled.values()])

    def _release(self, users: Rows, capacity: int, support: Support, receipt: Receipt) -> Outcome:
        request = self.request
        totals = functools.cache(fetch_totals(request.table, users, self.capped(users, capacity)))
        moved = self.moves * capacity
        vector = Measurement(lambda: totals().map(lambda sums: sums[:-1]), moved, moved**2)
        noisy = receipt.numbers(vector, request.epsilon)
        weight = receipt.public(totals().map(lambda sums: sums[-1:]), request.relation)[0]
        unit = self.grid.units(1) / max(weight, 1)
        bounds, off = (-self.radius, self.radius), self._most_moved(support, capacity)
        values = [total * unit for total in noisy.values]
        intervals = [Widened(Additive(value, noisy.noise, unit, bounds), off, bounds) for value in values]
        error = Error(noisy.noise.variance**0.5 * unit, off, "of each column at most, whatever the values are")
        clamped = [min(max(value, bounds[0]), bounds[1]) for value in values]
        return Outcome(clamped, ListedInterval(intervals), self._bounding(capacity), error)

    def _most_moved(self, support: Support, capacity: int) -> float:
        """How far scaling and rounding can have moved the mean of a column."""
        rounding = self.grid.units(1) * 1.5  # of a row: half a step onto the grid, one into the ball
        full, limit = support.sizes * self.grid.top, capacity / FULL
        if not self.clips:
            h = max(Fraction(capacity, FULL * self.grid.top), Fraction(1, FULL))
            coarse = float(support.sizes.max()) / (FULL * float(h))  # a weight of h/s is rounded down by 1/FULL at most
            moved = SmoothWeights(h).most_moved(support, 2 * self.radius) + 2 * self.radius * coarse
        else:
            cut = (full - limit + full / FULL) * (full > limit)
            moved = self.grid.units(1) * float(support.users @ cut) / support.rows
        return float(min(moved + rounding, 2 * self.radius))

    @property
    def _most(self) -> int:
        scale = Fraction(self.request.epsilon) * _LARGEST_NOISE / 2
        return max(1, min(_LARGEST_CAPACITY, math.floor(scale)))

    def _given(self, strategy: Strategy) -> int:
        return strategy.steps((self.grid.steps_per_unit if self.clips else self.grid.top) * FULL, self._most)

    def _bounding(self, capacity: int) -> Bounding:
        chosen = "given" if self.request.strategy is not None else "chosen from the public number of rows of each user"
        if self.clips:
            length = capacity / FULL * self.grid.units(1)
            words = f"what a user adds to all columns together is scaled down to at most {written(length)}"
            return Bounding(NormClip.title, length, words, chosen)
        rows = capacity / FULL / self.grid.top
        words = f"all rows of a user are used, weighted to count as at most {written(rows)} rows"
        return Bounding(SmoothWeights.title, rows, words, chosen)

    @property
    def _means(self) -> dict[str, Mean]:
        return {name: Mean(name, (-self.radius, self.radius)) for name in self.columns}
