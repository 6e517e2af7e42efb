"""What a bound probably cuts off from all users together: amounts with weights."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.population.priors import SURE
from evenhand.population.support import Array

if TYPE_CHECKING:
    from evenhand.population.tables import Population

_LEVELS = np.unique(np.concatenate([np.linspace(0, 1, 161), [0.001, 0.003, 0.997, 0.999, 0.9997]]))
_SIGNS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""If values may have either sign: by how much positive totals outweigh negative ones among those that are cut. Nothing is known about it."""


def sure_part(amounts: Array, weights: Array) -> float:
    """What to add to a value: as much of it as is at least three times as likely too little as too much; 0 where even the sign is in doubt."""
    order = np.argsort(amounts, kind="stable")
    reached = np.cumsum(weights[order])
    low, high = amounts[order][np.searchsorted(reached, np.array([SURE, 1 - SURE]) * reached[-1])]
    return float(min(max(0.0, low), high))


@dataclass(frozen=True)
class Cut:
    """A distribution of what is cut off, as a list of amounts, increasing, and their weights, which add up to 1.

    Args:
        amounts: increasing.
        weights: add up to 1.
        hidden: about how many users far above all others the amounts leave out, because the profile would not have shown them.
        crowd: how much it is believed that there are more than that, who don't stand out from the noise clearly.
    """

    amounts: Array
    weights: Array
    hidden: float = 1.0
    crowd: float = 0.0

    @classmethod
    def of(cls, amounts: Array, weights: Array, hidden: float = 1.0, crowd: float = 0.0) -> Cut:
        """Few amounts that stand for many: one for each of a fixed list of quantiles."""
        order = np.argsort(amounts)  # equal ones in any order: what stands for them is the same
        value, reached = amounts[order], np.cumsum(weights[order])
        middle = (_LEVELS[1:] + _LEVELS[:-1]) / 2
        places = np.minimum(np.searchsorted(reached, middle * reached[-1]), len(value) - 1)
        return cls(value[places], np.diff(_LEVELS), hidden, crowd)

    def quantile(self, level: float) -> float:
        """The amount that is not exceeded with this probability."""
        reached = np.cumsum(self.weights)
        return float(self.amounts[min(int(np.searchsorted(reached, level * reached[-1])), len(self.amounts) - 1)])

    @property
    def median(self) -> float:
        """As likely too much as too little."""
        return self.quantile(0.5)

    @property
    def sure(self) -> float:
        """What to add back."""
        return sure_part(self.amounts, self.weights)

    def spread(self, part: float) -> float:
        """Root mean square distance from what is added back, over the smallest ``part`` of all outcomes."""
        reached = np.cumsum(self.weights)
        kept = np.clip(part - (reached - self.weights), 0.0, self.weights)
        return float(np.sqrt(kept @ (self.amounts - self.sure) ** 2 / kept.sum()))

    def times(self, factor: float) -> Cut:
        """In another unit, or of the other sign."""
        amounts = self.amounts * factor
        weights = self.weights
        amounts, weights = (amounts[::-1], weights[::-1]) if factor < 0 else (amounts, weights)
        return Cut(amounts, weights, self.hidden, self.crowd)

    def of_either_sign(self) -> Cut:
        """What is cut off if the totals of the users who are cut may be positive or negative."""
        amounts = np.concatenate([self.amounts * sign for sign in _SIGNS])
        weights = np.tile(self.weights / len(_SIGNS), len(_SIGNS))
        return Cut.of(amounts, weights, self.hidden, self.crowd)


@dataclass(frozen=True)
class CutTotal:
    """What a bound takes from all users together, before and after the bounded total is measured.

    The total says how many users there are in all and how many reach the bound, wherever above it they lie. So a crowd that is spread over noisy buckets and shows in
    none of them shows in the total: each of its users adds the bound. It is released anyway, so reading it twice costs nothing (post-processing).

    Args:
        believed: users by contribution, in steps.
        bound: an upper edge.
        unit: what a step is worth; negative if values are.
        either_sign: whether totals may be positive or negative. Then the sum of them says nothing about who is cut.
    """

    believed: Population
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
        known = self.believed.given(math.copysign(1, self.unit) * measured, self.bound, math.sqrt(variance / 2))
        return known.cut(self.bound).times(self.unit)
