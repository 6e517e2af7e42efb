"""What an operation of a view works on: a value that can't make any engine raise, and what is known of its range.

Columns enter as one of a few kinds. Whole numbers have 64 bits, other numbers are doubles without NaN, and times lie in the years 1 to
9999, in UTC. What does not fit is null. From there on every operation knows from the ranges of its operands whether it can overflow, and only
where it can, its operands are held to a smaller range first: null beyond it. So nothing rests on which branch of a CASE an engine
computes first: no operation is ever given a value on which it raises.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column, DataType

if TYPE_CHECKING:
    from evenhand.tables.engines import Engine

WHOLE_BITS = 53
"""Whole numbers that are computed with stay below 2^53 in magnitude, which doubles hold; larger ones are null."""
REAL_BITS = 200
"""Doubles that are computed with lie below 2^200 (1.6e60) in magnitude; larger ones are null, and those below 2^-200 are 0."""
MOST_BITS = 1000
"""Doubles overflow at 2^1024: ranges that stay within 2^±1000 need no guard."""
FIRST, LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)


class Kind(StrEnum):
    """The kinds of values that views compute with."""

    NULL = "null"
    TRUTH = "boolean"
    WHOLE = "whole number"
    REAL = "number"
    TEXT = "text"
    DATE = "date"
    TIME = "timestamp"
    OTHER = "another type"


TYPES = {
    Kind.TRUTH: "boolean",
    Kind.WHOLE: "int64",
    Kind.REAL: "float64",
    Kind.TEXT: "string",
    Kind.DATE: "date",
    Kind.TIME: "timestamp",
}
"""How each kind is computed with."""


@dataclass(frozen=True)
class Range:
    """What is known of a column before anything is read.

    Args:
        kind: its kind.
        most: of numbers, no magnitude is above 2^most.
        least: of doubles, no magnitude but 0 is below 2^least.
        ends: of numbers that are made of constants or of parts of dates, the least and the greatest they can be.
    """

    kind: Kind
    most: int = 1100
    least: int = -1100
    ends: tuple[float, float] | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which numbers every value lies, true counting as 1; None if that is not known, or if there is only one."""
        ends = (0.0, 1.0) if self.kind is Kind.TRUTH else self.ends
        return ends if ends is not None and ends[0] < ends[1] else None


@dataclass(frozen=True)
class Operand:
    """An expression with its range; ``literal`` is its value where it is a constant that was given."""

    value: Column
    range: Range
    literal: object = None

    @property
    def kind(self) -> Kind:
        return self.range.kind


def null(kind: Kind) -> Column:
    """A null of that kind."""
    import ibis

    return ibis.null(TYPES[kind])


def entered(engine: Engine, column: Column) -> Operand:
    """A column of the table as an operand: total on every value that the engine can hold."""
    import ibis

    dtype = column.type()
    if dtype.is_boolean():
        return Operand(column, Range(Kind.TRUTH))
    if dtype.is_integer():
        if dtype.is_unsigned_integer() and dtype.nbytes == 8:
            column = (column <= ibis.literal(2**62)).ifelse(column, ibis.null(dtype))
        return Operand(column.cast("int64"), Range(Kind.WHOLE, 8 * dtype.nbytes - dtype.is_signed_integer()))
    if dtype.is_floating() or dtype.is_decimal():
        double = engine.double(column) if dtype.is_decimal() else column.cast("float64")
        return Operand(engine.is_number(double).ifelse(double, null(Kind.REAL)), Range(Kind.REAL))
    if dtype.is_string():
        return Operand(engine.plain(column), Range(Kind.TEXT))
    if dtype.is_date():
        return Operand(_within(column, FIRST.date(), LAST.date(), Kind.DATE), Range(Kind.DATE))
    if dtype.is_timestamp():
        return Operand(_within(engine.utc(column), FIRST, LAST, Kind.TIME), Range(Kind.TIME))
    return Operand(column, Range(Kind.OTHER))


def _within(column: Column, first: object, last: object, kind: Kind) -> Column:
    import ibis

    low, high = (ibis.literal(end, TYPES[kind]) for end in (first, last))
    return column.between(low, high).ifelse(column, null(kind))


