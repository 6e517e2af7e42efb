"""Statistical checks that raise a false alarm once in a million runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6

Cdf = Callable[[int], float]
"""P(X ≤ k) of an integer distribution."""


def fits(samples: Sequence[int], cdf: Cdf, bins: int = 16) -> bool:
    """χ² test of integers against their exact distribution, in bins of about equal probability."""
    edges: list[int] = []
    for edge in sorted({_quantile(cdf, step / bins) for step in range(1, bins)}):
        if cdf(edge) - (cdf(edges[-1]) if edges else 0.0) > 0.01 and 1 - cdf(edge) > 0.01:
            edges.append(edge)
    expected = np.diff([0.0, *(cdf(edge) for edge in edges), 1.0])
    placed = np.searchsorted(np.array(edges, dtype=object), np.array(list(samples), dtype=object), side="left")
    observed = np.bincount(placed.astype(int), minlength=len(expected))
    wanted = expected * len(samples)
    assert len(wanted) > 2
    assert min(wanted) > 100, "too few samples for a χ² test"
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return bool(stats.chi2.sf(statistic, len(expected) - 1) > FALSE_ALARM)


def happens_at_least(hits: int, trials: int, probability: float) -> bool:
    """One-sided binomial test: is the true probability at least this?"""
    return bool(stats.binom.cdf(hits, trials, probability) > FALSE_ALARM)


def centred(errors: Sequence[float]) -> bool:
    """Student's two-sided test: is the mean of these independent errors zero?"""
    spread = float(np.std(errors, ddof=1)) / math.sqrt(len(errors))
    return abs(float(np.mean(errors))) <= float(stats.t.isf(FALSE_ALARM / 2, len(errors) - 1)) * spread


def _quantile(cdf: Cdf, probability: float) -> int:
    low, high = -1, 1
    while cdf(low) >= probability:
        low *= 2
    while cdf(high) < probability:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cdf(middle) >= probability else (middle, high)
    return high
