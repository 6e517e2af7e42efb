"""The sum of a column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand.bounding import Auto, TotalCap
from evenhand.guarantee import UsageError
from evenhand.release import Receipt, Scaled
from evenhand.statistics.additive import Total, draft_total
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.mean import draft_mean
from evenhand.statistics.request import Request
from evenhand.tables import Bounds, Grid, parse_bounds
from evenhand.tables.grid import bits_for
from evenhand.tables.numbers import number


def draft_sum(request: Request, column: str, bounds: Any) -> Draft:
    """The sum of a column, each user's part bounded."""
    low, high = parse_bounds(bounds)
    number(request.table, column)  # refuses a column that isn't there or isn't numeric
    query = {"statistic": "sum", "column": column, "bounds": [low, high]}
    if request.relation.counts_are_public and isinstance(request.bounding, Auto):
        return _rows_times_mean(request, column, (low, high), query)
    grid = Grid.about(_reachable(request, (low, high)), origin=0.0, bits=bits_for(request.epsilon))
    total = Total(
        f"sum of {column}",
        query,
        [(column, grid)],
        lambda strategy, summary: strategy.of_sum(summary, request.relation),
        grid.units(1),
    )
    return draft_total(request, total)


def _reachable(request: Request, bounds: Bounds) -> Bounds:
    """The values that a cap lets through: no finer grid is lost on bounds that were set far too wide.

    Where all values have one sign, a row beyond the cap fills it alone, so cutting the row changes nothing. Under values
    a null stands for the middle of the bounds, so they stay as they were declared.
    """
    low, high = bounds
    bounding = request.bounding
    if request.relation.counts_are_public or not isinstance(bounding, TotalCap) or bounding.parameter is None:
        return bounds
    cap = float(bounding.parameter)
    if 0 <= low < cap < high:
        return low, cap
    if low < -cap < high <= 0:
        return -cap, high
    return bounds


def _rows_times_mean(request: Request, column: str, bounds: tuple[float, float], query: dict[str, Any]) -> Draft:
    """When the number of rows is public, the sum is that many times the mean, which can be located."""
    assert isinstance(request.bounding, Auto)
    if isinstance(request.bounding.strategy, TotalCap):
        raise UsageError(
            "TotalCap() without a bound can't be chosen under protects='values', where a sum is the public number of rows "
            "times a mean; give the bound, as in eh.TotalCap(500), or leave bounding='auto'."
        )
    mean = draft_mean(request, column, bounds)

    def run(receipt: Receipt) -> Outcome:
        outcome = mean.run(receipt)
        rows = outcome.public_rows or 0
        return replace(
            outcome,
            value=outcome.value * rows,
            interval=Scaled(outcome.interval, rows),
            error=outcome.error.scaled(rows),
        )

    return replace(mean, statistic=f"sum of {column}", query={**mean.query, **query}, run=run)
