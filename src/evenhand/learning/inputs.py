"""What estimators accept as data: arrays, data frames, or an `eh.read` table with column names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from evenhand.guarantee import DataError, Relation, UsageError, suggest
from evenhand.tables import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


Levels = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns that became 0/1 columns, each with its values; the first value has no column."""


@dataclass(frozen=True, eq=False)
class Given:
    """The caller's X, y and users taken apart, before any check of their content."""

    X: Any
    y: Any
    users: Any
    names: tuple[str, ...] | None
    unit: tuple[str, ...]
    levels: Levels = ()


def take_apart(X: Any, y: Any, users: Any, features: Sequence[str] | None) -> Given:
    """Resolve column names against a data frame; leave arrays as they are."""
    if users is None:
        raise UsageError(
            "users= is missing: one id per row, saying whose row it is; the guarantee is for all rows of a user. "
            "If every row belongs to a different person, say so with users=range(len(X))."
        )
    unit = (users,) if isinstance(users, str) else (str(getattr(users, "name", None) or "users"),)
    if not hasattr(X, "columns"):
        if isinstance(users, str) or isinstance(y, str) or features is not None:
            raise UsageError(
                "column names need a data frame or an eh.read table; with arrays, pass y and users as arrays "
                "and leave features= out."
            )
        return Given(X, y, users, None, unit)
    columns = {str(name): name for name in X.columns}
    label, user = y if isinstance(y, str) else None, users if isinstance(users, str) else None
    taken = {name for name in (label, user) if name is not None}
    chosen = list(features) if features is not None else [name for name in columns if name not in taken]
    for name in (*taken, *chosen):
        if name not in columns:
            raise DataError(f"there is no column {name!r}; the frame has {list(columns)}.{suggest(str(name), columns)}")
    return Given(
        X[[columns[name] for name in chosen]],
        np.asarray(X[columns[label]]) if label else y,
        np.asarray(X[columns[user]]) if user else users,
        tuple(chosen),
        unit,
    )


def feature_matrix(X: Any) -> Floats:
    """Public features as finite doubles; sparse input, text and gaps are refused with scikit-learn's own words."""
    return np.asarray(check_array(X, dtype=np.float64, input_name="X"))


def private_feature_matrix(X: Any) -> Floats:
    """Private features as doubles, NaN where there is no number.

    Only types are checked: an error that depends on a value, or quotes it, would reveal it.
    """
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        kinds = dict(zip(map(str, X.columns), (str(kind) for kind in X.dtypes), strict=True))
        text = [name for name, kind in kinds.items() if not kind.lower().startswith(("int", "uint", "float", "bool"))]
        if text:
            raise DataError(
                f"the features {text} hold {sorted({kinds[name] for name in text})}, not numbers; expected numeric columns."
            )
        X = X.to_numpy()
    if not hasattr(X, "toarray") and np.asarray(X).dtype.kind == "O" and np.asarray(X).ndim == 2:
        X = np.column_stack([_numbers(column) for column in np.asarray(X).T])
    return np.asarray(check_array(X, dtype=np.float64, ensure_all_finite=False, input_name="X"))


