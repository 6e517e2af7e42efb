"""Clopper–Pearson bounds: what a number of successes proves about a probability, exactly and at any sample size."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt


def at_least(successes: int, trials: int, doubt: float) -> float:
    """A lower bound on the success probability that is wrong with probability at most ``doubt``."""
    if successes == 0:
        return 0.0
    low, high = 0.0, successes / trials
    for _ in range(60):  # the largest p under which so many successes are this surprising
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(successes, trials, middle) <= doubt else (low, middle)
    return low


def at_most(successes: int, trials: int, doubt: float) -> float:
    """An upper bound on the success probability that is wrong with probability at most ``doubt``."""
    return 1.0 - at_least(trials - successes, trials, doubt)


def _tail(successes: int, trials: int, probability: float) -> float:
    """P(at least so many successes)."""
    if probability <= 0.0:
        return 0.0
    k = np.arange(successes, trials + 1)
    logs = _log_binomials(trials)[successes:] + k * math.log(probability) + (trials - k) * math.log1p(-probability)
    top = float(logs.max())
    return min(1.0, math.exp(top) * float(np.exp(logs - top).sum()))


@lru_cache(maxsize=4)
def _log_binomials(trials: int) -> npt.NDArray[np.float64]:
    k = np.arange(1, trials + 1, dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(np.log(trials - k + 1) - np.log(k))])
