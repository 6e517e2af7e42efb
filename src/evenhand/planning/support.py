"""Users by number of rows, as far as a noisy histogram shows them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.planning.buckets import Buckets
from evenhand.planning.occupied import CAUTIOUS, highest_occupied
from evenhand.planning.weights import Support


def support_of_counts(rows: npt.ArrayLike) -> Support:
    """The exact support of a list of row counts, one a user; users without rows don't count."""
    sizes, users = np.unique(np.asarray(rows, dtype=np.float64), return_counts=True)
    return Support(sizes[sizes > 0], users[sizes > 0].astype(np.float64))


def support_of_histogram(buckets: Buckets, counts: npt.ArrayLike, scale: float) -> Support:
    """A plausible support behind a noisy histogram: nothing above the highest occupied bucket, nothing negative.

    Cutting negative counts off would invent users, so what remains is scaled back to the noisy total.
    """
    noisy = np.asarray(counts, dtype=np.float64)[1:-1]
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    top, found = highest_occupied(noisy[None, :], edges, scale, buckets.unit, CAUTIOUS)
    if not found[0]:
        return Support(np.array([float(buckets.unit)]), np.array([max(float(noisy[0]), 1.0)]))
    last = int(top[0]) + 1
    noisy, edges = noisy[:last], edges[:last]
    positive = np.maximum(noisy, 0.0)
    users = positive * min(max(noisy.sum(), 1.0) / positive.sum(), 1.0)
    below = np.concatenate([[0.0], edges[:-1]])
    return Support(((below + 1 + edges) / 2)[users > 0], users[users > 0], (below + 1)[users > 0])
