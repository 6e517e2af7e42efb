"""Dates and times: their parts, buckets, differences, and shifts by a constant."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.engines.dialect import recast
from evenhand.tables.expressions import Column, Operation
from evenhand.tables.views.operand import FIRST, LAST, TYPES, Kind, Operand, Range, null

if TYPE_CHECKING:
    from evenhand.tables.views.guard import Guard

_DAYS = {"Y": 366, "Q": 92, "M": 31, "W": 7, "D": 1}
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_UNITS = (*_DAYS, *_SECONDS)
_MOST_DAYS = 366_000
_A_DAY = {"hour": 24, "minute": 24 * 60, "second": 24 * 3600}


def moment(guard: Guard, node: Operation, role: str, time: bool = False) -> Operand:
    """An operand that is a date or a timestamp; a timestamp if ``time``."""
    operand = guard.operand(node)
    if operand.kind not in (Kind.DATE, Kind.TIME):
        raise UsageError(
            f"{role} takes a date or a timestamp, and {operand.kind.value} was given. Cast text first: _.day.cast('date')."
        )
    if time and operand.kind is Kind.DATE:
        return Operand(operand.value.cast("timestamp"), Range(Kind.TIME))
    return operand


def part(name: str, least: int, most: int, clock: bool = False) -> Callable[[Guard, Operation], Operand]:
    """The rule for a part of a date, or of the time of day."""

    def rule(guard: Guard, node: Operation) -> Operand:
        found = getattr(moment(guard, node.arg, f"{name}()", time=clock).value, name)()
        ends = None if name == "year" else (least, most)  # the years of a table are far closer together than all years
        return Operand(recast(found, "int64"), Range(Kind.WHOLE, most.bit_length(), ends=ends))

    return rule


def weekday(guard: Guard, node: Operation) -> Operand:
    """0 on Mondays."""
    found = moment(guard, node.arg, "day_of_week.index()").value.day_of_week.index()
    return Operand(recast(found, "int64"), Range(Kind.WHOLE, 3, ends=(0, 6)))


def day(guard: Guard, node: Operation) -> Operand:
    return _day(moment(guard, node.arg, "date()"))


def _day(operand: Operand) -> Operand:
    return Operand(operand.value.cast("date"), Range(Kind.DATE))


def truncated(guard: Guard, node: Operation) -> Operand:
    """The start of the year, quarter, month, week (Monday), day, hour, minute or second."""
    operand = moment(guard, node.arg, "truncate(...)")
    unit = node.unit.value
    if unit not in _UNITS or (operand.kind is Kind.DATE and unit in _SECONDS):
        raise UsageError(
            f"truncate({unit!r}) is not possible for a {operand.kind.value}; expected one of {list(_UNITS)}."
        )
    start = recast(moment(guard, node.arg, "truncate(...)", time=True).value.truncate(unit), "timestamp")
    return _day(Operand(start, Range(Kind.TIME))) if operand.kind is Kind.DATE else Operand(start, Range(Kind.TIME))


def shifted(sign: int) -> Callable[[Guard, Operation], Operand]:
    """The rule for adding or subtracting a constant interval; null where that leaves the years 1 to 9999."""

    def rule(guard: Guard, node: Operation) -> Operand:
        import ibis
        import ibis.expr.operations as ops

        operand = moment(guard, node.left, "adding an interval")
        step = node.right
        if not isinstance(step, ops.Literal) or step.dtype.unit.value not in _UNITS or not isinstance(step.value, int):
            raise UsageError("dates and times are shifted by a constant interval only: _.day + ibis.interval(days=7).")
        unit, count = step.dtype.unit.value, sign * step.value
        days = abs(count) * (_DAYS[unit] if unit in _DAYS else _SECONDS[unit] / 86_400)
        if days > _MOST_DAYS:
            raise UsageError(f"an interval of {days:.0f} days is too long; expected at most {_MOST_DAYS}.")
        room = datetime.timedelta(days=int(days) + 1)
        ends = (FIRST + (room if count < 0 else room * 0), LAST - (room if count > 0 else room * 0))
        date = operand.kind is Kind.DATE
        low, high = (ibis.literal(end.date() if date else end, TYPES[operand.kind]) for end in ends)
        held = operand.value.between(low, high).ifelse(operand.value, null(operand.kind))
        interval = ibis.interval(abs(count), unit=unit)
        moved = held + interval if count >= 0 else held - interval
        return Operand(recast(moved, TYPES[operand.kind]), Range(operand.kind))

    return rule


def difference(guard: Guard, node: Operation) -> Operand:
    """How many boundaries of a unit lie between two moments: midnights for days."""
    unit = guard.operand(node.part).literal
    one, other = (moment(guard, each, "delta(...)") for each in (node.left, node.right))
    if unit in ("year", "month"):
        years = _number(one, "year") - _number(other, "year")
        found = years * 12 + _number(one, "month") - _number(other, "month") if unit == "month" else years
        return Operand(found, Range(Kind.WHOLE, 20))
    if unit not in ("day", *_A_DAY):
        raise UsageError(f"delta(unit={unit!r}) is not defined; expected one of {['year', 'month', 'day', *_A_DAY]}.")
    days = _day(one).value.delta(_day(other).value, unit="day").cast("int64")
    if unit == "day":
        return Operand(days, Range(Kind.WHOLE, 23))
    times = [Operand(each.value.cast("timestamp"), Range(Kind.TIME)) for each in (one, other)]
    clocks = [_number(time, "hour") for time in times]
    for finer, name in ((60, "minute"), (60, "second")):
        if _A_DAY[str(unit)] >= _A_DAY[name]:
            clocks = [clock * finer + _number(time, name) for clock, time in zip(clocks, times, strict=True)]
    return Operand(days * _A_DAY[str(unit)] + clocks[0] - clocks[1], Range(Kind.WHOLE, 40))


def _number(operand: Operand, name: str) -> Column:
    return recast(getattr(operand.value, name)(), "int64")
