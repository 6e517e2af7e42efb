"""Intervals that hold the truth: the noise, and what bounding took away as a stated model believes.

The noise is known exactly; what a bound cut off is not. A posterior gives it as a list of amounts with weights
(`profiles/posterior.py`), and the truth is the bounded value plus one of them. All of it is computed from released numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.noise import IntegerNoise
from evenhand.release.intervals import Additive, Interval, Scaled
from evenhand.release.quotient import Quotient

_TAILS = np.geomspace(0.5, 1e-7, 60)
"""The tail probabilities at which a noise interval is read; between them the logarithm of the odds is interpolated."""
_FARTHEST = (1e-7, 1e-5, 1e-4, 1e-3, 5e-3)
"""Tail probabilities, one of which is the last at which a quotient's ends are finite."""
_BISECTIONS = 44


@dataclass(frozen=True)
class Believed:
    """A noise interval, moved and widened by what bounding took away.

    Edge cases: with no amounts, or only one, it is the noise interval, moved.

    Args:
        noise_only: the exact interval of the bounded value, as it was measured.
        amounts: what bounding may have taken away: the truth minus the bounded value.
        weights: how much each amount is believed in; they need not add up to 1.
        covers: what the interval covers, in one plain sentence that names the model.
        why: why the model can't tell, so that the release is not usable; empty if it can.
        feasible: where the truth lies, as public facts say.
    """

    noise_only: Interval
    amounts: Sequence[float] | npt.NDArray[np.float64]
    weights: Sequence[float] | npt.NDArray[np.float64]
    covers: str
    why: str = ""
    feasible: tuple[float, float] = (-math.inf, math.inf)

    @property
    def tells(self) -> bool:
        """Whether the model can say where the truth is."""
        return not self.why

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self._ends(confidence)
        least, most = self.feasible
        return min(max(low, least), most), max(min(high, most), least)

    def _ends(self, confidence: float) -> tuple[float, float]:
        amounts, weights = _believed(self.amounts, self.weights)
        low, high = self.noise_only.at(confidence)
        tail = (1 - confidence) / 2
        if len(amounts) == 1 or tail <= _TAILS[-1] or not (math.isfinite(low) and math.isfinite(high)) or low == high:
            if low == high and len(amounts) > 1:  # no noise: the quantiles of the amounts
                ends = _quantiles(amounts, weights, tail)
                return low + ends[0], high + ends[1]
            return low + float(amounts[0]), high + float(amounts[-1])
        points, odds = _law(self.noise_only)

        def below(x: float) -> float:
            """How probable it is that the truth lies below x."""
            return float(weights @ (1 / (1 + np.exp(-np.interp(x - amounts, points, odds)))))

        first, last = points[0] + amounts[0], points[-1] + amounts[-1]
        known = 1 / (1 + math.exp(odds[-1]))  # beyond it the law of the noise is not known
        if not (math.isfinite(first) and math.isfinite(last)) or tail < 0.999 * known:
            return low + float(amounts[0]), high + float(amounts[-1])
        return _solve(below, tail, first, last)[0], _solve(below, 1 - tail, first, last)[1]


@dataclass(frozen=True)
class Unknown:
    """A noise interval where nothing is known about what the bound took away: open on the sides where it may have.

    A verdict judges the noise alone: the bound was the analyst's, and so is its choice.

    Args:
        noise_only: the exact interval of the bounded value.
        covers: what the interval covers, in words.
        least: the truth may lie as low as this; None if bounding can't have raised the value.
        most: the truth may lie as high as this; None if bounding can't have lowered the value.
    """

    noise_only: Interval
    covers: str
    least: float | None = None
    most: float | None = None

    @property
    def judged(self) -> Interval:
        """What a verdict reads."""
        return self.noise_only

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.noise_only.at(confidence)
        return low if self.least is None else min(low, self.least), high if self.most is None else max(high, self.most)


def _believed(
    amounts: Sequence[float] | npt.NDArray[np.float64], weights: Sequence[float] | npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The amounts in increasing order, each once, with weights that add up to 1."""
    values, place = np.unique(np.asarray(amounts, dtype=np.float64), return_inverse=True)
    mass = np.bincount(place, weights=np.asarray(weights, dtype=np.float64), minlength=len(values))
    if not len(values) or not mass.sum() > 0:
        return np.zeros(1), np.ones(1)
    return values[mass > 0], mass[mass > 0] / mass.sum()


def _quantiles(amounts: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], tail: float) -> tuple[float, float]:
    """The amounts between which all but ``tail`` on each side lie."""
    reached = np.cumsum(weights)
    first, last = np.searchsorted(reached, [tail, 1 - tail - 1e-12])
    return float(amounts[min(first, len(amounts) - 1)]), float(amounts[min(last, len(amounts) - 1)])


def _law(interval: Interval) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Where the bounded value lies, given the release: points, and the logarithm of the odds that it lies below each."""
    if isinstance(interval, Scaled) and interval.factor > 0:
        points, odds = _law(interval.interval)
        return points * interval.factor, odds
    if isinstance(interval, Quotient):
        return _law_of_quotient(interval)
    if isinstance(interval, Additive) and not any(map(math.isfinite, interval.feasible)):
        radii = np.array(_radii(interval.noise)) * interval.unit
        points = np.concatenate([interval.value - radii[::-1], interval.value + radii])
    else:
        ends = np.array([interval.at(1 - 2 * tail if tail < 0.5 else 1e-9) for tail in _TAILS])
        points = np.concatenate([ends[::-1, 0], ends[:, 1]])
    odds = np.log((1 - _TAILS) / _TAILS)
    return np.maximum.accumulate(points), np.concatenate([-odds[::-1], odds])


def _law_of_quotient(quotient: Quotient) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The same, for a number whose tails are known directly, as far out as the denominator stands out from its noise."""
    for least in _FARTHEST:
        low, high = quotient.at(1 - 2 * least)
        if math.isfinite(low) and math.isfinite(high):
            break
    else:
        return np.array([low, high]), np.zeros(2)
    value, steps = quotient.value, np.linspace(0, 1, len(_TAILS)) ** 2
    below, above = value - (value - low) * steps[:0:-1], value + (high - value) * steps
    tails = np.array([max(quotient.tail(m), 2 * least) / 2 for m in (*below, *above)])
    odds = np.log((1 - tails) / tails)
    odds[: len(below)] *= -1
    return np.concatenate([below, above]), np.maximum.accumulate(odds)


@functools.lru_cache(maxsize=256)
def _radii(noise: IntegerNoise) -> tuple[int, ...]:
    return tuple(noise.radius(1 - 2 * tail if tail < 0.5 else 1e-9) for tail in _TAILS)


def _solve(below: Callable[[float], float], goal: float, first: float, last: float) -> tuple[float, float]:
    """Bisect for where an increasing function reaches ``goal``: a point just below, and one just above."""
    for _ in range(_BISECTIONS):
        middle = (first + last) / 2
        first, last = (middle, last) if below(middle) < goal else (first, middle)
    return first, last
