"""What a bound costs: noise, sampling, bias and their sum, for each strategy and a whole range of bounds at once.

Errors are root mean squares against the value that the table itself holds (the row mean, the number of rows), not
against a population behind it. Every curve says how its bias is known:

- ``exact``: the counts determine it (a count under a total cap; any statistic where nothing is cut).
- ``bound``: proven for every table with these counts and values in the bounds. A mean with weights q' instead of r is off by
  at most B·min(TV, χ/2), with TV = Σ max(0, r − q') and χ² = Σ q'²/r − 1 (`docs/proofs/chi-square-bias.md`).
- ``assumed``: the proven bound is far off for real tables, so the forecast uses stated assumptions: heavy users differ by
  ρτ (`heterogeneity`), user means lie within τ of each other (`spread`). The bound is given beside it.
- ``seen``: either of the first two, read from a noisy profile.

No loop over users: prefix sums over the sorted counts, one array operation per strategy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from evenhand.guarantee import Relation
from evenhand.profiles import Array, Sums

USUAL_TILT = 0.25
"""Prior: the usual correlation of a user's mean with the logarithm of their rows, ρ. From 0.1 to 0.4 is common between how much people do and how
they do it, more is rare."""

USUAL_SPREAD = 0.08
"""Prior: the usual standard deviation of user means, τ, as a part of the length of the value range."""

HETEROGENEITY = USUAL_TILT * USUAL_SPREAD
"""How far busy users differ from others, ρτ, where nothing was located: 1/50 of the range, within 1.5 times the best ``h`` on three real tables."""

ROW_SD = 1 / 4
"""Default row standard deviation as a part of the length of the range: between uniform (0.29) and bell-shaped values."""

_MOST_CANDIDATES = 4000


@dataclass(frozen=True)
class Assumptions:
    """What a forecast for a mean takes as given, as parts of the length of the value range.

    Args:
        row_sd: standard deviation of one user's rows.
        heterogeneity: ρτ, how much heavy users differ from the others.
        spread: standard deviation of user means.
    """

    row_sd: float
    heterogeneity: float
    spread: float


@dataclass(frozen=True)
class Question:
    """What a plan forecasts: public facts only.

    Args:
        kind: "count", "sum" or "mean".
        bounds: of one value; (0, 1) for a count.
        epsilon: of the release.
        relation: which neighbours count.
        assumed: what a forecast for a mean takes as given.
    """

    kind: str
    bounds: tuple[float, float]
    epsilon: Decimal
    relation: Relation
    assumed: Assumptions

    @property
    def length(self) -> float:
        """Of the range of one value."""
        return self.bounds[1] - self.bounds[0]

    @property
    def largest(self) -> float:
        """What one row is worth at most."""
        return max(abs(self.bounds[0]), abs(self.bounds[1]))


@dataclass(frozen=True)
class Curve:
    """The forecast for one strategy over a range of bounds; all errors in the unit of the statistic.

    Args:
        strategy: by name.
        bounds: the bounds, increasing.
        noise: standard deviation of the noise.
        sampling: standard deviation from leaving rows out, or from weighting them unequally.
        bias: systematic error, known as ``kind`` says.
        kind: "exact", "bound", "assumed" or "seen".
        proven: a proven bound on bias and sampling together.
        users_cut: users above the bound.
        rows_cut: rows (or weight in rows) above it.
    """

    strategy: str
    bounds: Array
    noise: Array
    sampling: Array
    bias: Array
    kind: str
    proven: Array
    users_cut: Array
    rows_cut: Array

    @property
    def error(self) -> Array:
        """Forecast root mean squared error."""
        return np.sqrt(self.noise**2 + self.sampling**2 + self.bias**2)

    @property
    def error_bound(self) -> Array:
        """Root mean squared error at most, whatever the values are."""
        return np.sqrt(self.noise**2 + self.proven**2)

    @property
    def worst_case(self) -> Array:
        """Mean absolute error at most, whatever the values are: that of Laplace noise, and what is proved of the rest."""
        return self.noise / math.sqrt(2) + self.proven


Evaluate = Callable[[Array], Curve]


def curve(evaluate: Evaluate, candidates: Array, points: int) -> Curve:
    """Evaluate a strategy at ``points`` bounds over its range, and at those of all candidates with the least forecast and the least worst case."""
    if len(candidates) > _MOST_CANDIDATES:
        every = np.linspace(0, len(candidates) - 1, _MOST_CANDIDATES // 2).astype(np.intp)
        candidates = np.concatenate([candidates[every], candidates[-_MOST_CANDIDATES // 2 :]])
    tried = evaluate(candidates)
    best = candidates[[tried.error.argmin(), tried.worst_case.argmin()]]
    shown = np.geomspace(candidates.min(), candidates.max(), points)
    if np.all(candidates == np.floor(candidates)):
        shown = np.rint(shown)
    return evaluate(np.unique(np.append(shown, best)))


def discrete_laplace_sd(scale: Array) -> Array:
    """Standard deviation of discrete Laplace noise: √(2a)/(1−a) with a = e^(−1/scale)."""
    a = np.exp(-1 / scale)
    deviation: Array = np.sqrt(2 * a) / (1 - a)
    return deviation


def sum_curve(name: str, sums: Sums, question: Question, moves: float, unit: float) -> Evaluate:
    """Sum of a column: what is cut depends on the values, so the bias is a bound, reached if all values are extreme.

    Args:
        name: of the strategy.
        sums: over the users.
        question: a sum.
        moves: by how much one user moves it, per row that the bound lets through.
        unit: what the bound is worth per row.
    """
    rows, epsilon = sums.support.rows, float(question.epsilon)

    def at(limits: Array) -> Curve:
        h = limits / unit
        left_out = np.maximum(rows - sums.kept(h), 0.0)
        noise = math.sqrt(2) * moves * h / epsilon
        bias = left_out * question.largest
        return Curve(name, limits, noise, np.zeros_like(h), bias, "bound", bias, sums.at(h)[1], left_out)

    return at


def weighted_mean_curve(
    name: str, sums: Sums, question: Question, sampling: Callable[[Array, Array], tuple[Array, Array]]
) -> Evaluate:
    """Mean of a column with weights min(h, s) for users.

    Under values the noise is exact. Under presence the pair (`docs/proofs/mean-pair.md`) has at most this noise: √(m²+(1−m)²)
    of it when the mean lies at m of the range. ``sampling`` gives, for bounds and kept rows, the variance that the choice
    or weighting of rows adds for a unit row variance, and what it adds to the square of the proven bound.
    """
    rows, length, assumed = sums.support.rows, question.length, question.assumed

    def at(h: Array) -> Curve:
        kept = sums.kept(h)
        noise = math.sqrt(2) * length * h / (float(question.epsilon) * kept)
        spread = np.sqrt(sums.chi_square(h))
        variance, more = sampling(h, kept)
        proven = np.sqrt((length * np.minimum(sums.total_variation(h), spread / 2)) ** 2 + more)
        bias = assumed.heterogeneity * length * spread
        kind = "assumed" if assumed.heterogeneity else "exact"
        chance = np.sqrt((assumed.row_sd * length) ** 2 * np.maximum(variance, 0.0))
        return Curve(name, h, noise, chance, bias, kind, proven, sums.at(h)[1], rows - kept)

    return at
