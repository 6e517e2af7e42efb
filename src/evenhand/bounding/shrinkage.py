"""Noisy ratios by group, each pulled towards what groups have in common as far as its noise is larger than they differ.

Empirical Bayes with normal groups: a ratio with noise variance v is moved to ``mean + τ²/(τ² + v)·(ratio − mean)``, where τ², how much
groups differ, is estimated from the same noisy ratios (DerSimonian and Laird 1986). Everything here is post-processing.
"""

from __future__ import annotations

import numpy as np

from evenhand.profiles import Array

_LEAST = 1e-12


def shrunken_ratios(totals: Array, weights: Array, noise: float, blur: float) -> Array:
    """Totals over weights, within 0 and 1, shrunk; the common mean where a weight is lost in its noise.

    Args:
        totals: noisy, by group.
        weights: noisy or exact, by group.
        noise: the standard deviation of the noise of a ratio, times its weight.
        blur: the standard deviation of the noise of a weight; 0 if weights are exact.
    """
    seen = weights > blur
    if not seen.any():
        common = float(totals.sum() / max(float(weights.sum()), blur * len(weights) ** 0.5, 1.0))
        return np.full(len(totals), min(max(common, 0.0), 1.0))
    ratios = np.clip(totals[seen] / weights[seen], 0.0, 1.0)
    variance = (noise / weights[seen]) ** 2 + _LEAST
    between = _between(ratios, variance)
    precision = 1 / (variance + between)
    mean = float(precision @ ratios / precision.sum())
    shrunken = np.full(len(totals), mean)
    shrunken[seen] = mean + between / (between + variance) * (ratios - mean)
    return shrunken


def _between(ratios: Array, variance: Array) -> float:
    """τ²: how much more the ratios differ than their noise explains."""
    precision = 1 / variance
    total = float(precision.sum())
    freedom = total - float(precision @ precision) / total
    if len(ratios) < 2 or freedom <= 0:
        return 0.0
    mean = float(precision @ ratios) / total
    return max(0.0, (float(precision @ (ratios - mean) ** 2) - (len(ratios) - 1)) / freedom)


def shrunken_steps(totals: Array, weights: Array, noise: float, blur: float) -> Array:
    """Totals over weights, shrunk towards 0; 0 where a weight is lost in its noise. Arguments as above."""
    seen = weights > max(2 * blur, _LEAST)
    steps = np.zeros(len(totals))
    if not seen.any():
        return steps
    ratios, variance = totals[seen] / weights[seen], (noise / weights[seen]) ** 2 + _LEAST
    precision = 1 / variance
    between = max(0.0, (float(precision @ ratios**2) - len(ratios)) / float(precision.sum()))
    steps[seen] = ratios * between / (between + variance)
    return steps
