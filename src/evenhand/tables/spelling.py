"""User ids and group keys with one spelling each: what makes two rows equal, in groups, joins, windows and views alike.

Engines take values for equal that are spelled differently: −0.0 and 0.0, 'Ann' and 'ANN' under a collation, 1 month and 30 days.
Which spelling a group then shows would be decided by one of its users, and a join that compares another way than a group would mix
users. So ids and keys are told apart by their spelling, and numbers that are equal get the same one.
"""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING

from evenhand.guarantee import exact_text
from evenhand.tables.expressions import Column, DataType

if TYPE_CHECKING:
    from evenhand.tables.engines import Engine


def group_key(engine: Engine, value: Column) -> Column:
    """A column as a group key, as an expression: equal only where it is spelled alike."""
    import ibis

    dtype = value.type()
    if dtype.is_floating():
        # Of the same type: 0.1 as a wider float is another number.
        return (value == 0).ifelse(ibis.literal(0.0, dtype), value)
    if dtype.is_decimal():
        value = engine.without_nan(value)  # no key, like the NaN of floats
    return value if _one_spelling(dtype) else engine.spelled(value)


def user_key(engine: Engine, value: Column) -> Column:
    """A user id in the form in which users are told apart: as a group key, or as it is where that tells the same."""
    return value if value.type().is_string() and engine.bytewise else group_key(engine, value)


def user_id(engine: Engine, value: Column, key: Column) -> Column | None:
    """The id of a user's rows, made of their `user_key` alone; None for a type that can't be made of it.

    Rows with one key of such a type are equal in it, so that they may be grouped by the id itself as well.
    """
    dtype = value.type()
    if dtype.is_string() and not key.type().is_string():
        return engine.text(key)
    return key if key.type().copy(nullable=True) == dtype.copy(nullable=True) else None


def names_users(dtype: DataType) -> bool:
    """Whether ids of this type that are equal are spelled alike, or can be: −0.0 inside of a list can't, nor can intervals and JSON."""
    if dtype.is_array():
        return _one_spelling(dtype.value_type)
    return not (dtype.is_nested() or dtype.is_json() or dtype.is_interval())


def leaving(engine: Engine, key: Column) -> Column:
    """A group key in a form that every value of it survives on the way to Python: a plain number, or bytes."""
    dtype = key.type()
    plain = dtype.is_integer() or dtype.is_boolean() or dtype.is_floating() or dtype.is_binary()
    return key if plain else engine.spelled(key)


def label(dtype: DataType, left: object) -> object:
    """The Python value of a key of this column type that may be shown; its text where Python has no such value."""
    if not isinstance(left, bytes):
        return left
    if dtype.is_binary():
        return left
    text = left.decode("utf-8", errors="replace")
    try:
        if dtype.is_date():
            return datetime.date.fromisoformat(text)
        if dtype.is_timestamp() and len(text.partition(".")[2].partition("+")[0].partition("-")[0]) <= 6:
            return datetime.datetime.fromisoformat(text)
        if dtype.is_decimal():
            return Decimal(text)
        if dtype.is_uuid():
            return uuid.UUID(text)
        if dtype.is_time():
            return datetime.time.fromisoformat(text)
    except (ValueError, ArithmeticError):
        pass
    return text


def stored(dtype: DataType, given: object) -> object:
    """A public key, given as a Python value, as `group_key` has it in a column of type ``dtype``."""
    if dtype.is_floating() and isinstance(given, int | float):
        return given + 0.0
    if dtype.is_uuid():
        return str(given)
    if not dtype.is_binary() or isinstance(given, bytes):
        return given
    if isinstance(given, Decimal):
        return _decimal(given).encode()
    if isinstance(given, datetime.time):
        return _time(given).encode()
    return str(given).encode()


def order(labels: tuple[object, ...]) -> tuple[tuple[bool, object], ...]:
    """What to sort labels by: a column may hold values and the text of values that Python does not have."""
    return tuple((isinstance(value, str), value) for value in labels)


def _decimal(given: Decimal) -> str:
    """All digits, without zeros at the end of a fraction. (Not by `normalize`, which rounds to 28 digits.)"""
    if not given.is_finite():
        return exact_text(given)
    text = f"{given:f}" if given else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _time(given: datetime.time) -> str:
    """As engines write it: no zeros at the end of a fraction, and minutes of an offset only where there are any."""
    clock = given.replace(tzinfo=None).isoformat()
    offset = given.isoformat()[len(clock) :]
    return (clock.rstrip("0") if "." in clock else clock) + offset.removesuffix(":00")


def _one_spelling(dtype: DataType) -> bool:
    """Whether equal values of this type are always spelled alike, on every engine."""
    fixed = dtype.is_decimal() and dtype.scale is not None and dtype.precision is not None and dtype.precision <= 38
    whole = dtype.is_integer() or dtype.is_boolean() or dtype.is_uuid() or dtype.is_binary()
    return bool(fixed or whole or dtype.is_date() or dtype.is_timestamp())
