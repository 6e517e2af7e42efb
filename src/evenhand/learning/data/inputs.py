"""What estimators accept as data: arrays, data frames, or an `eh.read` table with column names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_array, column_or_1d

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.learning.data.features import Categories, Encoding
from evenhand.learning.data.private_values import Floats, Integers, declared, declared_kind, doubles, identity, missing
from evenhand.tables import Table

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pd.DataFrame"
"""A pandas or polars data frame."""

Features: TypeAlias = "ArrayLike | Frame | Table"
"""n × d features, or a frame or table that has them as columns."""

PerRow: TypeAlias = "ArrayLike | None"
"""One value per row, or the name of a column of a frame or table."""

Levels = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns that became 0/1 columns, each with its values; the first value has no column."""


@dataclass(frozen=True, eq=False)
class CallerData:
    """The caller's X, y and users taken apart, before any check of their content."""

    X: Any
    y: Any
    users: Any
    names: tuple[str, ...] | None
    unit: tuple[str, ...]
    levels: Levels = ()


def take_apart(
    X: ArrayLike | Frame, y: PerRow, users: PerRow, features: Sequence[str] | None, population: str | None = None
) -> CallerData:
    """Resolve column names against a data frame; leave arrays as they are.

    ``population`` names the people, so that arrays and tables about them share a ledger.
    """
    if users is None:
        raise UsageError(
            "users= is missing: one id per row, saying whose row it is; the guarantee is for all rows of a user. "
            "If every row belongs to a different person, say so with users=range(len(X))."
        )
    column = users if isinstance(users, str) else str(getattr(users, "name", None) or "users")
    unit = (population or column,)
    if not is_frame(X):
        if isinstance(users, str) or isinstance(y, str) or features is not None:
            raise UsageError(
                "column names need a data frame or an eh.read table; with arrays, pass y and users as arrays "
                "and leave features= out."
            )
        return CallerData(X, y, users, None, unit)
    columns = {str(name): name for name in X.columns}
    taken = {name for name in (y, users) if isinstance(name, str)}
    chosen = list(features) if features is not None else [name for name in columns if name not in taken]
    for name in (*taken, *chosen):
        if name not in columns:
            raise DataError(f"there is no column {name!r}; the frame has {list(columns)}.{suggest(str(name), columns)}")
    labels, ids = (X[columns[given]] if isinstance(given, str) else given for given in (y, users))
    return CallerData(X[[columns[name] for name in chosen]], labels, ids, tuple(chosen), unit)


def require_no_population(population: str | None) -> None:
    """Refuse a second name for the people of a table."""
    if population is not None:
        raise UsageError(
            f"population={population!r} is for arrays and data frames; name the people of a table in eh.read(..., population=)."
        )


def is_frame(X: object) -> TypeGuard[Frame]:
    """Whether X is a pandas or polars frame; other things with columns are refused by their type alone."""
    families = {kind.__module__.partition(".")[0] for kind in type(X).__mro__}
    if families & {"pandas", "polars"} and hasattr(X, "columns"):
        return True
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        raise UsageError(
            f"X is a {type(X).__module__}.{type(X).__qualname__}; expected an array, a pandas or polars data frame, or a "
            "table from eh.read, which takes Arrow, DuckDB, Spark and Ibis tables."
        )
    return False


def feature_matrix(X: ArrayLike | Frame) -> Floats:
    """Public features as finite doubles; sparse input is refused with scikit-learn's own words, text and gaps with what to do beside them."""
    if is_frame(X):
        for name in X.columns:
            _require_number_column(X[name], str(name))
    try:
        return np.asarray(check_array(X, dtype=np.float64, input_name="X"))
    except ValueError as problem:
        raise UsageError(
            f"{str(problem).splitlines()[0].rstrip('.')}; expected a finite number in every row of every feature. Fill the gaps or leave "
            "those rows out, declare text in categories=[...], or name the columns to learn from in features=[...]."
        ) from None


