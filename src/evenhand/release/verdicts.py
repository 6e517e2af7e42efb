"""Whether released numbers can be used or are too noisy, in words.

A number is usable if its 95% interval reaches at most as far from it as the rule of its kind allows (`rules.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.pages.numbers import rounded, three_digits, written
from evenhand.release.intervals import Interval, why_not

if TYPE_CHECKING:
    from evenhand.release.result import Release


_FEW = "too few people for this ε"
_PRECISE = 0.1
"""What a total that is not usable is compared with: ±10%."""


@dataclass(frozen=True)
class Judged:
    """A released number, with its interval and its rule; ``why`` says why the interval itself can't tell where the truth is."""

    value: float
    low: float
    high: float
    rule: Rule | None
    rows: float | None = None
    why: str = ""

    @property
    def reach(self) -> float:
        """How far the interval reaches to either side, on average: what was cut off can only lie on one of them."""
        return (self.high - self.low) / 2

    @property
    def usable(self) -> bool:
        """Whether it is precise enough, and the interval can tell."""
        return self.precise and not self.why

    @property
    def precise(self) -> bool:
        """Whether the interval is narrow enough; what nothing is known about is not called too wide."""
        return self.rule is None or not (math.isnan(self.value) or self.reach > self.rule.allowed(self.value))

    @property
    def precision(self) -> str:
        """How far the interval reaches, as a part of the value, or beside the bounds; empty where that says nothing."""
        if not math.isfinite(self.reach):
            return ""
        if isinstance(self.rule, OfSpread) and self.reach > PART * abs(self.value):
            return f"± {rounded(self.reach, self.reach)}, which is little beside its bounds"
        if isinstance(self.rule, OfComputed) and self.reach > PART * abs(self.value):
            return f"± {rounded(self.reach, self.reach)}, which is little beside what it is computed from"
        if not self.value:
            return ""
        return f"± {written(100 * self.reach / abs(self.value), 2)}%" if self.reach else "exact"

    @property
    def needed(self) -> str:
        """Below which size such a group is too noisy."""
        return "" if self.rule is None else self.rule.needed(self.reach, self.value, self.rows)


@dataclass(frozen=True)
class Verdict:
    """Whether a release can be used.

    Args:
        numbers: what was released, by column; one number for each group, or just one.
        groups: what the groups are called; empty for a release without groups.
        nothing: why a release with groups shows none.
        epsilon: what the release cost.
    """

    numbers: Mapping[str, Sequence[Judged]]
    groups: str = ""
    nothing: str = ""
    epsilon: float = math.nan

    @functools.cached_property
    def flags(self) -> dict[str, list[bool]]:
        """Whether each number is usable, by column."""
        return {name: [number.usable for number in column] for name, column in self.numbers.items()}

    @functools.cached_property
    def rows(self) -> list[bool]:
        """For each group, whether all its numbers are usable."""
        return [all(flags) for flags in zip(*self.flags.values(), strict=True)]

    @property
    def usable(self) -> bool:
        """Whether most groups are usable, in one column at least; without groups, whether every number is."""
        if not self.groups:
            return bool(self.rows) and all(self.rows)
        return any(sum(flags) > len(flags) / 2 for flags in self.flags.values())

    @property
    def words(self) -> str:
        """How precise what can be used is, for a reader."""
        if self.groups:
            return f"yes, all {len(self.rows)} {self.groups}" if all(self.rows) else f"yes, most; {self.why}"
        precise = [number.precision for column in self.numbers.values() for number in column]
        return f"yes: {', '.join(precise)}" if all(precise) else "yes"

    @property
    def why(self) -> str:
        """What is too noisy, in a sentence; empty if nothing is."""
        if not self.rows:
            return self.nothing
        each = {name: self._why(column) for name, column in self.numbers.items()}
        found = {name: words for name, words in each.items() if words}
        words = "; ".join(f"{name}: {why}" if len(each) > 1 else why for name, why in found.items())
        judged = [number for column in self.numbers.values() for number in column]
        told = not self.groups and any(number.why or isinstance(number.rule, OfSize) for number in judged)
        told |= any(isinstance(number.rule, NothingFound) for number in judged)
        help = "more ε or larger groups would help" if self.groups else "more ε would help"
        return words if self.usable or told else f"{words}; {help}"

    def _why(self, column: Sequence[Judged]) -> str:
        noisy = [number for number in column if not number.usable]
        if not noisy:
            return ""
        reason = next((number.why for number in noisy if number.why), "")
        if isinstance(noisy[0].rule, NothingFound):
            return noisy[0].needed
        if not self.groups and isinstance(noisy[0].rule, OfSize):
            return reason if noisy[0].precise else self._too_few(noisy[0])
        if reason and not self.groups:
            return reason
        # Where the noise of a mean is known best: in the largest group.
        known = max(column, key=lambda number: number.rows or 0.0) if noisy[0].rows is not None else noisy[0]
        if not self.groups:
            value, reach = (rounded(float(number), known.reach / 2) for number in (known.value, known.reach))
            return f"{value} ± {reach} is too noisy to use ({known.needed})"
        those = f"all {len(column)}" if len(noisy) == len(column) > 1 else f"{len(noisy)} of {len(column)}"
        return f"{those} {self.groups} {'is' if len(noisy) == 1 else 'are'} too noisy to use ({reason or known.needed})"

    def _too_few(self, number: Judged) -> str:
        """What it would take for a total: its error falls with ε, and with the number of people if they are alike."""
        if not number.why and math.isinf(number.reach):
            return f"{_FEW}: the value may be anything; more people or more ε would help"
        value, reach = (rounded(float(figure), number.reach / 2) for figure in (number.value, number.reach))
        said = f"{value} ± {reach} is too noisy to use"
        if isinstance(number.rule, OfDeviation) and number.low <= 0 and math.isfinite(number.reach):
            said = f"no differences between values stand out from the noise: it lies between 0 and {rounded(number.high, number.reach)}, or above if a few users differ from all others"
            return f"{said}; {number.why}" if number.why else said
        if number.why:
            said = f"{said}; {number.why}"
        if not math.isfinite(number.reach) or not self.epsilon > 0:
            return said
        lost = abs(number.value) < number.reach  # it may be nothing but noise
        times = float(f"{number.reach / max(abs(number.value), number.reach) / _PRECISE:.1g}")
        few = "" if _FEW in said else f"{_FEW}: "  # a reason may have said so
        return (
            f"{said}; {few}{'at least' if lost else 'about'} {times:,.0f} times more people, or ε = "
            f"{times * self.epsilon:.2g}, would give ±{_PRECISE:.0%}"
        )


