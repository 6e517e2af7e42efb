"""Arithmetic of statistics before they are released: ``aggregate(average=eh.sum("x") / eh.count())``.

A formula is asked as the statistics in it, which share ε, one reading and one debit; what is released is computed from their answers
(`release/arithmetic.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import UsageError, told
from evenhand.release.arithmetic import operand, operands, released
from evenhand.release.operands import MOST_OPERATIONS, SYMBOLS, Operand, computed

if TYPE_CHECKING:
    from evenhand.release import Release
    from evenhand.statistics.statistic import Statistic


class Operators:
    """What statistics and formulas can be computed with."""

    __array_ufunc__ = None  # NumPy's numbers leave it to us

    def __add__(self, other: object) -> Formula:
        return Formula.of("+", self, other)

    def __radd__(self, other: object) -> Formula:
        return Formula.of("+", other, self)

    def __sub__(self, other: object) -> Formula:
        return Formula.of("-", self, other)

    def __rsub__(self, other: object) -> Formula:
        return Formula.of("-", other, self)

    def __mul__(self, other: object) -> Formula:
        return Formula.of("×", self, other)

    def __rmul__(self, other: object) -> Formula:
        return Formula.of("×", other, self)

    def __truediv__(self, other: object) -> Formula:
        return Formula.of("/", self, other)

    def __rtruediv__(self, other: object) -> Formula:
        return Formula.of("/", other, self)

    def __neg__(self) -> Formula:
        return Formula.of("×", -1, self)


@dataclass(frozen=True)
class Formula(Operators):
    """Two statistics, formulas or numbers, and what is computed from them."""

    symbol: str
    left: Any
    right: Any

    @classmethod
    def of(cls, symbol: str, left: object, right: object) -> Formula:
        """Check the symbol and the parts."""
        if symbol not in SYMBOLS:
            raise UsageError(f"{told(symbol)} is no operation; expected one of {', '.join(SYMBOLS)}.")
        for part in (left, right):
            if not isinstance(part, Operators):
                if isinstance(part, bool) or not isinstance(part, int | float):
                    raise UsageError(
                        f"can't compute with {told(part)}; expected a statistic such as eh.count(), or a number."
                    )
                operand(part)
        made = cls(symbol, left, right)
        if made.operations > MOST_OPERATIONS:
            raise UsageError(f"this formula has {made.operations} operations; expected at most {MOST_OPERATIONS}.")
        return made

    @functools.cached_property
    def operations(self) -> int:
        """How many it takes."""
        return 1 + sum(part.operations for part in (self.left, self.right) if isinstance(part, Formula))

    @property
    def words(self) -> str:
        """The formula in words."""
        parts = [
            f"({part.words})"
            if isinstance(part, Formula)
            else getattr(part, "words", f"{part:.15g}" if isinstance(part, int | float) else "")
            for part in (self.left, self.right)
        ]
        return f" {self.symbol} ".join(parts)

    @property
    def statistics(self) -> Iterator[Statistic]:
        """Those that have to be asked."""
        for part in (self.left, self.right):
            if isinstance(part, Formula):
                yield from part.statistics
            elif isinstance(part, Operators):
                yield part  # type: ignore[misc]

    def of_answers(self, answers: Mapping[int, Operand]) -> Operand:
        """The formula of what was released, by the identity of its statistics."""
        parts = [
            part.of_answers(answers) if isinstance(part, Formula) else answers.get(id(part)) or operand(part)
            for part in (self.left, self.right)
        ]
        return computed(self.symbol, *parts)


@dataclass(frozen=True)
class Formulas:
    """Named statistics and formulas, asked together.

    Args:
        given: by the column that they get.
    """

    given: Mapping[str, Any]

    @property
    def asked(self) -> dict[str, Statistic]:
        """Every statistic once, by name: equal ones are asked once."""
        found: dict[str, Any] = {name: one for name, one in self.given.items() if not isinstance(one, Formula)}
        for name, one in self.given.items():
            if isinstance(one, Formula):
                for statistic in one.statistics:
                    if statistic not in found.values():
                        found[f"{name}: {statistic.words}"] = statistic
        return found

    def of_release(self, release: Release, outcome: object) -> Release:
        """The columns that were asked for, from a release of the statistics."""
        columns, asked = operands(release), self.asked
        answers = {
            id(statistic): replace(columns[name], words=statistic.words)
            for one in self.given.values()
            if isinstance(one, Formula)
            for statistic in one.statistics
            for name, same in asked.items()
            if same == statistic
        }
        made = {
            name: one.of_answers(answers) if isinstance(one, Formula) else columns[name]
            for name, one in self.given.items()
        }
        return released(release, made, release.event)
