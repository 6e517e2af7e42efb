"""What a bound takes from a total, before and after the bounded total is measured.

The counts of a profile say how many users are in each bucket, each with a noise of its own; the total says how many there are in all and
how many reach the bound, wherever above it they lie. So a crowd that is spread over noisy buckets and shows in none of them shows in the
total: each of its users adds the bound. The total is released anyway, so reading it twice costs nothing (post-processing).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from evenhand.profiles.cut import Cut
from evenhand.profiles.posterior import UNLIKELY, Posterior, with_crowds
from evenhand.profiles.support import Array

_ANYWHERE = 0.3
_PLACES = {0.1: 0.9, _ANYWHERE: 0.1}
"""By how much the mean of a bucket's users may lie off where the slope says, in widths of the bucket, and how likely that is beforehand: people
differ smoothly, but in one table of ten they are alike (rounded to tens; the same five tasks for everybody) and may be at either end.
In the last bucket that stands out they may be so in any table: it may end there."""


@dataclass(frozen=True)
class CutTotal:
    """What a bound takes from all users together.

    Args:
        believed: users by contribution, in steps.
        bound: an upper edge.
        unit: what a step is worth; negative if values are.
        either_sign: whether totals may be positive or negative. Then the sum of them says nothing about who is cut.
    """

    believed: Posterior
    bound: int
    unit: float = 1.0
    either_sign: bool = False

    @functools.cached_property
    def expected(self) -> Cut:
        """Before the total is measured."""
        cut = self.believed.cut(self.bound).times(self.unit)
        return cut.of_either_sign() if self.either_sign else cut

    def given(self, measured: float, variance: float) -> Cut:
        """After it is measured, with noise of this variance, in steps."""
        if self.either_sign:
            return self.expected
        sign = math.copysign(1, self.unit)
        return (
            given(self.believed, sign * measured, self.bound, math.sqrt(variance / 2)).cut(self.bound).times(self.unit)
        )


def given(believed: Posterior, measured: float, bound: float, scale: float) -> Posterior:
    """The posterior, once a bounded total is measured.

    Guarantee: reads released numbers only.

    Args:
        believed: by the counts alone.
        measured: all users' contributions, each at most the bound, with noise.
        bound: an upper edge.
        scale: of the noise.
    """
    curves = len(believed.weights) - int((believed.odds > UNLIKELY).sum())
    users, spread, filled, weights = with_crowds(
        believed.users[:curves],
        believed.spread[:curves],
        believed.filled[:curves],
        believed.weights[:curves],
        believed.apart,
        believed.odds,
    )
    every = replace(believed, users=users, spread=spread, filled=filled, weights=weights)
    logs = _evidence(every, measured, bound, scale)
    weights = weights * np.exp(logs - logs.max())
    weights /= weights.sum()
    return replace(every, weights=weights, crowd=float(weights[curves:].sum()))


def _evidence(believed: Posterior, measured: float, bound: float, scale: float) -> Array:
    """The logarithm of how likely each curve makes the total, up to a constant."""
    whole = believed.highs <= bound
    each = np.where(whole, (believed.lows - 0.5 + believed.ends) / 2, bound)  # what a user of the bucket adds
    rest = measured - (believed.users * each).sum(axis=1)
    counts = 2 * scale**2 + (believed.spread * each**2).sum(axis=1)
    apart = believed.users * np.where(whole, believed.highs - believed.lows, 0.0)
    chances = []
    for part, prior in _PLACES.items():
        off = np.where(np.arange(len(whole)) == believed.last, _ANYWHERE, part)
        variance = counts + ((off * apart) ** 2).sum(axis=1)
        # Laplace noise and many small errors together: near the middle as a normal variable, far out as a Laplace variable.
        chances.append(math.log(prior) - np.sqrt(1 + 2 * rest**2 / variance) - np.log(variance) / 2)
    result: Array = np.logaddexp(*chances)
    return result