def verdict_of(release: Release, interval: Any, source: Interval) -> Verdict:  # noqa: ANN401 - ends, or a frame
    """The verdict on a release, from its 95% interval.

    Args:
        release: what was released.
        interval: its ends; a frame when grouped.
        source: where they come from. It may say by column about how many rows each group has (``sizes``), and why it can't tell
            where the truth is (``why``, or ``whys`` for several); and that of a quantile, which values are the ``same`` for a reader.
    """
    rules = release.rules
    sizes: Mapping[str, Sequence[float | None]] = getattr(source, "sizes", {})
    whys: Any = getattr(source, "whys", {})
    if not release.grouped:
        several = isinstance(release.value, list | tuple)
        values = list(release.value) if several else [release.value]
        ends = list(interval) if several else [interval]
        names = list(rules) if len(rules) == len(values) else [str(place) for place, _ in enumerate(values)]
        if len(rules) == len(values):
            same = max(getattr(one, "same", 0.0) for one in getattr(source, "intervals", [source]))
            rules = OfQuantiles.beside(rules, dict(zip(names, values, strict=True)), same)
        return Verdict(
            {
                name: [Judged(value, low, high, rules.get(name), why=why)]
                for name, value, (low, high), why in zip(
                    names, values, ends, whys or [why_not(source)] * len(values), strict=True
                )
            },
            epsilon=float(release.guarantee.epsilon),
        )
    columns = {}
    computed: Mapping[str, Sequence[Rule | None]] = getattr(source, "rules", {})
    each = [
        OfQuantiles.beside({name: rules[name] for name in rules if name in row}, row)
        for row in interval[release.value_columns].to_dict("records")
    ]
    for name in release.value_columns:
        numbers = (interval[column].tolist() for column in (name, f"{name}_low", f"{name}_high"))
        columns[name] = [
            Judged(value, low, high, rule, rows, why)
            for value, low, high, rule, rows, why in zip(
                *numbers,
                computed.get(name) or [rule.get(name) for rule in each],
                sizes.get(name) or [None] * len(interval),
                whys.get(name) or [""] * len(interval),
                strict=True,
            )
        ]
    return Verdict(columns, "cells" if release.cells else "groups", _nothing(release.details.get("selection")))


def _nothing(selection: Mapping[str, Any] | None) -> str:
    if selection is None:
        return "there is no group to show"
    needed = selection.get("users_needed")
    support = f" of about {needed:,} users" if isinstance(needed, int) else ""
    return (
        f"no group is shown, because none reached the support{support} that it needs; more ε, coarser groups, or public "
        "keys (keys=[...]) would help"
    )