def _numbers(column: NDArray[Any]) -> Floats:
    """Objects as doubles, NaN where an object is no number."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return np.nan

    return np.array([number(value) for value in column.tolist()], dtype=np.float64)


def label_vector(y: Any, rows: int) -> Floats:
    """Labels as doubles, NaN where there is no number.

    Labels are private: nothing here depends on their values, only on their type and number.
    """
    if y is None:
        raise UsageError("requires y to be passed, but the target y is None: give one label per row.")
    column: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(np.empty(rows), column)
    if column.dtype.kind == "O":
        return _numbers(column)
    if column.dtype.kind not in "biuf":
        raise DataError(f"y holds {column.dtype}, not numbers; expected a numeric column of labels.")
    return column.astype(np.float64)


def user_codes(users: Any, rows: int, *, drop_null: bool = False) -> Integers:
    """Users as codes 0 .. m−1, in the order of their first row; −1 for a null user if those are dropped.

    Ids may be numbers, text, or any hashable objects; a 2-D array names a user by several columns.
    """
    ids = np.asarray(users)
    if ids.ndim == 2 and ids.shape[1] >= 1:
        parts = [user_codes(column, rows, drop_null=drop_null) for column in ids.T]
        return _first_seen(np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].ravel())
    if ids.ndim != 1 or len(ids) != rows:
        raise UsageError(f"users has shape {ids.shape}, but X has {rows} rows; expected one user id per row.")
    null = np.isnan(ids) if ids.dtype.kind == "f" else _null_objects(ids)
    if null.any() and not drop_null:
        raise DataError("some rows have no user (null); expected an id for every row. Drop them or give them ids.")
    if ids.dtype.kind == "O":
        known = {value: code for code, value in enumerate(dict.fromkeys(ids[~null].tolist()))}
        codes = np.fromiter((known.get(value, -1) for value in ids.tolist()), np.int64, rows)
    else:
        codes = _first_seen(np.unique(ids, return_inverse=True)[1])
    codes[null] = -1
    return _first_seen(codes) if null.any() else codes


def _first_seen(codes: Any) -> Integers:
    """Renumber codes by first appearance, keeping −1."""
    values, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(np.where(values < 0, -1, first), kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - int((values < 0).any())
    return rank[inverse]


def _null_objects(ids: NDArray[Any]) -> NDArray[np.bool_]:
    if ids.dtype.kind in "mM":
        return np.asarray(np.isnat(ids))
    if ids.dtype.kind != "O":
        return np.zeros(len(ids), dtype=bool)
    return np.fromiter((value is None or value != value for value in ids.tolist()), bool, len(ids))


def with_dummies(given: Given, categories: Sequence[str]) -> Given:
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


def expand(X: Any, levels: Levels) -> Any:
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


def _texts(column: Any) -> NDArray[np.str_]:
    return np.array([str(value) for value in np.asarray(column).tolist()])


def public_feature_rows(
    table: Table, label: Any, features: Sequence[str] | None, categories: Sequence[str] = ()
) -> Given:
    """Bring a table with public features into memory; refuse one whose features are private."""
    if not isinstance(label, str):
        raise UsageError(f"y={label!r}: with an eh.read table, y is the name of the label column.")
    table.require(label, "label column")
    names = tuple(features) if features is not None else feature_columns(table, label)
    for name in names:
        table.require(name, "feature column")
    private = [name for name in names if name not in table.public]
    if table.relation is Relation.PRESENCE or (table.relation is Relation.VALUES and private):
        raise UsageError(
            f"the table protects {table.relation.value}, but label-private regression treats the features and "
            f"the rows per user as public. If that is right, read it with protects='labels' (or "
            f"protects='values', public={list(names)}); otherwise use BoundedERM or WeightedERM."
        )
    table.require_before(names, label)
    import pandas as pd

    from evenhand.tables.numbers import number

    def column(name: str) -> Any:
        return table.expression[name].cast("string") if name in categories else number(table, name)

    columns = {f"feature_{index}": column(name) for index, name in enumerate(names)}
    rows = table.expression.select(*table.user, **columns, label_value=number(table, label))
    frame = table.engine.fetch(rows).reveal()
    features_frame = pd.DataFrame({name: frame[key].to_pandas() for name, key in zip(names, columns, strict=True)})
    gaps = [name for name in names if features_frame[name].isna().any()]
    if gaps:
        raise DataError(
            f"the features {gaps} hold missing values or text in some rows; expected numbers everywhere. Fill the "
            f"gaps, leave the features out, or declare text as categories."
        )
    users = np.column_stack([user_codes(frame[name].to_numpy(), frame.num_rows) for name in table.user])
    given = Given(features_frame, frame["label_value"].to_numpy(), users, names, table.unit)
    return with_dummies(given, categories)


def public_columns(X: Any, y: Any, users: Any, features: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the columns that label-private regression treats as public; arrays have none.

    All columns but label and user; of a table that was read with ``public=``, those and the features.
    """
    named = {name for name in (y, users) if isinstance(name, str)} | set(X.user if isinstance(X, Table) else ())
    others = tuple(name for name in map(str, getattr(X, "columns", ())) if name not in named)
    if not isinstance(X, Table) or (X.relation is Relation.LABELS and not X.public):
        return others
    used = () if X.relation is Relation.VALUES else others if features is None else tuple(features)
    return tuple(dict.fromkeys((*X.public, *used)))


def feature_columns(table: Table, label: str) -> tuple[str, ...]:
    """All columns that are neither user nor label."""
    return tuple(name for name in table.columns if name != label and name not in table.user)
