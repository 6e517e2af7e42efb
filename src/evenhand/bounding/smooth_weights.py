"""Weight every row of a heavy user less, instead of dropping rows: epasto2020 section 3.

The bound for a mean minimises v(h) + (ρτ)²χ²(h): the paper's variance, and the bias if busy users differ from others by ρτ
(`docs/proofs/chi-square-bias.md`). Both terms have the same shape: the sum is v(h) with σ² + n(ρτ)² in place of σ², less a
constant, so one exact minimiser serves both. Notation: `population/support.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from evenhand.bounding.choice import Choice
from evenhand.bounding.contribution import Bounded, Summary
from evenhand.bounding.forecasts import (
    HETEROGENEITY,
    ROW_SD,
    USUAL_TILT,
    Evaluate,
    Question,
    sum_curve,
    weighted_mean_curve,
)
from evenhand.bounding.strategy import LARGEST_AMOUNT, LARGEST_LIMIT, UNSET, Limit, Strategy
from evenhand.bounding.total_cap import believed_cap, with_cut
from evenhand.guarantee import Relation
from evenhand.profiles import Array, Histogram, Location, Sums, Support
from evenhand.tables import Grid

_USUAL_CENTRE = 0.25  # where the mean lies in the range, when nothing was found


@dataclass(frozen=True)
class SmoothWeights(Strategy):
    """Use all rows of each user, weighted so that together they count as at most ``h`` rows: ``min(h, s)·mean``.

    Guarantee: one user moves a sum by at most ``h·max(|lo|, |hi|)`` under presence and ``h·(hi − lo)`` under values; the
    pair that makes a mean by ``h·(hi − lo)`` in L1 norm under both.

    Args:
        h: the number of rows that one user may count for, any positive number; chosen if left out.

    Reference: epasto2020, section 3.1, Lemma 3.
    """

    h: Limit = UNSET
    largest: ClassVar[int] = LARGEST_AMOUNT
    effect: ClassVar[str] = "a user with more than {bound} rows weighs as much as one with {bound}"
    chosen_for: ClassVar[frozenset[str]] = frozenset({"total", "mean", "groups"})
    in_ball: ClassVar[bool] = True

    def describe(self) -> str:
        return f"all rows of a user are used, weighted to count as at most {self.shown('a chosen number of')} rows"

    def bound_count(self, summary: Summary) -> Bounded:
        return Bounded(summary.rows, self.steps(largest=LARGEST_LIMIT))

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        import ibis

        grid, mean = summary.valued, self.bound_mean(summary, relation)
        # min(h, s) rows at the lower bound; the floor keeps both engines on the same integer.
        rows = ibis.least(summary.rows, math.ceil(self.bound))
        low = (summary.rows <= float(self.bound)).ifelse(rows * grid.bottom, int(self.bound * grid.bottom // 1))
        if relation is not Relation.PRESENCE:
            return Bounded(mean.value + low, mean.length, low)
        reach = math.ceil(self.bound * grid.reach) + 1  # one step for the two roundings
        return Bounded(mean.value + low, 2 * reach, -reach)

    def bound_mean(self, summary: Summary, relation: Relation) -> Bounded:
        grid, limit = summary.valued, self.bound
        self.steps(largest=LARGEST_LIMIT)
        bound = math.ceil(limit * grid.width)
        whole = summary.rows <= math.floor(limit)
        # Doubles are enough here: the clamp makes the bound exact, and IEEE division is the same on every engine.
        # With more rows than the limit the quotient is below the sum, so it fits 64 bits.
        shrunk = (summary.above.cast("float64") * float(limit) / summary.rows.cast("float64")).floor()
        value = whole.ifelse(summary.above, shrunk)
        return Bounded(value, bound, weight=whole.ifelse(summary.rows * grid.width, bound))

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        sums = Sums.of(support)
        if question.kind == "sum":
            moves = question.largest if question.relation is Relation.PRESENCE else question.length
            return sum_curve(cls.title, sums, question, moves, 1.0), support.sizes
        if question.kind != "mean":
            return None
        length, assumed = question.length, question.assumed
        best = smooth_bound(
            support, (assumed.row_sd * length) ** 2, length, float(question.epsilon), assumed.heterogeneity * length
        )

        def sampling(h: Array, kept: Array) -> tuple[Array, Array]:
            below, _, inverse = sums.at(h)
            return (below + inverse * h * h) / kept**2 - 1 / support.rows, np.zeros_like(h)

        return weighted_mean_curve(cls.title, sums, question, sampling), np.append(support.sizes, best)

    def best_for_total(self, histogram: Histogram, epsilon: float, summary: Summary, by_rows: bool) -> Choice:
        cut = believed_cap(histogram, epsilon)
        choice = Choice(SmoothWeights(min(cut.bound, LARGEST_LIMIT)), histogram.basis)
        # A user counts for at most so many rows; what those are worth in a sum, a profile of rows can't say.
        return with_cut(choice, cut) if summary.grid is None and cut.bound <= LARGEST_LIMIT else choice

    def most_moved(self, support: Support, length: float) -> float:
        """B·min(TV, χ/2): docs/proofs/chi-square-bias.md."""
        sums, h = Sums.of(support), np.array([float(self.bound)])
        return length * min(float(sums.total_variation(h)[0]), math.sqrt(float(sums.chi_square(h)[0])) / 2)

    def best_for_mean(self, support: Support, grid: Grid, epsilon: float, relation: Relation) -> SmoothWeights:
        return SmoothWeights(smooth_weights_for_mean(support, epsilon, relation))


def choose_smooth(
    support: Support, length: float, epsilon: float, relation: Relation, location: Location | None = None
) -> Choice:
    """Smooth weights for a mean, with their forecast error, in the unit of ``length``, the range of one row."""
    h = smooth_weights_for_mean(support, epsilon, relation, location)
    sums, at = Sums.of(support.spread_out()), np.array([float(h)])
    noise = math.sqrt(2) * length * _pair_shape(relation, location) * float(h) / (epsilon * float(sums.kept(at)[0]))
    bias = length * _differ(location) * math.sqrt(float(sums.chi_square(at)[0]))
    return Choice(SmoothWeights(h), noise=noise, bias=bias)


def smooth_weights_for_mean(
    support: Support, epsilon: float, relation: Relation, location: Location | None = None
) -> Fraction:
    """The bound ``h`` that forecasts the smallest error of a mean."""
    h = smooth_bound(support.spread_out(), ROW_SD**2, _pair_shape(relation, location), epsilon, _differ(location))
    return min(Fraction(h).limit_denominator(1000), Fraction(LARGEST_LIMIT))


def _differ(location: Location | None) -> float:
    """ρτ, how far busy users differ from others, as a part of the range: by the prior of ρ, and of τ where nothing was located."""
    return HETEROGENEITY if location is None else max(HETEROGENEITY, USUAL_TILT * location.spread)


def _pair_shape(relation: Relation, location: Location | None) -> float:
    """How much of the range the noise spans.

    Under presence the mean is a/(a + b) of two noisy sums, so its noise is that of (1 − m)·a − m·b.
    """
    if relation is not Relation.PRESENCE:
        return 1.0
    centre = _USUAL_CENTRE if location is None else location.centre
    return math.hypot(centre, 1 - centre)


def smooth_variance(sums: Sums, h: Array, sigma2: float, length: float, epsilon: float) -> Array:
    """epasto2020's v(h) = σ² Σ w²/s / n_h² + 2(B·h/(ε·n_h))²."""
    below, above, inverse = sums.at(h)
    kept = below + above * h
    return (sigma2 * (below + inverse * h * h) + 2 * (length * h / epsilon) ** 2) / kept**2


