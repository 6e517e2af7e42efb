"""What a descent starts from: the bound on weights, standardised features, the length of steps and the first clamp.

Bounds only say where values may be. Where they are is bought with a few hundredths of (ε, δ): the average of each feature (with the number
of users), how long users' vectors of squared deviations are, and those vectors, clamped.

Then features are made uncorrelated, as far as noise lets that be seen, from one matrix of second moments. Noise in a gradient is the same in
all directions. Where features go together some directions have little spread, and the same noise in them costs many times the loss;
and the rows that lie far out along the directions with much spread are the ones that a clamp cuts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from evenhand.bounding import HETEROGENEITY, smooth_bound
from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import BOX, FULL, SQUARE, UNIT, WHOLE, UserRows, clamped
from evenhand.learning.descent.descent import AVERAGED, NoisySums, Start, VectorShares
from evenhand.learning.fitting import is_worst_case
from evenhand.learning.slopes import SLOPE, Slopes
from evenhand.planning.weighted_risk import published_weights
from evenhand.profiles import Sums, Support

Prepared: TypeAlias = "tuple[float, Scaling, Start, float | None]"
"""h, how features are standardised, where the descent starts, and how many users may be beyond the clamp (None: it stays)."""

BUSY, LEAST_WEIGHT = 4, 10.0
"""The bound h unless one is given: so many times the rows that a twentieth of the users exceed, and at least so large (decision 0104)."""

LARGEST_WEIGHT = 2**20
"""The largest bound h on a user's weight."""


VECTORS = 3
"""How many noisy vectors `buy_scaling` asks for."""

WHITENING_SHARE = Fraction(3, 100)
"""The share of the vector of second moments."""

MOST_WHITENED = 64
"""Features up to which it is bought: its noise grows with the square of their number."""

_ROWS = 12  # octaves of rows per user, up to 2^11
_NEAR = 4  # octaves within which users count for a typical length, those further away less
_MOMENT_CLAMP = 1.5  # of the average length of a user's second moments
_SEEN = 1.1  # times the largest eigenvalue of noise alone, by which an eigenvalue differs that is not noise
_LEAST_MOMENT = 1 / 64  # the least second moment along a direction: the matrix stays small
_LONGEST, _LEAST_STEP = 0.1, 0.02  # of the weight: the step, in units of the inverse curvature
_LITTLE = 3e-4  # loss added by noise up to which steps are the longest, in units of the steepest slope
_MARGINS = 4.0  # the variance of classes' scores that is to be expected: chances are mostly between 2 and 98 percent
_ENOUGH_USERS = 8  # times its noise, which the number of users exceeds where a model can be relied on
_COUNTED = 10.0  # up to which a user's weight counts, or up to a quarter of the largest: few have more, and noise covers what one may add
_PART = FULL  # what a user adds to each of the sums that set the length of steps
_OCTAVES = 20  # of the length of gradients, from 2^-10 to 2^8
_FINEST = 10


def prepare_privately(
    sums: NoisySums, slopes: Slopes, box: FeatureMap, weight_bound: float | str, clip: float | str, whitens: bool
) -> Prepared:
    """Centres, spreads, correlations, length of steps and first clamp from noisy sums."""
    standard = buy_scaling(sums, len(box.centre), box.intercept, slopes.by_label_width)
    h = max(BUSY * standard.rows, LEAST_WEIGHT) if isinstance(weight_bound, str) else float(weight_bound)
    sums.standardise(standard.centre, standard.ratio)
    steepest = float(box.size)
    if whitens:
        means, matrix, along = bought_whitening(sums, len(box.centre), box.intercept, standard.users)
        sums.whiten(means * UNIT, matrix * WHOLE)
        centre = standard.centre + means * UNIT / standard.ratio
        standard, steepest = replace(standard, centre=centre, whitened=matrix), min(along + 1, steepest)
    # A longer clamp lets in noise in proportion to √size·σ, a shorter one cuts users off. With all that is cut off
    # pointing one way √size·σ users beyond would be best; it never does, and ten times as many cost less noise.
    follow = min(10 * math.sqrt(box.size * slopes.scores) * sums.plan.sd_of_all(), standard.users / 4)
    given = None if isinstance(clip, str) else float(clip)
    constant = standard.target / (2 * BOX) if box.intercept else 0.0
    start = started(sums, slopes, box.size, h, standard.users, follow, steepest, given, constant)
    return h, standard, start, follow if given is None else None


