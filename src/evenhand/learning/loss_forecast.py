"""Whether a model that was learned with noise is likely to beat a constant one, from released numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.learning.descent import Descent, Start
from evenhand.learning.noisy_sums import Plan
from evenhand.learning.private_values import Floats

_FLATTER = 4
"""Where a classifier ends, its loss is about this much flatter than where it is most curved (measured, benchmarks/accuracy/descent.py)."""


@dataclass(frozen=True)
class LossForecast:
    """What noise costs and what the features bring, in units of the average loss; rough, to a factor of a few.

    The loss is taken for a parabola, features for uncorrelated, and the descent for converged: a margin's variance is the sum of squared
    coefficients of standardised features, of which noise is a known part on average.

    Attributes:
        noise: about what the noise in the coefficients adds to the loss; infinite where there are too few users to tell.
        gain: about what the features would take off the loss of a constant model if there were no noise.
    """

    noise: float
    gain: float

    @property
    def loss_above_constant(self) -> float:
        """What the model is likely to lose more than a constant one; negative if it beats it."""
        return self.noise - self.gain

    @classmethod
    def of(
        cls, start: Start, done: Descent, plan: Plan, coefficients: Floats, unit: float, classifies: bool
    ) -> LossForecast:
        """From where a descent started and ended, and its coefficients of standardised features."""
        curvature = start.curvature / (_FLATTER if classifies else 1)
        noise = math.sqrt(2) * plan.sd_of_all() * done.clip / start.weight  # of the average gradient of half the steps
        if start.hidden:
            return cls(math.inf, 0.0)
        by_noise = len(coefficients) * (noise / curvature) ** 2
        half = curvature / 2 * unit
        return cls(half * by_noise, half * max(float(coefficients @ coefficients) - by_noise, 0.0))
