"""Choosing the bound: buy a small private profile out of the same ε, or reuse one, and let planning decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from evenhand.bounding import (
    Auto,
    CentredInterval,
    LocatedMean,
    RowLimit,
    SmoothWeights,
    Strategy,
    Summary,
    TotalCap,
)
from evenhand.bounding.strategy import LARGEST_BOUND, LARGEST_LIMIT, clamp
from evenhand.guarantee import Relation, exact_difference, exact_sum
from evenhand.planning import (
    MEAN_SHARE,
    PROFILE_SHARE,
    LocationRequest,
    Support,
    centred_bound,
    choose_mean,
    choose_total_cap,
    locate,
    location_request,
    row_buckets,
    row_limit_bound,
    smooth_weights_for_mean,
    support_of_counts,
    support_of_histogram,
    total_buckets,
)
from evenhand.planning.location import LOCATION_SHARES
from evenhand.planning.weights import HETEROGENEITY, ROW_SD
from evenhand.release import Bounding, Error, Measurement, Receipt
from evenhand.statistics.profiles import known_histogram
from evenhand.statistics.request import Request
from evenhand.statistics.shelf import About, rows_with
from evenhand.statistics.totals import bucket_counts, histogram
from evenhand.tables import Grid, Table
from evenhand.tables.summaries import per_user


@dataclass(frozen=True)
class Chosen:
    """A strategy with its bound, what is left of ε, and what is known about the bias.

    Args:
        strategy: bounds the users.
        bounding: how the choice appears in the release.
        epsilon: what is left for the release itself.
        bias: the forecast bias in the unit of the value; None if nothing is known.
        basis: where that forecast comes from.
        epsilon_rows: what is left for the number of rows below a mean, where that is released separately.
    """

    strategy: Strategy
    bounding: Bounding
    epsilon: Decimal
    bias: float | None = None
    basis: str = Error(None).basis
    epsilon_rows: Decimal = Decimal(0)

    def error(self, noise: float) -> Error:
        """The forecast error once the noise is known."""
        return Error(noise, self.bias, self.basis)


def pending(
    auto: Auto, request: Request, about: About | None = None, share: Decimal = PROFILE_SHARE, located: bool = False
) -> Bounding:
    """How a bound that will be chosen appears before anything is spent.

    Args:
        auto: what the analyst left open.
        request: the question.
        about: the profile that will be wanted; None if it can't be known beforehand.
        share: the part of ε that buys a profile, unless the analyst says otherwise.
        located: whether part of the rest may be spent on finding out where users are.
    """
    strategy = auto.strategy.title if auto.strategy else "auto"
    if request.relation.counts_are_public:
        words, part = "the bound will be chosen from the public counts", 0.0
    elif auto.profile is not None:
        words, part = "the bound will be chosen from the given profile", 0.0
    elif about is not None and request.shelf.find(request.table, about) is not None:
        words, part = "the bound will be chosen from a profile that this session has bought", 0.0
    else:
        words, part = "the bound will be chosen privately", float(auto.share or share)
    price = f"for about {part:.0%} of ε" if part else "free of charge"
    if located and auto.strategy is None:
        most = part + (1 - part) * LOCATION_SHARES[1]
        price = f"for {f'{part:.0%} to ' if part else 'at most '}{most:.0%} of ε"
    return Bounding(strategy, None, words, f"auto, {price}")


@contextmanager
def users_once(request: Request, auto: Auto, columns: Sequence[tuple[str, Grid]]) -> Iterator[tuple[Table, Any]]:
    """The per-user summaries that a bound is chosen from and then applied to; with a row limit, the rows they come from.

    A row limit chooses among the rows once it is known, so it needs them again: then a copy of them is kept.
    """
    names = [name for name, _ in columns]
    rows = request.table.once(names) if isinstance(auto.strategy, RowLimit) else nullcontext(request.table)
    with rows as table, table.engine.kept(per_user(table, columns)) as users:
        yield table, users


def cap_from_profile(
    request: Request,
    auto: Auto,
    receipt: Receipt,
    users: Any,
    summary: Summary,
    about: About,
    unit: float,
) -> Chosen:
    """The cap on a user's total that a private histogram of totals forecasts to be best.

    A strategy that bounds rows (the analyst named it) gets its bound from a histogram of row counts instead.
    """
    if summary.grid is None or about.quantity == "rows":
        buckets, quantity = row_buckets(), summary.rows
    else:
        buckets, quantity = total_buckets(summary.grid.reach), summary.total.abs()
    share = auto.share or PROFILE_SHARE
    measurement = bucket_counts(request.table, users, quantity, buckets)
    known = known_histogram(request, receipt, measurement, buckets, about, share)
    left, paid = known.left, known.paid
    choice = choose_total_cap(buckets, known.counts, known.epsilon, left)
    strategy: Strategy
    if isinstance(auto.strategy, SmoothWeights | RowLimit):
        strategy, bias = replace(auto.strategy, h=min(choice.parameter, LARGEST_LIMIT)), None
    elif summary.grid is not None and about.quantity == "rows":
        # A profile of rows for a sum: as much as that many rows can add.
        reach = Fraction(summary.grid.reach) / summary.grid.steps_per_unit
        largest = Fraction(LARGEST_BOUND) / summary.grid.steps_per_unit
        strategy, bias = TotalCap(min(choice.parameter * reach, largest)), None
    else:
        strategy = TotalCap(choice.parameter / steps_per_unit(summary))
        bias = choice.bias * unit if choice.visible else None
    assert strategy.parameter is not None
    bounding = Bounding(
        strategy.title, float(strategy.parameter), strategy.describe(), f"chosen from {known.basis}", paid or None
    )
    return Chosen(
        strategy,
        bounding,
        left,
        bias,
        Error(None).basis if bias is None else "seen in the profile; a few very heavy users may be too rare to be seen",
    )


def profile_of_total(auto: Auto, columns: Sequence[tuple[str, Grid]], question: str) -> About:
    """The profile that chooses a cap: of totals, or of rows for a count, and where rows are what is known or bounded.

    Refuses a strategy that bounds neither, before any debit.
    """
    if not isinstance(auto.strategy, TotalCap | SmoothWeights | RowLimit | None):
        raise auto.strategy.refuse(f"a {question}")
    by_rows = isinstance(auto.strategy, SmoothWeights | RowLimit)
    if not columns or by_rows or auto.profile is not None:
        return rows_with((name for name, _ in columns), question)
    return About("total", tuple(columns), question)


def steps_per_unit(summary: Summary) -> Fraction:
    """How many integer steps make one unit of the statistic."""
    return summary.grid.steps_per_unit if summary.grid else Fraction(1)


def mean_from_profile(
    request: Request, auto: Auto, receipt: Receipt, users: Any, summary: Summary, about: About
) -> Chosen:
    """The strategy and bound that forecast the smallest error of a mean.

    Users by number of rows are public under values, and bought under presence. Then, if there are users enough, a
    coarse histogram of user means is bought, so that users may be clipped narrowly around where they are.
    """
    grid, relation = summary.grid, request.relation
    assert grid is not None
    support, left, paid = _support(request, auto, receipt, users, summary, about)
    if auto.strategy is not None:
        return _restricted(auto.strategy, support, grid, left, paid, relation)
    location = None
    wanted = location_request(support, left, relation)
    if wanted is not None:
        noisy = receipt.numbers(user_means(request, users, summary, wanted), wanted.epsilon)
        left, paid = exact_difference(left, wanted.epsilon), exact_sum([paid, wanted.epsilon])
        location = locate(wanted, noisy.values, relation)
    choice = choose_mean(support, (0, grid.width), left, relation, location)
    if choice.centre is None:
        strategy: Strategy = SmoothWeights(min(choice.parameter, LARGEST_LIMIT))
        parameter, words = float(strategy.parameter or 0), strategy.describe()
    else:
        assert choice.below is not None
        # Any caps are safe: those that would not fit are lowered, never refused once ε is spent.
        below, above = (min(int(cap), LARGEST_BOUND) for cap in (choice.below, choice.parameter))
        reach = f"{grid.units(below):,.4g} below and {grid.units(above):,.4g} above"
        reach = f"{grid.units(above):,.4g} away from" if below == above else reach
        words = f"each user's sum is capped at {reach} rows × {grid.low + grid.units(choice.centre):.4g}"
        strategy = LocatedMean(choice.centre, below, above, choice.rows_cap, choice.rows, words)
        parameter = grid.units(Fraction(below + above, 2))
    bounding = Bounding(strategy.title, parameter, words, f"chosen from {choice.basis}", paid or None)
    return Chosen(
        strategy,
        bounding,
        choice.epsilon_sum if choice.epsilon_sum is not None else left,
        grid.units(Fraction(choice.bias)),
        "forecast from the profile; more if heavy users differ much",
        epsilon_rows=choice.epsilon_rows,
    )


def _support(
    request: Request, auto: Auto, receipt: Receipt, users: Any, summary: Summary, about: About
) -> tuple[Support, Decimal, Decimal]:
    """Users by number of rows, what is left of ε, and what was paid."""
    if request.relation.counts_are_public:
        return public_support(request, users), request.epsilon, Decimal(0)
    buckets = row_buckets()
    measurement = bucket_counts(request.table, users, summary.rows, buckets)
    known = known_histogram(request, receipt, measurement, buckets, about, auto.share or MEAN_SHARE)
    return support_of_histogram(buckets, known.counts, 1 / known.epsilon), known.left, known.paid


def public_support(request: Request, users: Any) -> Support:
    """The exact number of users with each number of rows, where that is public."""
    assert request.relation.counts_are_public
    sizes = users.group_by("rows").aggregate(users=users.count()).order_by("rows")
    table = request.table.engine.fetch(sizes).reveal()
    if not table.num_rows:
        return support_of_counts([1])  # an empty table: any bound will do
    return Support(
        table["rows"].to_numpy(zero_copy_only=False).astype(float),
        table["users"].to_numpy(zero_copy_only=False).astype(float),
    )


def user_means(request: Request, users: Any, summary: Summary, wanted: LocationRequest) -> Measurement:
    """Users with enough rows, by where their mean lies: one bin a user, whatever the arithmetic does."""
    assert summary.grid is not None
    asked = users.filter(users.rows >= wanted.rows)
    position = asked.above_0.cast("float64") / (asked.rows.cast("float64") * float(summary.grid.width))
    bins = clamp((position * float(wanted.bins)).floor().cast("int64"), 0, wanted.bins - 1)
    moves = 2 if request.relation.counts_are_public else 1
    return histogram(request.table, asked, bins, wanted.bins, moves)


def check_named(strategy: Strategy) -> None:
    """Refuse a strategy that does not bound a mean."""
    if not isinstance(strategy, SmoothWeights | RowLimit | CentredInterval):
        raise strategy.refuse("a mean")


def _restricted(
    strategy: Strategy, support: Support, grid: Grid, left: Decimal, paid: Decimal, relation: Relation
) -> Chosen:
    """The best bound of a strategy that the analyst has named."""
    length, epsilon = grid.high - grid.low, float(left)
    spread, differ = (ROW_SD * length) ** 2, HETEROGENEITY * length
    chosen: Strategy
    if isinstance(strategy, SmoothWeights):
        chosen = SmoothWeights(min(smooth_weights_for_mean(support, epsilon, relation), LARGEST_LIMIT))
    elif isinstance(strategy, RowLimit):
        chosen = RowLimit(min(row_limit_bound(support, spread, length, epsilon, differ), LARGEST_LIMIT))
    elif isinstance(strategy, CentredInterval):
        chosen = CentredInterval(max(Fraction(centred_bound(support, length, epsilon)), Fraction(grid.units(1))))
    else:
        raise strategy.refuse("a mean")
    basis = "the public number of rows of each user" if relation.counts_are_public else "a noisy profile of row counts"
    assert chosen.parameter is not None
    bounding = Bounding(chosen.title, float(chosen.parameter), chosen.describe(), f"chosen from {basis}", paid or None)
    return Chosen(chosen, bounding, left)