def prepare_as_published(
    sums: NoisySums, slopes: Slopes, box: FeatureMap, h: float, support: Support, bounded: bool
) -> Prepared:
    """Algorithm 2 of epasto2020: features in a ball of radius 1, and no gradient is longer than h times the Lipschitz constant."""
    features = len(box.centre)
    inside = math.sqrt(features) if bounded else 1.0
    standard = Scaling.given(np.full(features, inside))
    sums.standardise(standard.centre, standard.ratio)
    weight = max(float(Sums.of(support).kept(np.array([h]))[0]), 1.0)
    norm = math.sqrt(2.0) if box.intercept else 1.0
    clip = h * norm * math.sqrt(min(slopes.scores, 2))
    length = 1 / (slopes.curvature * norm**2 * weight)
    return h, standard, Start(weight, clip, length, slopes.bend * norm**2 / box.size), None


def weight_bound(
    given: float | str, support: Support, size: int, noise: float, epsilon: Decimal, delta: Decimal
) -> float:
    """h: given, or the minimiser of Σc² + (max Σc)²/A + (ρτ)²χ², or of Theorem 4's bound, which takes users to be alike (decision 0104)."""
    if is_worst_case(given):
        return published_weights(support, float(epsilon), float(delta), size).h
    if not isinstance(given, str):
        return float(given)
    # Averaging the second half of the steps leaves about 2σ²/T of a step's noise, σ²·T, in each coordinate.
    h = smooth_bound(support, 1.0, 1.0, 1 / (noise * math.sqrt(size)), HETEROGENEITY)
    return min(max(h, 1.0), float(LARGEST_WEIGHT))


@dataclass(frozen=True, eq=False)
class Scaling:
    """``(x − centre)·ratio``, from steps of the box to steps of a spread, times a matrix if features were whitened.

    ``users``: a noisy number of users; ``rows``: as many as a busy user has; ``target``: the average of users' labels in `BOX` steps, if it was asked for.
    """

    centre: Floats
    ratio: Floats
    users: float = math.nan
    rows: float = math.nan
    target: float = 0.0
    whitened: Floats | None = None

    @classmethod
    def given(cls, spread: Floats) -> Scaling:
        """A public spread about the middle of the bounds, in units of their half-widths."""
        return cls(np.zeros(len(spread)), UNIT / (BOX * spread))

    def to_box(self, f: Floats, intercept: bool) -> Floats:
        """Rows of coefficients for features in units of their half-widths; the constant last if there is one."""
        own = f[:, : len(self.centre)]
        scaled = (own if self.whitened is None else own @ self.whitened.T) * self.ratio * (BOX / UNIT)
        return np.column_stack([scaled, f[:, -1] - scaled @ (self.centre / BOX)]) if intercept else scaled


def buy_scaling(sums: NoisySums, features: int, centred: bool, labels: bool) -> Scaling:
    """Ask for centres and spreads, and the average of labels that are numbers; without an intercept the centre stays where the bounds put it."""
    found, users = _centre(sums, features, labels)
    centre = found[:features] if centred else np.zeros(features)
    longest, rows = _typical_length(sums, centre, users)
    spread = _spread(sums, centre, longest, users)
    return Scaling(centre, UNIT / spread, users, rows, float(found[features:].sum()))


def _centre(sums: NoisySums, features: int, labels: bool) -> tuple[Floats, float]:
    size = features + labels
    one = math.isqrt(size * BOX**2)  # the number of users counts as much as all averages together

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for (part, mean), (_, targets) in zip(rows.moments(1, np.zeros(features)), rows.sums_of_targets(), strict=True):
            own = np.rint(targets / rows.counts[part])[:, None]
            means = np.clip(np.hstack([mean, own] if labels else [mean]), -BOX, BOX)
            yield np.column_stack([means, np.full(len(mean), float(one))])

    total, sd = sums.ask(per_user, size + 1, size * BOX**2 + one**2)
    users = max(total[-1], sd) / one
    centre, noise = total[:-1] / users, sd / users
    # What noise alone would do is taken off: a centre that is mostly noise would make features depend on the constant.
    kept = max(1 - noise**2 / max(float(np.mean(centre**2)), 1.0), 0.0)
    return np.clip(np.rint(centre * kept), -BOX, BOX), users


