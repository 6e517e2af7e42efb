"""Plans for groups: what each bound costs a small, a middling and a large group, and which names would be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.bounding import GroupBound, GroupCurve, GroupSizes, Norm
from evenhand.guarantee import Amount, UsageError, parse_delta, parse_epsilon, plain
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.numbers import percent, three_digits
from evenhand.pages.plan import group_plan_page
from evenhand.pages.style import written
from evenhand.planning.searching import smallest
from evenhand.profiles import Array, Profile
from evenhand.statistics.allocation import Allocation, Mechanism, gaussian_can_win
from evenhand.statistics.foresight import (
    GroupForecast,
    HiddenNames,
    forecast_names,
    rows_of,
    source_of,
    supports_of_rows,
)
from evenhand.statistics.limits import Noises, curves_of

_UNITS = {"count": "rows", "users": "users", "sum": ""}
_NAME = "planned"


@dataclass(frozen=True, repr=False)
class GroupPlan(InNotebooks):
    """A forecast for a release by group, from public facts or a profile that was paid for.

    Guarantee: making and showing a plan spends nothing. A plan made from an exact profile is NOT PRIVATE and says so.

    Args:
        statistic: "count", "users" or "sum".
        profile: users by number of rows.
        epsilon: ε of the planned release.
        delta: its δ.
        largest: what one row adds at most, in the unit of the statistic.
        sizes: of the groups.
        hidden: their names are hidden.
        groups_per_user: with hidden names, how many groups a user supports; the best if None.
    """

    statistic: str
    profile: Profile
    epsilon: Decimal
    delta: Decimal
    largest: float
    sizes: GroupSizes
    hidden: bool
    groups_per_user: int | None = None

    @property
    def groups(self) -> int:
        """How many there are."""
        return self.sizes.count

    def curves(self) -> tuple[GroupCurve, ...]:
        """The forecast over the whole range of bounds: for Laplace noise, and for Gaussian noise where that can win."""
        allocation = self._allocation()
        if self.hidden and (left := self._names()[0].way.rho):
            allocation = allocation.beside(left)
        rho = allocation.rho(_NAME) if allocation.delta or allocation.left else None
        noises = Noises(allocation.shares[_NAME].epsilon, rho)
        norms = [Norm.ROWS, *([Norm.SQUARED_ROWS] if rho else [])]
        supports = supports_of_rows(rows_of(self.profile), self.sizes, norms, self.statistic == "users", self.largest)
        curves = curves_of(supports, norms, noises, self.groups)
        return curves[1:] if allocation.left else curves

    def _names(self) -> tuple[HiddenNames, Array]:
        """How hidden names are selected, and how likely each is shown."""
        return forecast_names(self.sizes, rows_of(self.profile), self._allocation(), self.groups_per_user)

    @property
    def best(self) -> GroupForecast:
        """The bound and the noise with the smallest error over all groups."""
        return min(self.best_of_each(), key=lambda forecast: forecast.error)

    def best_of_each(self) -> list[GroupForecast]:
        """The best bound for each kind of noise."""
        rows, names = rows_of(self.profile), self._names() if self.hidden else None
        shares = self.sizes.users(rows) if self.statistic == "users" else None
        curves = self.curves()
        return [
            GroupForecast.of(
                curve.best(self.groups),
                curves[0].total,
                self.sizes,
                _UNITS[self.statistic],
                f"{self.profile.basis}: {source_of(self.profile)}",
                shares,
                names,
            )
            for curve in curves
        ]

    def at(self, epsilon: Amount) -> GroupPlan:
        """The same plan at another ε."""
        return replace(self, epsilon=parse_epsilon(epsilon))

    def epsilon_for(self, error: float) -> float:
        """The smallest ε whose forecast error, as a root mean square over all groups, is at most ``error``."""
        if not (error > 0 and math.isfinite(error)):
            raise UsageError(f"error={error} is not an error to aim at; expected a positive number.")

        def enough(epsilon: float) -> bool:
            curves = self.at(Decimal(repr(epsilon))).curves()
            return min(float(curve.error(self.groups).min()) for curve in curves) <= error

        return smallest(enough, 1e-4, 1e3, "ε")

    def table(self) -> list[dict[str, Any]]:
        """A small, a middling and a large group, for each kind of noise; one dictionary per row, for a frame of any kind."""
        return [
            {"mechanism": forecast.mechanism, "bound": forecast.bound.amount, **group.to_dict()}
            for forecast in self.best_of_each()
            for group in forecast.typical
        ]

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The same as text: headings and rows."""
        head = ("noise", "bound", "group", self.best.unit or "size", "± noise", "cut off", "error", "error %")
        rows = []
        for line in self.table():
            numbers = (line[name] for name in ("size", "noise", "cut", "error"))
            size, noise, cut, error = map(three_digits, numbers)
            part = percent(line["error"] / line["size"]) if line["size"] else ""
            shown = (percent(line["shown"]),) if self.hidden else ()
            kind = line["mechanism"].partition(" ")[0]
            rows.append((kind, three_digits(line["bound"]), line["name"], size, noise, cut, error, part, *shown))
        return (*head, *(("shown",) if self.hidden else ())), rows

    def explain(self) -> str:
        """The plan in plain words."""
        best, delta = self.best, f", δ = {plain(self.delta)}" if self.delta else ""
        what = "number of users" if self.statistic == "users" else self.statistic
        parts = [
            f"For this {what} by {self.groups:,} groups at ε = {plain(self.epsilon)}{delta} the best choice is {best.mechanism} of "
            f"{three_digits(best.bound.amount)}: ± {three_digits(best.bound.noise)} noise in every group, and "
            f"{self._lost(best.bound)} cut off the busiest users. The error over all groups is {three_digits(best.error)} "
            "(root mean square).",
            f"Groups are usable from about {three_digits(float(f'{best.usable_from:.2g}'))} {best.unit} on.".replace(
                "  ", " "
            ),
        ]
        if best.names is not None and best.share_shown is not None:
            parts += [
                f"Names are hidden: a group is shown if about {best.names.needed:,} users support it, each "
                f"{best.names.groups_per_user} of their groups at most; {percent(best.share_shown)} of the groups would be.",
                self._price(best.names.groups_per_user),
            ]
        parts.append(
            f"Based on {best.basis}. Users are taken to be alike in which groups they visit; of those who keep to a few, more is "
            "cut off than this shows."
        )
        if self.profile.guarantee is None and not self.profile.mark:
            parts.append(
                "This assumes that the bound is chosen from this profile. If it is chosen from the table instead, that costs part of ε."
            )
        text = " ".join(parts)
        return f"{self.profile.mark}.\n{text}" if self.profile.mark else text

    def to_dict(self) -> dict[str, Any]:
        """The plan as data."""
        data: dict[str, Any] = {"mark": self.profile.mark} if self.profile.mark else {}
        return data | {
            "statistic": self.statistic,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "groups": self.groups,
            "hidden": self.hidden,
            "basis": str(self.profile.basis),
            "profile": self.profile.words,
            "best": self.best.to_dict(),
            "mechanisms": [forecast.to_dict() for forecast in self.best_of_each()],
            "words": self.explain(),
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page: the words and the table. Written to ``path`` if given."""
        return written(group_plan_page(self), path)

    def card(self) -> Card:
        """What a notebook shows."""
        title = f"Plan for a {self.statistic} by {self.groups:,} groups at ε = {plain(self.epsilon)}"
        return Card(title, [("in words", self.explain())], *self.cells(), self.profile.mark)

    def __str__(self) -> str:
        head, rows = self.cells()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
        return "\n".join([self.explain(), "", *lines])

    def _allocation(self) -> Allocation:
        """As a release divides ε and δ, with a bound that costs nothing."""
        gaussian = self.hidden or gaussian_can_win(self.epsilon, self.delta, self.groups)
        mechanism = Mechanism.EITHER if gaussian else Mechanism.LAPLACE
        return Allocation.of(self, {_NAME: Fraction(1)}, {_NAME: mechanism}, {_NAME: 0.0}, self.hidden)

    def _lost(self, bound: GroupBound) -> str:
        total = self.curves()[0].total
        return f"{bound.lost / total:.1%}" if total else "nothing"

    def _price(self, most: int) -> str:
        """What it would cost to learn the sizes of groups from the table."""
        noise = math.sqrt(2) * 2 * most / (float(self.epsilon) / 10)
        return (
            "How large groups are is assumed, not read off the table: a user who supports k groups "
            f"moves each of them from one size to another, so a histogram of groups by size has sensitivity 2k. With k = {most} a "
            f"tenth of ε would buy it with ± {three_digits(noise)} groups in each bucket."
        )


def plan_groups(
    statistic: str,
    profile: Profile,
    epsilon: Amount,
    delta: Amount,
    bounds: tuple[float, float] | None,
    groups: int | Sequence[float],
    hidden: bool,
    groups_per_user: int | None,
) -> GroupPlan:
    """Check what was asked for, and plan it."""
    if statistic not in _UNITS:
        raise UsageError(f"statistic={statistic!r} can't be planned by groups; expected one of {list(_UNITS)}.")
    if isinstance(groups, int | np.integer):
        if isinstance(groups, bool) or not 2 <= groups <= 10_000_000:
            raise UsageError(
                f"groups={groups!r}: expected a number of groups between 2 and 10,000,000, or their sizes."
            )
        sizes = GroupSizes.assumed(int(groups))
    else:
        sizes = GroupSizes.given(groups)
    given = parse_delta(delta)
    if hidden and not given:
        raise UsageError(
            "hidden=True needs delta: groups whose names are hidden are selected privately; give delta=1e-6."
        )
    if groups_per_user is not None and not hidden:
        raise UsageError("groups_per_user= goes with hidden=True: public names need no selection.")
    largest = max(abs(bounds[0]), abs(bounds[1])) if bounds else 1.0
    return GroupPlan(statistic, profile, parse_epsilon(epsilon), given, largest, sizes, hidden, groups_per_user)
