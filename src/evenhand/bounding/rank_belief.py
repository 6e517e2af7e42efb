"""How far bounding moves the rank of a quantile, as a distribution: what is believed about r, and what follows for ranks.

r is how far ``1{x ≤ v}`` goes with log(rows) from user to user (`busy_users.py`). Its prior is a mixture, and so is what is believed once it was
measured: often r is about nothing, or else about what was measured. An interval from a mean and a standard deviation would leave out
the second; so quantiles are taken of the distribution itself, and they need not lie evenly around its mean.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from evenhand.profiles import Array

PRIOR = ((0.4, 0.01), (0.35, 0.07), (0.25, 0.2))
"""Prior of r, weights and standard deviations. Where a part p of the variance of ``1{x ≤ v}`` lies between users whose means correlate with their activity by ρ, r
is about ρ√p. Real tables showed ρ from 0.02 to 0.34 and p from a few percent to a third: mostly next to nothing, often 0.07, at times
0.2."""

CONFIDENCE = 0.95

_STEPS = np.linspace(-3.0, 3.0, 25)
_STEP_WEIGHTS = np.exp(-(_STEPS**2) / 2) / np.exp(-(_STEPS**2) / 2).sum()
"""A normal distribution as a list."""


@dataclass(frozen=True)
class Belief:
    """A distribution of r: values with weights, which add up to 1."""

    values: Array
    weights: Array

    @classmethod
    def of(cls, parts: tuple[tuple[float, float, float], ...]) -> Belief:
        """A mixture of normal distributions: their weights, means and standard deviations."""
        values = np.concatenate([mean + deviation * _STEPS for _, mean, deviation in parts])
        weights = np.concatenate([weight * _STEP_WEIGHTS for weight, _, _ in parts])
        return cls(values, weights / weights.sum())

    @classmethod
    @functools.cache
    def beforehand(cls) -> Belief:
        """Where nothing was measured."""
        return cls.of(tuple((weight, 0.0, deviation) for weight, deviation in PRIOR))

    @classmethod
    def after(cls, value: float, error: float) -> Belief:
        """Given a measurement with a normal error: the rule of Bayes for each part of `PRIOR`."""
        variances = [deviation**2 + error**2 for _, deviation in PRIOR]
        logs = [
            math.log(weight) - value**2 / 2 / variance - math.log(variance) / 2
            for (weight, _), variance in zip(PRIOR, variances, strict=True)
        ]
        return cls.of(
            tuple(
                (math.exp(one - max(logs)), value * deviation**2 / variance, deviation * error / math.sqrt(variance))
                for one, (_, deviation), variance in zip(logs, PRIOR, variances, strict=True)
            )
        )

    @property
    def mean(self) -> float:
        """What is expected."""
        return float(self.weights @ self.values)


@dataclass(frozen=True)
class Shift:
    """How far the rank of a quantile among weighted rows is from its rank among all rows, as a share of the rows.

    Args:
        by: as likely too little as too much.
        below: how far below that it may lie, with `CONFIDENCE` on both sides together.
        above: how far above.
    """

    by: float
    below: float
    above: float

    @classmethod
    def of(cls, belief: Belief, lost: Array, spread: float, chance: float) -> Shift:
        """−r·lost·spread, and chance besides.

        Args:
            belief: about r.
            lost: equally likely amounts by which all rows are busier than the weighted ones, in standard deviations of log(rows).
            spread: √(q(1−q)).
            chance: the standard deviation of what moves a rank besides, as a multiple of ``spread``.
        """
        systematic = -(belief.values[:, None] * lost).ravel()
        likely = equally_likely(systematic, np.repeat(belief.weights, len(lost)), 100)
        values = (likely[:, None] + chance * _STEPS).ravel() * spread
        order = np.argsort(values)
        reached = np.cumsum(np.tile(_STEP_WEIGHTS / len(likely), len(likely))[order])
        places = np.searchsorted(reached, np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]) * reached[-1])
        low, high = values[order][np.minimum(places, len(values) - 1)].tolist()
        by = float(np.median(likely)) * spread
        return cls(by, max(by - low, 0.0), max(high - by, 0.0))


def equally_likely(values: Array, weights: Array, number: int) -> Array:
    """So many equally likely values that stand for a weighted list."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, (np.arange(number) + 0.5) / number * reached[-1])
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])
