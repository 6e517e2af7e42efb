"""The bound on a user's norm over groups: given, or chosen by forecast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.bounding import (
    LARGEST_AMOUNT,
    Choice,
    GroupBound,
    GroupCurve,
    MovedWeight,
    Norm,
    NormClip,
    SmoothWeights,
    Strategy,
    best_bound,
    group_curves,
    l2_of_rows,
    roots,
)
from evenhand.guarantee import UsageError, divide, exact_sum
from evenhand.noise import LARGEST_SCALE
from evenhand.pages.numbers import written
from evenhand.profiles import (
    About,
    Buckets,
    Histogram,
    Population,
    Support,
    Wanted,
    norm_buckets,
    over,
    public_sizes,
    row_buckets,
    rows_with,
    total_buckets,
    users_by_bucket,
)
from evenhand.release import Receipt
from evenhand.statistics.believed_groups import lost_to
from evenhand.statistics.cells import Cells
from evenhand.statistics.keys import Keys
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables.expressions import Rows


@dataclass(frozen=True)
class Noises:
    """What a statistic has for its noise: ε for Laplace and ρ for Gaussian; none where it may not have that."""

    epsilon: Decimal
    rho: Fraction | None

    def per_step(self, gaussian: bool) -> float:
        """The standard deviation of the noise for a bound of 1."""
        if not gaussian:
            return math.sqrt(2) / float(self.epsilon) if self.epsilon else math.inf
        return 1 / math.sqrt(2 * float(self.rho)) if self.rho else math.inf


def norm_of(request: Request, statistic: Statistic, gaussian: bool) -> Norm:
    """Which norm to bound: a sum by its values, everything else by rows."""
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
    # Nothing but `Sum` itself is bounded by values: only there is what leaves the value times the weight
    # (docs/proofs/row-weights.md), whatever a strategy or another statistic says.
    by_values = type(statistic) is Sum and not request.relation.counts_are_public
    if by_values and (named is None or named.bounds_values):
        return Norm.SQUARED_VALUES if gaussian else Norm.VALUES
    return Norm.SQUARED_ROWS if gaussian else Norm.ROWS


def profile_of_norm(keys: Keys, statistic: Statistic, norm: Norm, question: str) -> About:
    """The profile that chooses the bound: of users by their norm over these groups."""
    columns = statistic.columns
    names, groups = {name for name, _ in columns}, keys
    if isinstance(keys, Cells):
        names |= {keys.value}
        groups = keys.inner if norm is Norm.ROWS else keys  # a row is in one cell: the number of rows is the same
    if norm is Norm.ROWS and not groups.columns and not statistic.distinct:
        return rows_with(names, question)
    values = tuple(columns) if norm.of_values else tuple(sorted(names))
    return About("norm", (norm, statistic.distinct, groups, values), question)


def given_amount(strategy: Strategy, norm: Norm, statistic: Statistic) -> tuple[Fraction, Choice]:
    """The analyst's bound, in the unit of the norm."""
    amount, words = strategy.over_groups(norm, statistic.sum_grid)
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
    norms: Sequence[Norm],
    statistic: Statistic,
    wanted: Sequence[Wanted],
    paid: Decimal,
    noises: Noises,
    groups: int,
) -> tuple[Norm, Fraction, Choice]:
    """The norm and the bound with the smallest forecast error of a group."""
    basis, histograms = "the public number of rows of each user", list[Histogram]()
    if not wanted:
        supports = [public_sizes(request.table, users, receipt, norm.name) for norm in norms]
    else:
        share = divide(paid, len([one for one in wanted if one.known is None]) or 1)
        histograms = [
            histogram_of(request, receipt, users, norm, statistic, one, share, groups)
            for norm, one in zip(norms, wanted, strict=False)
        ]
        basis, paid = histograms[0].basis, exact_sum(one.paid for one in histograms)
        supports = _supports(histograms, norms, statistic, groups, rows=wanted[0].given is not None)
    best = _best(supports, norms, statistic, noises, groups, average=not wanted or statistic.is_average)
    norm = next(one for one in norms if one.gaussian == best.gaussian)
    reach = 1 if norm.of_values else statistic.reach(request.relation)
    # The noise must fit 64 bits.
    fits = Fraction(LARGEST_SCALE / (2 * FULL * reach * noises.per_step(norm.gaussian)))
    amount = min(max(Fraction(f"{best.amount:.3g}"), Fraction(1, FULL)), Fraction(LARGEST_AMOUNT), fits)
    strategy, words = in_words(amount, norm, statistic, groups > 1)
    support = supports[list(norms).index(norm)]
    lost = moved = None
    if statistic.is_average or (not wanted and statistic.sum_grid is not None):
        place = min(list(norms).index(norm), len(histograms) - 1)
        moved = MovedWeight.of(
            histograms[place].posterior if histograms else Population.exactly(support), float(amount)
        )
    else:
        given = bool(wanted) and wanted[0].given is not None
        lost = lost_to(
            float(amount), norm, _unit(norm, statistic), statistic.distinct, supports, histograms, groups, given
        )
    return norm, amount, Choice(strategy, basis, paid, words=words, lost=lost, moved=moved)


