"""How many rows one user may count for when quantiles are asked: the forecast error of the rank.

Near the answer a rank error turns into an error of the value by the same factor whatever caused it, so the bound with the
smallest forecast rank error is also the one with the smallest error in values; beyond the end of the ranks the answer can be anywhere,
which counts as a tenth of the squared range. Three things move the rank of the answer, as a share of all rows:

- noise: the choice is off by a Laplace variable of scale 2·h·max(q, 1−q)/(ε·n_h);
- other weights: the weighted rows are others than all rows, and users differ at random;
- heavy users who differ from the others: ρτ·χ(h) (`docs/proofs/chi-square-bias.md`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from evenhand.profiles import Array, Support

USERS_DIFFER = 0.1
"""Prior: the share of the variance of ``1{x ≤ v}`` that lies between users."""

HEAVY_DIFFER = 0.1
"""Prior: the correlation of ``1{x ≤ v}`` with being a heavy user; real tables showed 0.02 to 0.34 for means."""

_CAUTION = 2.0
"""An interval allows for twice what the bound is chosen by: the priors are middling ones."""

_ANYWHERE = 0.1  # squared rank error of an answer that noise alone decides


def weight_for_quantiles(support: Support, quantiles: Sequence[float], epsilon: float) -> Fraction:
    """The weight bound with the smallest forecast rank error, relative to the spread of each rank, over all quantiles asked.

    Args:
        support: how many users have how many rows.
        quantiles: which ones.
        epsilon: for one round of choices; for G groups an ε/G, since each has a G-th of the rows.
    """
    spread = support.spread_out()
    h = np.unique(np.clip(2.0 ** np.arange(0, 60, 0.5), 1, max(float(spread.sizes[-1]), 1.0)))
    errors = sum(_noise(spread, h, q, epsilon) / (q * (1 - q)) for q in quantiles) + len(quantiles) * _moved(spread, h)
    return Fraction(float(h[np.argmin(errors)])).limit_denominator(1000)


def rank_bias(support: Support, weight: float) -> float:
    """How far bounding moves a rank, one standard deviation, relative to √(q(1−q)): a prior."""
    return _CAUTION * math.sqrt(float(_moved(support.spread_out(), np.array([weight]))[0]))


def _noise(support: Support, h: Array, q: float, epsilon: float) -> Array:
    scale = 2 * h * max(q, 1 - q) / (epsilon * np.minimum(support.sizes, h[:, None]) @ support.users)
    return np.asarray(np.minimum(2 * scale**2, _ANYWHERE) + _ANYWHERE * np.exp(-min(q, 1 - q) / scale))


def _moved(support: Support, h: Array) -> Array:
    """The variance that bounding adds to a rank, as a multiple of q(1−q)."""
    sizes, users = support.sizes, support.users
    weights = np.minimum(sizes, h[:, None])
    shares, rows = weights / (weights @ users)[:, None], sizes / support.rows
    at_random = (shares - rows) ** 2 * (USERS_DIFFER + (1 - USERS_DIFFER) / sizes) @ users
    chi_square = np.maximum(shares**2 / rows @ users - 1, 0.0)
    return np.asarray(at_random + HEAVY_DIFFER**2 * USERS_DIFFER * chi_square)
