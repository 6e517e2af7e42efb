"""Released numbers to compute with, and what becomes of them: values, laws, groups, the union of their guarantees."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.guarantee import Guarantee, UsageError, exact_sum
from evenhand.release.draws import Array, Computed, Known, Law, Places, Released, Stacked, Sums
from evenhand.release.intervals import Interval
from evenhand.release.verdicts import PART, Rule

if TYPE_CHECKING:
    import pandas as pd

MOST_OPERATIONS = 200
"""In one formula: draws are computed anew for each."""


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
        return [lookup_key(row) for row in self.keys.itertuples(index=False, name=None)]

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


def lookup_key(row: Iterable[Any]) -> tuple[Any, ...]:
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
    values = np.where(np.isfinite(values), values, np.nan)
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
        np.fmax(allowed, PART * abs(values)),
        tuple("; ".join(dict.fromkeys(filter(None, pair))) for pair in whys),
        "; ".join(dict.fromkeys(part.covers for part in (left, right) if part.covers)),
        _unit(symbol, left, right),
        union(left.events, right.events),
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
        size = len(right.values) if left.keys is None else len(left.values)
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
    if not both and left.groups and right.groups:
        raise UsageError(f"{left.words} and {right.words} have no group in common.")
    first, second = (np.array([pair[side] for pair in both], np.intp) for side in (0, 1))
    return left.keys.iloc[first].reset_index(drop=True), (first, second)


def union(first: Mapping[str, Guarantee], second: Mapping[str, Guarantee]) -> dict[str, Guarantee]:
    joint = {**first, **second}
    promises = list(joint.values())
    for other in promises[1:]:
        one = promises[0]
        if (one.relation, one.unit) != (other.relation, other.unit):
            raise UsageError(
                f"these answers protect different things: one {one.protected}, the other {other.protected}; expected answers about the same "
                "people under the same protects=."
            )
    return joint


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
        parts=tuple(dict.fromkeys(part for promise in promises for part in promise.parts)),
    )
    return joint.resting_on(*earlier)


def known(values: Array, keys: pd.DataFrame) -> Operand:
    """A number for each group that everybody knows."""
    count = len(values)
    return Operand("factors", "value", values, Known(values), keys, np.zeros(count), ("",) * count, "", "", {})


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
