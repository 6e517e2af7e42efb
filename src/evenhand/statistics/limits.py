"""The bound on a user's norm in a grouped release: given, or chosen by forecast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from evenhand.bounding import Auto, CentredInterval, NormClip, RowLimit, Strategy, TotalCap
from evenhand.guarantee import UsageError
from evenhand.noise import LARGEST_SCALE, rho_for
from evenhand.planning import Buckets, choose_total_cap, row_buckets, total_buckets
from evenhand.planning.support import support_of_counts, support_of_histogram
from evenhand.planning.weights import Support
from evenhand.release import Bounding, Receipt
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import Cells
from evenhand.statistics.keys import Keys
from evenhand.statistics.parts import Part, SumPart
from evenhand.statistics.profiles import given_profile, histogram_of, shelve
from evenhand.statistics.request import Request
from evenhand.statistics.shelf import About, rows_with
from evenhand.statistics.totals import bucket_counts
from evenhand.statistics.users import UsersPart
from evenhand.statistics.weighted_rows import FULL, LARGEST_AMOUNT, Norm


@dataclass(frozen=True)
class Limit:
    """A bound on the norm of one user, in rows or in grid steps of a value, and how it came about."""

    amount: Fraction
    bounding: Bounding


def norm_for(request: Request, parts: Sequence[Part], gaussian: bool) -> Norm:
    """Which norm to bound: a sum alone is bounded by its values, everything else by rows."""
    strategy = request.bounding.strategy if isinstance(request.bounding, Auto) else request.bounding
    if isinstance(strategy, NormClip) and strategy.norm == 2 and not gaussian:
        if request.delta:
            raise UsageError(
                "NormClip(norm=2) without a bound can't be chosen here: how a user's rows spread over the cells is private. "
                "Give the bound, as in NormClip(5, norm=2), or leave bounding='auto'."
            )
        raise UsageError("NormClip(norm=2) goes with Gaussian noise; give delta, or use norm=1 with Laplace noise.")
    if isinstance(request.bounding, Auto) and isinstance(strategy, RowLimit | CentredInterval):
        raise UsageError(
            f"{strategy.title} without a bound can't be chosen for groups; give the bound, or leave bounding='auto'."
        )
    if gaussian:
        return Norm.SQUARED_ROWS
    alone = len(parts) == 1 and isinstance(parts[0], SumPart) and not request.relation.counts_are_public
    return Norm.VALUES if alone and (strategy is None or isinstance(strategy, NormClip | TotalCap)) else Norm.ROWS


def profile_of_norm(keys: Keys, parts: Sequence[Part], norm: Norm, question: str) -> About:
    """The profile that chooses the bound: of users by their norm over these groups."""
    columns = [column for part in parts for column in part.columns]
    names, groups = {name for name, _ in columns}, keys
    if isinstance(keys, Cells):
        names |= {keys.value}
        groups = keys.inner if norm is Norm.ROWS else keys  # a row is in one cell: the number of rows is the same
    distinct = any(isinstance(part, UsersPart) for part in parts)
    if norm is Norm.ROWS and not groups.columns and not distinct:
        return rows_with(names, question)
    values = tuple(columns) if norm is Norm.VALUES else tuple(sorted(names))
    return About("norm", (norm, distinct, groups, values), question)


def given_limit(strategy: Strategy, norm: Norm, part: Part) -> Limit:
    """The analyst's bound, in the unit of the norm."""
    if isinstance(strategy, CentredInterval):
        raise UsageError(
            "CentredInterval does not bound a user over several groups; use eh.NormClip or leave bounding='auto'."
        )
    assert strategy.parameter is not None
    amount = strategy.parameter
    if norm is Norm.VALUES:
        assert isinstance(part, SumPart)
        amount *= part.grid.steps_per_unit
    elif isinstance(part, SumPart) and isinstance(strategy, NormClip | TotalCap):
        amount = amount * part.grid.steps_per_unit / part.grid.reach  # as many rows as reach it at the most
    if amount > LARGEST_AMOUNT:
        raise UsageError(
            f"{strategy.title}({strategy.parameter}) is too large for these bounds: {float(amount):.3g} steps, and the exact "
            f"integer range ends at {LARGEST_AMOUNT:.3g}. Lower it, or widen the bounds of a single value."
        )
    words = strategy.describe()
    if isinstance(strategy, TotalCap):
        words = f"what a user adds to all groups together is scaled down to at most {float(strategy.parameter):g}"
    return Limit(amount, Bounding(strategy.title, float(strategy.parameter), words))