PART = 0.25
"""How far the interval may reach, as a part of what matters: the value of a count, the spread of what is averaged.

Laplace noise of scale b has a 95% interval of ± 3b. A group that holds nobody then looks usable only from 12b on, with
probability 3e-6: public keys that don't occur are not called usable by chance, even where there are tens of thousands. And of
two usable groups it is visible which is larger, if one is half as large again.
"""

NEGLIGIBLE = 1 / 800
"""How far the interval of a mean or quantile may reach in any case, as a part of its bounds: 0.0002 ± 0.0012 is known well where values lie between 0 and 1, whatever part
of itself it is. Of long tails (spending, visits) this is a few percent of the mean, so that bounds a few times too wide call nothing usable that is not.
"""

SPREAD = 0.25
"""Standard deviation of a single value, as a part of its bounds: a public guess, the same as in plans."""


class Rule(Protocol):
    """How far an interval may reach from a value that is to be used."""

    def allowed(self, value: float) -> float:
        """How far, at most."""

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        """Below which size groups are too noisy, given how far the interval of one of them reaches; in words."""


@dataclass(frozen=True)
class OfSize:
    """For counts, sums, and all that is large or small by itself: a quarter of the value.

    Args:
        unit: what it counts.
    """

    unit: str = ""

    def allowed(self, value: float) -> float:
        return PART * abs(value)

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        return f"below about {about(reach / PART)} {self.unit}".rstrip()


@dataclass(frozen=True)
class OfSpread:
    """For means and quantiles: a quarter of the standard deviation of a single value, which is taken to be a quarter of the range.

    Where all values have one sign, at most a quarter of the value too, or next to nothing (`NEGLIGIBLE`): bounds that are far too wide
    would make everything usable.

    Args:
        low: the smallest value.
        high: the largest.
    """

    low: float
    high: float

    def allowed(self, value: float) -> float:
        width = self.high - self.low
        spread = PART * SPREAD * width
        return spread if self.low < 0 < self.high else max(min(spread, PART * abs(value)), NEGLIGIBLE * width)

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        allowed = self.allowed(value)
        if rows is None or not rows > 0 or not allowed > 0:
            return f"wider than ± {rounded(allowed)}"
        return (
            f"below about {about(reach / allowed * rows)} weighted rows"  # the noise of a mean falls with their number
        )


@dataclass(frozen=True)
class OfQuantiles(OfSpread):
    """For quantiles: a small one beside large ones, often 0, is compared with the largest.

    Args:
        low: the smallest value.
        high: the largest.
        largest: of the quantiles that were asked together.
        same: how far apart values are that are the same for a reader.
    """

    largest: float = 0.0
    same: float = 0.0

    def allowed(self, value: float) -> float:
        return max(super().allowed(max(abs(value), self.largest)), self.same)

    @staticmethod
    def beside(rules: Mapping[str, Rule], values: Mapping[str, float], same: float = 0.0) -> dict[str, Rule]:
        """The rules for quantiles that were released together."""
        largest = max((abs(values[name]) for name, rule in rules.items() if isinstance(rule, OfQuantiles)), default=0.0)
        return {
            name: replace(rule, largest=largest, same=same) if isinstance(rule, OfQuantiles) else rule
            for name, rule in rules.items()
        }


@dataclass(frozen=True)
class OfDeviation(OfSize):
    """For variances and standard deviations: a quarter of the value. One that may be 0 is not called small beside the bounds: a few users
    who differ from all others would not show, and a few flags in a column of zeros are most of its variance."""


@dataclass(frozen=True)
class OfComputed(OfSize):
    """For computed numbers: a quarter of the value, or what the numbers that it was computed from allow.

    Args:
        reach: that.
    """

    reach: float = 0.0

    def allowed(self, value: float) -> float:
        return max(super().allowed(value), self.reach)

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        return f"wider than ± {rounded(self.allowed(value))}"


_NO_BOUNDS = "no bounds"


@dataclass(frozen=True)
class NothingFound:
    """For numbers whose bounds could not be found, or only far too wide ones: whatever they are, they say nothing.

    Args:
        what: what could be found.
        why: why no more.
        help: what to do.
    """

    what: str = _NO_BOUNDS
    why: str = "too few people for this ε"
    help: str = "give bounds=(low, high), or more ε"

    @property
    def says_nothing(self) -> bool:
        """Whether the number is noise over all that a column may hold, so that no number is shown."""
        return self.what == _NO_BOUNDS

    def allowed(self, value: float) -> float:
        return -1.0

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        return f"{self.what} could be found: {self.why}; {self.help}"


def about(size: float) -> str:
    """A size with two digits: it is a rough one."""
    size = float(f"{size:.2g}")
    return f"{size:,.0f}" if 1000 <= size < 1e15 else three_digits(size)
