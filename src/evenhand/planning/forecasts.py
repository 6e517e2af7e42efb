"""What a bound costs: noise, sampling, bias and their sum, for each strategy and a whole range of bounds at once.

Errors are root mean squares against the value that the table itself holds (the row mean, the number of rows), not
against a population behind it. Every curve says how its bias is known:

- ``exact``: the counts determine it (a count under a total cap; any statistic where nothing is cut).
- ``bound``: proven for every table with these counts and values in the bounds. A mean with weights q' instead of r is off by
  at most B·min(TV, χ/2), with TV = Σ max(0, r − q') and χ² = Σ q'²/r − 1 (`docs/proofs/chi-square-bias.md`).
- ``assumed``: the proven bound is far off for real tables, so the forecast uses stated assumptions: busy users differ by
  ρτ (`heterogeneity`), user means lie within τ of each other (`spread`). The bound is given beside it.
- ``seen``: either of the first two, read from a noisy profile.

No loop over users: prefix sums over the sorted counts, one array operation a strategy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from evenhand.guarantee import Relation, split
from evenhand.planning.clipping import cut_bias, cuts
from evenhand.planning.location import Location, location_request
from evenhand.planning.means import ROWS_SHARE, rows_noise
from evenhand.planning.weights import Array, Sums, Support, smooth_bound

_MOST_CANDIDATES = 4000


@dataclass(frozen=True)
class Assumptions:
    """What a forecast for a mean takes as given, as parts of the length of the value range.

    Args:
        row_sd: standard deviation of one user's rows.
        heterogeneity: ρτ, how much busy users differ from the others.
        spread: standard deviation of user means.
    """

    row_sd: float
    heterogeneity: float
    spread: float


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


Evaluate = Callable[[Array], Curve]


def curve(evaluate: Evaluate, candidates: Array, points: int) -> Curve:
    """Evaluate a strategy at ``points`` bounds over its range, and at the best of all candidates."""
    if len(candidates) > _MOST_CANDIDATES:
        every = np.linspace(0, len(candidates) - 1, _MOST_CANDIDATES // 2).astype(np.intp)
        candidates = np.concatenate([candidates[every], candidates[-_MOST_CANDIDATES // 2 :]])
    best = candidates[evaluate(candidates).error.argmin()]
    shown = np.geomspace(candidates.min(), candidates.max(), points)
    if np.all(candidates == np.floor(candidates)):
        shown = np.rint(shown)
    return evaluate(np.unique(np.append(shown, best)))


def count_total_cap(support: Support, epsilon: float) -> tuple[Evaluate, Array]:
    """Count of rows, each user counted up to T rows: bias Σ max(0, s − T), exactly."""
    sums, rows = Sums.of(support), support.rows

    def evaluate(caps: Array) -> Curve:
        cut = np.maximum(rows - sums.kept(caps), 0.0)
        return Curve(
            "total cap",
            caps,
            discrete_laplace_sd(caps / epsilon),
            np.zeros_like(caps),
            cut,
            "exact",
            cut,
            sums.at(caps)[1],
            cut,
        )

    return evaluate, np.unique(np.ceil(support.sizes))


def sum_curves(
    support: Support, bounds: tuple[float, float], epsilon: float, relation: Relation
) -> list[tuple[Evaluate, Array]]:
    """Sum of a column: what is cut depends on the values, so the bias is a bound, reached if all values are extreme."""
    low, high = bounds
    largest = max(abs(low), abs(high))
    sums, rows = Sums.of(support), support.rows
    replaced = relation is not Relation.PRESENCE

    def evaluate(name: str, moved: float, unit: float) -> Evaluate:
        def at(limits: Array) -> Curve:
            h = limits / unit
            left_out = np.maximum(rows - sums.kept(h), 0.0)
            noise = math.sqrt(2) * moved * h / epsilon
            bias = left_out * largest
            return Curve(name, limits, noise, np.zeros_like(h), bias, "bound", bias, sums.at(h)[1], left_out)

        return at

    whole = np.unique(np.ceil(support.sizes))
    capped = (2 * largest if low < 0 else largest) if replaced else largest
    by_rows = high - low if replaced else largest
    return [
        (evaluate("total cap", capped, largest), support.sizes * largest),
        (evaluate("smooth weights", by_rows, 1.0), support.sizes),
        (evaluate("row limit", by_rows, 1.0), whole),
    ]


def mean_curves(
    support: Support, bounds: tuple[float, float], epsilon: Decimal, relation: Relation, assumed: Assumptions
) -> list[tuple[Evaluate, Array]]:
    """Mean of a column under every strategy that the relation allows."""
    length, eps = bounds[1] - bounds[0], float(epsilon)
    sums = Sums.of(support)
    exact = smooth_bound(support, (assumed.row_sd * length) ** 2, length, eps, assumed.heterogeneity * length)
    curves = [
        (_weighted("smooth weights", sums, length, eps, assumed), np.append(support.sizes, exact)),
        (_weighted("row limit", sums, length, eps, assumed), np.unique(np.ceil(support.sizes))),
    ]
    if relation is not Relation.PRESENCE:
        curves.append((_centred(sums, length, eps), support.sizes * length))
    located = _located(support, length, epsilon, relation, assumed)
    return curves if located is None else [*curves, located]


def _weighted(name: str, sums: Sums, length: float, epsilon: float, assumed: Assumptions) -> Evaluate:
    """Weights min(h, s): on the mean of all rows of a user (smooth weights) or on a random choice of them (row limit).

    Under values the noise is exact. Under presence the pair of method.md §3 has at most this noise: √(m²+(1−m)²) of
    it when the mean lies at m of the range.
    """
    rows, variance = sums.support.rows, (assumed.row_sd * length) ** 2

    def at(h: Array) -> Curve:
        below, above, inverse = sums.at(h)
        kept = below + above * h
        noise = math.sqrt(2) * length * h / (epsilon * kept)
        spread = np.sqrt(sums.chi_square(h))
        proven = length * np.minimum(sums.total_variation(h), spread / 2)
        if name == "smooth weights":
            sampling = np.sqrt(variance * np.maximum((below + inverse * h * h) / kept**2 - 1 / rows, 0.0))
        else:
            sampling = np.sqrt(variance * np.maximum(1 / kept - 1 / rows, 0.0))
            proven = np.sqrt(proven**2 + (length / 2) ** 2 * above * h / kept**2)
        bias = assumed.heterogeneity * length * spread
        kind = "assumed" if assumed.heterogeneity else "exact"
        return Curve(name, h, noise, sampling, bias, kind, proven, above, rows - kept)

    return at


def _centred(sums: Sums, length: float, epsilon: float) -> Evaluate:
    """Each user's total clipped to an interval of length T around the middle of the range (rameshwar2024)."""
    rows = sums.support.rows

    def at(widths: Array) -> Curve:
        h = widths / length
        left_out = np.maximum(rows - sums.kept(h), 0.0)
        bias = length * left_out / (2 * rows)
        noise = math.sqrt(2) * widths / (epsilon * rows)
        zero = np.zeros_like(widths)
        return Curve("centred interval", widths, noise, zero, bias, "bound", bias, sums.at(h)[1], left_out)

    return at


