"""What a bound probably cuts off from all users together: amounts with weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.profiles.support import Array

_LEVELS = np.unique(np.concatenate([np.linspace(0, 1, 161), [0.001, 0.003, 0.997, 0.999, 0.9997]]))
_SIGNS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""If values may have either sign: by how much positive totals outweigh negative ones among those that are cut. Nothing is known about it."""


@dataclass(frozen=True)
class Cut:
    """A distribution of what is cut off, as a list of amounts, increasing, and their weights, which add up to 1."""

    amounts: Array
    weights: Array

    @classmethod
    def of(cls, amounts: Array, weights: Array) -> Cut:
        """Few amounts that stand for many: one for each of a fixed list of quantiles."""
        order = np.argsort(amounts, kind="stable")
        value, reached = amounts[order], np.cumsum(weights[order])
        middle = (_LEVELS[1:] + _LEVELS[:-1]) / 2
        places = np.minimum(np.searchsorted(reached, middle * reached[-1]), len(value) - 1)
        return cls(value[places], np.diff(_LEVELS))

    def quantile(self, level: float) -> float:
        """The amount that is not exceeded with this probability."""
        reached = np.cumsum(self.weights)
        return float(self.amounts[min(int(np.searchsorted(reached, level * reached[-1])), len(self.amounts) - 1)])

    @property
    def median(self) -> float:
        """As likely too much as too little."""
        return self.quantile(0.5)

    def spread(self, part: float) -> float:
        """Root mean square distance from the median, over the smallest ``part`` of all outcomes."""
        reached = np.cumsum(self.weights)
        kept = np.clip(part - (reached - self.weights), 0.0, self.weights)
        return float(np.sqrt(kept @ (self.amounts - self.median) ** 2 / kept.sum()))

    def times(self, factor: float) -> Cut:
        """In another unit, or of the other sign."""
        amounts = self.amounts * factor
        return Cut(amounts[::-1], self.weights[::-1]) if factor < 0 else Cut(amounts, self.weights)

    def of_either_sign(self) -> Cut:
        """What is cut off if the totals of the users who are cut may be positive or negative."""
        amounts = np.concatenate([self.amounts * sign for sign in _SIGNS])
        return Cut.of(amounts, np.tile(self.weights / len(_SIGNS), len(_SIGNS)))
