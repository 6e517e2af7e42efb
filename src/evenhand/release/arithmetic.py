"""Arithmetic on releases: ``spend / visits``, ``a - b``, ``1 - share``, ``by_month / by_month.total()``, ``a > b``.

Behind each released number stands a law of where the truth lies: the noise, and what bounding may have taken away. Arithmetic draws from these
laws, computes with the draws, and reads intervals, verdicts and comparisons off the results. It reads released numbers only, so it costs nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.guarantee import Guarantee, UsageError, exact_text, told
from evenhand.pages.numbers import percent
from evenhand.release.believed import ends_of
from evenhand.release.described import Bounding, Error
from evenhand.release.draws import (
    AT_ONCE,
    DRAWS,
    DRAWS_BY_GROUP,
    VIEWS,
    Array,
    Known,
    Levels,
    Places,
    Released,
    View,
)
from evenhand.release.intervals import Ends, Interval, covers, judged, noise_only, why_not
from evenhand.release.operands import Operand, computed, lookup_key, together, union
from evenhand.release.verdicts import PART, NothingFound, OfComputed, OfQuantiles, Rule

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.release.result import Release


_DEVIATION = 0.6827


@dataclass(frozen=True)
class Combination:
    """The intervals of computed numbers, by column.

    Args:
        columns: with the same groups.
        view: of the truth, of the noise alone, or what a verdict reads.
    """

    columns: Mapping[str, Operand]
    view: View = "truth"

    def at(self, confidence: float) -> Ends:
        keys = next(iter(self.columns.values())).keys
        if keys is None:
            ends = [tuple(self._ends(one, confidence)[:, 0].tolist()) for one in self.columns.values()]
            return ends if len(ends) > 1 else ends[0]
        frame = keys.copy()
        for name, one in self.columns.items():
            low, high = self._ends(one, confidence)
            frame[name], frame[f"{name}_low"], frame[f"{name}_high"] = one.values, low, high
        return frame

    def _ends(self, one: Operand, confidence: float) -> Array:
        """Lower and upper ends; what may be anything counts below as well as above. No estimate lies outside its interval."""
        if not len(one.values):
            return np.zeros((2, 0))
        if one.own is not None:
            return np.array(ends_of([VIEWS[self.view](each) for each in one.own], confidence)).T
        found = []
        for start in range(0, len(one.values), AT_ONCE):
            some = np.arange(start, min(start + AT_ONCE, len(one.values)))
            draws = drawn_from(one, self.view, some)
            out = max(math.ceil((1 - confidence) / 2 * draws.shape[1]) - 1, 0)
            low, high = (np.sort(np.where(np.isnan(draws), end, draws), axis=1) for end in (-np.inf, np.inf))
            found.append(np.stack([low[:, out], high[:, -1 - out]]))
        ends = np.concatenate(found, axis=1)
        if self.view != "noise":
            ends[0], ends[1] = np.fmin(ends[0], one.values), np.fmax(ends[1], one.values)
        return ends

    @property
    def noise_only(self) -> Combination:
        """The noise alone."""
        return replace(self, view="noise")

    @property
    def judged(self) -> Combination:
        """What a verdict reads."""
        open = any(judged(one) is not one for column in self.columns.values() for one in column.law.sources)
        return replace(self, view="judged") if open else self

    @property
    def covers(self) -> str:
        """What the intervals cover."""
        return "; ".join(dict.fromkeys(one.covers for one in self.columns.values() if one.covers)) or "covers the noise"

    @property
    def why(self) -> str:
        """Why the truth can't be told."""
        return "; ".join(dict.fromkeys(filter(None, (why for one in self.columns.values() for why in one.whys))))

    @property
    def whys(self) -> Any:  # noqa: ANN401 - by column where there are groups
        """The same for each number."""
        if next(iter(self.columns.values())).keys is None:
            return [one.whys[0] for one in self.columns.values()]
        return {name: list(one.whys) for name, one in self.columns.items()}

    @property
    def rules(self) -> dict[str, list[Rule | None]]:
        """When each number is precise enough to be used."""
        return {name: rules_of(one) for name, one in self.columns.items()}


def rules_of(one: Operand) -> list[Rule | None]:
    """When each number is precise enough to be used."""
    return list(one.rules) if one.rules else [OfComputed(reach=float(reach)) for reach in one.allowed]


def drawn_from(one: Operand, view: View, places: Places) -> Array:
    """Draws of these groups."""
    with np.errstate(all="ignore"):  # a warning would show what was released
        return one.law.draws(view, places, DRAWS if len(one.values) == 1 else DRAWS_BY_GROUP)


