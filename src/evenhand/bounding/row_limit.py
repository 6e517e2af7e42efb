"""Keep at most h random rows of each user: amin2019 section 4, epasto2020 section 3.2."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.bounding.strategy import Contribution, Strategy, Summary, WeightedMean, clamp, parse_limit
from evenhand.guarantee import Relation, UsageError


@dataclass(frozen=True)
class RowLimit(Strategy):
    """Keep ``min(h, s)`` rows of each user, drawn at random without regard to their order or content.

    Guarantee: one user moves a sum by at most ``h·max(|lo|, |hi|)`` under presence and ``h·(hi − lo)`` under values. Each
    row gets its own secret random number, so which rows of a user are kept depends on nobody else's rows.

    Prefer `SmoothWeights`: it uses all rows, is more accurate at the same bound, and needs no sampling pass.

    Args:
        h: the largest number of rows per user, a whole number; chosen if left out.

    Reference: epasto2020, section 3.2.
    """

    h: Any = None
    title = "RowLimit"

    def __post_init__(self) -> None:
        limit = self.parameter
        if limit is not None and limit.denominator != 1:
            raise UsageError(f"RowLimit({self.h}) keeps whole rows; expected a whole number such as RowLimit(10).")

    @property
    def parameter(self) -> Fraction | None:
        return parse_limit(self.h, "RowLimit", "rows per user")

    @property
    def limit(self) -> int:
        """The bound as a whole number."""
        assert self.parameter is not None
        return int(self.parameter)

    @property
    def rows_kept(self) -> int | None:
        return self.limit

    def describe(self) -> str:
        limit = "a chosen number of" if self.h is None else f"{self.limit:,}"
        return f"at most {limit} random rows of each user are used"

    def of_count(self, summary: Summary) -> Contribution:
        return Contribution((clamp(summary.rows, 0, self.limit),), l1=self.limit, l2_squared=self.limit**2)

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        grid = summary.grid
        assert grid is not None
        reach = self.limit * grid.reach
        moves = reach if relation is Relation.PRESENCE else self.limit * grid.width
        return Contribution((clamp(summary.total, -reach, reach),), l1=moves, l2_squared=moves**2)

    def of_mean(self, summary: Summary, relation: Relation) -> WeightedMean:
        grid = summary.grid
        assert grid is not None
        bound = self.limit * grid.width
        weight = clamp(summary.rows, 0, self.limit) * grid.width
        return WeightedMean(clamp(summary.above, 0, bound), weight, bound)
