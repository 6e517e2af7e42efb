"""The mean of a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand.bounding import Auto, Contribution, LocatedMean, Strategy, Summary
from evenhand.planning import MEAN_SHARE
from evenhand.release import Additive, Error, Measurement, Ratio, Receipt
from evenhand.statistics.choosing import Chosen, check_named, mean_from_profile, pending, users_once
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.profiles import given_profile, settled
from evenhand.statistics.request import Request, given
from evenhand.statistics.shelf import About, rows_with
from evenhand.statistics.totals import fetch_totals, measure
from evenhand.tables import Grid, Secret, parse_bounds
from evenhand.tables.grid import bits_for
from evenhand.tables.numbers import number
from evenhand.tables.summaries import per_user

Choose = Callable[[Request, Auto, Receipt, Any, Summary, About], Chosen]


def draft_mean(request: Request, column: str, bounds: Any, choose: Choose = mean_from_profile) -> Draft:
    """The mean of a column over rows, each user's weight bounded; under Auto by what ``choose`` decides.

    Under presence two integers are released together: how far the weighted values lie above the lower bound, and how
    far below the upper. They add up to the user's weight, so the pair moves by no more than the weight alone; their ratio
    is the mean. Under values the total weight is public and one integer is enough.
    """
    low, high = parse_bounds(bounds)
    number(request.table, column)
    grid = Grid.about((low, high), origin=low, bits=bits_for(request.epsilon))
    query = {"statistic": "mean", "column": column, "bounds": [low, high]}
    bounding, words = request.bounding, f"mean of {column}"
    about = rows_with([column], words)
    request = settled(request, about)

    def draft(described: Any, run: Callable[[Receipt], Outcome]) -> Draft:
        full = {**query, "bounding": described.to_dict()}
        return Draft(words, request.guarantee(), request.pure(), full, described, Error(None), run)

    if isinstance(bounding, Strategy):
        users = per_user(request.table, [(column, grid)], bounding.rows_kept)
        bounding.of_mean(_summary(users, grid), request.relation)  # refuses what does not fit, before any debit
        chosen = Chosen(bounding, given(bounding), request.epsilon)
        return draft(chosen.bounding, lambda receipt: _release(request, users, grid, chosen, receipt))

    if bounding.strategy is not None:
        check_named(bounding.strategy)
    given_profile(request)  # refuses one that would leak, before any debit

    def choose_and_run(receipt: Receipt) -> Outcome:
        assert isinstance(bounding, Auto)
        with users_once(request, bounding, [(column, grid)]) as (table, users):
            chosen = choose(request, bounding, receipt, users, _summary(users, grid), about)
            kept = chosen.strategy.rows_kept
            sampled = users if kept is None else per_user(table, [(column, grid)], kept)
            return _release(request, sampled, grid, chosen, receipt)

    return draft(pending(bounding, request, about, MEAN_SHARE, located=True), choose_and_run)


def _summary(users: Any, grid: Grid) -> Summary:
    return Summary(users.rows, users.above_0, grid)


def _release(request: Request, users: Any, grid: Grid, chosen: Chosen, receipt: Receipt) -> Outcome:
    summary = _summary(users, grid)
    if isinstance(chosen.strategy, LocatedMean):
        return _located(request, users, summary, chosen.strategy, chosen, receipt)
    mean = chosen.strategy.of_mean(summary, request.relation)
    if request.relation.counts_are_public:
        single = Contribution((mean.value,), mean.bound, mean.bound**2)
        return _over_public(request, users, grid, chosen, single, mean.weight, 0, receipt)
    fetch = fetch_totals(request.table, users, [mean.value, mean.weight])

    def pair() -> Secret[list[int]]:
        value, weight = fetch().reveal()
        return Secret([value, weight - value])

    noisy = receipt.numbers(Measurement(pair, mean.bound, mean.bound**2), chosen.epsilon)
    above, below = noisy.values
    width = grid.high - grid.low
    ratio = Ratio(above, above + below, (noisy.noise, noisy.noise), (0.0, 1.0), grid.low, width, paired=True)
    return Outcome(ratio.value, ratio, chosen.bounding, chosen.error(ratio.spread))


def _located(
    request: Request, users: Any, summary: Summary, strategy: LocatedMean, chosen: Chosen, receipt: Receipt
) -> Outcome:
    """The centre, plus the capped distances from it over the number of rows."""
    grid = summary.grid
    assert grid is not None
    residual = strategy.of_residual(summary, request.relation)
    if request.relation.counts_are_public:
        weight = summary.rows * grid.width
        return _over_public(request, users, grid, chosen, residual, weight, strategy.centre, receipt)
    above = receipt.numbers(measure(request.table, users, residual), chosen.epsilon)
    rows = receipt.numbers(measure(request.table, users, strategy.of_denominator(summary)), chosen.epsilon_rows)
    step = grid.units(1)
    ratio = Ratio(
        above.values[0],
        rows.values[0],
        (above.noise, rows.noise),
        (-strategy.centre, grid.width - strategy.centre),
        grid.low + strategy.centre * step,
        step,
        paired=False,
        expected=strategy.rows,
    )
    return Outcome(ratio.value, ratio, chosen.bounding, chosen.error(ratio.spread))


def _over_public(
    request: Request,
    users: Any,
    grid: Grid,
    chosen: Chosen,
    contribution: Contribution,
    weight: Any,
    centre: int,
    receipt: Receipt,
) -> Outcome:
    """A noisy total over a public weight, lifted by a centre (in grid steps a row)."""
    fetch = fetch_totals(request.table, users, [*contribution.integers, weight, users.rows])
    total_weight = rows = 0

    def private_part() -> Secret[list[int]]:
        nonlocal total_weight, rows
        value, total_weight, rows = fetch().reveal()  # the weight is a function of public counts
        return Secret([value])

    noisy = receipt.numbers(Measurement(private_part, contribution.l1, contribution.l2_squared), chosen.epsilon)
    width = grid.high - grid.low
    unit = width / total_weight if total_weight else width  # an empty table: noise over the whole range
    base = grid.low + grid.units(centre) if total_weight else grid.low + width / 2
    value = base + noisy.values[0] * unit
    interval = Additive(value, noisy.noise, unit, (grid.low, grid.high))
    bounded = min(max(value, grid.low), grid.high)
    error = chosen.error(noisy.noise.variance**0.5 * unit)
    return Outcome(bounded, interval, chosen.bounding, error, public_rows=rows)
