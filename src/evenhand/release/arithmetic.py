"""Arithmetic on releases: ``spend / visits``, ``a - b``, ``1 - share``, ``by_month / by_month.total()``, ``a > b``.

Behind each released number stands a law of where the truth lies: the noise, and what bounding may have taken away. Arithmetic draws from these
laws, computes with the draws, and reads intervals, verdicts and comparisons off the results. It reads released numbers only, so it costs nothing.

Draws are keyed by the event in the ledger, the column and the place of the group: the same release always has the same draws, so that
``2 * a - a`` is ``a``, and two releases never share the draws of their noise. What a model believes about heavy users is drawn once for all
numbers that rest on the same event.
"""

from __future__ import annotations

import functools
import hashlib
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from evenhand.guarantee import Guarantee, UsageError, exact_sum, exact_text, told
from evenhand.pages.numbers import percent
from evenhand.release.believed import Believed
from evenhand.release.described import Bounding, Error
from evenhand.release.intervals import Ends, Exact, Interval, Scaled, covers, judged, noise_only, why_not
from evenhand.release.rules import PART, NothingFound, OfComputed, OfQuantiles, Rule
from evenhand.release.together import ends_of

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.release.result import Release

Array: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]
View: TypeAlias = Literal["truth", "noise", "judged"]

