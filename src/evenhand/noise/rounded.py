"""Real normal noise, rounded to integers: its composition is that of the Gaussian mechanism, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.noise.integers import Gaussian
from evenhand.noise.vectors import add_normal


@dataclass(frozen=True)
class Normal(Gaussian):
    """Normal noise N(0, scale²), rounded: for numbers that share one (ε, δ) with a selection by normal noise.

    Guarantee: an integer vector that one user moves by at most ``l2`` in L2 norm is released by post-processing of the Gaussian
    mechanism with μ = l2/scale, so with ρ = μ²/2.
    """

    name = "normal"

    def add_to(self, values: Sequence[int]) -> list[int]:
        return add_normal(values, self.scale)

    @property
    def variance(self) -> float:
        return float(self.scale) ** 2 + 1 / 12

    def tail(self, distance: float) -> float:
        if distance < 0:
            return 1.0
        return math.erfc((math.floor(distance) + 0.5) / (float(self.scale) * math.sqrt(2)))
