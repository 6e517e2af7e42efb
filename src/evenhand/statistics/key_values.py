"""Public keys as their columns hold them: read, checked and stored before anything is paid or asked of the table.

A key is refused where it can't be found: one that its column can't hold, or whose spelling in the column can't be known.
It would otherwise give a group of nobody, or an error after the debit. Only the schema is looked at.
"""

from __future__ import annotations

import datetime
import ipaddress
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.tables import Table
from evenhand.tables.expressions import ArrowColumn, DataType
from evenhand.tables.objects import text_of
from evenhand.tables.spelling import group_key, stored

Key: TypeAlias = Any
"""One value of a key, of whatever type a column may hold; each reader checks its own."""


def key_reader(table: Table, column: str) -> Callable[[Key], Key]:
    """What reads a key in the type of its column, so that '7' from a command line finds 7."""
    dtype, read = table.expression.schema()[column], _reader(table, column)

    def key_value(given: Key) -> Key:
        value = _plain(given)
        if value is None:
            raise UsageError(
                f"keys= holds a missing value for {column!r}; rows without a key are dropped and can't be a group."
            )
        try:
            return read(value)
        except (TypeError, ValueError, ArithmeticError):
            raise _unreadable(table, column, dtype, value) from None

    return key_value


def _unreadable(table: Table, column: str, dtype: DataType, value: Key) -> UsageError:
    if column in table.text or dtype.is_string():
        hint = f"column {column!r}, which holds text: give the key as the text that stands there"
    elif _readers(dtype) is _exact_text:
        hint = f"column {column!r}: give the key as the text that a release by this column shows"
    else:
        hint = f"column {column!r}"
    return UsageError(f"keys= holds {value!r}, which is no {dtype} like the {hint}.")


def key_column(table: Table, column: str, values: Sequence[Key]) -> ArrowColumn:
    """Keys read by `key_reader` as the Arrow array that the group keys of the column are compared with."""
    import pyarrow as pa

    dtype = table.expression.schema()[column]
    kind = group_key(table.engine, table.expression[column]).type()
    try:
        return _array(kind, [stored(kind, value) for value in values])
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError):
        pass
    unfit = next((value for value in values if not _fits(kind, value)), values[0])
    raise UsageError(
        f"keys= holds {unfit!r}, which the column {column!r} of type {dtype} can't hold; "
        "expected keys within its range and precision."
    )


def _fits(kind: DataType, value: Key) -> bool:
    import pyarrow as pa

    try:
        _array(kind, [stored(kind, value)])
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError):
        return False
    return True


def _array(kind: DataType, values: list[Key]) -> ArrowColumn:
    import pyarrow as pa

    arrow = kind.to_pyarrow()
    if kind.is_timestamp():  # Arrow cuts Python's microseconds off without a word, but not its own
        return pa.array(values, pa.timestamp("us", arrow.tz)).cast(arrow)
    array = pa.array(values, arrow)
    if kind.is_floating() and np.isinf(array.to_numpy().astype("float64")).sum() > np.isinf(values).sum():
        raise OverflowError
    return array


def _plain(value: Key) -> Key:
    """A scalar of NumPy or pandas as Python's own value; None if it is missing."""
    if isinstance(value, np.datetime64 | np.timedelta64):  # as text: their item() may be a bare count of nanoseconds
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ == "NAType":
        return None
    return None if isinstance(value, float | Decimal | datetime.date) and value != value else value


def _reader(table: Table, column: str) -> Callable[[Key], Key]:
    dtype = table.expression.schema()[column]
    if column in table.text and not table.positional:
        return _object_text
    if column in table.text or dtype.is_string():
        return _text
    if dtype.is_inet() and table.engine.spells_networks:
        return _address
    return _readers(dtype)


def _readers(dtype: DataType) -> Callable[[Key], Key]:
    readers: list[tuple[bool, Callable[[Key], Key]]] = [
        (dtype.is_boolean(), _boolean),
        (dtype.is_integer(), _whole),
        (dtype.is_floating(), _double),
        (dtype.is_decimal(), _decimal),
        (dtype.is_timestamp(), _timestamp),
        (dtype.is_date(), _date),
        (dtype.is_time(), _time),
        (dtype.is_uuid(), lambda given: uuid.UUID(str(given))),
        (dtype.is_binary(), _bytes),
        (dtype.is_inet(), _refuse),  # written with or without its mask, as the engine likes
    ]
    return next((read for applies, read in readers if applies), _exact_text)


def _text(given: Key) -> str:
    """Text, or what has one spelling as text. Truth values and fractions have several: True and true, 1.5 and 1.50."""
    whole = isinstance(given, int) and not isinstance(given, bool)
    day = isinstance(given, datetime.date) and not isinstance(given, datetime.datetime)
    return _exact_text(str(given)) if whole or day or isinstance(given, uuid.UUID) else _exact_text(given)


def _object_text(given: Key) -> str:
    """As `evenhand.tables.objects` writes the same object in the column, but for decimals: 1.5 is equal to 1.50 there."""
    if isinstance(given, Decimal):
        raise TypeError
    return _exact_text(given if isinstance(given, str) else text_of(given))


def _exact_text(given: Key) -> str:
    if not isinstance(given, str):
        raise TypeError
    given.encode()  # half of a surrogate pair is in no column
    return given


def _boolean(given: Key) -> bool:
    names = {"true": True, "false": False, "1": True, "0": False}
    if str(given).lower() not in names:
        raise ValueError
    return names[str(given).lower()]


def _whole(given: Key) -> int:
    number = int(given)
    if not isinstance(given, str) and number != given:
        raise ValueError
    return number


def _double(given: Key) -> float:
    number = float(given)
    if number != number:
        raise ValueError
    return number


def _decimal(given: Key) -> Decimal:
    number = Decimal(str(given))
    if number.is_nan():
        raise ValueError
    return number


def _timestamp(given: Key) -> datetime.datetime:
    text = str(given)
    _microseconds(text)
    return datetime.datetime.fromisoformat(text)


def _date(given: Key) -> datetime.date:
    found = datetime.datetime.fromisoformat(str(given))
    if found.time() != datetime.time() or found.tzinfo is not None:
        raise ValueError
    return found.date()


def _time(given: Key) -> datetime.time:
    text = str(given)
    _microseconds(text)
    return datetime.time.fromisoformat(text)


def _microseconds(text: str) -> None:
    """Refuse what Python would cut off: digits after the sixth."""
    digits = text.partition(".")[2]
    fraction = digits[: next((place for place, char in enumerate(digits) if not char.isdigit()), len(digits))]
    if fraction[6:].strip("0"):
        raise ValueError


def _bytes(given: Key) -> bytes:
    return given.encode() if isinstance(given, str) else bytes(memoryview(given))


def _address(given: Key) -> str:
    """As Postgres casts it to text: always with the length of the network."""
    found = ipaddress.ip_interface(str(given))
    if getattr(found, "ipv4_mapped", None) is not None:  # spelled by two rules
        raise ValueError
    return found.with_prefixlen


def _refuse(given: Key) -> Key:
    raise TypeError
