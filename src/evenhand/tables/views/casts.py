"""Casts that give null where a value is not of the other type, on every engine alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column, Operation
from evenhand.tables.numbers import parsed
from evenhand.tables.views.numbers import truncated
from evenhand.tables.views.operand import Kind, Operand, Range, null, real

if TYPE_CHECKING:
    from evenhand.tables.views.guard import Guard

_WHOLE = "^[+-]?[0-9]{1,18}"
_DAY = (
    "^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-9]))"
)
_CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"


def cast(guard: Guard, node: Operation) -> Operand:
    """To numbers, text, dates or timestamps."""
    operand, to = guard.operand(node.arg), node.to
    kind = operand.kind
    if kind is Kind.NULL:
        raise UsageError("a null constant can't be cast; use ibis.null('int64').")
    if to.is_floating():
        return _to_real(guard, operand)
    if to.is_integer():
        return _to_whole(guard, operand)
    if to.is_string() and kind in (Kind.TEXT, Kind.WHOLE):
        return Operand(operand.value.cast("string"), Range(Kind.TEXT))
    if to.is_boolean() and kind is Kind.TRUTH:
        return operand
    if to.is_date() and kind in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return _to_moment(guard, operand, Kind.DATE)
    if to.is_timestamp() and to.timezone is None and kind in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return _to_moment(guard, operand, Kind.TIME)
    raise UsageError(
        f"a cast of {kind.value} to {to} is not the same on every engine. Expected: numbers, text or booleans to 'int64' or 'float64'; "
        "whole numbers to 'string'; text, dates and timestamps to 'date' or 'timestamp'."
    )


def _to_real(guard: Guard, operand: Operand) -> Operand:
    if operand.kind is Kind.TEXT:
        return Operand(parsed(guard.engine, operand.value), Range(Kind.REAL))
    if operand.kind is Kind.TRUTH:
        return real(as_whole(operand))
    if operand.kind in (Kind.WHOLE, Kind.REAL):
        return real(operand)
    raise UsageError(f"a cast of {operand.kind.value} to a number is not defined; take a part of it: _.day.year().")


ZERO_OR_ONE = Range(Kind.WHOLE, 1, ends=(0, 1))


def as_whole(truth: Operand) -> Operand:
    """True as 1, false as 0."""
    import ibis

    one, zero = (ibis.literal(number, "int64") for number in (1, 0))
    return Operand(ibis.cases((truth.value, one), (~truth.value, zero), else_=null(Kind.WHOLE)), ZERO_OR_ONE)


def _to_whole(guard: Guard, operand: Operand) -> Operand:
    if operand.kind is Kind.TRUTH:
        return as_whole(operand)
    if operand.kind is Kind.TEXT:
        text = operand.value.strip()
        plain = _matching(guard, text, _WHOLE)
        return Operand(plain.cast("int64"), Range(Kind.WHOLE, 60))
    if operand.kind in (Kind.WHOLE, Kind.REAL):
        return truncated(guard, operand)
    raise UsageError(f"a cast of {operand.kind.value} to a number is not defined; take a part of it: _.day.year().")


def _to_moment(guard: Guard, operand: Operand, kind: Kind) -> Operand:
    if operand.kind is kind:
        return operand
    to = "date" if kind is Kind.DATE else "timestamp"
    if operand.kind is not Kind.TEXT:
        return Operand(operand.value.cast(to), Range(kind))
    text = operand.value.strip()
    plain = _matching(guard, text, _DAY if kind is Kind.DATE else f"{_DAY}({_CLOCK})?")
    year = plain.substr(0, 4).cast("int64")
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    there = (year > 0) & (leap | (plain.substr(5, 5) != "02-29"))
    return Operand(there.ifelse(plain, null(Kind.TEXT)).cast(to), Range(kind))


def _matching(guard: Guard, text: Column, pattern: str) -> Column:
    """Text that matches a pattern as a whole, else null: no engine sees text that it would refuse or read its own way."""
    return text.re_search(f"{pattern}{guard.engine.end_of_text}").ifelse(text, null(Kind.TEXT))