def _typical_length(sums: NoisySums, centre: Floats, users: float) -> tuple[float, float]:
    """Twice the typical length of users' vectors of average squared deviations, and the rows that a twentieth of the users exceed, to a factor of two."""
    size = 31 + (len(centre).bit_length() + 1) // 2  # octaves from 1 to √features · 2^30, the largest length
    # Squared deviations are below 2^30; with so many bits taken away, squares of what is left add up exactly.
    coarse = max(30 - (53 - len(centre).bit_length()) // 2, 0)

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for part, squares in rows.moments(2, centre):
            short = np.rint(squares * 2.0**-coarse)
            octave = np.frexp(np.einsum("ij,ij->i", short, short))[1] // 2 + coarse
            own = np.frexp(rows.counts[part] - 0.5)[1]  # 1 row, 2, 3 to 4, 5 to 8
            yield np.hstack([np.eye(size)[np.clip(octave, 0, size - 1)], np.eye(_ROWS)[np.clip(own, 0, _ROWS - 1)]])

    found, sd = sums.ask(per_user, size + _ROWS, 2)
    counts = found[:size]
    # The octave with most users near it: a median of all octaves would add up the noise of the many empty ones.
    near = np.maximum(_NEAR - np.abs(np.subtract.outer(np.arange(size), np.arange(size))), 0)
    return float(2.0 ** (int(np.argmax(near @ counts)) + 1)), _busy(found[size:], users, sd)


def _busy(octaves: Floats, users: float, sd: float) -> float:
    """The rows that a twentieth of the users exceed, or more users where noise hides so few, to a factor of two."""
    above, below = np.cumsum(octaves[:0:-1])[::-1], np.cumsum(octaves[:-1])
    # Users with more than 1, 2, 4, ... rows are counted from either end; either count has the noise of the octaves it adds up.
    part = np.arange(1, len(octaves)) / len(octaves)
    more = part * above + (1 - part) * (users - below)
    noise = sd * np.sqrt(part * (1 - part) * len(octaves))
    few = more < np.maximum(users / 20, 3 * noise)
    return 2.0 ** int(np.argmax(few)) if few.any() else 2.0 ** len(few)


def _spread(sums: NoisySums, centre: Floats, longest: float, users: float) -> Floats:
    """Standard deviations about the centre, in steps; those that the noise hides are drawn to the average of all."""

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for _, squares in rows.moments(2, centre):
            yield clamped(squares, np.full(len(squares), FULL / longest))[0]

    total, sd = sums.ask(per_user, len(centre), FULL**2)
    variance, noise = total / users * (longest / FULL), sd / users * (longest / FULL)
    average = max(float(variance.mean()), noise / math.sqrt(len(centre)))
    apart = max(float(variance.var()) - noise**2, 0.0)
    drawn = average + apart / (apart + noise**2) * (variance - average)
    return np.sqrt(np.maximum(drawn, max(average / 50, noise, 1.0)))


def bought_whitening(sums: NoisySums, features: int, centred: bool, users: float) -> tuple[Floats, Floats, float]:
    """Ask for users' second moments of standardised features, and of the constant if there is one.

    Returns:
        The means of features in spreads, the matrix that whitens what is about them, and how large a second moment may still be along a direction.
    """
    size = features + centred
    row, column = np.triu_indices(size)
    twice = np.where(row == column, 1.0, math.sqrt(2))  # a number off the diagonal stands for two
    longest = _MOMENT_CLAMP * size

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for _, moments in rows.second_moments(size):
            yield clamped(moments * twice, np.full(len(moments), FULL / (longest * SQUARE)))[0]

    total, sd = sums.ask(per_user, len(twice), FULL**2)
    scale = longest / (FULL * users)
    matrix = np.zeros((size, size))
    matrix[row, column] = matrix[column, row] = total / twice * scale
    sd *= scale
    means = matrix[features:, :features].sum(axis=0)  # none without a constant
    means *= max(1 - sd**2 / 2 / max(float(np.mean(means**2)), 1e-12), 0.0)
    values, directions = np.linalg.eigh(matrix[:features, :features] - np.outer(means, means))
    moments, along = _without_noise(values, math.sqrt(2 * features) * sd)
    root = (directions / np.sqrt(moments)) @ directions.T
    return np.rint(means * UNIT) / UNIT, np.rint(root * WHOLE) / WHOLE, along


def _without_noise(values: Floats, edge: float) -> tuple[Floats, float]:
    """Second moments along the eigenvectors of a matrix with symmetric normal noise, whose own eigenvalues are within ±edge.

    One that is t above the others appears at t + (edge/2)²/t, if t is at least edge/2 (Péché 2006). The others count as their average, those
    below it too: where a clamp cut rows that lie far out, a moment looks less than it is. Standardised features have moments of 1 on average.
    """
    usual, found = 1.0, np.ones(len(values))
    for _ in range(len(values)):
        off = values - usual
        seen = off > _SEEN * edge
        if seen.all() or not seen.any():
            break
        found = usual + (off + np.sqrt(np.maximum(off**2 - edge**2, 0.0))) / 2
        before, usual = usual, max((len(values) - float(found[seen].sum())) / int((~seen).sum()), _LEAST_MOMENT)
        found = np.where(seen, found, usual)
        if math.isclose(before, usual, rel_tol=1e-3):
            break
    return np.maximum(found, _LEAST_MOMENT), 1 + edge / usual


def started(
    sums: NoisySums,
    slopes: Slopes,
    size: int,
    h: float,
    users: float,
    target: float,
    along: float,
    clip: float | None = None,
    constant: float = 0.0,
) -> Start:
    """Ask for sums of weights and of targets, and for a histogram of the lengths of gradients where all scores are ``constant``, if the last coefficient is one."""
    first, most = np.zeros(size * slopes.scores), min(h, max(h / 4, _COUNTED))
    first[-1] = constant

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h)
        for (part, targets), (_, gradients) in zip(rows.sums_of_targets(), rows.gradients(first, slopes), strict=True):
            weight, counts = weights[part], rows.counts[part]
            above = (targets / slopes.largest_target / counts + 1) / 2  # a user's average target, from 0 to 1
            totals = np.column_stack([weight * counts / most, above])
            yield np.hstack([np.rint(np.clip(totals, 0, 1) * _PART), _PART * _octaves(gradients, weight)])

    total, sd = sums.ask(per_user, 2 + _OCTAVES, 3 * _PART**2)
    total, sd = total / _PART, sd / _PART
    weight = max(float(total[0]), 2 * sd)
    rare = min(sd / users, 0.5)  # what noise could be taken for is no rare class
    mean = float(np.clip(total[1] / users, rare, 1 - rare))
    score, curvature, largest = slopes.start(mean)
    longer = np.cumsum(total[:1:-1])[::-1]  # users with gradients in this octave or above
    hidden = 3.5 * sd * np.sqrt(np.arange(_OCTAVES, 0, -1))  # by the noise of the octaves that are added up
    above = np.flatnonzero(longer > np.maximum(hidden, max(target, users / 20)))
    found = 2.0 ** (int(above[-1]) - _FINEST - 0.5) if len(above) else 1.0
    shortest, longest = 0.0, 2 * found  # slopes may be twice as steep with another model than with none
    margins = math.inf
    if slopes.by_label_width:  # labels may be skewed, and predictions vary no more than they do
        longest, margins = 8 * found, found**2 / size
    if slopes.steepest_at_zero:
        # A usual row at the steepest slope stays whole: with rare positives, these rows are all that there is to learn from.
        shortest = math.sqrt(size)
        found = longest = max(found, shortest)
        margins = _MARGINS
    weight, clip = weight * most, clip or found
    length, averaged = _pace(sums.plan, slopes, size, weight, clip, curvature, largest * along)
    seen = users >= _ENOUGH_USERS * sd
    unsure = rare / (mean * (1 - mean))
    return Start(weight, clip, length, curvature, averaged, score, shortest, longest, not seen, margins, unsure)


