"""Features that are no numbers: columns with declared levels become 0/1 features, one for each level.

The levels are public and given. A value that is none of them, and a missing one, has 0 in all of its features: a rule for that
value alone, in memory and in every engine, so nothing about the rows decides how many features there are or what fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.learning.features import FeatureBounds
from evenhand.learning.private_values import Floats, equal, identity
from evenhand.tables import Table
from evenhand.tables.expressions import Column
from evenhand.tables.numbers import number

Categories = Mapping[Any, Sequence[Any]]
"""Levels by column name; of an array, by the place of the column."""


@dataclass(frozen=True)
class Encoding:
    """The columns of the rows, and which of them have levels.

    Args:
        columns: names as they came.
        levels: by name, for columns that are categories.
        named: whether the columns have names of their own, or are those of an array.
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    named: bool = True

    @classmethod
    def parse(cls, columns: Sequence[str], categories: Categories | None, named: bool) -> Encoding:
        """Read ``categories={"colour": ["red", "blue"]}``; with arrays the keys are places."""
        levels: dict[str, tuple[Any, ...]] = {}
        for key, given in (categories or {}).items():
            name = _column(key, columns, named, "categories")
            known = () if isinstance(given, str) else tuple(given)
            if not known or len({identity(level) for level in known} - {None}) != len(known):
                raise UsageError(
                    f"categories[{key!r}]={given!r}; expected a list of different levels, known without looking at the data."
                )
            levels[name] = known
        return cls(tuple(columns), levels, named)

    def bounds(self, given: FeatureBounds | None) -> FeatureBounds | None:
        """Bounds of the features that are no categories, in their order, where they were given by name."""
        if not isinstance(given, Mapping):
            return given
        pairs = {_column(key, self.columns, self.named, "feature_bounds"): pair for key, pair in given.items()}
        numbers = [name for name in self.columns if name not in self.levels]
        missing, needless = [name for name in numbers if name not in pairs], sorted(pairs.keys() & self.levels.keys())
        if missing or needless:
            said = (
                f"nothing about the features {missing}"
                if missing
                else f"something about {needless}, which are categories"
            )
            raise UsageError(
                f"feature_bounds says {said}; expected a pair (low, high) for each of {numbers}. "
                "To learn from some columns only, name them in features=[...]."
            )
        return [pairs[name] for name in numbers]

    @property
    def features(self) -> tuple[tuple[str, Any], ...]:
        """Each feature as its column and its level; the level of a number is None."""
        return tuple((name, level) for name in self.columns for level in self.levels.get(name, (None,)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, such as ``colour=red``."""
        return tuple(name if level is None else f"{name}={level}" for name, level in self.features)

    @property
    def flags(self) -> tuple[bool, ...]:
        """Which features are 0 or 1."""
        return tuple(level is not None for _, level in self.features)

    def indicators(self, name: str, column: NDArray[Any]) -> list[Floats]:
        """The features of a category in memory."""
        self._require_kind(name, column.dtype.kind in "biuf", column.dtype.kind in "US", str(column.dtype))
        return [equal(column, level).astype(np.float64) for level in self.levels[name]]

    def expressions(self, table: Table) -> list[Column]:
        """The features in an engine."""
        return [
            number(table, name) if level is None else self._indicator(table, name, level)
            for name, level in self.features
        ]

    def _indicator(self, table: Table, name: str, level: object) -> Column:
        kind = table.expression.schema()[name]
        self._require_kind(name, kind.is_numeric() or kind.is_boolean(), kind.is_string(), str(kind))
        if _is_number(level):
            match = number(table, name) == float(level)  # type: ignore[arg-type]
        else:
            match = table.expression[name].cast("string") == str(level)
        return match.fill_null(False).ifelse(1, 0).cast("float64")

    def _require_kind(self, name: str, numbers: bool, text: bool, declared: str) -> None:
        of_numbers = [_is_number(level) for level in self.levels[name]]
        if (numbers and not all(of_numbers)) or (text and any(of_numbers)):
            raise UsageError(
                f"the feature {name!r} holds {declared}, but categories[{name!r}]={list(self.levels[name])!r}; expected levels of the "
                "type of the column."
            )


def _column(key: object, columns: Sequence[str], named: bool, parameter: str) -> str:
    """The column that a parameter means."""
    name = str(key) if named else f"x{key}"
    if name not in columns:
        places = "" if named else f" With arrays, {parameter} are given by the place of the column."
        raise DataError(
            f"{parameter} names {key!r}, which is not a feature; the features are {list(columns)}."
            f"{suggest(name, columns)}{places}"
        )
    return name


def _is_number(level: object) -> bool:
    return isinstance(level, int | float | np.number | np.bool_)
