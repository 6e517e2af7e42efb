"""The quotient of two released numbers with what bounding did to either: the bound cuts the same heavy users above and below."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from evenhand.profiles import Array, Cut
from evenhand.release import Additive, Believed, Exact, Interval, Quotient, Scaled, Unknown
from evenhand.release.intervals import noise_only, why_not

QUOTIENT = "covers the noise of both numbers and what bounding did to either, on the models behind them; one user far above all others may hide"
OPEN = (
    "the bound was given and nothing tells what it took from either number; noise_interval() covers the noise of both"
)
_POINTS = 25  # of what bounding may have taken from one of the two
_LEAST_DIVISOR = 0.1  # of the measured one: where bounding leaves less, the quotient says nothing
ALIKE = 0.3
"""A prior: the correlation of what the two lost, of their normal scores. The bounds cut the same users in both, but what is not known about each loss is mostly
the noise of the histogram that it was seen through, and each has its own."""


def believed_quotient(numerator: Interval, denominator: Interval, nonnegative: bool) -> tuple[float, Interval]:
    """The quotient of two numbers with their intervals, corrected for what bounding probably took, and its interval."""
    quotient = Quotient(_released(numerator), _released(denominator), nonnegative)
    models = _inner(numerator), _inner(denominator)
    if any(isinstance(model, Unknown) for model in models):
        unsure_below = isinstance(models[1], Unknown) or not nonnegative
        least = (0.0 if nonnegative else -math.inf) if unsure_below else None
        return quotient.value, Unknown(quotient, OPEN, least=least, most=math.inf)
    if quotient.lost or not any(isinstance(model, Believed) for model in models):
        return quotient.value, quotient
    cut = Cut.of(*_together(quotient, _points(numerator), _points(denominator)))
    why = "; ".join(dict.fromkeys(filter(None, (why_not(numerator), why_not(denominator)))))
    feasible = (0.0 if nonnegative else -math.inf, math.inf)
    interval = Believed(quotient, cut.amounts, cut.weights, QUOTIENT, why, feasible)
    return max(quotient.value + cut.sure, feasible[0]), interval


def _released(interval: Interval) -> Additive | Exact:
    """A released number with its noise, as it was measured."""
    if isinstance(interval, Scaled):
        found = _released(interval.interval)
        assert isinstance(found, Additive)
        return Additive(found.value * interval.factor, found.noise, found.unit * interval.factor)
    inner = noise_only(interval)
    assert isinstance(inner, Additive | Exact)
    return inner


def measured_quotient(interval: Interval) -> tuple[float, float]:
    """A quotient as it was measured, and the standard deviation of its noise to first order."""
    quotient = noise_only(interval)
    assert isinstance(quotient, Quotient)
    return quotient.value, quotient.spread


def _inner(interval: Interval) -> Interval:
    return _inner(interval.interval) if isinstance(interval, Scaled) else interval


def _points(interval: Interval) -> Array:
    """Equally likely amounts that bounding may have taken, in increasing order."""
    if isinstance(interval, Scaled):
        return _points(interval.interval) * interval.factor
    if not isinstance(interval, Believed) or not len(interval.amounts):
        return np.zeros(_POINTS)
    amounts, weights = np.asarray(interval.amounts), np.asarray(interval.weights)
    order = np.argsort(amounts)
    reached = np.cumsum(weights[order])
    points: Array = amounts[order][np.searchsorted(reached, (np.arange(_POINTS) + 0.5) / _POINTS * reached[-1])]
    return points


@np.errstate(all="ignore")  # a warning would show what was released
def _together(quotient: Quotient, above: Array, below: Array) -> tuple[Array, Array]:
    """What to add to the quotient, if what the two lost goes together as `ALIKE` says (a Gaussian copula)."""
    scores = np.array([NormalDist().inv_cdf((place + 0.5) / _POINTS) for place in range(_POINTS)])
    first, second = scores[:, None], scores
    weights = np.exp(-(ALIKE**2 * (first**2 + second**2) - 2 * ALIKE * first * second) / (2 * (1 - ALIKE**2))).ravel()
    top, bottom = quotient.numerator.value, quotient.denominator.value
    divisor = bottom + np.tile(below, _POINTS)
    sound = divisor * np.sign(bottom) > _LEAST_DIVISOR * abs(bottom)
    amounts = (top + np.repeat(above, _POINTS)[sound]) / divisor[sound] - top / bottom
    return amounts, weights[sound]
