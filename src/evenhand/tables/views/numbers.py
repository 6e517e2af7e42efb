"""Arithmetic that never raises: whole numbers exactly, doubles as IEEE 754 has them, null where a result would be out of range."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column, Operation
from evenhand.tables.views.operand import (
    MOST_BITS,
    WHOLE_BITS,
    Kind,
    Operand,
    Range,
    alike,
    null,
    real,
    tamed,
    widest,
)

if TYPE_CHECKING:
    from evenhand.tables.views.guard import Guard

_LARGEST_POWER = 4
_MOST_DIGITS = 9
_LARGEST_EXPONENT = 100.0


def numbers(guard: Guard, nodes: list[Operation], role: str) -> tuple[Kind, list[Operand]]:
    """Operands that are numbers, of one kind."""
    kind, operands = alike([guard.operand(node) for node in nodes], role)
    if kind not in (Kind.WHOLE, Kind.REAL):
        raise UsageError(
            f"{role} of {kind.value} is not defined; expected numbers. If the column holds numbers as text, write _.amount.cast('float64')."
        )
    return kind, operands


def _sum(guard: Guard, node: Operation, combine: Callable[[Column, Column], Column], role: str) -> Operand:
    kind, both = numbers(guard, [node.left, node.right], role)
    most = 62 if kind is Kind.WHOLE else MOST_BITS
    one, other = (operand if operand.range.most < most else tamed(operand) for operand in both)
    ranges = one.range, other.range
    # What two doubles cancel to is a multiple of the last bit of the smaller.
    least = min(range_.least for range_ in ranges) - 53
    return Operand(combine(one.value, other.value), Range(kind, max(range_.most for range_ in ranges) + 1, least), None)


def add(guard: Guard, node: Operation) -> Operand:
    return _sum(guard, node, operator.add, "the sum")


def subtract(guard: Guard, node: Operation) -> Operand:
    return _sum(guard, node, operator.sub, "the difference")


def multiply(guard: Guard, node: Operation) -> Operand:
    kind, (one, other) = numbers(guard, [node.left, node.right], "the product")
    return _product(kind, one, other)


def _product(kind: Kind, one: Operand, other: Operand) -> Operand:
    import ibis

    if kind is Kind.REAL:
        one, other = _combinable(one, other, operator.add)
        return Operand(
            one.value * other.value,
            Range(kind, one.range.most + other.range.most, one.range.least + other.range.least),
        )
    if one.range.most + other.range.most < 62:
        return Operand(one.value * other.value, Range(kind, one.range.most + other.range.most))
    # The product in doubles can't overflow, and tells the exact one's size to within a factor 1 + 2^-50.
    size = (real(one).value * real(other).value).abs()
    fits = size <= ibis.literal(2.0**WHOLE_BITS, "float64")
    # Both: DuckDB multiplies the constants of x * c * d with each other while it plans, and would raise where these overflow.
    held, also = (fits.ifelse(operand.value, null(kind)) for operand in (one, other))
    return Operand(held * also, Range(kind, WHOLE_BITS + 1))


def _combinable(one: Operand, other: Operand, combine: Callable[[int, int], int]) -> tuple[Operand, Operand]:
    """Two doubles whose product (or quotient) neither overflows nor underflows: the wider is tamed, then the other if need be."""

    def fits(one: Operand, other: Operand) -> bool:
        highest = combine(one.range.most, other.range.most), combine(one.range.most, other.range.least)
        lowest = combine(one.range.least, other.range.least), combine(one.range.least, other.range.most)
        return max(highest) <= MOST_BITS and min(lowest) >= -MOST_BITS

    def width(operand: Operand) -> int:
        return max(operand.range.most, -operand.range.least)

    if not fits(one, other):
        one, other = (tamed(one), other) if width(one) >= width(other) else (one, tamed(other))
    if not fits(one, other):
        one, other = tamed(one), tamed(other)
    return one, other


def divide(guard: Guard, node: Operation) -> Operand:
    """In doubles; null where the divisor is 0."""
    _, both = numbers(guard, [node.left, node.right], "the quotient")
    return _quotient(real(both[0]), real(both[1]))


def _quotient(one: Operand, other: Operand) -> Operand:
    import ibis

    one, other = _combinable(one, other, operator.sub)
    divisor = other.value.nullif(ibis.literal(0.0, "float64"))
    return Operand(
        one.value / divisor,
        Range(Kind.REAL, one.range.most - other.range.least + 1, one.range.least - other.range.most - 1),
    )


def floor_divide(guard: Guard, node: Operation) -> Operand:
    kind, both = numbers(guard, [node.left, node.right], "the quotient")
    if kind is Kind.WHOLE:
        both = [operand if operand.range.most <= WHOLE_BITS else tamed(operand) for operand in both]
    return floored(guard, _quotient(real(both[0]), real(both[1])))


def modulus(guard: Guard, node: Operation) -> Operand:
    """Of whole numbers, with the sign of the dividend; null where the divisor is 0."""
    import ibis

    kind, both = numbers(guard, [node.left, node.right], "the remainder")
    if kind is not Kind.WHOLE:
        raise UsageError("the remainder of doubles differs between engines; expected whole numbers on both sides of %.")
    one, other = (operand if operand.range.most < 63 else tamed(operand) for operand in both)
    return Operand(one.value % other.value.nullif(ibis.literal(0, "int64")), Range(kind, other.range.most))


def negate(guard: Guard, node: Operation) -> Operand:
    kind, (one,) = numbers(guard, [node.arg], "the negative")
    one = one if kind is Kind.REAL or one.range.most < 63 else tamed(one)
    ends = one.range.ends
    return Operand(-one.value, replace(one.range, ends=ends and (-ends[1], -ends[0])))


def absolute(guard: Guard, node: Operation) -> Operand:
    kind, (one,) = numbers(guard, [node.arg], "the magnitude")
    one = one if kind is Kind.REAL or one.range.most < 63 else tamed(one)
    ends = one.range.ends
    if ends is not None:
        sizes = abs(ends[0]), abs(ends[1])
        ends = (0.0 if ends[0] <= 0 <= ends[1] else min(sizes)), max(sizes)
    return Operand(one.value.abs(), replace(one.range, ends=ends))


def power(guard: Guard, node: Operation) -> Operand:
    """By a small whole constant, as a product."""
    kind, (base,) = numbers(guard, [node.left], "the power")
    exponent = guard.operand(node.right).literal
    if exponent not in range(1, _LARGEST_POWER + 1):
        raise UsageError(
            f"a power is computed for the constant exponents 1 to {_LARGEST_POWER} only: others overflow, or differ between engines. "
            "Write _.x * _.x, or _.x.sqrt()."
        )
    made = base
    for _ in range(int(str(exponent)) - 1):
        made = _product(kind, made, base)
    return made


def square_root(guard: Guard, node: Operation) -> Operand:
    """Null below 0."""
    import ibis

    _, (one,) = numbers(guard, [node.arg], "the square root")
    one = real(one)
    one = one if one.range.most <= MOST_BITS else tamed(one)
    positive = (one.value >= ibis.literal(0.0, "float64")).ifelse(one.value, null(Kind.REAL))
    return Operand(positive.sqrt(), Range(Kind.REAL, one.range.most // 2 + 1, one.range.least // 2 - 1))


def logarithm(guard: Guard, node: Operation) -> Operand:
    """Natural; null at 0 and below."""
    import ibis

    _, (one,) = numbers(guard, [node.arg], "the logarithm")
    one = real(one)
    one = one if one.range.most <= MOST_BITS else tamed(one)
    positive = (one.value > ibis.literal(0.0, "float64")).ifelse(one.value, null(Kind.REAL))
    return Operand(positive.ln(), Range(Kind.REAL, 11, -1100))


def exponential(guard: Guard, node: Operation) -> Operand:
    """Null beyond ±100."""
    import ibis

    _, (one,) = numbers(guard, [node.arg], "the exponential")
    one = real(one)
    ends = (ibis.literal(end, "float64") for end in (-_LARGEST_EXPONENT, _LARGEST_EXPONENT))
    held = one.value.between(*ends).ifelse(one.value, null(Kind.REAL))
    return Operand(held.exp(), Range(Kind.REAL, 145, -145))


def floored(guard: Guard, one: Operand) -> Operand:
    """The largest whole number that is not above a number."""
    if one.kind is Kind.WHOLE:
        return one
    held = one if one.range.most <= WHOLE_BITS else _whole_range(one)
    return Operand(guard.engine.floor(held.value).cast("int64"), Range(Kind.WHOLE, WHOLE_BITS + 1))


def _whole_range(one: Operand) -> Operand:
    import ibis

    ends = (ibis.literal(end, "float64") for end in (-(2.0**WHOLE_BITS), 2.0**WHOLE_BITS))
    return Operand(one.value.between(*ends).ifelse(one.value, null(Kind.REAL)), Range(Kind.REAL, WHOLE_BITS, -1100))


def floor(guard: Guard, node: Operation) -> Operand:
    return floored(guard, numbers(guard, [node.arg], "the floor")[1][0])


def ceiling(guard: Guard, node: Operation) -> Operand:
    kind, (one,) = numbers(guard, [node.arg], "the ceiling")
    if kind is Kind.WHOLE:
        return one
    below = floored(guard, Operand(-one.value, replace(one.range, ends=None)))
    return Operand(-below.value, below.range)


def truncated(guard: Guard, one: Operand) -> Operand:
    """A number without its fraction, as Python's ``int`` has it."""
    import ibis

    if one.kind is Kind.WHOLE:
        return one
    held = one if one.range.most <= WHOLE_BITS else _whole_range(one)
    size = guard.engine.floor(held.value.abs()).cast("int64")
    return Operand((held.value < ibis.literal(0.0, "float64")).ifelse(-size, size), Range(Kind.WHOLE, WHOLE_BITS + 1))


