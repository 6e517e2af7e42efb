"""Aggregates over the rows of one user that don't depend on the order of rows, and never raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column, Operation
from evenhand.tables.saturation import saturating_sum
from evenhand.tables.spelling import group_key
from evenhand.tables.views.casts import as_whole
from evenhand.tables.views.operand import TYPES, WHOLE_BITS, Kind, Operand, Range, null, real, tamed

if TYPE_CHECKING:
    from evenhand.tables.views.guard import Guard

LIMB_BITS = 26
"""Sums of doubles are exact in steps of 2^-52: fractions are summed as two numbers of this many bits."""
_SUM_BITS = 62


@dataclass(frozen=True)
class Reduced:
    """An aggregate: what the engine computes over the rows, and what is made of it.

    Args:
        parts: aggregates, or functions of the rows of a window.
        finish: from their values to that of the whole.
        range: of that value.
        shared: what several parts are computed from; engines compute it once for each row.
    """

    parts: tuple[Column, ...]
    finish: Callable[..., Column]
    range: Range
    shared: Column | None = None


def reduced(guard: Guard, node: Operation) -> Reduced:
    """An aggregate by its rule; refuses those that are not on the list."""
    from evenhand.tables.views.allowed import REASONS, refusal

    rule = REDUCTIONS.get(type(node).__name__)
    if rule is None:
        found = refusal(node)
        if type(node).__name__ in REASONS and REASONS[type(node).__name__][1].startswith("Ask for it as a statistic"):
            names = sorted(REDUCTIONS)
            found = UsageError(
                f"the operation {type(node).__name__} is not computed per user; expected one of {names}."
            )
        raise found
    return rule(guard, node)


def _argument(guard: Guard, node: Operation) -> Operand:
    """What is aggregated: null where the condition of the aggregate does not hold."""
    operand = guard.operand(node.arg)
    if operand.kind in (Kind.NULL, Kind.OTHER):
        raise UsageError(
            f"{type(node).__name__} of {operand.kind.value} is not defined; expected a number, a text or a date."
        )
    if node.where is None:
        return operand
    return Operand(_condition(guard, node).ifelse(operand.value, null(operand.kind)), operand.range)


def _condition(guard: Guard, node: Operation) -> Column:
    from evenhand.tables.views.logic import truth

    return truth(guard, node.where)


def _rows(guard: Guard, node: Operation) -> Reduced:
    import ibis

    counted = guard.rows.count()
    if node.where is not None:
        condition = _condition(guard, node)
        if condition.op().shape.is_scalar():
            raise UsageError("count(where=...) of a condition without a column; expected one such as _.amount > 0.")
        counted = condition.ifelse(ibis.literal(1, "int64"), null(Kind.WHOLE)).count()
    return Reduced((counted,), _as_is, Range(Kind.WHOLE, WHOLE_BITS))


def _count(guard: Guard, node: Operation) -> Reduced:
    return Reduced((_argument(guard, node).value.count(),), _as_is, Range(Kind.WHOLE, WHOLE_BITS))


def _distinct(guard: Guard, node: Operation) -> Reduced:
    value = _argument(guard, node).value
    if node.where is None and type(node.arg).__name__ == "Field" and node.arg.dtype.is_signed_integer():
        value = node.arg.to_expr()  # as it is stored: engines tell narrow numbers apart faster
    return Reduced((group_key(guard.engine, value).nunique(),), _as_is, Range(Kind.WHOLE, WHOLE_BITS))


def _sum(guard: Guard, node: Operation) -> Reduced:
    """Exact in 128 bits; of doubles, in steps of 2^-52. Null of nothing."""
    operand = _argument(guard, node)
    if operand.kind is Kind.TRUTH:
        operand = as_whole(operand)
    if operand.kind is Kind.WHOLE:
        held = operand if operand.range.most <= _SUM_BITS else tamed(operand)
        return Reduced(
            (guard.engine.exact_sum(held.value), held.value.count()), _whole_sum, Range(Kind.WHOLE, _SUM_BITS)
        )
    if operand.kind is not Kind.REAL:
        raise UsageError(
            f"a sum of {operand.kind.value} is not defined; expected numbers. Cast text first: _.amount.cast('float64')."
        )
    clamped = _clamped(operand)
    whole, *fractions = _limbs(guard, clamped)
    parts = (guard.engine.exact_sum(whole), clamped.count(), *map(saturating_sum, fractions))
    return Reduced(parts, _real_sum, Range(Kind.REAL, _SUM_BITS + 2, -2 * LIMB_BITS - 1), clamped)


def _mean(guard: Guard, node: Operation) -> Reduced:
    total, ends = _sum(guard, node), _argument(guard, node).range.bounds

    def finish(*parts: Column) -> Column:
        import ibis

        found = total.finish(*parts).cast("float64")
        return found / parts[1].cast("float64").nullif(ibis.literal(0.0, "float64"))

    found = Range(Kind.REAL, _SUM_BITS + 2, -2 * LIMB_BITS - WHOLE_BITS - 2, ends)
    return Reduced(total.parts, finish, found, total.shared)


def _extreme(least: bool) -> Callable[[Guard, Operation], Reduced]:
    def rule(guard: Guard, node: Operation) -> Reduced:
        import ibis

        operand = _argument(guard, node)
        if operand.kind not in (Kind.WHOLE, Kind.REAL, Kind.DATE, Kind.TIME):
            raise UsageError(
                f"{type(node).__name__} of {operand.kind.value} is not the same on every engine; expected numbers, dates or timestamps."
            )
        value = operand.value
        if operand.kind is Kind.REAL:  # of 0.0 and -0.0, which are equal, the one that comes first would win
            value = (value == ibis.literal(0.0, "float64")).ifelse(ibis.literal(0.0, "float64"), value)
        return Reduced((value.min() if least else value.max(),), _as_is, operand.range)

    return rule


def _holds(every: bool) -> Callable[[Guard, Operation], Reduced]:
    def rule(guard: Guard, node: Operation) -> Reduced:
        ones = as_whole(_argument(guard, node)).value
        return Reduced((ones.min() if every else ones.max(),), lambda part: part == 1, Range(Kind.TRUTH))

    return rule


def _as_is(part: Column) -> Column:
    return part


def _fits(total: Column) -> Column:
    """A 128-bit sum as a 64-bit integer; null beyond 2^62."""
    import ibis

    ends = (ibis.literal(end, "decimal(38, 0)") for end in (-(2**_SUM_BITS), 2**_SUM_BITS))
    return total.between(*ends).ifelse(total, ibis.null("decimal(38, 0)")).cast("int64")


def _whole_sum(total: Column, count: Column) -> Column:
    return (count > 0).ifelse(_fits(total), null(Kind.WHOLE))


def _real_sum(whole: Column, count: Column, *fractions: Column) -> Column:
    import ibis

    total = _fits(whole).cast("float64")
    for place, fraction in enumerate(fractions, 1):
        total = total + fraction.cast("float64") * ibis.literal(2.0 ** (-place * LIMB_BITS), "float64")
    return (count > 0).ifelse(total, null(Kind.REAL))


def _double(number: float) -> Column:
    import ibis

    return ibis.literal(number, "float64")


def _clamped(operand: Operand) -> Column:
    """A double held to ±2^53."""
    import ibis

    value, end = real(operand).value, 2.0**WHOLE_BITS
    if operand.range.most <= WHOLE_BITS:
        return value
    return ibis.cases((value > _double(end), _double(end)), (value < _double(-end), _double(-end)), else_=value)


def _limbs(guard: Guard, clamped: Column) -> list[Column]:
    """A double as a whole number and two of 26 bits for its fraction: sums of integers know no order."""
    limbs, left = [], clamped
    for _ in range(3):
        limbs.append(guard.engine.floor(left))
        left = (left - limbs[-1]) * _double(2.0**LIMB_BITS)  # exact: the difference is the rest of the same bits
    return [limbs[0].cast(TYPES[Kind.WHOLE]), *limbs[1:]]


REDUCTIONS: dict[str, Callable[[Guard, Operation], Reduced]] = {
    "CountStar": _rows,
    "Count": _count,
    "CountDistinct": _distinct,
    "Sum": _sum,
    "Mean": _mean,
    "Min": _extreme(least=True),
    "Max": _extreme(least=False),
    "Any": _holds(every=False),
    "All": _holds(every=True),
}
"""The aggregates per user: all of them."""
