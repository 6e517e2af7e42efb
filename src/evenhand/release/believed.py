"""Intervals that hold the truth: the noise, and what bounding took away as a stated model believes.

The noise is known exactly; what a bound cut off is not. A posterior gives it as a list of amounts with weights
(`population/tables.py`), and the truth is the bounded value plus one of them. All of it is computed from released numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.noise import IntegerNoise
from evenhand.release.intervals import (
    Additive,
    Derived,
    Interval,
    Quotient,
    Scaled,
    covers,
    judged,
    noise_only,
    why_not,
)

_TAILS = np.geomspace(0.5, 1e-7, 60)
"""The tail probabilities at which a noise interval is read; between them the logarithm of the odds is interpolated."""
_ODDS = np.log((1 - _TAILS) / _TAILS)
_ODDS = np.concatenate([-_ODDS[::-1], _ODDS])
_FARTHEST = (1e-7, 1e-5, 1e-4, 1e-3, 5e-3)
"""Tail probabilities, one of which is the last at which a quotient's ends are finite."""
_HALVINGS = 44
"""How often the range of the truth is halved until an end is found; the search takes about ten steps for it."""

Array: TypeAlias = npt.NDArray[np.float64]


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
    amounts: Sequence[float] | Array
    weights: Sequence[float] | Array
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
        amounts, weights = self._amounts
        low, high = self.noise_only.at(confidence)
        tail = (1 - confidence) / 2
        if len(amounts) == 1 or tail <= _TAILS[-1] or not (math.isfinite(low) and math.isfinite(high)) or low == high:
            if low == high and len(amounts) > 1:  # no noise: the quantiles of the amounts
                return low + quantile(amounts, weights, tail), high + quantile(amounts, weights, 1 - tail - 1e-12)
            return low + float(amounts[0]), high + float(amounts[-1])
        points, odds = self._law
        known = 1 / (1 + math.exp(odds[-1]))  # beyond it the law of the noise is not known
        if not (math.isfinite(points[0]) and math.isfinite(points[-1])) or tail < 0.999 * known:
            return low + float(amounts[0]), high + float(amounts[-1])
        return self._end(tail)[0], self._end(1 - tail)[1]

    def _end(self, goal: float) -> tuple[float, float]:
        """Where the probability that the truth lies below reaches the goal: a point just below it, and one just above."""
        (amounts, weights), (points, odds) = self._amounts, self._law

        def missing(x: float) -> float:
            """By how much the logarithm of the odds that the truth lies below x exceeds that of the goal."""
            chance = float(weights @ (1 / (1 + np.exp(-np.interp(x - amounts, points, odds)))))
            return math.log(chance / (1 - chance)) - wanted

        wanted = math.log(goal / (1 - goal))
        # Noise and amount both below their goal/2 quantiles: less probable than goal; both below those at (1 + goal)/2: more probable.
        ends = (
            float(np.interp(math.log(part / (1 - part)), odds, points)) + quantile(amounts, weights, part)
            for part in (goal / 2, (1 + goal) / 2)
        )
        # So far out that the law of the noise is hardly known, that may fail.
        farthest = float(points[0] + amounts[0]), float(points[-1] + amounts[-1])
        return _solve(missing, *ends) or _solve(missing, *farthest) or farthest

    @functools.cached_property
    def _amounts(self) -> tuple[Array, Array]:
        return _believed(self.amounts, self.weights)

    @functools.cached_property
    def _law(self) -> tuple[Array, Array]:
        return _law(self.noise_only)


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


def _believed(amounts: Sequence[float] | Array, weights: Sequence[float] | Array) -> tuple[Array, Array]:
    """The amounts in increasing order, each once, with weights that add up to 1."""
    values, place = np.unique(np.asarray(amounts, dtype=np.float64), return_inverse=True)
    mass = np.bincount(place, weights=np.asarray(weights, dtype=np.float64), minlength=len(values))
    if not len(values) or not mass.sum() > 0:
        return np.zeros(1), np.ones(1)
    return values[mass > 0], mass[mass > 0] / mass.sum()


def quantile(amounts: Array, weights: Array, part: float) -> float:
    """The amount below or at which this part of the belief lies."""
    return float(amounts[min(int(np.searchsorted(np.cumsum(weights), part)), len(amounts) - 1)])


def _law(interval: Interval) -> tuple[Array, Array]:
    """Where the bounded value lies, given the release: points, and the logarithm of the odds that it lies below each."""
    if isinstance(interval, Scaled) and interval.factor > 0:
        points, odds = _law(interval.interval)
        return points * interval.factor, odds
    if isinstance(interval, Quotient):
        return _law_of_quotient(interval)
    if isinstance(interval, Additive) and not any(map(math.isfinite, interval.feasible)):
        points, odds = noise_law(interval.noise, interval.unit)
        return interval.value + points, odds
    ends = np.array([interval.at(1 - 2 * tail if tail < 0.5 else 1e-9) for tail in _TAILS])
    return np.maximum.accumulate(np.concatenate([ends[::-1, 0], ends[:, 1]])), _ODDS


