"""Quantiles by the weighted exponential mechanism: rank error with the chosen weight bound against the best bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.noise import discrete_laplace
from evenhand.bounding import MEAN_SHARE, weight_for_quantile
from evenhand.profiles import row_buckets, support_of_histogram

CELLS = 100


class Table:
    """Rows in cells of a grid over [0, 1], with the user's number of rows beside each."""

    def __init__(self, rows: npt.NDArray[np.int64], means: npt.NDArray[np.float64], noise: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        values = np.repeat(means, rows) + noise * rng.standard_normal(int(rows.sum()))
        self.cells = np.clip((values * CELLS).astype(np.int64), 0, CELLS - 1)
        self.sizes = np.repeat(rows, rows).astype(np.float64)
        self.histogram = row_buckets().histogram(rows)
        self.shares = np.cumsum(np.bincount(self.cells, minlength=CELLS)) / len(self.cells)

    def rank_error(self, q: float) -> npt.NDArray[np.float64]:
        """How far q lies outside the ranks that each cell covers."""
        low = np.concatenate([[0.0], self.shares[:-1]])
        return np.maximum(np.maximum(low - q, q - self.shares), 0.0)


def mean_squared(table: Table, q: float, h: float, epsilon: float) -> float:
    """Mean squared rank error of the mechanism with weight bound h (presence)."""
    weight = np.bincount(table.cells, weights=np.minimum(h, table.sizes) / table.sizes, minlength=CELLS)
    below = np.cumsum(weight)
    score = -np.abs((1 - q) * below - q * (below[-1] - below))
    logits = epsilon * score / (2 * h * max(q, 1 - q))
    chance = np.exp(logits - logits.max())
    return float(chance @ table.rank_error(q) ** 2 / chance.sum())


def measure(table: Table, q: float, epsilon: float, repeats: int, seed: int) -> dict[str, Any]:
    """Root mean squared rank error with the chosen bound (after paying for the profile) and with the best one."""
    rng, buckets = np.random.default_rng(seed), row_buckets()
    part = float(MEAN_SHARE) * epsilon
    squares = []
    for _ in range(repeats):
        noisy = table.histogram + discrete_laplace(rng, 1 / part, buckets.size)
        h = float(weight_for_quantile(support_of_histogram(buckets, noisy, 1 / part), q, epsilon - part))
        squares.append(mean_squared(table, q, h, epsilon - part))
    best = min(mean_squared(table, q, h, epsilon) for h in np.geomspace(1, table.sizes.max(), 25))
    rmse, floor = math.sqrt(float(np.mean(squares))), 0.5 / CELLS
    # Below half a cell the grid decides, not the bound.
    return {"rmse": rmse, "best": math.sqrt(best), "multiple": max(rmse, floor) / max(math.sqrt(best), floor)}
