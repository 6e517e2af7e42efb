"""Private values by rule: what a single feature, label or user id counts as, whatever it is.

A conversion that raises, warns or picks a type because of one value tells about that value, before anything was
paid for. So types come from what is declared (the dtype of an array or column), and where nothing is declared (lists,
object arrays) each value is read by itself: nothing here raises, and no value changes what another counts as. Estimators
run with NumPy's own floating-point warnings and errors switched off (`unwarned`): the rules cover what they are about.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

unwarned = np.errstate(all="ignore")
"""Decorates what computes with private numbers; a program may have asked NumPy to warn, or to raise."""

_NUMBERS = (int, float, np.number, np.bool_, Decimal, Fraction)


def declared(values: Any) -> NDArray[Any]:
    """A column as an array: of its declared type, or of objects where no type is declared.

    Lists have no type. NumPy would look at all their values to find one, and so would pandas and polars for columns
    that can hold nulls.
    """
    if isinstance(values, np.ndarray):
        return values
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        return np.asarray(values)
    if dtype is not None and hasattr(values, "to_numpy"):
        if _module(values) == "polars":
            return objects(values.to_list())
        return np.asarray(values.to_numpy(dtype=object))
    if isinstance(values, list | tuple):
        return objects(values)
    return np.asarray(values)


def objects(values: Any) -> NDArray[Any]:
    """One object a row, never looked into."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def numbers(column: NDArray[Any], what: str) -> Floats:
    """Doubles, NaN where there is no number; infinite where a number is too large for a double.

    Refuses types that hold no numbers; a column of objects is read value by value.
    """
    require_numbers(column, what)
    if column.dtype.kind == "O":
        return np.array([number(value) for value in column.ravel()], dtype=np.float64).reshape(column.shape)
    return column.astype(np.float64)


def require_numbers(column: NDArray[Any], what: str) -> None:
    """Refuse a declared type that holds no numbers."""
    if column.dtype.kind == "c":
        raise UsageError(f"Complex data not supported: {what} holds {column.dtype}; expected real numbers.")
    if column.dtype.kind not in "biufO":
        raise DataError(f"{what} holds {column.dtype}, not numbers; expected a numeric type.")


def number(value: Any) -> float:
    """One object as a double: numbers and text that spells one; anything else is NaN."""
    if not isinstance(value, (*_NUMBERS, str)) or isinstance(value, np.complexfloating):
        return np.nan
    try:
        return float(value)
    except (
        OverflowError
    ):  # whole numbers and fractions beyond the doubles; text and Decimal give infinity by themselves
        return np.inf if not isinstance(value, str) and value > 0 else -np.inf
    except ValueError:  # text, or a signalling NaN
        return np.nan


def identity(value: Any) -> Any:
    """One object as something that can be looked up and compared, or None if it is missing or can't be."""
    try:
        if isinstance(value, list | np.ndarray):
            value = tuple(value)
        hash(value)
        return value if bool(value == value) else None
    except (TypeError, ValueError, ArithmeticError):  # pandas' NA, containers, signalling NaN
        return None


def missing(column: NDArray[Any]) -> Bools:
    """Where a column of any type holds nothing: null, NaN, NaT, or what is no value at all."""
    kind = column.dtype.kind
    if kind in "fc":
        return np.asarray(np.isnan(column))
    if kind in "mM":
        return np.asarray(np.isnat(column))
    if kind != "O":
        return np.zeros(len(column), dtype=bool)
    return np.fromiter((identity(value) is None for value in column), bool, len(column))


def equal(column: NDArray[Any], label: Any) -> Bools:
    """Where a column holds this public label; never for a missing value."""
    if column.dtype.kind in "biuf" and isinstance(label, int | float | np.number | np.bool_):
        return np.asarray(column == label, dtype=bool)
    return np.fromiter((same(value, label) for value in column.tolist()), bool, len(column))


def same(value: Any, label: Any) -> bool:
    """Whether one object is this public label."""
    known = identity(value)
    try:
        return known is not None and bool(known == label)
    except (TypeError, ValueError, ArithmeticError):
        return False


def _module(value: Any) -> str:
    return type(value).__module__.partition(".")[0]
