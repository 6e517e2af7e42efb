"""The mean of a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand.bounding import Auto, Contribution, Strategy, Summary, WeightedMean
from evenhand.release import Additive, Error, Measurement, Noisy, Ratio, Receipt
from evenhand.statistics.choosing import Chosen, mean_from_profile, pending
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.request import Request, given
from evenhand.statistics.totals import fetch_totals, measure
from evenhand.tables import Grid, Secret, parse_bounds
from evenhand.tables.grid import bits_for
from evenhand.tables.numbers import number
from evenhand.tables.summaries import per_user


def draft_mean(request: Request, column: str, bounds: Any) -> Draft:
    """The mean of a column over rows, each user's weight bounded.

    Under presence two integers are released together: how far the weighted values lie above the lower bound, and how
    far below the upper. They add up to the user's weight, so the pair moves by no more than the weight alone; their ratio
    is the mean. Under values the total weight is public and one integer is enough.
    """
    low, high = parse_bounds(bounds)
    number(request.table, column)
    grid = Grid.about((low, high), origin=low, bits=bits_for(request.epsilon))
    query = {"statistic": "mean", "column": column, "bounds": [low, high]}
    bounding = request.bounding

    def draft(described: Any, run: Callable[[Receipt], Outcome]) -> Draft:
        full = {**query, "bounding": described.to_dict()}
        return Draft(f"mean of {column}", request.guarantee(), request.pure(), full, described, Error(None), run)

    if isinstance(bounding, Strategy):
        users = per_user(request.table, [(column, grid)], bounding.rows_kept)
        bounding.of_mean(_summary(users, grid), request.relation)  # refuses what does not fit, before any debit
        chosen = Chosen(bounding, given(bounding), request.epsilon)
        return draft(chosen.bounding, lambda receipt: _release(request, users, grid, chosen, receipt))

    def choose_and_run(receipt: Receipt) -> Outcome:
        assert isinstance(bounding, Auto)
        with request.table.engine.kept(per_user(request.table, [(column, grid)])) as users:
            chosen = mean_from_profile(request, bounding, receipt, users, _summary(users, grid))
            return _release(request, users, grid, chosen, receipt)

    return draft(pending(bounding, request), choose_and_run)


def _summary(users: Any, grid: Grid) -> Summary:
    return Summary(users.rows, users.above_0, grid)


def _release(request: Request, users: Any, grid: Grid, chosen: Chosen, receipt: Receipt) -> Outcome:
    mean = chosen.strategy.of_mean(_summary(users, grid), request.relation)
    if request.relation.counts_are_public:
        return _with_public_weight(request, users, grid, chosen, mean, receipt)
    pair = Contribution((mean.value, mean.weight - mean.value), mean.bound, mean.bound**2)
    noisy = receipt.release(measure(request.table, users, pair), chosen.epsilon)
    return _ratio(grid, chosen, noisy)


def _ratio(grid: Grid, chosen: Chosen, noisy: Noisy) -> Outcome:
    """The mean from its two noisy parts; the middle of the range when the noise has drowned the weight."""
    above, below = noisy.values
    weight = above + below
    fraction = min(max(above / weight, 0.0), 1.0) if weight > 0 else 0.5
    width = grid.high - grid.low
    spread = noisy.noise.variance**0.5 * (fraction**2 + (1 - fraction) ** 2) ** 0.5
    noise = min(spread / weight, 0.5) * width if weight > 0 else width / 2
    interval = Ratio(above, below, noisy.noise, grid.low, width)
    return Outcome(grid.low + width * fraction, interval, chosen.bounding, chosen.error(noise))


def _with_public_weight(
    request: Request, users: Any, grid: Grid, chosen: Chosen, mean: WeightedMean, receipt: Receipt
) -> Outcome:
    fetch = fetch_totals(request.table, users, [mean.value, mean.weight])
    weight = 0

    def value_only() -> Secret[list[int]]:
        nonlocal weight
        value, weight = fetch().reveal()  # the weight is a function of public counts
        return Secret([value])

    noisy = receipt.release(Measurement(value_only, mean.bound, mean.bound**2), chosen.epsilon)
    width = grid.high - grid.low
    unit = width / weight if weight else width  # an empty table: the noise around the middle, over the whole range
    middle = grid.low + width / 2
    value = grid.low + noisy.values[0] * unit if weight else middle
    bounded = min(max(value, grid.low), grid.high)
    noise = noisy.noise.variance**0.5 * unit
    interval = Additive(value, noisy.noise, unit, (grid.low, grid.high))
    return Outcome(bounded, interval, chosen.bounding, chosen.error(noise))