@dataclass(frozen=True)
class Comparison:
    """Whether one released number is larger than another: how likely it is, on the models behind their intervals.

    Args:
        words: the comparison.
        probability: a number, or a frame with one row for each group.
    """

    words: str
    probability: Any

    def __bool__(self) -> bool:
        raise UsageError(
            f"{self.words} is not known for certain, so it has no truth value; ask for .probability, for example "
            "(a > b).probability > 0.95."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        grouped = hasattr(self.probability, "columns")
        return {
            "comparison": self.words,
            "probability": self.probability.to_dict("records") if grouped else self.probability,
        }

    def __str__(self) -> str:
        if hasattr(self.probability, "columns"):
            return f"{self.words}\n{self.probability.to_string(index=False)}"
        return f"{self.words}: probability {_chance(self.probability)}"

    __repr__ = __str__


def _chance(probability: float) -> str:
    if 0.01 <= probability <= 0.99:
        return percent(probability)
    return "over 99%" if probability > 0.5 else "under 1%"


def compared(words: str, difference: Operand) -> Comparison:
    """How likely a difference is above 0; what may be anything is as likely above as below."""
    above = []
    for start in range(0, len(difference.values), AT_ONCE):
        places = np.arange(start, min(start + AT_ONCE, len(difference.values)))
        draws = drawn_from(difference, "truth", places)
        above += np.where(np.isnan(draws), 0.5, draws > 0).mean(axis=1).tolist()
    if difference.keys is None:
        return Comparison(words, above[0])
    return Comparison(words, difference.keys.assign(probability=above))


class Arithmetic:
    """What a `Release` can be computed with."""

    __array_ufunc__ = None  # NumPy's numbers leave it to us
    __iter__ = None

    def __add__(self, other: object) -> Release:
        return _operated(self, "+", other)

    def __radd__(self, other: object) -> Release:
        return _operated(self, "+", other, swapped=True)

    def __sub__(self, other: object) -> Release:
        return _operated(self, "-", other)

    def __rsub__(self, other: object) -> Release:
        return _operated(self, "-", other, swapped=True)

    def __mul__(self, other: object) -> Release:
        return _operated(self, "×", other)

    def __rmul__(self, other: object) -> Release:
        return _operated(self, "×", other, swapped=True)

    def __truediv__(self, other: object) -> Release:
        return _operated(self, "/", other)

    def __rtruediv__(self, other: object) -> Release:
        return _operated(self, "/", other, swapped=True)

    def __neg__(self) -> Release:
        return _operated(self, "×", -1, swapped=True)

    def __gt__(self, other: object) -> Comparison:
        return _compared(self, ">", other)

    def __ge__(self, other: object) -> Comparison:
        return _compared(self, ">", other)

    def __lt__(self, other: object) -> Comparison:
        return _compared(self, "<", other)

    def __le__(self, other: object) -> Comparison:
        return _compared(self, "<", other)

    def __getitem__(self, key: Any) -> Release:  # noqa: ANN401 - a column, or the key of a group
        """A column of a frame, by name; or the number of one group, by its key (a tuple where several columns are grouped by).

        Example:
            >>> r["drama"] - r["comedy"]  # doctest: +SKIP
        """
        return _picked(self, key)

    def total(self) -> Release:
        """The sum over all groups that are shown, of counts and sums.

        Example:
            >>> by_month / by_month.total()  # doctest: +SKIP
        """
        one = operand(self)
        if one.keys is None or not len(one.values):
            raise UsageError(f"{one.words} has no groups to add up.")
        if not one.additive:
            raise UsageError(
                f"the groups of {one.words} don't add up to a total: the same people may be in several, or it is an average; expected counts "
                "or sums. Ask for the total itself, without by=."
            )
        return released(self, {one.column: one.total()})


def operand(given: object) -> Operand:
    """A release with one column of numbers, or a number, to compute with."""
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating | Arithmetic):
        raise UsageError(f"can't compute with {told(given)}; expected another answer, or a number.")
    if not isinstance(given, Arithmetic):
        if not math.isfinite(given):
            raise UsageError(f"can't compute with {given}; expected a finite number.")
        value = float(given)
        one = np.array([value])
        return Operand(f"{value:.15g}", "value", one, Known(one), None, np.zeros(1), ("",), "", "", {})
    columns = operands(given)
    if len(columns) != 1:
        raise UsageError(
            f"this answer has the columns {list(columns)}; expected one of them: answer[{next(iter(columns), 'name')!r}]."
        )
    return next(iter(columns.values()))


