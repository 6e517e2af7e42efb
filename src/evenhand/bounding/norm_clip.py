"""Scale a user's whole vector of groups down to a norm: smooth weights for vectors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.bounding.strategy import Strategy, parse_limit
from evenhand.guarantee import UsageError


@dataclass(frozen=True)
class NormClip(Strategy):
    """Scale what a user adds to all groups together by ``min(1, T/‖v‖)``.

    Guarantee: one user moves the vector of groups by at most ``T`` in the chosen norm under presence. Under values the
    rows are public and each can move by its range, so the bound is ``T`` rows times that range.

    Args:
        T: the largest norm: rows for counts and means, units of the value for sums; chosen if left out.
        norm: 1 (for Laplace noise) or 2 (for Gaussian noise, needs delta).

    Reference: method.md, section 1; the row weights of epasto2020 applied to vectors.
    """

    T: Any = None
    norm: int = 1
    title = "NormClip"

    def __post_init__(self) -> None:
        parse_limit(self.T, "NormClip", "rows, or units of the value", largest=2**200)
        if self.norm not in (1, 2):
            raise UsageError(
                f"NormClip(norm={self.norm!r}): expected 1 (with Laplace noise) or 2 (with Gaussian noise)."
            )

    @property
    def parameter(self) -> Fraction | None:
        return parse_limit(self.T, "NormClip", "rows, or units of the value", largest=2**200)

    def describe(self) -> str:
        bound = "a chosen bound" if self.T is None else f"{float(self.T):g}"
        return f"what a user adds to all groups together is scaled down to an L{self.norm} norm of {bound}"
