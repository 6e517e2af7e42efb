"""Keep at most h random rows of each user: amin2019 section 4, epasto2020 section 3.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.bounding.choice import Choice
from evenhand.bounding.contribution import Bounded, Summary
from evenhand.bounding.forecasts import HETEROGENEITY, ROW_SD, Evaluate, Question, sum_curve, weighted_mean_curve
from evenhand.bounding.strategy import LARGEST_LIMIT, UNSET, Limit, Strategy
from evenhand.bounding.total_cap import believed_cap, with_cut
from evenhand.guarantee import Relation, UsageError
from evenhand.profiles import Array, Histogram, Sums, Support
from evenhand.tables import Grid


@dataclass(frozen=True)
class RowLimit(Strategy):
    """Keep ``min(h, s)`` rows of each user, drawn at random without regard to their order or content.

    Guarantee: one user moves a sum by at most ``h·max(|lo|, |hi|)`` under presence and ``h·(hi − lo)`` under values. Each
    row gets its own secret random number, so which rows of a user are kept depends on nobody else's rows.

    Prefer `SmoothWeights`: it uses all rows, is more accurate at the same bound, and needs no sampling pass.

    Args:
        h: the largest number of rows per user, a whole number; chosen if left out.

    Reference: epasto2020, section 3.2.
    """

    h: Limit = UNSET
    largest: ClassVar[int] = LARGEST_LIMIT
    draws_rows: ClassVar[bool] = True
    effect: ClassVar[str] = "of each user at most {bound} rows are used, chosen at random"
    chosen_for: ClassVar[frozenset[str]] = frozenset({"total", "mean"})

    def __post_init__(self) -> None:
        if self.is_set and self.bound.denominator != 1:
            raise UsageError(f"RowLimit({self.h}) keeps whole rows; expected a whole number such as RowLimit(10).")

    @property
    def rows_kept(self) -> int | None:
        """The number of rows; until it is chosen, all."""
        return int(self.bound) if self.is_set else None

    def describe(self) -> str:
        limit = f"{int(self.bound):,}" if self.is_set else "a chosen number of"
        return f"at most {limit} random rows of each user are used"

    def bound_count(self, summary: Summary) -> Bounded:
        return Bounded(summary.rows, self.steps())

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        grid = summary.valued
        if relation is Relation.PRESENCE:
            return Bounded(summary.total, 2 * self.steps() * grid.reach, -self.steps() * grid.reach)
        import ibis

        return Bounded(summary.total, self.steps() * grid.width, ibis.least(summary.rows, self.steps()) * grid.bottom)

    def bound_mean(self, summary: Summary, relation: Relation) -> Bounded:
        import ibis

        grid = summary.valued
        weight = ibis.least(summary.rows, self.steps()) * grid.width
        return Bounded(summary.above, self.steps() * grid.width, weight=weight)

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        sums, sizes = Sums.of(support), np.unique(np.ceil(support.sizes))
        if question.kind == "sum":
            moves = question.largest if question.relation is Relation.PRESENCE else question.length
            return sum_curve(cls.title, sums, question, moves, 1.0), sizes
        if question.kind != "mean":
            return None

        def sampling(h: Array, kept: Array) -> tuple[Array, Array]:
            drawn = (question.length / 2) ** 2 * sums.at(h)[1] * h / kept**2
            return 1 / kept - 1 / support.rows, drawn

        return weighted_mean_curve(cls.title, sums, question, sampling), sizes

    def best_for_total(self, histogram: Histogram, epsilon: float, summary: Summary, by_rows: bool) -> Choice:
        cut = believed_cap(histogram, epsilon)
        choice = Choice(RowLimit(min(cut.bound, LARGEST_LIMIT)), histogram.basis)
        # A user counts for at most so many rows; what those are worth in a sum, a profile of rows can't say.
        return with_cut(choice, cut) if summary.grid is None and cut.bound <= LARGEST_LIMIT else choice

    def best_for_mean(self, support: Support, grid: Grid, epsilon: float, relation: Relation) -> RowLimit:
        length = grid.high - grid.low
        limit = row_limit_bound(support, (ROW_SD * length) ** 2, length, epsilon, HETEROGENEITY * length)
        return RowLimit(min(limit, LARGEST_LIMIT))


def row_limit_variance(sums: Sums, h: Array, sigma2: float, length: float, epsilon: float) -> Array:
    """epasto2020's v'(h) = σ²/n_h + 2(B·h/(ε·n_h))²."""
    kept = sums.kept(h)
    return sigma2 / kept + 2 * (length * h / (epsilon * kept)) ** 2


def row_limit_bound(support: Support, sigma2: float, length: float, epsilon: float, heterogeneity: float = 0.0) -> int:
    """The integer minimiser of v'(h) + (ρτ)²χ²(h): stationary points rounded both ways, and every size.

    With L rows below and R, Q as for smooth weights, E = 2B²/ε² + n(ρτ)²Q and c = n(ρτ)²L, a stationary point solves
    h·(2EL − σ²R²) = σ²RL + 2Rc.
    """
    sums, sizes = Sums.of(support), support.sizes
    below, above, inverse = sums.below[1:-1], sums.above[1:-1], sums.inverse_above[1:-1]
    spread = support.rows * heterogeneity**2
    price = 2 * (length / epsilon) ** 2 + spread * inverse
    top = sigma2 * above * below + 2 * above * spread * below
    bottom = 2 * price * below - sigma2 * above**2
    inside = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), sizes[1:])
    inside = np.clip(inside, sizes[:-1], sizes[1:])
    candidates = np.unique(np.concatenate([np.ceil(sizes), np.floor(inside), np.ceil(inside)]))
    candidates = candidates[candidates >= 1]
    values = row_limit_variance(sums, candidates, sigma2, length, epsilon)
    values = values + heterogeneity**2 * sums.chi_square(candidates)
    return int(candidates[values.argmin()])
