"""The bound on a user's norm in a grouped release: given, or chosen by forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from evenhand.bounding import Auto, CentredInterval, NormClip, Strategy, TotalCap
from evenhand.guarantee import UsageError
from evenhand.planning import choose_total_cap, row_buckets, total_buckets
from evenhand.planning.support import support_of_counts, support_of_histogram
from evenhand.planning.weights import Support
from evenhand.release import Bounding, Receipt
from evenhand.statistics.parts import Part, SumPart
from evenhand.statistics.request import Request
from evenhand.statistics.totals import bucket_counts
from evenhand.statistics.users import UsersPart
from evenhand.statistics.weighted_rows import LARGEST_AMOUNT, Norm


@dataclass(frozen=True)
class Limit:
    """A bound on the norm of one user, in rows or in grid steps of a value, and how it came about."""

    amount: Fraction
    bounding: Bounding


def norm_for(request: Request, parts: Sequence[Part], gaussian: bool) -> Norm:
    """Which norm to bound: a sum alone is bounded by its values, everything else by rows."""
    if gaussian:
        return Norm.SQUARED_ROWS
    strategy = request.bounding.strategy if isinstance(request.bounding, Auto) else request.bounding
    alone = len(parts) == 1 and isinstance(parts[0], SumPart) and not request.relation.counts_are_public
    return Norm.VALUES if alone and (strategy is None or isinstance(strategy, NormClip | TotalCap)) else Norm.ROWS


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
    profile_epsilon: Decimal,
    epsilon: Decimal,
    spread: int,
) -> Limit:
    """The bound that forecasts the smallest error of a typical group.

    What is cut off spreads over the groups (``spread``) while each group gets all the noise, so a bound for G groups is
    chosen as for one statistic with ε/G.
    """
    share = float(epsilon) / (max(len(parts), 1) * spread)
    if request.relation.counts_are_public:
        support, basis, paid = _public_norms(request, users), "the public number of rows of each user", None
        amount = parts[0].best_weight(support, share)
    else:
        part = parts[0]
        unit = part.grid.reach if norm is Norm.VALUES and isinstance(part, SumPart) else 1
        buckets = row_buckets() if unit == 1 else total_buckets(unit)
        whole = users.norm.ceil().cast("int64") if norm is Norm.SQUARED_ROWS else users.norm
        noisy = receipt.release(bucket_counts(request.table, users, whole, buckets), profile_epsilon)
        basis, paid = "a noisy histogram of users by contribution, bought with part of ε", profile_epsilon
        if any(part.is_average for part in parts):
            support = support_of_histogram(buckets, noisy.values, 1 / float(profile_epsilon))
            amount = parts[0].best_weight(support, share)
        else:
            amount = Fraction(choose_total_cap(buckets, noisy.values, profile_epsilon, share).parameter)
    amount = min(amount, Fraction(LARGEST_AMOUNT))
    shown, words = _describe(amount, norm, parts)
    strategy = "NormClip" if norm is not Norm.ROWS else "SmoothWeights"
    return Limit(amount, Bounding(strategy, shown, words, f"chosen from {basis}", paid))


def _public_norms(request: Request, users: Any) -> Support:
    counted = users.group_by("norm").aggregate(users=users.count()).order_by("norm")
    table = request.table.engine.fetch(counted).reveal()
    if not table.num_rows:
        return support_of_counts([1])
    sizes = np.asarray(table["norm"].to_pylist(), dtype=float)
    return Support(np.maximum(sizes, 1e-9), np.asarray(table["users"].to_pylist(), dtype=float))


def _describe(amount: Fraction, norm: Norm, parts: Sequence[Part]) -> tuple[float, str]:
    if norm is Norm.VALUES and isinstance(parts[0], SumPart):
        shown = parts[0].grid.units(amount)
        return shown, f"what a user adds to all groups together is scaled down to at most {shown:,.4g}"
    shown = float(amount)
    if isinstance(parts[0], UsersPart):
        return shown, f"each user counts once in a group, weighed to count in at most {shown:,.4g} groups"
    if norm is Norm.SQUARED_ROWS:
        return shown, f"a user's rows per group are scaled down to an L2 norm of at most {shown:,.4g}"
    return shown, f"all rows of a user are used, weighed to count as at most {shown:,.4g} rows over all groups"
