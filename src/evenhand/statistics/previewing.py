"""The forecast for the groups of one statistic, before it is paid for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.bounding import GroupBound, GroupCurve, GroupSizes, Norm, finely, l2_of_rows
from evenhand.profiles import Support, Wanted, rows_with
from evenhand.statistics.foresight import MECHANISMS, GroupForecast, NoForecast, rows_of, source_of
from evenhand.statistics.keys import Keys
from evenhand.statistics.limits import Noises, curves_of, given_amount, known_curves
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Statistic

_BOUNDS = (1, 10, 100)
_PROFILE = (
    "it needs to know how many rows users have. Give a public prior, such as bounding=eh.Auto(profile=eh.Profile.pareto(1.5, "
    "users=10_000, rows=200_000)), or buy that from the table: session.profile(epsilon=0.05)"
)
_GROUPS = (
    "how many groups there are is hidden. Plan with a public guess: eh.plan({name!r}, profile, groups=300, hidden=True, "
    "epsilon=..., delta=...)"
)


def foreseen(
    request: Request,
    statistic: Statistic,
    keys: Keys | None,
    norms: Sequence[Norm],
    wanted: Sequence[Wanted],
    noises: Noises,
) -> GroupForecast | NoForecast:
    """The forecast for a total by group.

    Guarantee: reads public facts, and profiles that were given or paid for; nothing of the table.
    """
    if keys is None:
        return NoForecast(_GROUPS.format(name=statistic.name), _noises(request, statistic, norms, noises))
    sizes, shares = GroupSizes.assumed(keys.groups), None
    if wanted and all(one.known is not None for one in wanted):
        curves = known_curves(norms, statistic, wanted, noises, sizes.count)
        basis = source_of(wanted[0].known) if wanted[0].known is not None else ""
    else:
        profile = request.shelf.find(request.table, rows_with((), ""))
        if profile is None:
            return NoForecast(_PROFILE, _noises(request, statistic, norms, noises))
        rows = rows_of(profile)
        supports = supports_of_rows(rows, sizes, norms, statistic.distinct, _row(statistic, norms[0]))
        curves = curves_of(supports, norms, noises, sizes.count)
        shares = sizes.users(rows) if statistic.distinct else None
        basis = f"{source_of(profile)}, as if all rows were in these groups"
    unit = _unit(request, statistic, norms[0])
    bound = _bound(request, statistic, norms, curves, sizes.count)
    scaled = GroupBound(bound.gaussian, bound.amount * unit, bound.noise * unit, bound.lost * unit)
    return GroupForecast.of(scaled, curves[0].total * unit, sizes, counted(statistic), basis, shares)


def supports_of_rows(
    rows: Support, sizes: GroupSizes, norms: Sequence[Norm], distinct: bool, unit: float
) -> list[Support]:
    """Users by each norm, if only their number of rows is known: rows fall into groups by their size.

    Args:
        rows: users by number of rows.
        sizes: of the groups.
        norms: to be bounded.
        distinct: a user counts once in each group.
        unit: what one row adds to the L1 norm.
    """
    if distinct:
        fine = Support(*finely(rows))
        groups = Support(sizes.visited(fine.sizes), fine.users)
        return [Support(np.sqrt(groups.sizes), groups.users) if norm.gaussian else groups for norm in norms]
    lowest = None if rows.lowest is None else rows.lowest * unit
    added = Support(rows.sizes * unit, rows.users, lowest)
    return [l2_of_rows(added, sizes.count, unit) if norm.gaussian else added for norm in norms]


def counted(statistic: Statistic) -> str:
    """What the sizes of groups count; nothing for a sum."""
    return "" if statistic.sum_grid is not None else "users" if statistic.distinct else "rows"


def _bound(
    request: Request, statistic: Statistic, norms: Sequence[Norm], curves: Sequence[GroupCurve], groups: int
) -> GroupBound:
    """The bound that the analyst gave, or the best, as it will be chosen."""
    if request.strategy is None:
        return min((curve.best(groups) for curve in curves), key=lambda bound: bound.error(groups))
    amount = float(given_amount(request.strategy, norms[0], statistic)[0])
    curve = curves[0]
    lost = float(np.interp(amount, curve.bounds, curve.lost))
    return GroupBound(curve.gaussian, amount, amount * float(curve.noise[0] / curve.bounds[0]), lost)


def _unit(request: Request, statistic: Statistic, norm: Norm) -> float:
    """What one step of the norm is worth in the statistic."""
    if statistic.sum_grid is None:
        return statistic.reach(request.relation)
    return statistic.sum_grid.units(1 if norm.of_values else statistic.sum_grid.reach)


def _row(statistic: Statistic, norm: Norm) -> int:
    """What one row adds to the norm, at most."""
    return statistic.sum_grid.reach if norm.of_values and statistic.sum_grid is not None else 1


def _noises(
    request: Request, statistic: Statistic, norms: Sequence[Norm], noises: Noises
) -> dict[str, dict[str, float]]:
    """By mechanism, the noise in each group: for the bound that was given, or for a few."""
    found: dict[str, dict[str, float]] = {}
    for norm in norms:
        unit, row = _unit(request, statistic, norm), _row(statistic, norm)
        bounds = {f"{bound}": float(bound * row) for bound in _BOUNDS}
        if request.strategy is not None:
            bounds = {
                f"{float(request.strategy.bound or 0):g}": float(given_amount(request.strategy, norm, statistic)[0])
            }
        noise = noises.per_step(norm.gaussian) * unit
        found[MECHANISMS[norm.gaussian]] = {bound: amount * noise for bound, amount in bounds.items()}
    return found
