"""What a release says about itself besides its numbers: how users were bounded, and how far off it may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import plain
from evenhand.pages.numbers import rounded

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Bounding:
    """How one user's contribution was bounded, who chose the bound, and what choosing it cost.

    Args:
        strategy: the strategy's name, such as ``"SmoothWeights"``.
        parameter: the bound, in the strategy's unit; None while it has not been chosen.
        words: what happens to a user's rows, as a sentence.
        chosen: ``"given"`` by the analyst, or what the choice was made from.
        epsilon: the part of ε that the choice cost.
    """

    strategy: str
    parameter: float | None
    words: str
    chosen: str = "given"
    epsilon: Decimal | None = None

    def __str__(self) -> str:
        cost = f", which cost ε = {plain(self.epsilon)} of this release" if self.epsilon else ""
        return f"{self.words} ({self.chosen}{cost})"

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"epsilon": float(self.epsilon or 0)}


@dataclass(frozen=True)
class Error:
    """The forecast error: what the noise does, and what the bound does where that can be stated.

    Args:
        noise: the standard deviation of the noise, in the unit of the value; None before it can be known.
        bias: how far bounding may move the value; None where nothing can be stated.
        basis: where the bias comes from, in words.
        parts: the noise of each statistic or column, where a release holds several; the median over groups.
    """

    noise: float | None
    bias: float | None = None
    basis: str = "not known: it depends on the heavy users, which are private"
    parts: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def total(self) -> float | None:
        """Root mean square of noise and bias; None if either is unknown."""
        return None if self.noise is None or self.bias is None else math.hypot(self.noise, self.bias)

    def scaled(self, factor: float) -> Error:
        """The same error in another unit."""
        noise, bias = (None if part is None else part * factor for part in (self.noise, self.bias))
        return Error(noise, bias, self.basis)

    def __str__(self) -> str:
        noise = "known once the bound is chosen" if self.noise is None else f"± {rounded(self.noise)} (noise)"
        if self.parts:
            noise = ", ".join(f"{name} ± {rounded(part or 0.0)}" for name, part in self.parts.items()) + " (noise)"
        bias = f"bias {self.basis}" if self.bias is None else f"bias about {rounded(self.bias)} ({self.basis})"
        return f"{noise}; {bias}"

    def to_dict(self) -> dict[str, Any]:
        facts = {"noise": self.noise, "bias": self.bias, "total": self.total, "basis": self.basis}
        return facts | ({"parts": dict(self.parts)} if self.parts else {})