_DRAWS = 10_000
"""Of a number. They are stratified, so a 95% interval of one release is its own to three digits."""
_DRAWS_BY_GROUP, _AT_ONCE = 2_000, 256
"""Of a number in each group, and how many groups are drawn at a time."""
_CONFIDENCES = (0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
"""At which a law is read where only its intervals are known; between them the logarithm of the odds is interpolated."""
_USUAL, _DEVIATION = 0.95, 0.6827
ALIKE = 0.3
"""A prior: the correlation of what bounding took from two numbers, of their normal scores. The bounds cut the same users in both, but what is not known about each
loss is mostly the noise of the histogram that it was seen through, and each has its own."""

MOST_OPERATIONS = 200
"""In one formula: draws are computed anew for each."""

_VIEWS: dict[View, Callable[[Interval], Interval]] = {"truth": lambda one: one, "noise": noise_only, "judged": judged}


class Law(ABC):
    """Numbers whose truth is not known, one for each group."""

    @abstractmethod
    def draws(self, view: View, places: Places, count: int) -> Array:
        """So many draws of each of these groups, by group and draw; NaN where a draw may be anything."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Interval, ...]:
        """The intervals of the released numbers behind them: one of each kind."""


@dataclass(frozen=True)
class Known(Law):
    """Numbers that everybody knows."""

    values: Array

    def draws(self, view: View, places: Places, count: int) -> Array:
        return np.repeat(self.values[places][:, None], count, axis=1)

    @property
    def sources(self) -> tuple[Interval, ...]:
        return ()


@dataclass(frozen=True)
class Released(Law):
    """A released column.

    Args:
        event: of the debit, which keys the draws of the noise; with it ``column``.
        belief: the event of the purchase that a model read, which keys what bounding may have done.
        column: its name.
        intervals: one for each group.
    """

    event: str
    belief: str
    column: str
    intervals: Sequence[Interval]

    def draws(self, view: View, places: Places, count: int) -> Array:
        wanted, back = np.unique(places, return_inverse=True)
        noise = self._uniforms(wanted, count)
        belief = self._belief(count)
        found = [
            drawn(_VIEWS[view](self.intervals[place]), own, belief) for place, own in zip(wanted, noise, strict=True)
        ]
        return np.stack(found)[back]

    def _belief(self, count: int) -> Array:
        """One for all groups of the column, and like that of other columns as far as `ALIKE` says (a Gaussian copula)."""
        shared, own = (
            ndtri(_permuted(key, 1, count)[0]) for key in (self.belief, f"{self.event}/{self.column}/belief")
        )
        found: Array = ndtr(math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * own)
        return found

    def _uniforms(self, places: Places, count: int) -> Array:
        size = min(_AT_ONCE, len(self.intervals))
        parts = [
            _permuted(f"{self.event}/{self.column}/{chunk}", size, count)[
                places[places // _AT_ONCE == chunk] % _AT_ONCE
            ]
            for chunk in np.unique(places // _AT_ONCE)
        ]
        return np.concatenate(parts)

    @property
    def sources(self) -> tuple[Interval, ...]:
        return tuple({type(one): one for one in self.intervals}.values())


@dataclass(frozen=True)
class Computed(Law):
    """A function of other numbers, group by group.

    Args:
        function: of their draws.
        parts: each with the place of each of the groups in it.
    """

    function: Callable[..., Array]
    parts: tuple[tuple[Law, Places], ...]

    def draws(self, view: View, places: Places, count: int) -> Array:
        return self.function(*(law.draws(view, at[places], count) for law, at in self.parts))

    @property
    def sources(self) -> tuple[Interval, ...]:
        return tuple(one for law, _ in self.parts for one in law.sources)


@dataclass(frozen=True)
class Sums(Law):
    """Sums over groups. Where only the ends of their intervals are known, they are taken to err together.

    Args:
        law: of the groups.
        members: the groups in each sum.
    """

    law: Law
    members: tuple[Places, ...]

    def draws(self, view: View, places: Places, count: int) -> Array:
        return np.stack([self._sum(view, self.members[place], count) for place in places])

    def _sum(self, view: View, groups: Places, count: int) -> Array:
        together = any(isinstance(one, Levels) for one in self.law.sources)
        total = np.zeros(count)
        for start in range(0, len(groups), _AT_ONCE):
            found = self.law.draws(view, groups[start : start + _AT_ONCE], count)
            total += (np.sort(found, axis=1) if together else found).sum(axis=0)
        return total

    @property
    def sources(self) -> tuple[Interval, ...]:
        return self.law.sources


@dataclass(frozen=True)
class Stacked(Law):
    """The groups of one law, then those of another."""

    first: Law
    groups: int
    second: Law

    def draws(self, view: View, places: Places, count: int) -> Array:
        found = np.empty((len(places), count))
        upper = places < self.groups
        if upper.any():
            found[upper] = self.first.draws(view, places[upper], count)
        if not upper.all():
            found[~upper] = self.second.draws(view, places[~upper] - self.groups, count)
        return found

    @property
    def sources(self) -> tuple[Interval, ...]:
        return (*self.first.sources, *self.second.sources)


@dataclass(frozen=True)
class Levels:
    """The interval of one number in a release that was read from a file or came from a server: its ends at some confidences."""

    ends: Mapping[float, tuple[float, float]]
    noise: Mapping[float, tuple[float, float]]
    covers: str

    def at(self, confidence: float) -> tuple[float, float]:
        if confidence in self.ends:
            return self.ends[confidence]
        low, high = drawn(self, np.array([(1 - confidence) / 2, (1 + confidence) / 2]), np.zeros(0)).tolist()
        return low, high

    @property
    def noise_only(self) -> Levels:
        """The noise alone."""
        return Levels(self.noise, self.noise, self.covers)

    @property
    def judged(self) -> Levels:
        """What a verdict reads: the noise, where nothing is known about what the bound did."""
        return self if all(map(math.isfinite, self.ends[_USUAL])) else self.noise_only


def _permuted(key: str, rows: int, count: int) -> Array:
    """Evenly spaced numbers between 0 and 1, in an order of its own in each row."""
    seed = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=16).digest(), "big")
    order = np.tile(np.arange(count), (rows, 1))
    found: Array = (np.random.Generator(np.random.Philox(key=seed)).permuted(order, axis=1) + 0.5) / count
    return found


def drawn(interval: Interval, noise: Array, belief: Array) -> Array:
    """Where the truth may lie: the quantiles of the law at these probabilities, one for its noise and one for what is believed beside it."""
    if isinstance(interval, Exact):
        return np.full(len(noise), interval.value)
    if isinstance(interval, Scaled):
        return drawn(interval.interval, noise, belief) * interval.factor
    if isinstance(interval, Believed):
        around = drawn(interval.noise_only, noise, belief)
        if len(interval.amounts):
            reached = np.cumsum(np.asarray(interval.weights, dtype=np.float64))
            place = np.minimum(np.searchsorted(reached, belief * reached[-1]), len(reached) - 1)
            around = around + np.asarray(interval.amounts, dtype=np.float64)[place]
        return np.clip(around, *interval.feasible)
    levels = sorted(interval.ends) if isinstance(interval, Levels) else _CONFIDENCES
    ends = np.array([interval.at(level) for level in levels], dtype=np.float64)
    odds = np.log((1 + np.array(levels)) / (1 - np.array(levels)))
    wanted = np.log(noise / (1 - noise))
    return np.where(wanted < 0, _between(-wanted, odds, ends[:, 0]), _between(wanted, odds, ends[:, 1]))


def _between(wanted: Array, odds: Array, ends: Array) -> Array:
    """Ends at other odds than those known: on lines between them, and further out on the last of these."""
    known = np.isfinite(ends)
    if not known.any():
        return np.full(len(wanted), ends[0])
    finite, last = ends[known], odds[known]
    found: Array = np.interp(wanted, last, finite)
    if not known.all():
        found[wanted > last[-1]] = ends[~known][-1]
    elif len(finite) > 1:
        slope = (finite[-1] - finite[-2]) / (last[-1] - last[-2])
        found = np.where(wanted > last[-1], finite[-1] + slope * (wanted - last[-1]), found)
    return found


def _divided(above: Array, below: Array) -> Array:
    """A quotient; anything where the denominator may be 0 or of the other sign."""
    sign = np.sign(np.median(below, axis=1, keepdims=True))
    return np.where(below * sign > 0, above / below, np.nan)


@dataclass(frozen=True)
class Operand:
    """Numbers to compute with.

    Args:
        words: what they are.
        column: what they are called in a frame.
        values: as released, one for each group.
        law: where the truth lies.
        keys: the frame of their groups; None without groups.
        allowed: how far the interval of each may reach if it is to be used.
        whys: why the truth of each can't be told; empty if it can.
        covers: what intervals cover.
        unit: of the values.
        events: the guarantee of each debit behind them.
        additive: whether groups add up to a total.
        rules: of a number as it was released, when it is precise enough to be used.
        operations: how many made them; none of what was released.
    """

    words: str
    column: str
    values: Array
    law: Law
    keys: pd.DataFrame | None
    allowed: Array
    whys: tuple[str, ...]
    covers: str
    unit: str
    events: Mapping[str, Guarantee]
    additive: bool = False
    rules: tuple[Rule | None, ...] | None = None
    operations: int = 0

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """The key of each group."""
        if self.keys is None or not len(self.keys.columns):
            return [()]
        return [_key(row) for row in self.keys.itertuples(index=False, name=None)]

    def picked(self, place: int, words: str) -> Operand:
        """The number of one group."""
        return replace(
            self,
            words=words,
            values=self.values[[place]],
            law=Computed(_itself, ((self.law, np.array([place])),)),
            keys=None,
            allowed=self.allowed[[place]],
            whys=(self.whys[place],),
            rules=self.rules and (self.rules[place],),
        )

    def total(self) -> Operand:
        """The sum over groups."""
        return replace(
            self,
            words=f"total {self.words}",
            values=self.values.sum(keepdims=True),
            law=Sums(self.law, (np.arange(len(self.values)),)),
            keys=None,
            allowed=PART * abs(self.values.sum(keepdims=True)),
            whys=("; ".join(dict.fromkeys(filter(None, self.whys))),),
            rules=None,
        )

    @property
    def own(self) -> Sequence[Interval] | None:
        """The intervals of numbers that are as they were released; None of what was computed."""
        if isinstance(self.law, Released):
            return self.law.intervals
        if isinstance(self.law, Computed) and self.law.function is _itself:
            ((law, places),) = self.law.parts
            return [law.intervals[place] for place in places] if isinstance(law, Released) else None
        return None


def _itself(draws: Array) -> Array:
    return draws


def _key(row: Iterable[Any]) -> tuple[Any, ...]:
    """A key that can be looked up: nulls are None, numbers are Python's."""
    plain_cells = (cell.item() if hasattr(cell, "item") else cell for cell in row)
    return tuple(None if cell is None or cell != cell else cell for cell in plain_cells)


SYMBOLS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "×": operator.mul,
    "/": _divided,
}