def encoding_of(X: ArrayLike | Frame, categories: Categories | None) -> Encoding:
    """The features that private columns become; of an array or frame, from its shape and names alone."""
    if is_frame(X):
        return Encoding.parse([str(name) for name in X.columns], categories, named=True)
    declares: Any = np.empty(0) if isinstance(X, list | tuple) else X if hasattr(X, "shape") else np.asarray(X)
    shape = tuple(declares.shape)
    columns = shape[1] if len(shape) == 2 else 0
    return Encoding.parse([f"x{place}" for place in range(columns)], categories, named=False)


def dense(X: ArrayLike | Frame) -> ArrayLike | Frame:
    """A sparse matrix as an array, anything else as it is."""
    given: Any = X
    return np.asarray(given.toarray()) if sparse.issparse(X) else X


def private_feature_matrix(X: ArrayLike | Frame, encoding: Encoding | None = None) -> Floats:
    """Private features as doubles, NaN where there is no number; categories as 0 and 1.

    Only types and shapes that are declared are checked: an error that depends on a value, or quotes it, would reveal
    it. (scikit-learn's own checks print the array.) A sparse matrix becomes a dense one, whatever it holds.
    """
    levels = {} if encoding is None else encoding.levels
    if is_frame(X):
        columns = [
            feature
            for name in X.columns
            for feature in (
                encoding.indicators(str(name), declared(X[name]))
                if encoding is not None and str(name) in levels
                else [_number_column(X[name], str(name))]
            )
        ]
        return np.column_stack(columns) if columns else _without_features()
    if isinstance(X, list | tuple):
        raise UsageError(
            f"X is a {type(X).__name__}, whose shape and types would have to be read from private rows; expected an array "
            "(np.array(X, dtype=float)), a data frame, or a table from eh.read."
        )
    array = np.asarray(dense(X))
    if array.ndim != 2:
        raise UsageError(
            f"X has {array.ndim} dimension(s); expected 2, one row for each label and one column per feature."
        )
    if encoding is None or not levels:
        return doubles(array, "X") if array.shape[1] else _without_features()
    parts = [
        encoding.indicators(name, column) if name in levels else [doubles(column, "X")]
        for name, column in zip(encoding.columns, array.T, strict=True)
    ]
    return np.column_stack([feature for part in parts for feature in part])


def _number_column(column: pd.Series[Any], name: str) -> Floats:
    """A column of a frame; its type is declared, and one that holds objects is read value by value."""
    _require_number_column(column, name)
    return doubles(declared(column), f"the feature {name!r}")


def _require_number_column(column: pd.Series[Any], name: str) -> None:
    if declared_kind(column) not in ("numbers", "objects"):
        raise DataError(
            f"the feature {name!r} holds {column.dtype}, not numbers; expected a numeric column. Name a column of codes or text in "
            "categories=, or the columns to learn from in features=[...]."
        )


def _without_features() -> Floats:
    raise UsageError("X has 0 feature(s), while a minimum of 1 is required.")


def label_column(y: PerRow, rows: int, require: Callable[[str, str], None] = lambda kind, name: None) -> NDArray[Any]:
    """Labels as a column of their declared type; no label is read.

    Labels are private: what is refused, by ``require`` too, depends on their type and number only.
    """
    if y is None:
        raise UsageError("requires y to be passed, but the target y is None: give one label per row.")
    require(declared_kind(y), str(getattr(y, "dtype", "")))
    column: NDArray[Any] = column_or_1d(declared(y), warn=True)
    if len(column) != rows:
        raise UsageError("inconsistent numbers of samples: X and y differ in their numbers of rows; expected the same.")
    return column


