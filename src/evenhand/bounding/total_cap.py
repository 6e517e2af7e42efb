"""Cap each user's total: amin2019 section 3.

The cap is chosen from a noisy histogram of users by contribution: each user in one bucket, discrete Laplace noise on every
count. The choice reads released numbers only, so it costs nothing more (post-processing). The obvious alternative, an exponential mechanism on the rank 1/ε, does not work: the exponent's gap
between the wanted rank and "nobody above" is a constant, so caps far too high are chosen with constant probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from evenhand.bounding.choice import Choice
from evenhand.bounding.contribution import Bounded, Summary
from evenhand.bounding.forecasts import Curve, Evaluate, Question, discrete_laplace_sd, sum_curve
from evenhand.bounding.strategy import LARGEST_BOUND, UNSET, Limit, Norm, Strategy
from evenhand.guarantee import Relation
from evenhand.pages.numbers import written
from evenhand.population.priors import TRIMMED
from evenhand.profiles import Array, CutTotal, Histogram, Sums, Support
from evenhand.tables import Grid

SMOOTH = "what is left of it after the correction, if the number of heavy users falls off smoothly; a single giant can't be seen"


@dataclass(frozen=True)
class TotalCap(Strategy):
    """Add at most ``T`` of each user's total: ``clip(x, 0, T)``, or ``clip(x, −T, T)`` when values may be negative.

    Guarantee: one user moves the sum by at most ``T`` under presence; under values by ``T`` when all values have one
    sign, else by ``2T``. Over groups, what a user adds to all of them together is scaled down to ``T``.

    Args:
        T: the cap in the unit of the total (rows for a count); chosen if left out.

    Reference: amin2019, section 3.
    """

    T: Limit = UNSET
    unit: ClassVar[str] = "units of the total"
    counts_rows: ClassVar[bool] = False
    bounds_values: ClassVar[bool] = True
    effect: ClassVar[str] = "each user counts up to {bound}"
    chosen_for: ClassVar[frozenset[str]] = frozenset({"total", "groups"})

    def describe(self) -> str:
        return f"each user's total is capped at {self.shown('a chosen cap')}"

    @property
    def caps_rows_at(self) -> float | None:
        return float(self.bound)

    def bound_count(self, summary: Summary) -> Bounded:
        return Bounded(summary.rows, self.steps())

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        grid = summary.valued
        cap = self.steps(grid.steps_per_unit)
        low, high = -cap if grid.bottom < 0 else 0, cap if grid.top > 0 else 0
        return Bounded(summary.total, high - low, low)

    def over_groups(self, norm: Norm, grid: Grid | None) -> tuple[Fraction, str]:
        words = f"what a user adds to all groups together is scaled down to at most {written(float(self.bound))}"
        return in_norm(self.bound, norm, grid), words

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        if question.kind == "mean":
            return None
        sums, largest = Sums.of(support), question.largest
        if question.kind == "count":
            return _count_curve(sums, float(question.epsilon)), np.unique(np.ceil(support.sizes))
        both = question.relation is not Relation.PRESENCE and question.bounds[0] < 0
        moves = 2 * largest if both else largest
        return sum_curve(cls.title, sums, question, moves, largest), support.sizes * largest

    def best_for_total(self, histogram: Histogram, epsilon: float, summary: Summary, by_rows: bool) -> Choice:
        cut = believed_cap(histogram, epsilon)
        if by_rows and summary.grid is not None:
            # A profile of rows for a sum: as much as that many rows can add.
            steps = min(cut.bound * summary.grid.reach, LARGEST_BOUND)
            return Choice(TotalCap(steps / summary.steps_per_unit), histogram.basis)
        made = TotalCap(cut.bound / summary.steps_per_unit)
        if summary.grid is None:
            return with_cut(Choice(made, histogram.basis), cut)
        unit = summary.grid.units(1) * (1 if summary.grid.top > 0 else -1)
        both = summary.grid.bottom < 0 < summary.grid.top
        return with_cut(Choice(made, histogram.basis), replace(cut, unit=unit, either_sign=both))


def in_norm(bound: Fraction, norm: Norm, grid: Grid | None) -> Fraction:
    """A bound in the unit of a sum's values, as a bound on a norm: in grid steps, or as many rows as reach it at the most."""
    if grid is None:
        return bound
    return bound * grid.steps_per_unit / (1 if norm.of_values else grid.reach)


def believed_cap(histogram: Histogram, epsilon: float) -> CutTotal:
    """The cap on each user's total with the least expected squared error, by the posterior, and what it probably cuts off.

    Guarantee: reads only the noisy histogram; private by post-processing.

    Args:
        histogram: users by total.
        epsilon: ε left for the capped sum.

    Reference: docs/proofs/profiles.md.
    """
    believed = histogram.posterior
    return CutTotal(believed, believed.best(math.sqrt(2) / epsilon))


def with_cut(choice: Choice, cut: CutTotal) -> Choice:
    """A choice with what its bound takes from the total, and the error that is left once the median of it is added back."""
    return replace(choice, cut=cut, bias=cut.expected.spread(TRIMMED), bias_basis=SMOOTH)


def _count_curve(sums: Sums, epsilon: float) -> Evaluate:
    """Count of rows, each user counted up to T rows: bias Σ max(0, s − T), exactly."""
    rows = sums.support.rows

    def at(caps: Array) -> Curve:
        cut, zero = np.maximum(rows - sums.kept(caps), 0.0), np.zeros_like(caps)
        noise = discrete_laplace_sd(caps / epsilon)
        return Curve(TotalCap.title, caps, noise, zero, cut, "exact", cut, sums.at(caps)[1], cut)

    return at