@np.errstate(all="ignore")  # a warning would show what was released
def computed(symbol: str, left: Operand, right: Operand) -> Operand:
    """The sum, difference, product or quotient, group by group."""
    operations = left.operations + right.operations + 1
    if operations > MOST_OPERATIONS:
        raise UsageError(f"this takes {operations} operations on released numbers; expected at most {MOST_OPERATIONS}.")
    keys, places = _aligned(left, right)
    first, second = (part.values[at] for part, at in zip((left, right), places, strict=True))
    values = first / second if symbol == "/" else SYMBOLS[symbol](first, second)
    reach = [part.allowed[at] for part, at in zip((left, right), places, strict=True)]
    if symbol == "/":
        allowed = reach[0] / abs(second)
    elif symbol == "×":
        allowed = np.maximum(reach[0] * abs(second), reach[1] * abs(first))
    else:
        numbers = [isinstance(part.law, Known) for part in (left, right)]
        allowed = reach[numbers[0]] if any(numbers) else PART * (reach[0] + reach[1])
    constants = [part for part in (left, right) if isinstance(part.law, Known)]
    whys = zip(
        *([part.whys[place] for place in at] for part, at in zip((left, right), places, strict=True)), strict=True
    )
    scaling = bool(constants) and (symbol == "×" or (symbol == "/" and right is constants[0]))
    return Operand(
        f"{_bracketed(left, symbol, first=True)} {symbol} {_bracketed(right, symbol)}",
        left.column if left.column == right.column or not left.events or not right.events else "value",
        values,
        Computed(SYMBOLS[symbol], tuple(zip((left.law, right.law), places, strict=True))),
        keys,
        np.maximum(allowed, PART * abs(values)),
        tuple("; ".join(dict.fromkeys(filter(None, pair))) for pair in whys),
        "; ".join(dict.fromkeys(part.covers for part in (left, right) if part.covers)),
        _unit(symbol, left, right),
        _union(left.events, right.events),
        scaling or (symbol in "+-" and not constants and left.additive and right.additive),
        operations=operations,
    )