def _pace(
    plan: VectorShares, slopes: Slopes, size: int, weight: float, clip: float, curvature: float, largest: float
) -> tuple[float, float]:
    """How far to step along the gradient, and the part of the iterates to average, from released numbers.

    At most 2/L with the trace of the second derivative for L, which keeps descent with this momentum stable whatever the
    correlations; standardised features have a mean square of 1. Noise adds about ½·size·s²/κ to the loss of a model that has
    converged (s: the noise of the averaged gradient, κ: the curvature). Where that is much, shorter steps stop earlier, and less
    noise gets in; and more iterates are averaged if the first ones were not far off, as they are where all scores start at 0.
    """
    noise = math.sqrt(2) * plan.sd_of_all() * clip / weight
    added = size * slopes.scores * noise**2 / (2 * curvature)
    part = min(max(_LONGEST * _LITTLE / max(added, 1e-300), _LEAST_STEP), _LONGEST)
    averaged = AVERAGED[slopes.at_constant and part < _LONGEST / 2]
    return min(2 / largest, part / curvature) / weight, averaged


def _octaves(gradients: Floats, weights: Floats) -> Floats:
    """In which octave the length of a user's weighted gradient is, one-hot; from an exact sum of squares."""
    short, _ = clamped(gradients, weights * (2.0**_FINEST / (SLOPE * UNIT)))
    exponent = np.frexp(np.einsum("ij,ij->i", short, short))[1]  # the square is below 2^exponent
    hot: Floats = np.eye(_OCTAVES)[np.minimum((exponent + 1) // 2, _OCTAVES - 1)]
    return hot
