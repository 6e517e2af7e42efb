"""A private estimate of the standard deviation of labels about the regression, for choosing weights.

Each block takes whole users until their rows outnumber the coefficients, and a unit vector ``w`` with
``wᵀX = 0`` on those rows; then ``z = wᵀy`` has mean 0 and variance σ² whatever the coefficients are. A user
lies in at most one block, so changing all labels of a user changes at most one ``z``. The median of the ``|z|``
is chosen by the exponential mechanism over a public grid of standard deviations.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from evenhand.guarantee import DataError
from evenhand.learning.data.private_values import Floats, Integers
from evenhand.release import Receipt
from evenhand.tables import Secret

Contrast = tuple[Integers, Floats]
"""The rows of a block and its unit vector."""

SENSITIVITY = 2
"""How far one user moves any score: one |z| may change sides."""

FEWEST_BLOCKS = 5
GRID_PER_OCTAVE = 4
OCTAVES = 20
_MOST_ROWS = 20  # times d: rows of one block that are looked at
_NORMAL_MEDIAN = 0.6744897501960817


def candidates(width: float) -> Floats:
    """Standard deviations to choose from: at most half the label range, down to a millionth of it."""
    return np.asarray(width / 2 * 2.0 ** (-np.arange(GRID_PER_OCTAVE * OCTAVES) / GRID_PER_OCTAVE))


def contrasts(X: Floats, users: Integers) -> list[Contrast]:
    """Rows and unit vector of every block; a function of features and users only."""
    order, d = np.argsort(users, kind="stable"), X.shape[1]
    blocks: list[Contrast] = []
    start = 0
    for end in np.cumsum(np.bincount(users)):
        if end - start <= d:
            continue
        rows = order[start : min(end, start + _MOST_ROWS * d)]
        start = end
        # X = Q R with R zero below row d, so the last column of Q is orthogonal to every feature, whatever the rank.
        blocks.append((rows, np.linalg.qr(X[rows], mode="complete")[0][:, -1]))
    return blocks


def scores(blocks: list[Contrast], y: Floats, grid: Floats) -> list[int]:
    """Utility of every candidate: minus the imbalance of the |z| on the two sides of its median."""
    z = np.sort([abs(float(w @ y[rows])) for rows, w in blocks])
    below = np.searchsorted(z, grid * _NORMAL_MEDIAN, side="right")
    return [-abs(2 * int(count) - len(z)) for count in below]


def enough_blocks(design: Floats, codes: Integers) -> list[Contrast]:
    """The blocks, or an error that only features and users decide."""
    blocks = contrasts(design, codes)
    if len(blocks) < FEWEST_BLOCKS:
        raise DataError(
            f"noise_sd='private' needs at least {FEWEST_BLOCKS} groups of users with more rows than "
            f"coefficients, but there are {len(blocks)}; give noise_sd a public guess instead."
        )
    return blocks


def buy(
    blocks: list[Contrast], labels: Secret[Floats], bounds: tuple[float, float], epsilon: Decimal, receipt: Receipt
) -> float:
    """The estimate, for ε of a receipt."""
    grid = candidates(bounds[1] - bounds[0])

    def scored(y: Floats) -> list[list[int]]:
        return [scores(blocks, np.where(np.isnan(y), sum(bounds) / 2, np.clip(y, *bounds)), grid)]

    (place,) = receipt.choices(labels.map(scored), SENSITIVITY, epsilon).places
    return float(grid[place])