def rounded(guard: Guard, node: Operation) -> Operand:
    """Halves upwards, on every engine."""
    import ibis

    kind, (one,) = numbers(guard, [node.arg], "rounding")
    digits = guard.operand(node.digits).literal if node.digits is not None else 0
    if digits not in range(_MOST_DIGITS + 1):
        raise UsageError(f"round(digits) takes a constant between 0 and {_MOST_DIGITS}; {digits!r} was given.")
    if kind is Kind.WHOLE:
        return one
    factor = 10.0 ** int(str(digits))
    half = Operand(ibis.literal(0.5, "float64"), Range(Kind.REAL, 0, -1))
    scaled = Operand(
        _whole_range(one).value * ibis.literal(factor, "float64"), Range(Kind.REAL, WHOLE_BITS + 30, -1100)
    )
    steps = floored(guard, Operand(scaled.value + half.value, Range(Kind.REAL, WHOLE_BITS + 31)))
    if not digits:
        return steps
    return Operand(steps.value.cast("float64") / ibis.literal(factor, "float64"), Range(Kind.REAL, WHOLE_BITS + 1, -31))


def clip(guard: Guard, node: Operation) -> Operand:
    import ibis

    nodes = [node.arg, *(end for end in (node.lower, node.upper) if end is not None)]
    _, operands = numbers(guard, nodes, "clipping")
    value, ends = operands[0].value, operands[1:]
    branches = []
    if node.lower is not None:
        branches.append((value < ends[0].value, ends[0].value))
    if node.upper is not None:
        branches.append((value > ends[-1].value, ends[-1].value))
    found, constants = widest(operands), [end.literal for end in ends]
    if len(constants) == 2 and all(isinstance(end, int | float) for end in constants):
        low, high = (float(str(end)) for end in constants)
        found = replace(found, ends=(min(low, high), max(low, high)))  # exchanged ends give either of them
    return Operand(ibis.cases(*branches, else_=value), found)


def _extreme(guard: Guard, node: Operation, least: bool) -> Operand:
    """Of the numbers that are not null."""
    import ibis

    _, operands = numbers(guard, list(node.arg), "the least or greatest")
    choose = ibis.least if least else ibis.greatest
    return Operand(choose(*(operand.value for operand in operands)), widest(operands))


def smallest(guard: Guard, node: Operation) -> Operand:
    return _extreme(guard, node, least=True)


def greatest(guard: Guard, node: Operation) -> Operand:
    return _extreme(guard, node, least=False)
