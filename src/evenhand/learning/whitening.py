"""Features that are not correlated, as far as noise lets that be seen, from one bought matrix of second moments.

Noise in a gradient is the same in all directions. Where features go together some directions have little spread, and the same noise
in them costs many times the loss; and the rows that lie far out along the directions with much spread are the ones that a clamp cuts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from evenhand.learning.noisy_sums import NoisySums
from evenhand.learning.private_values import Floats
from evenhand.learning.user_rows import FULL, SQUARE, UNIT, WHOLE, UserRows, clamped

SHARE = Fraction(3, 100)
"""The share of the vector of second moments."""

MOST = 64
"""Features up to which it is bought: its noise grows with the square of their number."""

_CLAMP = 1.5  # of the average length of a user's second moments
_SEEN = 1.1  # times the largest eigenvalue of noise alone, by which an eigenvalue differs that is not noise
_LEAST = 1 / 64  # the least second moment along a direction: the matrix stays small


def bought_whitening(sums: NoisySums, features: int, centred: bool, users: float) -> tuple[Floats, Floats, float]:
    """Ask for users' second moments of standardised features, and of the constant if there is one.

    Returns:
        The means of features in spreads, the matrix that whitens what is about them, and how large a second moment may still be along a direction.
    """
    size = features + centred
    row, column = np.triu_indices(size)
    twice = np.where(row == column, 1.0, math.sqrt(2))  # a number off the diagonal stands for two
    longest = _CLAMP * size

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
        before, usual = usual, max((len(values) - float(found[seen].sum())) / int((~seen).sum()), _LEAST)
        found = np.where(seen, found, usual)
        if math.isclose(before, usual, rel_tol=1e-3):
            break
    return np.maximum(found, _LEAST), 1 + edge / usual