def _located(
    support: Support, length: float, epsilon: Decimal, relation: Relation, assumed: Assumptions
) -> tuple[Evaluate, Array] | None:
    """Each user's total clipped around a centre that part of ε locates; user means assumed normal around it."""
    request = location_request(support, epsilon, relation)
    if request is None or not assumed.spread:
        return None
    sums, rows = Sums.of(support), support.rows
    quantiles = np.array([0.126, 0.385, 0.674, 1.036, 1.645])  # of |normal| at 10%, 30%, ..., 90%
    offsets = np.concatenate([-quantiles, quantiles]) * assumed.spread
    location = Location(0.5, offsets, np.full(10, 0.1))
    left, moved, denominator = epsilon - request.epsilon, 2, 0.0
    if relation is Relation.PRESENCE:
        for_rows, left = split(left, ROWS_SHARE)
        moved, denominator = 1, rows_noise(support, location, length, float(for_rows))

    def at(caps: Array) -> Curve:
        below, above = cuts(support, location, length, caps)
        noise = np.hypot(math.sqrt(2) * moved * caps / (float(left) * rows), denominator)
        proven = length * np.maximum(rows - sums.kept(caps / length), 0.0) / rows
        zero = np.zeros_like(caps)
        return Curve(
            "located mean",
            caps,
            noise,
            zero,
            cut_bias(below, above) / rows,
            "assumed",
            proven,
            below.users + above.users,
            zero,
        )

    return at, support.sizes * length * assumed.spread


def discrete_laplace_sd(scale: Array) -> Array:
    """Standard deviation of discrete Laplace noise: √(2a)/(1−a) with a = e^(−1/scale)."""
    a = np.exp(-1 / scale)
    deviation: Array = np.sqrt(2 * a) / (1 - a)
    return deviation
