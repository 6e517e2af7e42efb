"""The sum of a column."""

from __future__ import annotations

from typing import Any

from evenhand.statistics.additive import Total, draft_total
from evenhand.statistics.draft import Draft
from evenhand.statistics.request import Request
from evenhand.tables import Grid, parse_bounds
from evenhand.tables.grid import bits_for
from evenhand.tables.numbers import number


def draft_sum(request: Request, column: str, bounds: Any) -> Draft:
    """The sum of a column, each user's part bounded."""
    low, high = parse_bounds(bounds)
    number(request.table, column)  # refuses a column that isn't there or isn't numeric
    grid = Grid.about((low, high), origin=0.0, bits=bits_for(request.epsilon))
    query = {"statistic": "sum", "column": column, "bounds": [low, high]}
    return draft_total(
        request,
        Total(
            f"sum of {column}",
            query,
            [(column, grid)],
            lambda strategy, summary: strategy.of_sum(summary, request.relation),
            grid.units(1),
        ),
    )