def _law_of_quotient(quotient: Quotient) -> tuple[Array, Array]:
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
def noise_law(noise: IntegerNoise, unit: float) -> tuple[Array, Array]:
    """Points around a released number, and the logarithm of the odds that the bounded value lies below each."""
    radii = np.array([noise.radius(1 - 2 * tail if tail < 0.5 else 1e-9) for tail in _TAILS]) * unit
    return np.concatenate([-radii[::-1], radii]), _ODDS


def _solve(missing: Callable[[float], float], first: float, last: float) -> tuple[float, float] | None:
    """Where an increasing function is 0: a point just below, and one just above; None if it is not between these.

    The ITP method (Oliveira and Takahashi 2021): never more than one step more than bisection takes, and a quarter of it where the
    function is nearly a line, as the logarithm of odds is.
    """
    span = last - first
    least, low, high = span * 2.0**-_HALVINGS, missing(first), missing(last)
    if low >= 0 or high < 0:
        return None
    for step in range(_HALVINGS + 2):
        width = last - first
        if width <= least:
            break
        middle = first + width / 2
        line = first - low * width / (high - low)
        nudge = min(max(0.2 * width**2 / span, least / 2), abs(middle - line))
        reach = least * 2.0 ** (_HALVINGS - step) - width / 2
        x = min(max(line + math.copysign(nudge, middle - line), middle - reach), middle + reach)
        gap = missing(x)
        if gap < 0:
            first, low = x, gap
        else:
            last, high = x, gap
    return first, last


@dataclass(frozen=True)
class Widened:
    """A noise interval and an independent error with mean 0: what reaches beyond the value on each side adds in squares.

    For normal noise and a normal error this is exact. Heavier tails of the noise make it a little too wide.

    Args:
        noise_only: the exact interval of the bounded value.
        value: inside it, as released.
        deviation: the standard deviation of what bounding did.
        covers: what the interval covers, in one plain sentence that names the model.
        feasible: where the truth lies, as public facts say.
        why: why the model can't tell; empty if it can.
    """

    noise_only: Interval
    value: float
    deviation: float
    covers: str
    feasible: tuple[float, float] = (-math.inf, math.inf)
    why: str = ""

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.noise_only.at(confidence)
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * self.deviation
        return _within(
            self.value - math.hypot(max(self.value - low, 0.0), reach),
            self.value + math.hypot(max(high - self.value, 0.0), reach),
            self.feasible,
        )


@dataclass(frozen=True)
class Beyond(Derived):
    """Another interval, and an independent amount that was cut off: what reaches beyond the value on each side adds in squares.

    Args:
        interval: of the value without the amount.
        value: inside it.
        amounts: what may have been cut off, increasing.
        weights: how much each is believed in; they add up to 1.
        added: what the released value was corrected by.
        words: what the amounts are, in one plain sentence that names the model; empty if the other interval says it.
        reason: why the model can't tell; empty if it can.
        feasible: where the truth lies, as public facts say.
    """

    interval: Interval
    value: float
    amounts: Array
    weights: Array
    added: float
    words: str
    reason: str = ""
    feasible: tuple[float, float] = (-math.inf, math.inf)

    @property
    def noise_only(self) -> Interval:
        return noise_only(self.interval)

    @property
    def judged(self) -> Interval:
        inner = judged(self.interval)
        return self if inner is self.interval else inner

    @property
    def covers(self) -> str:
        return "; ".join(filter(None, (covers(self.interval), self.words)))

    @property
    def why(self) -> str:
        return "; ".join(filter(None, (why_not(self.interval), self.reason)))

    def of(self, interval: Interval) -> Interval:
        return replace(self, interval=interval)

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.interval.at(confidence)
        few, many = (quantile(self.amounts, self.weights, (1 + side * confidence) / 2) for side in (-1, 1))
        below = math.hypot(max(self.value - low, 0.0), max(self.added - few, 0.0))
        above = math.hypot(max(high - self.value, 0.0), max(many - self.added, 0.0))
        return _within(self.value + self.added - below, self.value + self.added + above, self.feasible)


def _within(low: float, high: float, feasible: tuple[float, float]) -> tuple[float, float]:
    """The part of an interval that is feasible; all that is, if noise put the whole of it elsewhere."""
    least, most = max(low, feasible[0]), min(high, feasible[1])
    return (least, most) if least <= most else feasible


_BISECTIONS = 44
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
    points, odds = noise_law(first.noise, first.unit)
    values = np.array([one.noise_only.value for one in intervals if isinstance(one.noise_only, Additive)])
    amounts = np.array([one.amounts for one in intervals], dtype=np.float64)
    weights = np.asarray(intervals[0].weights, dtype=np.float64)
    weights = weights / weights.sum()
    tail = (1 - confidence) / 2
    low, high = (_solve_all(goal, amounts, weights, points, odds) for goal in (tail, 1 - tail))
    least, most = (np.array([one.feasible[side] for one in intervals]) for side in (0, 1))
    low, high = np.clip(values + low, least, most), np.clip(values + high, least, most)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _solve_all(
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
