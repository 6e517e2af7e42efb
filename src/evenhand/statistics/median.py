"""The median of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from evenhand.statistics.ranks import OfRanks
from evenhand.tables import Bounds, OpenBounds, parse_open_bounds


@dataclass(frozen=True)
class Median(OfRanks):
    """The median of a column over rows: the 0.5-quantile, as a single number.

    Without groups the last of three measurements is a private choice by rank among about 4,000 points.

    Interval: as of quantiles.

    Proof: quantiles.

    Args:
        column: a numeric column.
        bounds: (low, high); the answer lies on a public grid of about 4,000 points between them.
    """

    name = "median"
    single = True

    bounds: OpenBounds | Sequence[float | None] | None = None

    def __post_init__(self) -> None:
        parse_open_bounds(self.bounds)

    def with_bounds(self, found: Sequence[OpenBounds]) -> Self:
        return replace(self, bounds=found[0]) if found else self

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls(column, bounds)

    @property
    def wanted(self) -> tuple[Fraction, ...]:
        return (Fraction(1, 2),)

    @property
    def titles(self) -> tuple[str, ...]:
        return ("median",)

    @property
    def words(self) -> str:
        return f"median of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": self.name, "column": self.column, "bounds": list(parse_open_bounds(self.bounds))}
