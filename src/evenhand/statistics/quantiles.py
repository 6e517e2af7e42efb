"""Quantiles: several of a column, from one search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Number
from typing import Any, Self

from evenhand.guarantee import UsageError, parse_fraction, told
from evenhand.statistics.ranks import OfRanks
from evenhand.tables import Bounds, OpenBounds, parse_open_bounds


@dataclass(frozen=True)
class Quantiles(OfRanks):
    """One or several quantiles of a column, from one search; by group a frame with columns ``q0.25``, ...

    Values lie on a public grid of at most 4,096 steps between the bounds. Three times the weights of cells are released, the first time of 16 even cells, then of
    cells that are finer where a quantile is likely. One user's weight is in one cell each time, so several quantiles and groups share ε. By group the first
    two measurements are of all groups together.

    Interval: in the unit of the column; ends where a cell does, so nothing is assumed about how values lie. It covers the noise and, by a
    measurement or a prior of how far busy users differ, the bound. Under a given bound it is the bounds.

    Edge cases: quantiles strictly between 0 and 1 with at most three decimals, returned in the order asked.

    Proof: quantiles.

    Args:
        column: a numeric column.
        quantiles: numbers strictly between 0 and 1.
        bounds: (low, high); the answers lie on a public grid of about 4,000 points between them, of
            whole numbers for a column of integers.
    """

    name = "quantiles"

    quantiles: float | Sequence[float] = (0.5,)
    bounds: OpenBounds | Sequence[float | None] | None = None

    def __post_init__(self) -> None:
        parse_quantiles(self.quantiles)  # refuse what is none
        parse_open_bounds(self.bounds)

    def with_bounds(self, found: Sequence[OpenBounds]) -> Self:
        return replace(self, bounds=found[0]) if found else self

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls(column, (0.25, 0.5, 0.9), bounds)

    @property
    def wanted(self) -> tuple[Fraction, ...]:
        return parse_quantiles(self.quantiles)

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(f"q{float(quantile):g}" for quantile in self.wanted)

    @property
    def words(self) -> str:
        return f"quantiles {', '.join(f'{float(quantile):g}' for quantile in self.wanted)} of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        quantiles = [float(quantile) for quantile in self.wanted]
        bounds = list(parse_open_bounds(self.bounds))
        return {"statistic": self.name, "column": self.column, "bounds": bounds, "quantiles": quantiles}


def parse_quantiles(given: object) -> tuple[Fraction, ...]:
    """Read one or several numbers strictly between 0 and 1."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    try:
        wanted = tuple(parse_fraction(str(quantile)) for quantile in several if isinstance(quantile, str | Number))
    except ValueError:
        wanted = ()
    if len(wanted) < max(len(several), 1) or not all(
        0 < quantile < 1 and quantile.denominator <= 1000 for quantile in wanted
    ):
        raise UsageError(
            f"quantiles={told(given)}: expected numbers strictly between 0 and 1 with at most three decimals, such as [0.5, 0.9]."
        )
    return wanted
