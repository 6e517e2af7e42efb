"""Cells: groups split further by where a value lies. Histograms count them, quantiles search them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.guarantee import Relation, UsageError
from evenhand.noise import IntegerNoise
from evenhand.statistics.keys import ID, UNGROUPED, Keys
from evenhand.statistics.parts import Estimate, Part, weighed_count
from evenhand.tables import Grid, Table
from evenhand.tables.numbers import is_number, middle, number, on_grid

MOST_CELLS = 2**24
"""Groups times cells of one release: the noise is drawn for each of them."""

MOST_EDGES = 4096
UNIT = Grid(0.0, 1.0, 0.0, 0)


@dataclass(frozen=True)
class Cells(Keys):
    """Groups that are split further by where a value lies.

    Args:
        inner: the groups.
        value: the column whose values are placed.
    """

    inner: Keys = UNGROUPED
    value: str = ""

    @property
    def cells(self) -> int:
        """Cells of each group."""
        raise NotImplementedError

    @property
    def middle(self) -> float:
        """Where a null is placed when counts are public."""
        raise NotImplementedError

    def place(self, table: Table, value: Any) -> Any:
        """The number of a value's cell, 0 to ``cells − 1``, as Ibis integers."""
        raise NotImplementedError

    @property
    def groups(self) -> int:
        return self.inner.groups * self.cells

    def attach(self, table: Table, rows: Any) -> Any:
        grouped = self.inner.attach(table, rows)
        value = number(table, self.value, grouped)
        if table.relation is Relation.PRESENCE:
            grouped = grouped.filter(is_number(table, value))
            value = number(table, self.value, grouped)
        else:
            value = is_number(table, value).fill_null(False).ifelse(value, self.middle)
        return grouped.mutate(**{ID: grouped[ID] * self.cells + self.place(table, value)})


@dataclass(frozen=True)
class EdgeCells(Cells):
    """Cells between public edges. A cell holds its lower edge; values beyond the ends count in the first and last cell."""

    edges: tuple[float, ...] = ()

    @property
    def cells(self) -> int:
        return len(self.edges) - 1

    @property
    def middle(self) -> float:
        return (self.edges[0] + self.edges[-1]) / 2

    @property
    def labels(self) -> list[tuple[Any, ...]]:
        pairs = list(itertools.pairwise(self.edges))
        return [(*label, *pair) for label in self.inner.labels for pair in pairs]

    def place(self, table: Table, value: Any) -> Any:
        import ibis

        def search(first: int, last: int) -> Any:
            """Nested comparisons: as many as a binary search needs, whatever the number of edges."""
            if first == last:
                return ibis.literal(first, "int64")
            split = (first + last + 1) // 2
            return (value >= self.edges[split]).ifelse(search(split, last), search(first, split - 1))

        return search(0, self.cells - 1)


@dataclass(frozen=True)
class GridCells(Cells):
    """Cells around the points of a public grid."""

    grid: Grid = UNIT

    @property
    def cells(self) -> int:
        return self.grid.width + 1

    @property
    def middle(self) -> float:
        return middle(self.grid)

    def place(self, table: Table, value: Any) -> Any:
        return on_grid(table, value, self.grid).cast("int64")


def edge_cells(inner: Keys, table: Table, column: str, edges: Any) -> EdgeCells:
    """Read ``edges=``."""
    number(table, column)
    expected = "expected two or more strictly increasing finite numbers, such as edges=[0, 1, 2, 5]"
    try:
        numbers = tuple(float(edge) for edge in edges)
    except (TypeError, ValueError):
        raise UsageError(f"edges={edges!r} can't be read; {expected}.") from None
    ordered = all(low < high for low, high in itertools.pairwise(numbers))
    if len(numbers) < 2 or not ordered or not all(math.isfinite(edge) for edge in numbers):
        raise UsageError(f"edges={list(numbers)[:6]} are not increasing and finite; {expected}.")
    if len(numbers) > MOST_EDGES or inner.groups * (len(numbers) - 1) > MOST_CELLS:
        raise UsageError(
            f"{len(numbers):,} edges by {inner.groups:,} groups are too many; at most {MOST_EDGES:,} edges and "
            f"{MOST_CELLS:,} cells fit one release."
        )
    columns = (*inner.columns, f"{column}_from", f"{column}_to")
    return EdgeCells(columns, (), None, inner, column, numbers)


@dataclass(frozen=True)
class CellCount(Part):
    """The number of rows in each cell; private under every relation, because the cell depends on a private value."""

    column: str

    @property
    def words(self) -> str:
        return f"histogram of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": "histogram", "column": self.column}

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("rows",)

    def integers(self, weight: Any, values: Sequence[Any]) -> dict[str, Any]:
        return {"rows": weight}

    def reach(self, relation: Relation) -> int:
        """Replacing a value takes a row out of one cell and puts it into another."""
        return 1 if relation is Relation.PRESENCE else 2

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        return weighed_count(sums["rows"], noise)
