"""Clip each user's mean to an interval about the middle: rameshwar2024, worst-case optimal when counts are public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from evenhand.bounding.contribution import Bounded, Summary, clamp
from evenhand.bounding.forecasts import Curve, Evaluate, Question
from evenhand.bounding.strategy import UNSET, Limit, Norm, Strategy
from evenhand.guarantee import Relation, UsageError, plain
from evenhand.profiles import Array, Sums, Support
from evenhand.tables import Grid


@dataclass(frozen=True)
class CentredInterval(Strategy):
    """Clip each user's sum to an interval of length ``T`` about its middle; users with few rows are not changed.

    With values in ``[0, U]`` a user with ``s`` rows contributes ``clip(sum, (U·s − T)/2, (U·s + T)/2)``. It is accurate when
    the mean is near the middle of the bounds, and biased toward the middle when it is not.

    Guarantee: one user moves a sum by at most ``T`` under values; a sum is released as the public number of rows times the mean. Under presence nothing is bounded, so it is refused:
    the interval of a user grows with the number of rows.

    Args:
        T: length of the interval, in the unit of a user's sum above the lower bound; chosen if left out.

    Reference: rameshwar2024, Theorem III.1. For several columns the paper's Lemma III.3 is false (docs/proofs/papers.md);
    each column is treated by itself with its share of ε instead.
    """

    T: Limit = UNSET
    unit: ClassVar[str] = "units of a user's sum"
    counts_rows: ClassVar[bool] = False
    effect: ClassVar[str] = "each user's total may deviate from the middle of the range by {half} in all"
    chosen_for: ClassVar[frozenset[str]] = frozenset({"mean"})

    def supports(self, relation: Relation) -> bool:
        return relation.counts_are_public

    def describe(self) -> str:
        length = f"length {self.shown('')}" if self.is_set else "a chosen length"
        return f"each user's sum is clipped to an interval of {length} about its middle"

    def bound_mean(self, summary: Summary, relation: Relation) -> Bounded:
        grid = summary.valued
        length = self.steps(grid.steps_per_unit)
        full = summary.rows * grid.width
        # Any lower end that depends on the public row count alone keeps the range at `length`; halves round down.
        low = clamp(((full - length).cast("float64") / 2.0).floor().cast("int64"), 0, full)
        return Bounded(summary.above, length, low, full)

    def over_groups(self, norm: Norm, grid: Grid | None) -> tuple[Fraction, str]:
        raise UsageError(
            "CentredInterval does not bound a user over several groups; use eh.NormClip or leave bounding='auto'."
        )

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        if question.kind != "mean" or question.relation is Relation.PRESENCE:
            return None
        sums, rows, length = Sums.of(support), support.rows, question.length

        def at(widths: Array) -> Curve:
            h = widths / length
            left_out = np.maximum(rows - sums.kept(h), 0.0)
            bias = length * left_out / (2 * rows)
            noise = math.sqrt(2) * widths / (float(question.epsilon) * rows)
            zero = np.zeros_like(widths)
            return Curve(cls.title, widths, noise, zero, bias, "bound", bias, sums.at(h)[1], left_out)

        return at, support.sizes * length

    def most_moved(self, support: Support, length: float) -> float:
        """Of a sum of s rows at most half of what lies beyond the interval is cut."""
        kept = float(Sums.of(support).kept(np.array([float(self.bound) / length]))[0])
        return length * max(support.rows - kept, 0.0) / (2 * support.rows)

    def require(self, support: Support, epsilon: Decimal) -> None:
        needed = _needed(float(epsilon))
        if support.users.sum() < needed:
            raise UsageError(
                f"CentredInterval() needs {needed:,} users to choose T at ε = {plain(epsilon)}, and there are {support.users.sum():,.0f}, which is public "
                "under protects='values': every user would be clipped to the middle of the bounds, whatever the values are. Nothing was charged. "
                f"Give ε of at least {math.ceil(2000 / max(float(support.users.sum()), 1.0)) / 1000:g}, give T, as in eh.CentredInterval(10), or leave bounding='auto'."
            )

    def best_for_mean(self, support: Support, grid: Grid, epsilon: float, relation: Relation) -> CentredInterval:
        best = Fraction(centred_bound(support, grid.high - grid.low, epsilon))
        return CentredInterval(max(best, Fraction(grid.units(1))))


def centred_bound(support: Support, length: float, epsilon: float) -> float:
    """The width T of the centred interval: the ⌈2/ε⌉-th largest of {B·s}, 0 if there are fewer users.

    Reference: rameshwar2024 Theorem III.1.
    """
    return length * support.largest(_needed(epsilon))


def _needed(epsilon: float) -> int:
    """The place of the user whose number of rows is the bound, from the top."""
    return math.ceil(2 / epsilon - 1e-12)
