"""Clip what each user adds to the distance from a located centre: the state of the art for user-level means.

Rows are integers in [L, H] on a public grid; a user has s rows that sum to X. With centre C and caps a, b the contribution is
``clip(X − s·C, −a, b)``, and the mean is C + (sum + noise)/D. Under values D = Σs is public; under presence D = Σ min(s, H) is released
beside it: its error counts only in proportion to the distance of the mean from C, so it gets little of ε. This is the
centred interval of rameshwar2024 with its centre moved to where the users are. What is cut on one side makes up for the
other, so most of the bias cancels (`clipping.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from evenhand.bounding.choice import Choice
from evenhand.bounding.clipping import cut_bias, cuts
from evenhand.bounding.contribution import Bounded, Summary
from evenhand.bounding.forecasts import Curve, Evaluate, Question
from evenhand.bounding.strategy import LARGEST_BOUND, Strategy
from evenhand.guarantee import Relation, UsageError, exact_difference, split
from evenhand.pages.numbers import written
from evenhand.profiles import Array, Location, Sums, Support, location_request
from evenhand.tables import Grid
from evenhand.tables.summaries import MOST_ROWS

ROWS_SHARE = Decimal("0.2")
"""Share of ε for the number of rows below a located mean, when it is hidden."""

_OFF_CENTRE = 0.22  # distance of the mean from the centre, in root mean squared distances of user means from it
_CAPS = 96


@dataclass(frozen=True)
class LocatedMean(Strategy):
    """Release how far the users' sums lie from a centre, each user's part capped: ``clip(sum − rows·centre, −a, b)``.

    When most user means are close to a centre, the part that must be hidden is small, and so is the noise; a user
    with many rows near the centre is not cut at all. The centre is found privately and coarsely first. Made by Auto.

    Guarantee: one user moves the total by at most ``max(a, b)`` under presence, ``a + b`` under values. Centre and caps are
    functions of released values; every choice of them is safe.

    Args:
        above: ``b`` in grid steps.
        below: ``a`` in grid steps.
        centre: grid steps of one row above the grid's bottom.
        rows_cap: under presence, the cap on each user's rows in the denominator.
        rows: under presence, about how many rows there are: a noisy denominator is kept within half and twice this.

    Reference: Levy et al. 2021 and Cummings et al. 2022 locate and clip user means; capping the total residual instead
    needs no division and does not change users with few rows.
    """

    above: int
    below: int
    centre: int
    rows_cap: int | None = None
    rows: float | None = None

    effect: ClassVar[str] = (
        "each user's total may deviate by {bound} from where most users lie, which is found out privately first"
    )

    def __post_init__(self) -> None:
        for cap in (self.below, self.above):
            if not 0 < cap <= LARGEST_BOUND:
                raise UsageError(
                    f"LocatedMean: the cap {cap} does not fit the exact integers from 1 to {LARGEST_BOUND}."
                )

    @property
    def bound(self) -> Fraction:
        """Half of the range that is let through."""
        return Fraction(self.below + self.above, 2)

    def times(self, factor: int) -> LocatedMean:
        """With caps so many times larger."""
        above, below = (min(cap * factor, LARGEST_BOUND) for cap in (self.above, self.below))
        return replace(self, above=above, below=below)

    def describe(self) -> str:
        return "each user's distance from a located centre is capped"

    def bound_mean(self, summary: Summary, relation: Relation) -> Bounded:
        import ibis

        residual = summary.above - ibis.least(summary.rows, MOST_ROWS) * self.centre
        return Bounded(
            residual,
            self.below + self.above,
            -self.below,
            weight=summary.rows * summary.valued.width,
            rows=None if self.rows_cap is None else Bounded(summary.rows, self.rows_cap),
            centre=self.centre,
            expected=self.rows,
        )

    def in_units(self, grid: Grid) -> tuple[float, str]:
        """The bound in the unit of the values, and what it does, in words."""
        reach = f"{written(grid.units(self.below))} below and {written(grid.units(self.above))} above"
        if self.below == self.above:
            reach = f"{written(grid.units(self.above))} away from"
        words = f"each user's sum is capped at {reach} rows × {written(grid.low + grid.units(self.centre))}"
        return grid.units(self.bound), words

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        """User means are assumed to be normal around the centre, which part of ε locates."""
        spread, length = question.assumed.spread, question.length
        wanted = None if question.kind != "mean" else location_request(support, question.epsilon, question.relation)
        if wanted is None or not spread:
            return None
        sums, rows = Sums.of(support), support.rows
        quantiles = np.array([0.126, 0.385, 0.674, 1.036, 1.645])  # of |normal| at 10%, 30%, ..., 90%
        location = Location(0.5, np.concatenate([-quantiles, quantiles]) * spread, np.full(10, 0.1), spread)
        left, denominator = exact_difference(question.epsilon, wanted.epsilon), 0.0
        if question.relation is Relation.PRESENCE:
            for_rows, left = split(left, ROWS_SHARE)
            denominator = _rows_noise(support, location, length, float(for_rows))

        def at(caps: Array) -> Curve:
            below, above = cuts(support, location, length, caps)
            noise = np.hypot(math.sqrt(2) * question.relation.moves * caps / (float(left) * rows), denominator)
            proven = length * np.maximum(rows - sums.kept(caps / length), 0.0) / rows
            bias, cut, zero = cut_bias(below, above) / rows, below.users + above.users, np.zeros_like(caps)
            return Curve(cls.title, caps, noise, zero, bias, "assumed", proven, cut, zero)

        return at, support.sizes * length * spread


def choose_located(support: Support, grid: Grid, epsilon: Decimal, relation: Relation, location: Location) -> Choice:
    """The located mean with the best caps, and its forecast error in grid steps; arguments as of `best_mean`.

    Guarantee: reads public facts and bought ones only.
    """
    length, rows = float(grid.width), support.rows
    for_sum, rows_cap, denominator = epsilon, None, 0.0
    reach = float(support.sizes[-1] * np.abs(location.offsets).max() * length)
    caps = np.geomspace(max(reach * 1e-5, 1.0), max(reach, 1.0), _CAPS)
    if relation is Relation.PRESENCE:
        for_rows, for_sum = split(epsilon, ROWS_SHARE)
        rows_cap = max(1, math.ceil(_rows_cap(support, float(for_rows))))
        denominator = _rows_noise(support, location, length, float(for_rows))
        lower = upper = np.arange(_CAPS)  # the larger of the two is paid for, so both may be as large
        moved = caps
    else:
        lower, upper = np.indices((_CAPS, _CAPS)).reshape(2, -1)
        moved = caps[lower] + caps[upper]
    cut_below, cut_above = cuts(support, location, length, caps)
    bias = cut_bias(cut_below.at(lower), cut_above.at(upper))
    noise = math.sqrt(2) * moved / float(for_sum)
    best = int((noise**2 + bias**2).argmin())
    # Any caps are safe: those that would not fit are lowered, never refused once ε is spent.
    below, above = (min(max(1, math.ceil(caps[side[best]])), LARGEST_BOUND) for side in (lower, upper))
    strategy = LocatedMean(above, below, round(location.centre * length), rows_cap, rows if rows_cap else None)
    shown, words = strategy.in_units(grid)
    spread = math.hypot(float(noise[best]) / rows, denominator)
    return Choice(strategy, noise=spread, bias=float(bias[best]) / rows, shown=shown, words=words)


def _rows_cap(support: Support, epsilon: float) -> float:
    """The cap on rows that minimises noise and cut of Σ min(s, H) together."""
    sums, caps = Sums.of(support), support.sizes
    error2 = 2 * (caps / epsilon) ** 2 + (support.rows - sums.kept(caps)) ** 2
    return float(caps[error2.argmin()])


def _rows_noise(support: Support, location: Location, length: float, epsilon: float) -> float:
    """What the noise of a hidden number of rows adds to a located mean: as much as the mean lies off the centre."""
    off = _OFF_CENTRE * location.spread * length
    return off * math.sqrt(2) * _rows_cap(support, epsilon) / (epsilon * support.rows)
