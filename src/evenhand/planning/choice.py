"""What a private choice hands back: the bound, its forecast error, and the reason in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Choice:
    """A bound on each user, chosen from released or public facts only.

    Args:
        strategy: the bounding strategy by name.
        parameter: its bound: rows or grid units (an integer), or a weight ``h`` (a fraction).
        noise_sd: standard deviation of the noise that this bound needs, in the unit of the statistic.
        bias: estimate of what the bound cuts off, in the same unit; an estimate, not a promise.
        basis: what the choice was read from.
        words: why the bound sits where it sits, for people.
        centre: for a located mean, the integer grid value around which users are clipped.
        below: for a located mean, the cap below the centre; ``parameter`` is the one above.
        epsilon_sum: ε for the bounded sum (None: all that is left).
        epsilon_rows: ε for the number of rows below a mean; 0 where it is public or not needed.
        rows_cap: the cap on each user's rows in that number.
        rows: the number of rows that was expected; a noisy one is kept between half and twice of it.
        visible: whether users stood out from the noise at all; if not, nothing is known about the bias.
    """

    strategy: str
    parameter: int | Fraction
    noise_sd: float
    bias: float
    basis: str
    words: str
    centre: int | None = None
    below: int | None = None
    epsilon_sum: Decimal | None = None
    epsilon_rows: Decimal = Decimal(0)
    rows_cap: int | None = None
    rows: float | None = None
    visible: bool = True

    @property
    def error(self) -> float:
        """Forecast root mean squared error: noise and bias together."""
        return math.hypot(self.noise_sd, self.bias)

    def to_dict(self) -> dict[str, Any]:
        """The choice as data."""
        return {
            "strategy": self.strategy,
            "parameter": float(self.parameter) if isinstance(self.parameter, Fraction) else self.parameter,
            "centre": self.centre,
            "below": self.below,
            "noise_sd": self.noise_sd,
            "bias_estimate": self.bias,
            "error": self.error,
            "basis": self.basis,
            "words": self.words,
        }
