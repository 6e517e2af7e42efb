"""Features on a public grid: clipped to a norm, scaled to the unit ball, rounded toward zero.

Everything that learns from private features sees these integers only, so what one row can do is bounded exactly:
``‖x‖₂ ≤ STEPS`` without the constant column, in integers, on every engine.

Columns that hold no numbers have declared levels and become 0/1 features, one for each level. The levels are public and given. A
value that is none of them, and a missing one, has 0 in all of its features: a rule for that value alone, in memory and in every
engine, so nothing about the rows decides how many features there are or what fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError, suggest, told
from evenhand.learning.data.private_values import Floats, equal, identity
from evenhand.learning.fitting import public_number
from evenhand.planning.row_choice import RowShape
from evenhand.tables import Table, parse_bounds
from evenhand.tables.expressions import Column
from evenhand.tables.numbers import number

STEPS = 2**15
"""Grid steps from 0 to the largest norm."""

FeatureBounds = tuple[float, float] | Sequence[tuple[float, float]] | Mapping[Any, tuple[float, float]]
"""One pair for all features, one each in their order, or by column name (of an array by the place of the column)."""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """``(x − centre)/scale``, clipped to a ball, then a constant 1 if there is an intercept.

    ``radius`` is that of the ball, a power of two, at most 1. Where bounds were given, ``edge`` is the largest magnitude of one
    feature after scaling; otherwise the ball is all there is.
    """

    centre: Floats
    scale: Floats
    intercept: bool
    edge: float | None = None
    radius: float = 1.0

    def shrunk(self, factor: int) -> FeatureMap:
        """Features divided by a power of two: a regulariser shrinks their coefficients more, and the intercept no more than before."""
        edge = None if self.edge is None else self.edge / factor
        return replace(self, scale=self.scale * factor, radius=self.radius / factor, edge=edge)

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.centre) + int(self.intercept)

    @property
    def norm(self) -> float:
        """The largest norm of a row, the constant included."""
        return self.row_shape.norm

    @property
    def row_shape(self) -> RowShape:
        """Where rows lie after scaling."""
        return RowShape(len(self.centre), self.intercept, self.edge, self.radius)

    @property
    def squared_norm(self) -> int:
        """The largest squared norm of a row of integers."""
        return self.squared_radius + (STEPS**2 if self.intercept else 0)

    @property
    def squared_radius(self) -> int:
        """The same without the constant column."""
        return int((STEPS * self.radius) ** 2)

    @property
    def blocks(self) -> tuple[tuple[int, Fraction], ...]:
        """Blocks of coordinates, each by its size and the largest norm that a row has in it, in units of the ball."""
        features = len(self.centre)
        slack = 1 + Fraction(1, 2**40)  # beyond all rounding
        own = (
            [(features, Fraction(self.radius) * slack)]
            if self.edge is None
            else [(1, Fraction(self.edge) * slack)] * features
        )
        return (*own, *([(1, Fraction(1))] if self.intercept else []))

    @property
    def largest(self) -> float:
        """The largest magnitude of one feature after scaling."""
        return self.radius if self.edge is None else self.edge

    @property
    def lowest(self) -> Floats:
        """Features below count as this: nothing beyond the ball matters, and no arithmetic leaves the doubles."""
        return self.centre - self.scale

    @property
    def highest(self) -> Floats:
        """Features above count as this."""
        return self.centre + self.scale

    @property
    def smallest(self) -> Floats:
        """Distances from the centre below this count as 0: far less than a grid step, and their squares are still numbers
        (Postgres raises where a product underflows)."""
        return self.scale * 2.0**-40

    def integers(self, X: Floats) -> Floats:
        """Rows of features as integers (held as doubles); NaN becomes 0, infinities the edge of the ball."""
        off = np.clip(X, self.lowest, self.highest) - self.centre
        off = np.where(np.abs(off) >= self.smallest, off, 0.0)  # NaN is not at least anything
        Z = np.clip(off / self.scale, -self.largest, self.largest)
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        Z *= (STEPS * self.radius / np.maximum(norms, self.radius))[:, None]
        np.trunc(Z, out=Z)
        return np.column_stack([Z, np.full(len(Z), float(STEPS))]) if self.intercept else Z

    def to_original(self, coefficients: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for the features as they came."""
        slopes = coefficients[: len(self.centre)] / self.scale
        constant = float(coefficients[-1]) if self.intercept else 0.0
        return slopes, constant - float(slopes @ self.centre)


def feature_map(
    flags: int | Sequence[bool], norm: float | None, bounds: FeatureBounds | None, intercept: bool
) -> FeatureMap:
    """Read ``feature_norm`` or ``feature_bounds``; both are public, chosen without looking at the data.

    ``flags`` is the number of features, or says of each whether it is 0 or 1 by itself; bounds are given for the others.
    """
    flags = [False] * flags if isinstance(flags, int) else list(flags)
    features = len(flags)
    if bounds is None and norm is None:
        raise UsageError(
            "neither feature_bounds= nor feature_norm= is given; expected the range of each feature, feature_bounds=(low, high) or "
            "one pair each, from what the features mean (an age is from 0 to 120) and not from the rows. If that is not known, buy it: "
            "session.quantiles(feature, [0.01, 0.99], epsilon=...) on the same table."
        )
    if bounds is not None and norm is not None:
        raise UsageError(
            f"feature_bounds={told(bounds)} and feature_norm={told(norm)}; expected one of them, not both."
        )
    if isinstance(bounds, str):
        raise UsageError(
            f"feature_bounds={told(bounds)}; expected pairs (low, high). A fit puts features on a grid between their bounds before it asks "
            "anything, so it needs them first. Give generous ones (WeightedERM loses little by bounds nine times too wide), or buy them: "
            "session.quantiles(feature, [0.01, 0.99], epsilon=...)."
        )
    if bounds is None:
        size = public_number("feature_norm", norm, smallest=1e-150, largest=1e150)
        return FeatureMap(np.zeros(features), np.full(features, size), intercept)
    given: Any = bounds
    if not hasattr(given, "__len__"):
        raise UsageError(
            f"feature_bounds={told(bounds)}; expected (low, high) for all features, or one pair each, chosen without looking at the data."
        )
    if len(given) == 2 and all(np.ndim(bound) == 0 for bound in given):
        given = [given] * flags.count(False)
    if len(given) != flags.count(False):
        raise UsageError(
            f"feature_bounds has {len(given)} pairs for {flags.count(False)} features that are no categories; expected one "
            "(low, high) for all, or one each."
        )
    numbers = iter(given)
    pairs = np.array([(0.0, 1.0) if flag else parse_bounds(next(numbers), "feature_bounds") for flag in flags])
    half = (pairs[:, 1] - pairs[:, 0]) / 2
    # A box with half-widths h lies in the ball after dividing each feature by h·√d.
    root = math.sqrt(features)
    return FeatureMap(pairs.mean(axis=1), half * root, intercept, 1 / root)


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
