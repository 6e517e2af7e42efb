"""What ``session.aggregate`` is given: ``eh.mean("rating", bounds=(0.5, 5))``, ``eh.count()``, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.statistics.columns import bounds_of
from evenhand.statistics.parts import CountPart, MeanPart, Part, SumPart
from evenhand.statistics.variance import VariancePart
from evenhand.tables import Bounds, Table, parse_bounds
from evenhand.tables.numbers import number


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
        kinds: dict[str, Callable[[str, str, Bounds], Part]] = {
            "sum": SumPart,
            "mean": MeanPart,
            "variance": VariancePart,
        }
        return kinds[self.kind](name, self.column, parse_bounds(self.bounds))


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
