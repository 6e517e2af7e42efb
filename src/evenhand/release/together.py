"""The ends of many intervals at once: by group there may be tens of thousands, with one law of the noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenhand.noise import IntegerNoise
from evenhand.release.believed import Believed
from evenhand.release.intervals import Additive, Interval

_BISECTIONS = 44
_TAILS = np.geomspace(0.5, 1e-7, 60)  # as in `believed.py`
_AT_ONCE = 4096


def ends_of(intervals: Sequence[Interval], confidence: float) -> list[tuple[float, float]]:
    """The ends of each, as `at` says."""
    first = intervals[0] if intervals else None
    if not isinstance(first, Believed) or not all(_alike(first, one) for one in intervals):
        return [one.at(confidence) for one in intervals]
    found: list[tuple[float, float]] = []
    for start in range(0, len(intervals), _AT_ONCE):
        some = [one for one in intervals[start : start + _AT_ONCE] if isinstance(one, Believed)]
        found += _ends(some, confidence)
    return found


def _alike(first: Believed, other: Interval) -> bool:
    """Whether two differ in nothing but the value and the amounts."""
    if not isinstance(other, Believed) or len(other.amounts) != len(first.amounts):
        return False
    one, two = first.noise_only, other.noise_only
    if not isinstance(one, Additive) or not isinstance(two, Additive) or other.weights is not first.weights:
        return False
    return (one.noise, one.unit) == (two.noise, two.unit) and two.feasible == one.feasible == (-np.inf, np.inf)


def _ends(intervals: Sequence[Believed], confidence: float) -> list[tuple[float, float]]:
    first = intervals[0].noise_only
    assert isinstance(first, Additive)
    points, odds = _law(first.noise, first.unit)
    values = np.array([one.noise_only.value for one in intervals if isinstance(one.noise_only, Additive)])
    amounts = np.array([one.amounts for one in intervals], dtype=np.float64)
    weights = np.asarray(intervals[0].weights, dtype=np.float64)
    weights = weights / weights.sum()
    tail = (1 - confidence) / 2
    low, high = (_solve(goal, amounts, weights, points, odds) for goal in (tail, 1 - tail))
    least, most = (np.array([one.feasible[side] for one in intervals]) for side in (0, 1))
    low, high = np.clip(values + low, least, most), np.clip(values + high, least, most)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _solve(
    goal: float,
    amounts: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    points: npt.NDArray[np.float64],
    odds: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Where the probability that the truth lies below reaches ``goal``, by bisection, for each row."""
    low, high = points[0] + amounts.min(axis=1), points[-1] + amounts.max(axis=1)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = (1 / (1 + np.exp(-np.interp(middle[:, None] - amounts, points, odds)))) @ weights < goal
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    result: npt.NDArray[np.float64] = (low + high) / 2
    return result


def _law(noise: IntegerNoise, unit: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Points around a released number, and the logarithm of the odds that the bounded value lies below each."""
    radii = np.array([noise.radius(max(1 - 2 * tail, 1e-9)) for tail in _TAILS]) * unit
    odds = np.log((1 - _TAILS) / _TAILS)
    return np.concatenate([-radii[::-1], radii]), np.concatenate([-odds[::-1], odds])
