"""How many rows lie between given edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.guarantee import Relation, UsageError
from evenhand.noise import IntegerNoise
from evenhand.release import OfSize, Rule
from evenhand.statistics.cells import MOST_CELLS, EdgeCells
from evenhand.statistics.count import weighted_count
from evenhand.statistics.keys import Keys
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.tables import Table
from evenhand.tables.expressions import Integers
from evenhand.tables.numbers import number

MOST_EDGES = 4096


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
    """Cells between public edges; values beyond the ends count in the first and last cell.

    Args:
        column: a numeric column.
        edges: strictly increasing numbers.
    """

    name = "histogram"
    shown_as = "count"

    edges: Sequence[float] = ()

    def __post_init__(self) -> None:
        _ = self.numbers  # refuses what are none

    @property
    def numbers(self) -> tuple[float, ...]:
        """The edges as numbers."""
        expected = "expected two or more strictly increasing finite numbers, such as edges=[0, 1, 2, 5]"
        try:
            numbers = tuple(float(edge) for edge in self.edges)
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
