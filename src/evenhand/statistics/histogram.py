"""How many rows lie between given edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from evenhand.guarantee import Relation, UsageError
from evenhand.noise import IntegerNoise
from evenhand.release import OfSize, Rule
from evenhand.statistics.cells import MOST_CELLS, EdgeCells
from evenhand.statistics.count import weighted_count
from evenhand.statistics.keys import Keys
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.tables import Bounds, OpenBounds, Table
from evenhand.tables.expressions import Integers
from evenhand.tables.numbers import number

MOST_EDGES = 4096

_OUTSIDE = 0.01
"""Of the values on either side, where edges are found: they count in the first and last cell."""
_CELLS = 20
"""At most, where edges are found."""


@dataclass(frozen=True)
class RowsInCells(Statistic):
    """The number of rows in each cell; private under every relation, because the cell depends on a private value."""

    selects_keys = False

    column: str

    def check(self, table: Table, by_row: bool = False) -> None:
        number(table, self.column)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("rows",)

    @property
    def rule(self) -> Rule:
        return OfSize("rows")

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {"rows": weight}

    def reach(self, relation: Relation) -> int:
        """Replacing a value takes a row out of one cell and puts it into another."""
        return relation.moves

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        return weighted_count(sums["rows"], noise)


@dataclass(frozen=True)
class Histogram(RowsInCells):
    """The number of rows between public edges; a cell includes its lower edge, values beyond the ends count in the first and last cell.

    A user's rows over all cells are bounded together, so more cells cost no more ε, but each has the same noise. Edges that are left out
    are some ten to twenty round ones between bounds that are found.

    Interval: as of a count by group.

    Under values: private too, since the cell depends on a private value.

    Edge cases: 2 to 4,096 strictly increasing finite edges.

    Proof: row-weights.

    Args:
        column: a numeric column.
        edges: strictly increasing numbers; round ones between bounds that are found privately, if left out.
    """

    name = "histogram"
    shown_as = "count"

    edges: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.edges is not None:
            _ = self.numbers  # refuses what are none

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        low, high = bounds
        return cls(column, (low, (low + high) / 2, high))

    @property
    def wants_bounds(self) -> tuple[WantedBounds, ...]:
        return (WantedBounds(self.column, outside=_OUTSIDE),) if self.edges is None else ()

    def with_bounds(self, found: Sequence[OpenBounds]) -> Histogram:
        for low, high in found[:1]:
            if low is not None and high is not None:  # edges have two ends
                return replace(self, edges=round_edges(low, high))
        return self

    @property
    def numbers(self) -> tuple[float, ...]:
        """The edges as numbers."""
        expected = "expected two or more strictly increasing finite numbers, such as edges=[0, 1, 2, 5]"
        try:
            numbers = tuple(float(edge) for edge in self.edges or ())
        except (TypeError, ValueError):
            raise UsageError(f"edges={self.edges!r} can't be read; {expected}.") from None
        ordered = all(low < high for low, high in itertools.pairwise(numbers))
        if len(numbers) < 2 or not ordered or not all(math.isfinite(edge) for edge in numbers):
            raise UsageError(f"edges={list(numbers)[:6]} are not increasing and finite; {expected}.")
        return numbers

    @property
    def words(self) -> str:
        return f"histogram of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": self.name, "column": self.column}

    def placed(self, keys: Keys, table: Table) -> Keys:
        edges = self.numbers
        if len(edges) > MOST_EDGES or keys.groups * (len(edges) - 1) > MOST_CELLS:
            raise UsageError(
                f"{len(edges):,} edges by {keys.groups:,} groups are too many; at most {MOST_EDGES:,} edges and "
                f"{MOST_CELLS:,} cells fit one release."
            )
        columns = (*keys.columns, f"{self.column}_from", f"{self.column}_to")
        return EdgeCells(columns, (), None, keys, self.column, edges)


def round_edges(low: float, high: float) -> tuple[float, ...]:
    """Equally wide cells between round numbers, about ten to twenty."""
    least = (high - low) / _CELLS
    decade = Fraction(10) ** math.floor(math.log10(least))
    steps = (decade * part for part in (1, 2, Fraction(5, 2), 5, 10, 20))
    step = next(step for step in steps if step >= Fraction(least) * (1 - Fraction(1, 10**9)))
    first, last = math.floor(Fraction(repr(low)) / step), math.ceil(Fraction(repr(high)) / step)
    return tuple(float(place * step) for place in range(first, last + 1))