def _best(
    supports: Sequence[Support],
    norms: Sequence[Norm],
    statistic: Statistic,
    noises: Noises,
    groups: int,
    average: bool,
) -> GroupBound:
    if not average and not norms[0].gaussian:
        gaussian = noises.per_step(True) if len(norms) > 1 else None
        return best_bound(supports[0], supports[-1] if gaussian else None, groups, noises.per_step(False), gaussian)
    found = []
    for support, norm in zip(supports, norms, strict=True):
        noise = noises.per_step(norm.gaussian)
        if math.isinf(noise):
            continue
        if not average:
            found.append(replace(best_bound(support, None, groups, noise, None), gaussian=True))
            continue
        # What is cut off spreads over the groups while each group gets all the noise: as one statistic with ε/G.
        amount = float(statistic.best_weight(support, math.sqrt(2) / (noise * groups)))
        kept = float(support.users @ np.minimum(support.sizes, amount)) / support.rows
        found.append(GroupBound(norm.gaussian, amount, noise * amount / kept, 0.0))
    return min(found, key=lambda bound: bound.noise)


def known_curves(
    norms: Sequence[Norm], statistic: Statistic, wanted: Sequence[Wanted], noises: Noises, groups: int
) -> tuple[GroupCurve, ...]:
    """What `chosen_amount` will choose from, where all profiles are there already; in the unit of the norm."""
    known = [(norm, one.known, one) for norm, one in zip(norms, wanted, strict=False) if one.known is not None]
    histograms = [
        _in_unit(over(profile, _raster(norm, statistic, one, groups)), norm, statistic, one)
        for norm, profile, one in known
    ]
    supports = _supports(histograms, norms, statistic, groups, rows=wanted[0].given is not None)
    return curves_of(supports, norms, noises, groups)


def curves_of(
    supports: Sequence[Support], norms: Sequence[Norm], noises: Noises, groups: int
) -> tuple[GroupCurve, ...]:
    """The forecast of a total for every bound on each of these norms: what `_best` chooses from."""
    if norms[0].gaussian:
        only = group_curves(supports[0], None, groups, noises.per_step(True), None)
        return tuple(replace(curve, gaussian=True) for curve in only)
    gaussian = noises.per_step(True) if len(norms) > 1 else None
    return group_curves(supports[0], supports[-1] if gaussian else None, groups, noises.per_step(False), gaussian)


def _supports(
    histograms: Sequence[Histogram], norms: Sequence[Norm], statistic: Statistic, groups: int, rows: bool
) -> list[Support]:
    """Users by each norm. A profile that was given counts ``rows``: their L2 norm has to be guessed."""
    average = statistic.is_average
    supports = [histogram.support if average else histogram.smoothed for histogram in histograms]
    if rows:
        supports = [
            l2_of_rows(support, groups, _unit(norm, statistic)) if norm.gaussian else support
            for support, norm in zip(supports, norms, strict=False)
        ]
    return [*supports, roots(supports[0])] if len(supports) < len(norms) else supports


def _unit(norm: Norm, statistic: Statistic) -> int:
    """What one row is worth at most, in the unit of the norm."""
    return statistic.sum_grid.reach if norm.of_values and statistic.sum_grid is not None else 1


def histogram_of(
    request: Request,
    receipt: Receipt,
    users: Rows,
    norm: Norm,
    statistic: Statistic,
    wanted: Wanted,
    paid: Decimal,
    groups: int,
) -> Histogram:
    """Users by their norm."""
    buckets = _raster(norm, statistic, wanted, groups)
    # An L2 norm is a little too large (`WeightedRows.norms`): a whole one belongs into its own bucket, not into the next.
    whole = (users[norm.name] * _DOWN).ceil().cast("int64") if norm.gaussian else users[norm.name]
    histogram = wanted.get(receipt, buckets, users_by_bucket(request.table, users, whole, buckets), paid)
    return _in_unit(histogram, norm, statistic, wanted)


def _in_unit(histogram: Histogram, norm: Norm, statistic: Statistic, wanted: Wanted) -> Histogram:
    buckets, unit = histogram.buckets, _unit(norm, statistic)
    if wanted.given is None or unit == 1:
        return histogram
    # A given profile counts rows: in units of a value, a row is worth its largest.
    scaled = Buckets(tuple(edge * unit for edge in buckets.edges if edge * unit < 2**62), unit)
    return Histogram(scaled, list(histogram.counts)[: scaled.size], histogram.epsilon, histogram.basis)


_DOWN = 1 - 2.0**-20


def _raster(norm: Norm, statistic: Statistic, wanted: Wanted, groups: int) -> Buckets:
    """The raster of a profile: that of `session.profile` where one of rows will do."""
    unit = _unit(norm, statistic)
    if wanted.given is not None or wanted.about.quantity == "rows":
        return row_buckets()
    if unit > 1 and statistic.sum_grid is not None:
        return total_buckets(unit, least=statistic.sum_grid.least)
    if not statistic.distinct:
        return norm_buckets()
    return norm_buckets(math.isqrt(groups - 1) + 1 if norm.gaussian else groups)


def in_words(amount: Fraction, norm: Norm, statistic: Statistic, grouped: bool) -> tuple[Strategy, str]:
    """The chosen bound as a strategy, and what it does, in words."""
    where = " over all groups" if grouped else ""
    kind = 2 if norm.gaussian else 1
    if norm.of_values and statistic.sum_grid is not None:
        shown = written(statistic.sum_grid.units(amount))
        words = f"what a user adds to all groups together is scaled down to {'an L2 norm of ' if norm.gaussian else ''}at most {shown}"
        return NormClip(amount / statistic.sum_grid.steps_per_unit, norm=kind), words
    shown = written(float(amount))
    if norm.gaussian:
        strategy: Strategy = NormClip(amount, norm=2)
        words = f"a user's rows per group are scaled down to an L2 norm of at most {shown}"
    else:
        strategy = SmoothWeights(amount)
        words = f"all rows of a user are used, weighted to count as at most {shown} rows{where}"
    if statistic.distinct:
        most = float(amount**2 if norm.gaussian else amount)
        words = f"each user counts once in a group; users in more than {written(most)} groups count less in each"
    return strategy, words
