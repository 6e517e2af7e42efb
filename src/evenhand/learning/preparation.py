"""What a descent starts from: the bound on weights, standardised features, the length of steps and the first clamp."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np

from evenhand.bounding import HETEROGENEITY, smooth_bound
from evenhand.learning.base import is_worst_case
from evenhand.learning.descent import Start, started
from evenhand.learning.features import FeatureMap
from evenhand.learning.noisy_sums import NoisySums
from evenhand.learning.slopes import Slopes
from evenhand.learning.standard import Standard, bought
from evenhand.learning.user_rows import BOX, UNIT, WHOLE
from evenhand.learning.whitening import bought_whitening
from evenhand.planning.weighted_risk import published_weights
from evenhand.profiles import Sums, Support

Prepared = tuple[float, Standard, Start, float | None]
"""h, how features are standardised, where the descent starts, and how many users may be beyond the clamp (None: it stays)."""

BUSY, LEAST_WEIGHT = 4, 10.0
"""The bound h unless one is given: so many times the rows that a twentieth of the users exceed, and at least so large (decision 0104)."""

LARGEST_WEIGHT = 2**20
"""The largest bound h on a user's weight."""


def found(
    sums: NoisySums, slopes: Slopes, box: FeatureMap, weight_bound: float | str, clip: float | str, whitens: bool
) -> Prepared:
    """Centres, spreads, correlations, length of steps and first clamp from noisy sums."""
    standard = bought(sums, len(box.centre), box.intercept, slopes.by_label_width)
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


def published(sums: NoisySums, slopes: Slopes, box: FeatureMap, h: float, support: Support, bounded: bool) -> Prepared:
    """Algorithm 2 of epasto2020: features in a ball of radius 1, and no gradient is longer than h times the Lipschitz constant."""
    features = len(box.centre)
    inside = math.sqrt(features) if bounded else 1.0
    standard = Standard.given(np.full(features, inside))
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
