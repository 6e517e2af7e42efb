"""The bound on a user's norm over groups: given, or chosen by forecast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from evenhand.bounding import LARGEST_AMOUNT, Choice, Norm, NormClip, SmoothWeights, Strategy, best_cap
from evenhand.guarantee import UsageError
from evenhand.noise import LARGEST_SCALE, rho_for
from evenhand.profiles import (
    About,
    Buckets,
    Histogram,
    Wanted,
    public_sizes,
    row_buckets,
    rows_with,
    total_buckets,
    users_by_bucket,
)
from evenhand.release import Receipt
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import Cells
from evenhand.statistics.keys import Keys
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables.expressions import Rows


def norm_for(request: Request, parts: Sequence[Statistic], gaussian: bool) -> Norm:
    """Which norm to bound: a sum alone is bounded by its values, everything else by rows."""
    named = request.named
    if named is not None and named.gaussian and not gaussian:
        if request.delta:
            raise UsageError(
                "NormClip(norm=2) without a bound can't be chosen here: how a user's rows spread over the cells is private. "
                "Give the bound, as in NormClip(5, norm=2), or leave bounding='auto'."
            )
        raise UsageError("NormClip(norm=2) goes with Gaussian noise; give delta, or use norm=1 with Laplace noise.")
    if request.strategy is None and named is not None and "groups" not in named.chosen_for:
        raise UsageError(
            f"{named.title} without a bound can't be chosen for groups; give the bound, or leave bounding='auto'."
        )
    if gaussian:
        return Norm.SQUARED_ROWS
    # Nothing but `Sum` itself, alone, is bounded by values: only there is what leaves the value times the weight
    # (docs/proofs/row-weights.md), whatever a strategy or another statistic says.
    sum_alone = [type(part) for part in parts] == [Sum] and not request.relation.counts_are_public
    return Norm.VALUES if sum_alone and (named is None or named.bounds_values) else Norm.ROWS


def profile_of_norm(keys: Keys, parts: Sequence[Statistic], norm: Norm, question: str) -> About:
    """The profile that chooses the bound: of users by their norm over these groups."""
    columns = [column for part in parts for column in part.columns]
    names, groups = {name for name, _ in columns}, keys
    if isinstance(keys, Cells):
        names |= {keys.value}
        groups = keys.inner if norm is Norm.ROWS else keys  # a row is in one cell: the number of rows is the same
    distinct = any(part.distinct for part in parts)
    if norm is Norm.ROWS and not groups.columns and not distinct:
        return rows_with(names, question)
    values = tuple(columns) if norm is Norm.VALUES else tuple(sorted(names))
    return About("norm", (norm, distinct, groups, values), question)


def given_amount(strategy: Strategy, norm: Norm, part: Statistic) -> tuple[Fraction, Choice]:
    """The analyst's bound, in the unit of the norm."""
    amount, words = strategy.over_groups(norm, part.sum_grid)
    if amount > LARGEST_AMOUNT:
        raise UsageError(
            f"{strategy.title}({strategy.bound}) is too large for these bounds: {float(amount):.3g} steps, and the exact "
            f"integer range ends at {LARGEST_AMOUNT:.3g}. Lower it, or widen the bounds of a single value."
        )
    return amount, Choice(strategy, words=words)


def chosen_amount(
    request: Request,
    receipt: Receipt,
    users: Rows,
    norm: Norm,
    parts: Sequence[Statistic],
    wanted: Wanted | None,
    allocation: Allocation,
    spread: int,
) -> tuple[Fraction, Choice]:
    """The bound that forecasts the smallest error of a typical group.

    What is cut off spreads over the groups (``spread``) while each group gets all the noise, so a bound for G groups is
    chosen as for one statistic with ε/G.
    """
    share, first = float(allocation.epsilon) / (max(len(parts), 1) * spread), parts[0]
    basis, paid = "the public number of rows of each user", allocation.profile
    if wanted is None:
        support = public_sizes(request.table, users, receipt, "norm")
        amount = first.best_weight(support, share)
    else:
        histogram = _histogram(request, receipt, users, norm, first, wanted, allocation)
        basis, paid, support = histogram.basis, histogram.paid, histogram.support
        average = all(part.is_average for part in parts)
        amount = first.best_weight(support, share) if average else Fraction(best_cap(histogram, share).cap)
    reach = 1 if norm is Norm.VALUES else max(part.reach(request.relation) for part in parts)
    fits = LARGEST_SCALE / (2 * FULL * reach * _scale_per_step(allocation, len(parts)))  # the noise must fit 64 bits
    amount = min(amount, Fraction(LARGEST_AMOUNT), fits)
    strategy, words = _shown(amount, norm, first, spread > 1)
    return amount, Choice(strategy, basis, paid, bias=first.bias_of_weight(support, amount), words=words)


def _scale_per_step(allocation: Allocation, parts: int) -> Fraction:
    """The scale of the noise of each part if one user moves it by one step."""
    if not allocation.delta:
        return parts / Fraction(allocation.epsilon)
    return Fraction(math.sqrt(parts / (2 * rho_for(allocation.epsilon, allocation.delta))))


def _histogram(
    request: Request, receipt: Receipt, users: Rows, norm: Norm, part: Statistic, wanted: Wanted, allocation: Allocation
) -> Histogram:
    """Users by their norm."""
    unit = part.sum_grid.reach if norm is Norm.VALUES and part.sum_grid is not None else 1
    buckets = row_buckets() if unit == 1 or wanted.given is not None else total_buckets(unit)
    whole = users.norm.ceil().cast("int64") if norm is Norm.SQUARED_ROWS else users.norm
    measurement = users_by_bucket(request.table, users, whole, buckets)
    histogram = wanted.get(receipt, buckets, measurement, allocation.profile)
    if wanted.given is None or unit == 1:
        return histogram
    # A given profile counts rows: in units of a value, a row is worth its largest.
    scaled = Buckets(tuple(edge * unit for edge in buckets.edges if edge * unit < 2**62), unit)
    return Histogram(scaled, list(histogram.counts)[: scaled.size], histogram.epsilon, histogram.basis)


def _shown(amount: Fraction, norm: Norm, part: Statistic, grouped: bool) -> tuple[Strategy, str]:
    """The chosen bound as a strategy, and what it does, in words."""
    if norm is Norm.VALUES and part.sum_grid is not None:
        words = f"what a user adds to all groups together is scaled down to at most {part.sum_grid.units(amount):,.4g}"
        return NormClip(amount / part.sum_grid.steps_per_unit), words
    shown = f"{float(amount):,.4g}"
    if norm is Norm.SQUARED_ROWS:
        strategy: Strategy = NormClip(amount, norm=2)
        words = f"a user's rows per group are scaled down to an L2 norm of at most {shown}"
    else:
        where = " over all groups" if grouped else ""
        strategy = SmoothWeights(amount)
        words = f"all rows of a user are used, weighted to count as at most {shown} rows{where}"
    if part.distinct:
        words = f"each user counts once in a group, weighted to count in at most {shown} groups"
    return strategy, words