def smooth_bound(support: Support, sigma2: float, length: float, epsilon: float, heterogeneity: float = 0.0) -> float:
    """The exact minimiser of v(h) + (ρτ)²χ²(h) over real h in [min s, max s].

    Between two consecutive sizes, with R users above, Q = Σ_above 1/s and A = σ² + n(ρτ)², the only stationary point
    is h = A·R/(A·Q + 2B²/ε²); it and the end points are compared.

    Reference: epasto2020 Lemma 3.
    """
    sums, sizes = Sums.of(support), support.sizes
    weight = sigma2 + support.rows * heterogeneity**2
    above, inverse = sums.above[1:-1], sums.inverse_above[1:-1]
    price = weight * inverse + 2 * (length / epsilon) ** 2
    inside = np.clip(weight * above / np.maximum(price, 1e-300), sizes[:-1], sizes[1:])
    candidates = np.concatenate([sizes, inside])
    values = smooth_variance(sums, candidates, weight, length, epsilon)
    return float(candidates[values.argmin()])


def weight_for_average(support: Support, epsilon: float) -> Fraction:
    """The weight bound for averages over groups, in rows."""
    return Fraction(smooth_bound(support, ROW_SD**2, 1.0, epsilon, HETEROGENEITY)).limit_denominator(1000)
