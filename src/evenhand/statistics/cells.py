"""Cells: groups split further by where a value lies. Histograms count them, quantiles search them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass

from evenhand.guarantee import Relation
from evenhand.statistics.keys import ID, UNGROUPED, Keys, Labels
from evenhand.tables import Grid, Table
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.numbers import is_number, middle, number, on_grid

MOST_CELLS = 2**24
"""Groups times cells of one release: the noise is drawn for each of them."""

UNIT = Grid(0.0, 1.0, 0.0, 0)


@dataclass(frozen=True)
class Cells(Keys, ABC):
    """Groups that are split further by where a value lies.

    Args:
        inner: the groups.
        value: the column whose values are placed.
    """

    inner: Keys = UNGROUPED
    value: str = ""

    @property
    @abstractmethod
    def cells(self) -> int:
        """Cells of each group."""

    @property
    @abstractmethod
    def middle(self) -> float:
        """Where a null is placed when counts are public."""

    @abstractmethod
    def place(self, table: Table, value: Column) -> Integers:
        """The number of a value's cell, 0 to ``cells − 1``."""

    @property
    def groups(self) -> int:
        return self.inner.groups * self.cells

    def attach(self, table: Table, rows: Rows) -> Rows:
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
    def labels(self) -> Labels:
        pairs = list(itertools.pairwise(self.edges))
        return Labels(self.columns, tuple((*label, *pair) for label in self.inner.labels.rows for pair in pairs))

    def place(self, table: Table, value: Column) -> Integers:
        import ibis

        def search(first: int, last: int) -> Integers:
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

    def place(self, table: Table, value: Column) -> Integers:
        return on_grid(table, value, self.grid).cast("int64")