def operands(given: Arithmetic) -> dict[str, Operand]:
    """The columns of a release, by name."""
    release: Release = given  # type: ignore[assignment]
    source = release._interval
    assert source is not None
    if isinstance(source, Combination):
        return dict(source.columns)
    if release.grouped:
        names = release.value_columns
        keys = release.value[[name for name in release.value.columns if name not in names]]
        columns = {name: release.value[name].tolist() for name in names}
    else:
        keys = None
        values = list(release.value) if isinstance(release.value, list | tuple) else [release.value]
        names = (
            list(release.rules) if len(release.rules) == len(values) else [str(place) for place in range(len(values))]
        )
        columns = {name: [value] for name, value in zip(names, values, strict=True)}
    return {name: _column(release, source, names, name, values, keys) for name, values in columns.items()}


def _column(
    release: Release, source: Interval, names: list[str], name: str, values: Sequence[Any], keys: pd.DataFrame | None
) -> Operand:
    if not all(isinstance(value, int | float) for value in values):
        raise UsageError(f"{release.statistic} is no number to compute with: it is a date or a text.")
    numbers = np.array(values, dtype=np.float64)
    intervals = _intervals(source, names, name, len(values))
    rules = [_rule(release, name, place) for place in range(len(values))]
    allowed = [
        PART * abs(value) if rule is None else rule.allowed(value) for rule, value in zip(rules, values, strict=True)
    ]
    stated = getattr(source, "whys", {})
    whys = list(stated[name]) if isinstance(stated, Mapping) and name in stated else [why_not(one) for one in intervals]
    whys = [
        rule.needed(math.nan, value, None) if isinstance(rule, NothingFound) else why
        for rule, value, why in zip(rules, values, whys, strict=True)
    ]
    if hasattr(source, "confidences"):  # read from a file, without rules: the verdict is what it was
        usable = dict(zip(names, release.verdict.flags.values(), strict=True))[name]
        whys = ["" if one else "an answer that it is computed from is not usable" for one in usable]
    event = release.event or f"{release.statistic}/{sorted(_events(release))}"
    bought = [purchase.event for purchase in release.guarantee.earlier if purchase.event]
    return Operand(
        release.statistic if len(names) == 1 else name,
        name,
        numbers,
        Released(event, bought[0] if bought else event, name, intervals),
        keys,
        np.maximum(allowed, 0.0),
        tuple(whys),
        covers(source),
        release.units.get(name, ""),
        _events(release),
        name in release.additive,
        None if hasattr(source, "confidences") else tuple(rules),
    )


def _rule(release: Release, name: str, place: int) -> Rule | None:
    rules: Mapping[str, Rule] = release.rules
    if any(isinstance(rule, OfQuantiles) for rule in rules.values()):
        row = release.value.iloc[place] if release.grouped else dict(zip(rules, _listed(release.value), strict=False))
        rules = OfQuantiles.beside({one: rules[one] for one in rules if one in row}, row)
    return rules.get(name)


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - a number, or several
    return list(value) if isinstance(value, list | tuple) else [value]


def _intervals(source: Interval, names: list[str], name: str, count: int) -> Sequence[Interval]:
    """The interval of each number of a column: as it was made, or as its ends were stated."""
    each: Callable[[str], Sequence[Interval]] | None = getattr(source, "each", None)
    if each is not None:
        return each(name)
    stated: Sequence[float] | None = getattr(source, "confidences", None)
    if stated is None:
        listed: Sequence[Interval] = getattr(source, "intervals", [source])
        return [listed[names.index(name)]]
    ends, noise = (
        {level: _ends_of(one.at(level), names, name) for level in stated} for one in (source, noise_only(source))
    )
    return [
        Levels(
            {level: ends[level][at] for level in stated}, {level: noise[level][at] for level in stated}, covers(source)
        )
        for at in range(count)
    ]


def _ends_of(ends: Ends, names: list[str], name: str) -> list[tuple[float, float]]:
    if hasattr(ends, "columns"):
        return list(zip(ends[f"{name}_low"].tolist(), ends[f"{name}_high"].tolist(), strict=True))
    return [ends[names.index(name)] if isinstance(ends, list) else ends]


def _events(release: Release) -> dict[str, Guarantee]:
    """The debits behind a release; of one that was computed and read from a file, as it was stated."""
    stated = release.details.get("computed", {}).get("events")
    if not stated:
        return {release.event or release.statistic: release.guarantee}
    promise = release.guarantee
    return {
        each["event"]: replace(promise, epsilon=Decimal(each["epsilon"]), delta=Decimal(each["delta"]))
        for each in stated
    }


