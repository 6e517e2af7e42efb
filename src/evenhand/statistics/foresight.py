"""What a release by group is forecast to lose, and to what: noise, the bound on a user, names that are not shown.

For previews and plans. It reads public facts, priors and profiles that are paid for, and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from evenhand.bounding import GroupBound, GroupCurve, GroupSizes, Norm, finely, l2_of_rows
from evenhand.noise import Way
from evenhand.pages.numbers import percent, three_digits
from evenhand.profiles import Array, Profile, Support, Wanted, over, row_buckets, rows_with
from evenhand.release import OfSize
from evenhand.release.verdicts import PART
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.keys import Keys
from evenhand.statistics.limits import Noises, curves_of, given_amount, known_curves
from evenhand.statistics.request import Request
from evenhand.statistics.selection import priced, purses_of
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.support_choice import chosen_way, given_way, needed
from evenhand.statistics.support_words import facts

MECHANISMS = {False: "Laplace noise, L1 bound", True: "Gaussian noise, L2 bound"}
_REACH = {False: math.log(20) / math.sqrt(2), True: 1.96}
"""How far the 95% interval of Laplace and of Gaussian noise reaches, in standard deviations."""


@dataclass(frozen=True)
class TypicalGroup:
    """What is forecast for one group.

    Args:
        name: small, middling or large.
        size: what there is to be counted, or summed.
        noise: standard deviation.
        cut: what the bound on a user cuts off.
        shown: with hidden names, the probability that the group is shown at all.
    """

    name: str
    size: float
    noise: float
    cut: float
    shown: float | None = None

    @property
    def error(self) -> float:
        """Root mean square of noise and cut, if the group is shown."""
        return math.hypot(self.noise, self.cut)

    @property
    def dropped(self) -> float:
        """What is lost on average because the group may not be shown."""
        return 0.0 if self.shown is None else (1 - self.shown) * self.size

    def to_dict(self) -> dict[str, Any]:
        """As data, with all losses."""
        return asdict(self) | {"dropped": self.dropped, "error": self.error}

    def __str__(self) -> str:
        shown = "" if self.shown is None else f", shown in {percent(self.shown)} of cases"
        return (
            f"a {self.name} group (about {three_digits(self.size)}): ± {three_digits(self.noise)} noise, "
            f"{three_digits(self.cut)} cut off{shown}"
        )


@dataclass(frozen=True)
class HiddenNames:
    """How hidden names are selected, and what that needs.

    Args:
        way: the mechanism.
        groups: users by number of groups.
    """

    way: Way
    groups: Support

    @property
    def needed(self) -> int:
        """About how many users a group needs who are in no other."""
        return round(needed(self.way))

    @property
    def groups_per_user(self) -> int:
        """How many groups a user supports at most."""
        return self.way.groups

    def weight(self, groups: Array) -> Array:
        """What users who are in so many groups add to each that they support."""
        look = self.way.rounds[-1]
        return np.array([float(look.weight(min(max(1, round(m)), self.way.groups))) for m in groups.tolist()])

    def supports(self, sizes: GroupSizes, rows: Support) -> Array:
        """For each size, the expected support of a group."""
        return sizes.users(
            Support(rows.sizes, rows.users * self.weight(sizes.visited(rows.sizes))), self.groups_per_user
        )

    def shown(self, support: Array) -> Array:
        """How likely groups with so much support are shown."""
        look = self.way.rounds[-1]
        name, scale = look.like
        missing = (look.needed - support) / float(scale)
        if name == "normal":
            return np.array([NormalDist().cdf(-far) for far in missing])
        tail = np.exp(-np.abs(missing)) / 2
        return np.where(missing > 0, tail, 1 - tail)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return facts(self.way, self.groups)


def forecast_names(
    sizes: GroupSizes, rows: Support, allocation: Allocation, limit: int | None
) -> tuple[HiddenNames, Array]:
    """The selection and, for each size, how likely a group is shown: as `selection.py` does it."""
    visited = np.maximum(sizes.visited(rows.sizes), 1.0)
    order = np.argsort(visited)
    groups = Support(visited[order], rows.users[order])
    way = chosen_way(groups, priced(allocation)[1]) if limit is None else given_way(limit, purses_of(allocation))
    names = HiddenNames(way, groups)
    return names, names.shown(names.supports(sizes, rows))


@dataclass(frozen=True)
class GroupForecast:
    """The forecast for a release by group.

    Args:
        groups: how many.
        bound: on a user, with its noise and what it cuts off, in the unit of the statistic.
        typical: a small, a middling and a large group.
        unit: what sizes count.
        basis: what is known about users, and what is assumed about groups.
        names: how hidden names are selected.
        share_shown: the expected part of the groups that is shown.
    """

    groups: int
    bound: GroupBound
    typical: tuple[TypicalGroup, ...]
    unit: str
    basis: str
    names: HiddenNames | None = None
    share_shown: float | None = None

    @classmethod
    def of(
        cls,
        bound: GroupBound,
        total: float,
        sizes: GroupSizes,
        unit: str,
        basis: str,
        shares: Array | None = None,
        names: tuple[HiddenNames, Array] | None = None,
    ) -> GroupForecast:
        """Spread what is there, and what is cut off, over the groups.

        Args:
            bound: chosen or given.
            total: what all groups hold together.
            sizes: of the groups.
            unit: what the total counts.
            basis: of the total and the bound.
            shares: what a group of each size holds of the total; as of the rows if None.
            names: of a selection, with how likely groups are shown.
        """
        held = sizes.parts if shares is None else shares / float(sizes.groups @ shares)
        shown = None if names is None else names[1]
        typical = tuple(
            TypicalGroup(
                name,
                total * float(held[k]),
                bound.noise,
                bound.lost * float(held[k]),
                None if shown is None else float(shown[k]),
            )
            for name, k in sizes.typical().items()
        )
        share = None if shown is None else float(sizes.groups @ shown) / sizes.count
        words = f"{basis}; {sizes.words}"
        return cls(sizes.count, bound, typical, unit, words, None if names is None else names[0], share)

    @property
    def error(self) -> float:
        """Root mean squared error over all groups."""
        return self.bound.error(self.groups)

    @property
    def usable_from(self) -> float:
        """The size from which a group is precise enough to be used, by the rule of counts and sums."""
        return _REACH[self.bound.gaussian] * self.bound.noise / PART

    @property
    def mechanism(self) -> str:
        """The noise and the norm that is bounded."""
        return MECHANISMS[self.bound.gaussian]

    def lines(self) -> list[tuple[str, str]]:
        """The forecast in words, with names for its parts."""
        lines = [
            ("forecast", f"{'; '.join(map(str, self.typical))} (in {self.unit or 'the unit of the values'})"),
            (
                "noise per group",
                f"± {three_digits(self.bound.noise)} in each of {self.groups:,} groups ({self.mechanism} of "
                f"{three_digits(self.bound.amount)}); usable {self._from()}",
            ),
            ("forecast from", self.basis),
        ]
        if self.names is not None and self.share_shown is not None:
            shown = f"{percent(self.share_shown)} of the groups"
            need = f"a group needs about {self.names.needed:,} users who are in no other, more of those who are"
            lines.insert(1, ("likely shown", f"{shown}; {need}"))
        return lines

    def _from(self) -> str:
        words = OfSize(self.unit).needed(self.usable_from * PART, 0.0, None)
        return words.replace("below", "from", 1) + " on"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        data: dict[str, Any] = {
            "groups": self.groups,
            "mechanism": self.mechanism,
            "bound": self.bound.amount,
            "noise": self.bound.noise,
            "lost": self.bound.lost,
            "error": self.error,
            "usable_from": self.usable_from,
            "unit": self.unit,
            "typical": [group.to_dict() for group in self.typical],
            "basis": self.basis,
        }
        if self.names is not None:
            data |= {"selection": self.names.to_dict(), "share_shown": self.share_shown}
        rounded: dict[str, Any] = _rounded(data)
        return rounded


@dataclass(frozen=True)
class NoForecast:
    """What can be said without a profile: what is missing, and the noise for a few bounds.

    Args:
        missing: what is not known, and how to get it.
        noises: by mechanism, the noise in each group for a few bounds on a user, in rows; for the bound that was given.
    """

    missing: str
    noises: Mapping[str, Mapping[str, float]]

    def lines(self) -> list[tuple[str, str]]:
        """In words."""
        noises = "; ".join(
            f"{name} of {', '.join(of)}: ± {', ± '.join(map(three_digits, of.values()))}"
            for name, of in self.noises.items()
        )
        return [("forecast", f"none yet: {self.missing}"), ("noise per group", noises)]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"missing": self.missing, "noise_for_bounds": self.noises}


def source_of(profile: Profile) -> str:
    """Where a profile comes from, with its mark."""
    return f"{profile.mark}: {profile.words}" if profile.mark else profile.words


def rows_of(profile: Profile) -> Support:
    """Users by number of rows, those too few to be seen included: as bounds over groups are chosen."""
    return over(profile, row_buckets()).smoothed


def _rounded(data: Any) -> Any:  # noqa: ANN401 - plain data of any shape
    """Figures with six digits: sums of floats may differ in the last bit from one run to the next, and a forecast knows less."""
    if isinstance(data, float):
        return float(f"{data:.6g}")
    if isinstance(data, dict):
        return {name: _rounded(value) for name, value in data.items()}
    return [_rounded(value) for value in data] if isinstance(data, list) else data


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
