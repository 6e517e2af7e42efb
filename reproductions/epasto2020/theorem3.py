"""Theorem 3: the best row limit has at most 4 times the variance of the best smooth weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evenhand.bounding import smooth_bound
from evenhand.bounding.row_limit import row_limit_bound, row_limit_variance
from evenhand.bounding.smooth_weights import smooth_variance
from evenhand.profiles import Sums
from evenhand.profiles.support import support_of_counts
from reproductions.outcomes import Check, Outcome, Rows, Size, lines

INSTANCES = {"small": 300, "full": 5000}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """The ratio of the two minimal variances on random instances: counts of many shapes, σ² and ε over six decades."""
    random = np.random.default_rng(2020)
    rows: Rows = []
    for _ in range(INSTANCES[size]):
        alpha, users = random.uniform(0.3, 4.0), int(random.integers(1, 200))
        counts = np.minimum(np.ceil(random.pareto(alpha, users) + 1e-9), 10_000)
        sigma2, epsilon = 10 ** random.uniform(-3, 3), 10 ** random.uniform(-2, 1)
        rows.append({"alpha": round(alpha, 2), "ratio": ratio(counts, sigma2, epsilon), "instance": "random"})
    ratios = [row["ratio"] for row in rows]
    checks = [
        Check("smallest ratio on random instances", min(ratios), 1 - 1e-9, 1.01),
        Check("largest ratio on random instances (the theorem allows 4)", max(ratios), 1.2, 4.0),
    ]
    title = "epasto2020 theorem 3: variance of the row limit over that of smooth weights"
    return Outcome(title, checks, rows).write(
        out, "epasto2020-theorem3", lines(rows, "alpha", "ratio", "instance", title, log_y=False).mark_point()
    )


def ratio(counts: np.ndarray, sigma2: float, epsilon: float) -> float:
    """min v'(h) / min v(h), values in an interval of length 1."""
    support = support_of_counts(counts)
    sums = Sums.of(support)
    smooth = np.array([smooth_bound(support, sigma2, 1.0, epsilon)])
    limit = np.array([float(row_limit_bound(support, sigma2, 1.0, epsilon))])
    best = smooth_variance(sums, smooth, sigma2, 1.0, epsilon)[0]
    return float(row_limit_variance(sums, limit, sigma2, 1.0, epsilon)[0] / best)