def user_codes(users: PerRow, rows: int, *, drop_null: bool = False) -> Integers:
    """Users as codes 0 .. m−1, in the order of their first row; −1 for a null user if those are dropped.

    Ids may be numbers, text, or any hashable objects; what can't be told apart from itself (NaN) or looked up is a null. A
    2-D array names a user by several columns.
    """
    ids = declared(users)
    if ids.ndim == 2 and ids.shape[1] >= 1:
        parts = np.stack([user_codes(column, rows, drop_null=drop_null) for column in ids.T], axis=1)
        codes = _first_seen(np.unique(parts, axis=0, return_inverse=True)[1].ravel())
        return _without_nulls(codes, np.asarray((parts < 0).any(axis=1)))
    if ids.ndim != 1 or len(ids) != rows:
        raise UsageError("users and X have different numbers of rows; expected one user id per row.")
    if ids.dtype.kind == "O":
        known: dict[Any, int] = {}
        keys = [identity(value) for value in ids]
        null = np.fromiter((key is None for key in keys), bool, rows)
        codes = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, rows)
    else:
        null = missing(ids)
        codes = _first_seen(np.unique(ids, return_inverse=True)[1])
    if null.any() and not drop_null:
        raise DataError("some rows have no user (null); expected an id for every row. Drop them or give them ids.")
    return _without_nulls(codes, null)


def _without_nulls(codes: Integers, null: NDArray[np.bool_]) -> Integers:
    return _first_seen(np.where(null, -1, codes)) if null.any() else codes


def _first_seen(codes: Integers) -> Integers:
    """Renumber codes by first appearance, keeping −1."""
    values, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(np.where(values < 0, -1, first), kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - int((values < 0).any())
    return rank[inverse]


def with_dummies(given: CallerData, categories: Sequence[str]) -> CallerData:
    """Replace columns of public features by 0/1 columns, one for each value but the first in sorted order."""
    if not len(categories):
        return given
    if given.names is None:
        raise UsageError("categories= are column names: they need a data frame or an eh.read table.")
    for name in categories:
        if name not in given.names:
            raise DataError(f"categories names {name!r}, which is not a feature; the features are {list(given.names)}.")
    values = {name: _texts(given.X[name]) for name in categories}
    levels = tuple((name, tuple(sorted(set(values[name].tolist())))) for name in categories)
    expanded = expand(given.X, levels)
    return replace(given, X=expanded, names=tuple(expanded.columns), levels=levels)


def as_fitted(X: ArrayLike | Frame, columns: Sequence[str] | None, levels: Levels = ()) -> ArrayLike | Frame:
    """New rows with the columns that a model was fitted on, taken by name where both have names."""
    if columns is None or not is_frame(X):
        return X
    there = {str(name): name for name in X.columns}
    missing = [name for name in columns if name not in there]
    if missing:
        raise DataError(
            f"the columns {missing} are missing; the model was fitted on {list(columns)}, and the frame has {list(there)}."
        )
    return expand(X[[there[name] for name in columns]], levels)


def named_column(X: ArrayLike | Frame, values: ArrayLike) -> ArrayLike:
    """One value per row: as given, or the column of a frame that ``values`` names."""
    if not isinstance(values, str):
        return values
    if not is_frame(X) or values not in X.columns:
        raise DataError(f"there is no column {values!r}; expected a data frame that has it, or one value per row.")
    return np.asarray(X[values])


def expand(X: Frame, levels: Levels) -> Frame:
    """A frame with the columns of ``levels`` replaced by 0/1 columns; anything else unchanged.

    A value that was not there when the levels were read has 0 in all of its columns.
    """
    if not levels:
        return X
    import pandas as pd

    known = dict(levels)
    columns: dict[str, Any] = {}
    for name in map(str, X.columns):
        if name in known:
            texts = _texts(X[name])
            columns |= {f"{name}={level}": (texts == level).astype(np.float64) for level in known[name][1:]}
        else:
            columns[name] = np.asarray(X[name])
    return pd.DataFrame(columns)


def _texts(column: pd.Series[Any]) -> NDArray[np.str_]:
    return np.array([str(value) for value in np.asarray(column).tolist()])