def given(value: object, dtype: DataType) -> Operand:
    """A constant as an operand. It is public, so what can't be used is refused."""
    import ibis

    if value is None:
        return Operand(ibis.null(), Range(Kind.NULL))
    if isinstance(value, bool):
        return Operand(ibis.literal(value), Range(Kind.TRUTH), value)
    if isinstance(value, int) and dtype.is_integer():
        if abs(value) > 2**62:
            raise UsageError(f"the number {value} does not fit 62 bits; expected a smaller one.")
        return Operand(
            ibis.literal(value, "int64"), _constant(Kind.WHOLE, value, max(abs(value).bit_length(), 1)), value
        )
    if isinstance(value, int | float | Decimal):
        double = float(value)
        if math.isnan(double) or (double and not 1e-300 < abs(double) < 1e300):
            raise UsageError(
                f"the number {value} is too extreme or none at all; expected one below 1e300 in magnitude."
            )
        exponent = math.frexp(double)[1]
        return Operand(ibis.literal(double, "float64"), _constant(Kind.REAL, double, exponent, exponent - 1), double)
    if isinstance(value, str):
        if "\x00" in value:
            raise UsageError("a text holds the character NUL, which no Postgres text can hold; leave it out.")
        return Operand(ibis.literal(value, "string"), Range(Kind.TEXT), value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return Operand(ibis.literal(value, "timestamp"), Range(Kind.TIME), value)
    if isinstance(value, datetime.date):
        return Operand(ibis.literal(value, "date"), Range(Kind.DATE), value)
    raise UsageError(
        f"a constant of type {dtype} can't be used in a view; expected a number, a text, true or false, a date or a timestamp."
    )


def _constant(kind: Kind, value: float, most: int, least: int = -1100) -> Range:
    ends = None if abs(value) > 2**WHOLE_BITS else (float(value), float(value))
    return Range(kind, most, least, ends)


def tamed(operand: Operand) -> Operand:
    """A number held to the range that operations may combine freely; null beyond it."""
    import ibis

    value = operand.value
    if operand.kind is Kind.WHOLE:
        held = value.between(ibis.literal(-(2**WHOLE_BITS)), ibis.literal(2**WHOLE_BITS))
        return Operand(held.ifelse(value, null(Kind.WHOLE)), Range(Kind.WHOLE, WHOLE_BITS))
    size = value.abs()
    held = ibis.cases(
        (size > ibis.literal(2.0**REAL_BITS, "float64"), null(Kind.REAL)),
        (size < ibis.literal(2.0**-REAL_BITS, "float64"), ibis.literal(0.0, "float64")),
        else_=value,
    )
    return Operand(held, Range(Kind.REAL, REAL_BITS, -REAL_BITS))


def real(operand: Operand) -> Operand:
    """A number as a double."""
    if operand.kind is Kind.WHOLE:
        return Operand(
            operand.value.cast("float64"), Range(Kind.REAL, operand.range.most, 0, operand.range.ends), operand.literal
        )
    return operand


def alike(operands: list[Operand], role: str) -> tuple[Kind, list[Operand]]:
    """Operands of one kind, as comparisons and choices need them: whole numbers beside doubles are doubles, dates beside times are times."""
    import ibis

    kinds = {operand.kind for operand in operands} - {Kind.NULL}
    if Kind.TEXT in kinds and kinds & {Kind.DATE, Kind.TIME}:
        operands = [_dated(operand, Kind.TIME if Kind.TIME in kinds else Kind.DATE, role) for operand in operands]
        kinds = {operand.kind for operand in operands} - {Kind.NULL}
    if kinds == {Kind.WHOLE, Kind.REAL}:
        operands = [real(operand) for operand in operands]
        kinds = {Kind.REAL}
    if kinds == {Kind.DATE, Kind.TIME}:
        operands = [
            Operand(operand.value.cast("timestamp"), Range(Kind.TIME)) if operand.kind is Kind.DATE else operand
            for operand in operands
        ]
        kinds = {Kind.TIME}
    if len(kinds) != 1 or Kind.OTHER in kinds:
        names = " and ".join(sorted({operand.kind.value for operand in operands}))
        raise UsageError(
            f"{role} of {names} can't be computed the same way on every engine. Expected operands of one kind: numbers, texts, booleans, dates or "
            "timestamps. Cast one of them: a column read from a CSV is text, so write _.amount.cast('float64')."
        )
    kind = kinds.pop()
    return kind, [
        Operand(ibis.null(TYPES[kind]), Range(kind, 0, 0, (math.inf, -math.inf)))
        if operand.kind is Kind.NULL
        else operand
        for operand in operands
    ]


def widest(operands: list[Operand]) -> Range:
    """The range of what may be any of these operands, which are alike."""
    return reduce(widest_range, (operand.range for operand in operands))


def widest_range(one: Range, other: Range) -> Range:
    """The range of a column that is made of two."""
    if one.kind is not other.kind:
        return Range(Kind.OTHER)
    ends = None
    if one.ends is not None and other.ends is not None:
        ends = min(one.ends[0], other.ends[0]), max(one.ends[1], other.ends[1])
    return Range(one.kind, max(one.most, other.most), min(one.least, other.least), ends)


def _dated(operand: Operand, kind: Kind, role: str) -> Operand:
    """A text constant beside dates or times is one of them; other text is left as it is."""
    import ibis.expr.datatypes as dt

    if operand.kind is not Kind.TEXT or not isinstance(operand.literal, str):
        return operand
    try:
        moment = datetime.datetime.fromisoformat(operand.literal)
        whole = kind is Kind.DATE and moment.time() == datetime.time() and len(operand.literal) <= 10
        return given(moment.date() if whole else moment, dt.date)
    except ValueError:
        raise UsageError(f"{role}: {operand.literal!r} is no date; expected one like '2026-11-30'.") from None
