"""Private values by rule: what a single feature, label or user id counts as, whatever it is.

A conversion that raises, warns or picks a type because of one value tells about that value, before anything was
paid for. So types come from what is declared (the dtype of an array or column), and where nothing is declared (lists,
object arrays) each value is read by itself: nothing here raises, and no value changes what another counts as. Estimators
run with NumPy's own floating-point warnings and errors switched off (`unwarned`): the rules cover what they are about.

Objects bring their own methods, which may raise. So each is first turned into a value of a plain type, by methods of that
type and not of the object (`_plain`); only plain values are compared, looked up and computed with.
"""

from __future__ import annotations

import datetime
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

Unknown: TypeAlias = Any
"""Whatever callers put into their columns: what it is must not decide whether anything fails."""

unwarned = np.errstate(all="ignore")
"""Decorates what computes with private numbers; a program may have asked NumPy to warn, or to raise."""

_DEEPEST = 4  # lists within lists that are looked into
_ALONE = object()


_KINDS = {"biufc": "numbers", "UST": "text", "O": "objects"}
_NUMPY = frozenset(np.sctypeDict.values())


def declared(values: Unknown) -> NDArray[Any]:
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
        polars = type(values).__module__.partition(".")[0] == "polars"
        return objects(values.to_list()) if polars else np.asarray(values.to_numpy(dtype=object))
    if isinstance(values, list | tuple):
        return objects(values)
    return np.asarray(values)


def objects(values: Unknown) -> NDArray[Any]:
    """One object per row, never looked into."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def declared_kind(values: Unknown) -> str:
    """What a column holds by its declared type: "numbers", "text", "objects", which may be anything, or "others"; "" where none is declared."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        return next((kind for codes, kind in _KINDS.items() if dtype.kind in codes), "others")
    name = "" if dtype is None else str(dtype).lower()
    if name.startswith(("int", "uint", "float", "double", "halffloat", "bool", "decimal", "null")):
        return "numbers"
    if name.startswith(("str", "large_string", "utf8")):
        return "text"
    return "objects" if name == "object" else name and "others"


def require_number_labels(kind: str, name: str) -> None:
    """Refuse labels whose declared type is none of numbers; of lists and objects, which declare none, what spells no number counts as missing."""
    if kind not in ("", "objects", "numbers"):
        raise DataError(
            f"y holds {name}, not numbers; expected a numeric type. Convert what spells numbers, with pd.to_numeric(y) or y.astype(float); "
            "for labels that are classes there is WeightedERM(loss='logistic', classes=...)."
        )


def doubles(column: NDArray[Any], what: str) -> Floats:
    """Doubles, NaN where there is no number; infinite where a number is too large for a double.

    Refuses types that hold no numbers; a column of objects is read value by value.
    """
    require_numbers(column, what)
    if column.dtype.kind == "O":
        return np.array([double(value) for value in column.ravel()], dtype=np.float64).reshape(column.shape)
    return column.astype(np.float64)


def require_numbers(column: NDArray[Any], what: str) -> None:
    """Refuse a declared type that holds no numbers."""
    if column.dtype.kind == "c":
        raise UsageError(f"Complex data not supported: {what} holds {column.dtype}; expected real numbers.")
    if column.dtype.kind not in "biufO":
        raise DataError(f"{what} holds {column.dtype}, not numbers; expected a numeric type.")


def double(value: Unknown) -> float:
    """One object as a double: numbers and text that spells one; anything else is NaN."""
    known = _plain(value)
    if _is(known, np.number, np.bool_) and not _is(known, np.complexfloating, np.timedelta64):
        known = float(known)
    if not _is(known, int, float, Decimal, Fraction, str):
        return np.nan
    try:
        return float(known)
    except (
        OverflowError
    ):  # whole numbers and fractions; text and Decimal beyond the doubles give infinity by themselves
        return np.inf if known > 0 else -np.inf
    except ValueError:  # text, or a signalling NaN
        return np.nan