def _bracketed(part: Operand, symbol: str, first: bool = False) -> str:
    return part.words if not part.operations or (first and symbol in "+-") else f"({part.words})"


def _unit(symbol: str, left: Operand, right: Operand) -> str:
    if symbol in "+-":
        return left.unit if left.unit == right.unit or not right.events else right.unit if not left.events else ""
    if symbol == "/":
        return left.unit if not right.unit else ""
    return left.unit or right.unit if not (left.unit and right.unit) else ""


def _aligned(left: Operand, right: Operand) -> tuple[pd.DataFrame | None, tuple[Places, Places]]:
    """The groups that both have, and where each of them is in either; a single number goes with every group."""
    if left.keys is None or right.keys is None:
        size = max(len(left.values), len(right.values))
        at = tuple(np.arange(size) if part.keys is not None else np.zeros(size, np.intp) for part in (left, right))
        return (right.keys if left.keys is None else left.keys), (at[0], at[1])
    columns = [list(part.keys.columns) for part in (left, right) if part.keys is not None]
    if columns[0] != columns[1]:
        raise UsageError(
            f"{left.words} is by {columns[0]} and {right.words} by {columns[1]}: expected two answers with the same groups, or one "
            "without groups."
        )
    place = {key: index for index, key in enumerate(right.groups)}
    both = [(index, place[key]) for index, key in enumerate(left.groups) if key in place]
    if not both:
        raise UsageError(f"{left.words} and {right.words} have no group in common.")
    first, second = (np.array(side, np.intp) for side in zip(*both, strict=True))
    return left.keys.iloc[first].reset_index(drop=True), (first, second)


def _union(first: Mapping[str, Guarantee], second: Mapping[str, Guarantee]) -> dict[str, Guarantee]:
    union = {**first, **second}
    promises = list(union.values())
    for other in promises[1:]:
        one = promises[0]
        if (one.relation, one.unit) != (other.relation, other.unit):
            raise UsageError(
                f"these answers protect different things: one {one.protected}, the other {other.protected}; expected answers about the same "
                "people under the same protects=."
            )
    return union


