"""How the cap of a total was chosen before there was a population: the least of noise and visible bias, a fifth added for users who are too few to be seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.population import Array, Buckets
from evenhand.population.occupied import highest_occupied

_HIDDEN_TAIL = 1.2


def total_caps(
    buckets: Buckets, counts: Array, epsilon_profile: float, epsilon: float
) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.bool_]]:
    """For many noisy histograms at once (one per row): caps, forecast biases, and whether users were seen."""
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    inner = counts[:, 1:-1]  # neither the users at or below 0 nor the open bucket can carry a cap
    top, found = highest_occupied(inner, edges, 1 / epsilon_profile, buckets.unit)
    at_most_top = np.arange(len(edges))[None, :] <= top[:, None]
    users = np.where(at_most_top, inner, 0.0)
    below = np.concatenate([[0.0], edges[:-1]])
    middle = (below + 1 + edges) / 2  # the mean of the integers in the bucket
    above = _sum_above(users)
    bias = np.maximum(_sum_above(users * middle) - above * edges, 0.0)
    squared = 2 * (edges / epsilon) ** 2 + (_HIDDEN_TAIL * bias) ** 2
    best = np.where(at_most_top, squared, np.inf).argmin(axis=1)
    best = np.where(found, best, int(np.searchsorted(edges, buckets.unit)))
    caps = np.array(buckets.edges[1:], dtype=np.int64)[best]
    return caps, np.where(found, bias[np.arange(len(best)), best], 0.0), found


def _sum_above(values: Array) -> Array:
    """For each column, the sum of the columns to its right."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1] - values
