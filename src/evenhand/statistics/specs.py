"""What ``session.aggregate`` is given: ``eh.mean("rating", bounds=(0.5, 5))``, ``eh.count()``, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.statistics.columns import bounds_of
from evenhand.statistics.parts import CountPart, MeanPart, Part, SumPart
from evenhand.statistics.variance import VariancePart
from evenhand.tables import Table, parse_bounds
from evenhand.tables.numbers import number

_FEWEST_STEPS = 2**8
"""Of the grid of a sum, between the bounds: fewer would round away what makes values differ."""


@dataclass(frozen=True)
class Spec:
    """A statistic that has not been tied to a table yet."""

    kind: str
    column: str | None = None
    bounds: Any = None

    def part(self, table: Table, name: str) -> Part:
        """Tie it to a table: check the column and the bounds."""
        if self.kind == "count":
            return CountPart(name)
        assert self.column is not None
        number(table, self.column)
        bounds = parse_bounds(self.bounds)
        if self.kind == "sum":
            part = SumPart(name, self.column, bounds)
            if table.relation.counts_are_public and part.grid.width < _FEWEST_STEPS:
                raise UsageError(
                    f"bounds={bounds} are too close together for their distance from zero: a sum by group would be rounded "
                    "more coarsely than its values differ. Ask for the mean, and multiply it by the public number of rows."
                )
            return part
        return {"mean": MeanPart, "variance": VariancePart}[self.kind](name, self.column, bounds)


def count() -> Spec:
    """The number of rows, for ``session.aggregate``."""
    return Spec("count")


def sum(column: str, *, bounds: Any = None) -> Spec:
    """The sum of a column, for ``session.aggregate``."""
    return Spec("sum", column, bounds)


def mean(column: str, *, bounds: Any = None) -> Spec:
    """The mean of a column, for ``session.aggregate``."""
    return Spec("mean", column, bounds)


def variance(column: str, *, bounds: Any = None) -> Spec:
    """The variance of a column, for ``session.aggregate``."""
    return Spec("variance", column, bounds)


def parse_specs(table: Table, given: dict[str, Any]) -> tuple[Part, ...]:
    """Read the keyword arguments of ``session.aggregate``."""
    example = 'for example aggregate(by="genre", epsilon=0.5, n=eh.count(), average=eh.mean("rating", bounds=(0.5, 5)))'
    if not given:
        raise UsageError(f"aggregate() was given no statistic; {example}.")
    for name, spec in given.items():
        if not isinstance(spec, Spec):
            raise UsageError(
                f"aggregate({name}={spec!r}): expected eh.count(), eh.sum(), eh.mean() or eh.variance(); {example}."
            )
    return tuple(spec.part(table, name) for name, spec in given.items())


def column_parts(table: Table, kind: str, columns: str | Sequence[str], bounds: Any) -> tuple[Part, ...]:
    """One statistic of one column (named after the statistic), or of several (named after them).

    For several columns ``bounds`` is one pair for all, or one pair a column.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence):  # a wrong type is refused below
        return (Spec(kind, columns, bounds).part(table, kind),)
    pairs = zip(columns, bounds_of(columns, bounds), strict=True)
    return tuple(Spec(kind, column, pair).part(table, column) for column, pair in pairs)