def _operated(given: Arithmetic, symbol: str, other: object, swapped: bool = False) -> Release:
    pair = operand(given), operand(other)
    left, right = pair[::-1] if swapped else pair
    made = computed(symbol, left, right)
    return released(given, {made.column: made})


def _compared(given: Arithmetic, symbol: str, other: object) -> Comparison:
    left, right = operand(given), operand(other)
    large, small = (left, right) if symbol == ">" else (right, left)
    return compared(f"{left.words} {symbol} {right.words}", computed("-", large, small))


def _picked(given: Arithmetic, key: Any) -> Release:  # noqa: ANN401 - a column, or the key of a group
    columns = operands(given)
    if isinstance(key, str) and key in columns:
        one = columns[key]
        return released(given, {key: one.picked(0, one.words) if one.groups == [()] else one})
    if isinstance(key, int) and not getattr(given, "grouped", False) and -len(columns) <= key < len(columns):
        name = list(columns)[key]
        return released(given, {name: columns[name]})
    groups = next(iter(columns.values())).groups
    wanted = lookup_key(key if isinstance(key, tuple) else (key,))
    if wanted not in groups:
        known = [group[0] if len(group) == 1 else group for group in groups[:5]]
        raise UsageError(
            f"answer[{told(key)}]: expected one of the columns {list(columns)}"
            + (f" or the key of a group, such as {', '.join(map(repr, known))}." if known != [()] else ".")
        )
    named = ", ".join(str(cell) for cell in wanted)
    picked = {name: one.picked(groups.index(wanted), f"{one.words} ({named})") for name, one in columns.items()}
    return released(given, picked)


def released(given: Arithmetic, columns: Mapping[str, Operand], event: str | None = None) -> Release:
    """Computed numbers as a release; with an event, they are all that was released in it."""
    example: Release = given  # type: ignore[assignment]
    events = functools.reduce(union, (one.events for one in columns.values()))
    interval, first = Combination(columns), next(iter(columns.values()))
    costs = [
        {"event": name, "epsilon": exact_text(one.epsilon), "delta": exact_text(one.delta)}
        for name, one in events.items()
    ]
    value: Any
    if first.keys is not None:
        value = first.keys.assign(**{name: one.values for name, one in columns.items()})
    else:
        value = [float(one.values[0]) for one in columns.values()]
        value = value[0] if len(value) == 1 else value
    noise = {name: _deviation(interval, one) for name, one in columns.items()}
    parts = noise if first.keys is not None or len(columns) > 1 else {}
    words = f"computed from {len(events)} answer{'s' * (len(events) > 1)}"
    if event is None:
        example = replace(
            example,
            bounding=Bounding(
                "as released", None, "as in the answers that it is computed from", "nothing more was chosen"
            ),
            details={"computed": {"events": costs, "words": words}},
            cells=False,
        )
    return replace(
        example,
        statistic=", ".join(one.words for one in columns.values()),
        value=value,
        guarantee=together(events),
        error=Error(None if parts else next(iter(noise.values())), None, "as far as the interval says", parts),
        event=event,
        rules={name: rule for name, one in columns.items() for rule in rules_of(one)[:1] if rule is not None},
        units={name: one.unit for name, one in columns.items()} if any(one.unit for one in columns.values()) else {},
        additive=tuple(name for name, one in columns.items() if one.additive),
        _interval=interval,
    )


def _deviation(interval: Combination, one: Operand) -> float:
    """Half of a 68% interval of the noise; the median over groups."""
    low, high = interval.noise_only._ends(one, _DEVIATION)
    half = float(np.median(high - low)) / 2 if len(low) else 0.0
    return half if math.isfinite(half) else math.inf


def deviations(one: Operand) -> Array:
    """By group, half of the 68% interval: a standard deviation, what bounding may have done included."""
    low, high = Combination({one.column: one})._ends(one, _DEVIATION)
    found: Array = (high - low) / 2
    return found


def number(release: Arithmetic, words: str, value: float, interval: Interval) -> Operand:
    """One more number that was released in the event of a release."""
    whole = next(iter(operands(release).values()))
    (event,) = whole.events
    law = Released(event, event, words, [interval])
    values = np.array([value], dtype=np.float64)
    return replace(
        whole,
        words=words,
        values=values,
        law=law,
        keys=None,
        allowed=PART * abs(values),
        whys=(why_not(interval),),
        rules=None,
    )
