"""Quantiles and medians of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Number
from typing import Any, Self

from evenhand.guarantee import UsageError, parse_fraction, told
from evenhand.statistics.ranks import OfRanks
from evenhand.tables import Bounds, OpenBounds


@dataclass(frozen=True)
class Quantiles(OfRanks):
    """One or several quantiles of a column, from one search; by group a frame with columns ``q0.25``, ...

    Values lie on a public grid of up to a million points between the bounds. In several rounds the weights of cells are released, and the cells narrow down
    to where a quantile is. One user's weight is in one cell each time, so several quantiles and groups share ε.

    Interval: in the unit of the column; ends where a cell does, so nothing is assumed about how values lie. It covers the noise and, by a
    measurement or a prior of how far busy users differ, the bound. Under a given bound it is the bounds.

    Edge cases: quantiles strictly between 0 and 1 with at most three decimals, returned in the order asked.

    Proof: quantiles.

    Args:
        column: a numeric column.
        quantiles: numbers strictly between 0 and 1.
        bounds: (low, high); the answers lie on a public grid of up to a million points between them, of whole numbers for a
            column of integers.
    """

    name = "quantiles"

    quantiles: float | Sequence[float] = (0.5,)
    bounds: OpenBounds | Sequence[float | None] | None = None

    def __post_init__(self) -> None:
        parse_quantiles(self.quantiles)  # refuse what is none
        super().__post_init__()

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
        return {**super().query, "quantiles": [float(quantile) for quantile in self.wanted]}


@dataclass(frozen=True)
class Median(OfRanks):
    """The median of a column over rows: the 0.5-quantile, as a single number.

    Interval: as of quantiles.

    Proof: quantiles.

    Args:
        column: a numeric column.
        bounds: (low, high); the answer lies on a public grid of up to a million points between them.
    """

    name = "median"
    single = True

    bounds: OpenBounds | Sequence[float | None] | None = None

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