def chosen_limit(
    request: Request,
    receipt: Receipt,
    users: Any,
    norm: Norm,
    parts: Sequence[Part],
    about: About,
    allocation: Allocation,
    spread: int,
) -> Limit:
    """The bound that forecasts the smallest error of a typical group.

    What is cut off spreads over the groups (``spread``) while each group gets all the noise, so a bound for G groups is
    chosen as for one statistic with ε/G.
    """
    share = float(allocation.epsilon) / (max(len(parts), 1) * spread)
    if request.relation.counts_are_public:
        support, basis, paid = _public_norms(request, users), "the public number of rows of each user", None
        amount = parts[0].best_weight(support, share)
    else:
        buckets, counts, noise, basis, paid = _histogram(request, receipt, users, norm, parts[0], about, allocation)
        if all(part.is_average for part in parts):
            support = support_of_histogram(buckets, counts, 1 / noise)
            amount = parts[0].best_weight(support, share)
        else:
            amount = Fraction(choose_total_cap(buckets, counts, noise, share).parameter)
    reach = 1 if norm is Norm.VALUES else max(part.reach(request.relation) for part in parts)
    # The noise must fit 64 bits.
    amount = min(
        amount, Fraction(LARGEST_AMOUNT), LARGEST_SCALE / (2 * FULL * reach * _scale_per_step(allocation, len(parts)))
    )
    shown, words = _describe(amount, norm, parts, spread > 1)
    strategy = "NormClip" if norm is not Norm.ROWS else "SmoothWeights"
    return Limit(amount, Bounding(strategy, shown, words, f"chosen from {basis}", paid))


def _scale_per_step(allocation: Allocation, parts: int) -> Fraction:
    """The scale of the noise of each part if one user moves it by one step."""
    if not allocation.delta:
        return parts / Fraction(allocation.epsilon)
    return Fraction(math.sqrt(parts / (2 * rho_for(allocation.epsilon, allocation.delta))))


def _histogram(
    request: Request, receipt: Receipt, users: Any, norm: Norm, part: Part, about: About, allocation: Allocation
) -> tuple[Buckets, Sequence[float], float, str, Decimal | None]:
    """Users by their norm: from the analyst's profile, from the session's, or bought; with the ε that explains its noise."""
    unit = part.grid.reach if norm is Norm.VALUES and isinstance(part, SumPart) else 1
    profile = given_profile(request)
    if profile is not None:
        # A profile counts rows: in units of a value, a row is worth its largest.
        buckets = row_buckets()
        counts, noise = histogram_of(profile, buckets)
        scaled = Buckets(tuple(edge * unit for edge in buckets.edges if edge * unit < 2**62), unit)
        return scaled, list(counts)[: scaled.size], noise, profile.words, None
    buckets = row_buckets() if unit == 1 else total_buckets(unit)
    if allocation.known is not None:
        request.shelf.take(request.table, about)
        return buckets, *histogram_of(allocation.known, buckets), allocation.known.words, None
    whole = users.norm.ceil().cast("int64") if norm is Norm.SQUARED_ROWS else users.norm
    epsilon = allocation.profile
    noisy = receipt.numbers(bucket_counts(request.table, users, whole, buckets), epsilon).values
    shelve(request, about, buckets, noisy, epsilon, receipt.event)
    return buckets, noisy, float(epsilon), "a noisy histogram of users by contribution, bought with part of ε", epsilon


def _public_norms(request: Request, users: Any) -> Support:
    counted = users.group_by("norm").aggregate(users=users.count()).order_by("norm")
    table = request.table.engine.fetch(counted).reveal()
    if not table.num_rows:
        return support_of_counts([1])
    sizes = np.asarray(table["norm"].to_pylist(), dtype=float)
    return Support(np.maximum(sizes, 1e-9), np.asarray(table["users"].to_pylist(), dtype=float))


def _describe(amount: Fraction, norm: Norm, parts: Sequence[Part], grouped: bool) -> tuple[float, str]:
    if norm is Norm.VALUES and isinstance(parts[0], SumPart):
        shown = parts[0].grid.units(amount)
        return shown, f"what a user adds to all groups together is scaled down to at most {shown:,.4g}"
    shown = float(amount)
    if isinstance(parts[0], UsersPart):
        return shown, f"each user counts once in a group, weighed to count in at most {shown:,.4g} groups"
    if norm is Norm.SQUARED_ROWS:
        return shown, f"a user's rows per group are scaled down to an L2 norm of at most {shown:,.4g}"
    where = " over all groups" if grouped else ""
    return shown, f"all rows of a user are used, weighed to count as at most {shown:,.4g} rows{where}"
