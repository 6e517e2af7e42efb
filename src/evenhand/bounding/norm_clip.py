"""Scale a user's whole vector of groups down to a norm: smooth weights for vectors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from evenhand.bounding.strategy import UNSET, Limit, Norm, Strategy
from evenhand.bounding.total_cap import in_norm
from evenhand.guarantee import UsageError
from evenhand.tables import Grid


@dataclass(frozen=True)
class NormClip(Strategy):
    """Scale what a user adds to all groups together by ``min(1, T/‖v‖)``.

    Guarantee: one user moves the vector of groups by at most ``T`` in the chosen norm under presence. Under values the
    rows are public and each can move by its range, so the bound is ``T`` rows times that range.

    Args:
        T: the largest norm: rows for counts and means, units of the value for sums; chosen if left out.
        norm: 1 (for Laplace noise) or 2 (for Gaussian noise, needs delta).

    Reference: docs/proofs/row-weights.md; the row weights of epasto2020 applied to vectors.
    """

    T: Limit = UNSET
    norm: int = 1
    unit: ClassVar[str] = "rows, or units of the value"
    counts_rows: ClassVar[bool] = False
    bounds_values: ClassVar[bool] = True
    in_ball: ClassVar[bool] = True
    chosen_for: ClassVar[frozenset[str]] = frozenset({"groups"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in (1, 2):
            raise UsageError(
                f"NormClip(norm={self.norm!r}): expected 1 (with Laplace noise) or 2 (with Gaussian noise)."
            )

    @property
    def gaussian(self) -> bool:
        return self.norm == 2

    def describe(self) -> str:
        bound = self.shown("a chosen bound")
        return f"what a user adds to all groups together is scaled down to an L{self.norm} norm of {bound}"

    def over_groups(self, norm: Norm, grid: Grid | None) -> tuple[Fraction, str]:
        return in_norm(self.bound, norm, grid), self.describe()