def identity(value: Unknown) -> Unknown:
    """One object as a plain value that can be looked up and compared, or None if it is missing or can't be.

    Numbers, text, bytes, dates, datetimes, UUIDs, and lists, tuples and arrays of these. Other objects are told apart by
    being the same object if their type defines no equality (members of an Enum), and are None if it does.
    """
    known = _plain(value)
    try:
        hash(known)
        return known if bool(known == known) else None
    except (TypeError, ValueError, ArithmeticError):  # signalling NaN
        return None


def _plain(value: Unknown, depth: int = _DEEPEST) -> Unknown:
    """A value of a plain type, or None. Runs no method that the object or its type could have brought along."""
    kind = type(value)
    if kind is str or kind is int or kind is float:
        return value
    if _is(value, np.generic):
        if kind is not np.void and any(kind is known for known in _NUMPY):
            return value
        value = np.generic.item(value)
    for known, read in _READERS:
        if _is(value, known):
            return read(value)
    if _is(value, list, tuple, np.ndarray):
        return _parts(value, depth)
    return None if value is None or _defines_equality(type(value)) else (_ALONE, id(value))


def _is(value: Unknown, *kinds: type) -> bool:
    """`isinstance`, which would ask the object for its class."""
    return any(type.__subclasscheck__(kind, type(value)) for kind in kinds)


def _defines_equality(kind: type) -> bool:
    bases = type.__dict__["__mro__"].__get__(kind)
    return any("__eq__" in type.__dict__["__dict__"].__get__(base) for base in bases if base is not object)


def _parts(value: Unknown, depth: int) -> tuple[Any, ...] | None:
    """The parts of a list, tuple or array; those that are missing are None."""
    parts = np.ndarray.tolist(value) if _is(value, np.ndarray) else value
    if not depth or not _is(parts, list, tuple):  # an array without dimensions is no list
        return None
    each = list.__iter__(parts) if _is(parts, list) else tuple.__iter__(parts)
    plain = (_plain(part, depth - 1) for part in each)
    return tuple(None if _is(part, float, complex) and part != part else part for part in plain)


def _whole(owner: type, name: str, value: Unknown) -> int:
    """A whole number from a slot of a plain type; −1 if it was left empty or holds something else."""
    try:
        found = owner.__dict__[name].__get__(value)
    except AttributeError:
        return -1
    return int.__int__(found) if _is(found, int) else -1


def _fraction(value: Unknown) -> Fraction | None:
    below = _whole(Fraction, "_denominator", value)
    return Fraction(_whole(Fraction, "_numerator", value), below) if below > 0 else None


def _moment(value: Unknown) -> datetime.datetime | None:
    """A date with a time. Zones are code too: of those that are not Python's own, nothing is read."""
    if type.__dict__["__name__"].__get__(type(value)) == "NaTType":  # pandas' missing time is a datetime
        return None
    zone = datetime.datetime.tzinfo.__get__(value)
    if not (zone is None or type(zone) is datetime.timezone or type(zone) is zoneinfo.ZoneInfo):
        return None
    return datetime.datetime.combine(datetime.datetime.date(value), datetime.datetime.time(value), zone)


def _uuid(value: Unknown) -> uuid.UUID | None:
    whole = _whole(uuid.UUID, "int", value)
    return uuid.UUID(int=whole) if 0 <= whole < 2**128 else None


_READERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__pos__),
    (Decimal, Decimal),
    (Fraction, _fraction),
    (datetime.datetime, _moment),
    (datetime.date, lambda value: datetime.date.fromordinal(datetime.date.toordinal(value))),
    (datetime.timedelta, datetime.timedelta.__pos__),
    (uuid.UUID, _uuid),
)


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


def equal(column: NDArray[Any], label: Unknown) -> Bools:
    """Where a column holds this public label; never for a missing value."""
    if column.dtype.kind in "biuf" and isinstance(label, int | float | np.number | np.bool_):
        return np.asarray(column == label, dtype=bool)
    return np.fromiter((same(value, label) for value in column.tolist()), bool, len(column))


def same(value: Unknown, label: Unknown) -> bool:
    """Whether one object is this public label."""
    known = identity(value)
    try:
        return known is not None and bool(known == identity(label))
    except (TypeError, ValueError, ArithmeticError):
        return False