def together(events: Mapping[str, Guarantee]) -> Guarantee:
    """What several debits promise together: their ε and δ added up, each once."""
    promises = list(events.values())
    earlier = (purchase for promise in promises for purchase in promise.earlier if purchase.event not in events)
    joint = replace(
        promises[0],
        epsilon=exact_sum(promise.epsilon for promise in promises),
        delta=exact_sum(promise.delta for promise in promises),
        public=tuple(dict.fromkeys(column for promise in promises for column in promise.public)),
        earlier=(),
    )
    return joint.resting_on(*earlier)


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
        if one.own is not None:
            return np.array(ends_of([_VIEWS[self.view](each) for each in one.own], confidence)).T
        found = []
        for start in range(0, len(one.values), _AT_ONCE):
            some = np.arange(start, min(start + _AT_ONCE, len(one.values)))
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
        return one.law.draws(view, places, _DRAWS if len(one.values) == 1 else _DRAWS_BY_GROUP)


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
    for start in range(0, len(difference.values), _AT_ONCE):
        places = np.arange(start, min(start + _AT_ONCE, len(difference.values)))
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
        if one.keys is None:
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
    wanted = _key(key if isinstance(key, tuple) else (key,))
    if wanted not in groups:
        known = [group[0] if len(group) == 1 else group for group in groups[:5]]
        raise UsageError(
            f"answer[{told(key)}]: expected one of the columns {list(columns)}"
            + (f" or the key of a group, such as {', '.join(map(repr, known))}." if known != [()] else ".")
        )
    named = ", ".join(str(cell) for cell in wanted)
    picked = {name: one.picked(groups.index(wanted), f"{one.words} = {named}") for name, one in columns.items()}
    return released(given, picked)


def released(given: Arithmetic, columns: Mapping[str, Operand], event: str | None = None) -> Release:
    """Computed numbers as a release; with an event, they are all that was released in it."""
    example: Release = given  # type: ignore[assignment]
    events = functools.reduce(_union, (one.events for one in columns.values()))
    interval, first = Combination(columns), next(iter(columns.values()))
    costs = [
        {"event": name, "epsilon": exact_text(one.epsilon), "delta": exact_text(one.delta)}
        for name, one in events.items()
    ]
    value: Any = [float(one.values[0]) for one in columns.values()]
    if first.keys is not None:
        value = first.keys.assign(**{name: one.values for name, one in columns.items()})
    elif len(columns) == 1:
        value = value[0]
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
    half = float(np.median(high - low)) / 2
    return half if math.isfinite(half) else math.inf


def deviations(one: Operand) -> Array:
    """By group, half of the 68% interval: a standard deviation, what bounding may have done included."""
    low, high = Combination({one.column: one})._ends(one, _DEVIATION)
    found: Array = (high - low) / 2
    return found


def known(values: Array, keys: pd.DataFrame) -> Operand:
    """A number for each group that everybody knows."""
    count = len(values)
    return Operand("factors", "value", values, Known(values), keys, np.zeros(count), ("",) * count, "", "", {})


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


def with_margins(one: Operand, label: str, whole: bool) -> Operand:
    """The groups, and below them their sums: over all of them, and of a cross table over each column of keys.

    Args:
        one: additive.
        label: of a sum, in the place of a key.
        whole: whether values are whole numbers.
    """
    import pandas as pd

    assert one.keys is not None
    names, groups = list(one.keys.columns), one.groups
    members: dict[tuple[Any, ...], list[int]] = {}
    for left_out in sorted(range(1, 2 ** len(names)), key=lambda mask: (mask.bit_count(), mask)):
        for place, key in enumerate(groups):
            margin = tuple(label if left_out >> at & 1 else cell for at, cell in enumerate(key))
            members.setdefault(margin, []).append(place)
    values = np.rint(one.values) if whole else one.values
    sums = np.array([values[places].sum() for places in members.values()])
    rows = [*one.keys.itertuples(index=False, name=None), *members]
    return replace(
        one,
        values=np.concatenate([values, sums]),
        law=Stacked(one.law, len(values), Sums(one.law, tuple(map(np.array, members.values())))),
        keys=pd.DataFrame(rows, columns=names, dtype=object),
        allowed=np.abs(np.concatenate([values, sums])) * PART,
        whys=(
            *one.whys,
            *("; ".join(dict.fromkeys(filter(None, (one.whys[at] for at in places)))) for places in members.values()),
        ),
        rules=None,
        additive=False,
    )
