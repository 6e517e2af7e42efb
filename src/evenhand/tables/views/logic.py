"""Comparisons, true and false, choices and nulls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column, Operation
from evenhand.tables.views.operand import Kind, Operand, Range, alike, null, widest

if TYPE_CHECKING:
    from evenhand.tables.views.guard import Guard

_TRUTH = Range(Kind.TRUTH)
MOST_VALUES = 10_000


def _compared(guard: Guard, nodes: list[Operation], ordered: bool) -> list[Column]:
    """Values that may be compared: text by its bytes, since each engine has its own order of letters, and each collation its own equality."""
    kind, operands = alike([guard.operand(node) for node in nodes], "a comparison")
    if ordered and kind is Kind.TRUTH:
        raise UsageError("true and false have no order that is the same on every engine; expected == or !=.")
    return _spelled(guard, kind, operands, ordered)


def _spelled(guard: Guard, kind: Kind, operands: list[Operand], ordered: bool = False) -> list[Column]:
    by_bytes = kind is Kind.TEXT and (ordered or not guard.engine.bytewise)
    return [guard.engine.spelled(operand.value) if by_bytes else operand.value for operand in operands]


def compares(combine: Callable[[Column, Column], Column], ordered: bool) -> Callable[[Guard, Operation], Operand]:
    """The rule for a comparison."""

    def rule(guard: Guard, node: Operation) -> Operand:
        return Operand(combine(*_compared(guard, [node.left, node.right], ordered)), _TRUTH)

    return rule


def between(guard: Guard, node: Operation) -> Operand:
    value, low, high = _compared(guard, [node.arg, node.lower_bound, node.upper_bound], ordered=True)
    return Operand(value.between(low, high), _TRUTH)


def is_among(guard: Guard, node: Operation) -> Operand:
    """One of some constants."""
    options = [guard.operand(option) for option in node.options]
    if any(option.literal is None for option in options):
        raise UsageError("isin(...) takes constants that are not null; for a column write (_.a == _.b) | (_.a == _.c).")
    if len(options) > MOST_VALUES:
        raise UsageError(f"isin(...) takes at most {MOST_VALUES} constants; join a public table with more.")
    value, *others = _spelled(guard, *alike([guard.operand(node.value), *options], "a comparison"))
    return Operand(value.isin(others), _TRUTH)


def truth(guard: Guard, node: Operation, role: str = "a condition") -> Column:
    """An operand that is true or false."""
    import ibis

    operand = guard.operand(node)
    if operand.kind is Kind.NULL:
        return ibis.null("boolean")
    if operand.kind is not Kind.TRUTH:
        raise UsageError(f"{role} must be true or false, and {operand.kind.value} was given; compare it: _.amount > 0.")
    return operand.value


def joins(combine: Callable[[Column, Column], Column]) -> Callable[[Guard, Operation], Operand]:
    """The rule for and, or."""

    def rule(guard: Guard, node: Operation) -> Operand:
        return Operand(combine(truth(guard, node.left), truth(guard, node.right)), _TRUTH)

    return rule


def differs(guard: Guard, node: Operation) -> Operand:
    return Operand(truth(guard, node.left) != truth(guard, node.right), _TRUTH)


def inverts(guard: Guard, node: Operation) -> Operand:
    return Operand(~truth(guard, node.arg), _TRUTH)


def is_null(guard: Guard, node: Operation) -> Operand:
    return Operand(guard.operand(node.arg).value.isnull(), _TRUTH)


def is_known(guard: Guard, node: Operation) -> Operand:
    return Operand(guard.operand(node.arg).value.notnull(), _TRUTH)


def if_else(guard: Guard, node: Operation) -> Operand:
    return _choice(guard, [(truth(guard, node.bool_expr), node.true_expr)], node.false_null_expr)


def searched_case(guard: Guard, node: Operation) -> Operand:
    conditions = [truth(guard, case) for case in node.cases]
    return _choice(guard, list(zip(conditions, node.results, strict=True)), node.default)


def simple_case(guard: Guard, node: Operation) -> Operand:
    conditions = [operator.eq(*_compared(guard, [node.base, case], ordered=False)) for case in node.cases]
    return _choice(guard, list(zip(conditions, node.results, strict=True)), node.default)


def _choice(guard: Guard, branches: list[tuple[Column, Operation]], default: Operation) -> Operand:
    import ibis

    nodes = [*(node for _, node in branches), default]
    _, operands = alike([guard.operand(node) for node in nodes], "a choice")
    results = [operand.value for operand in operands]
    pairs = [(condition, result) for (condition, _), result in zip(branches, results[:-1], strict=True)]
    return Operand(ibis.cases(*pairs, else_=results[-1]), widest(operands))


def first_known(guard: Guard, node: Operation) -> Operand:
    import ibis

    _, operands = alike([guard.operand(each) for each in node.arg], "a choice")
    return Operand(ibis.coalesce(*(operand.value for operand in operands)), widest(operands))


def null_if(guard: Guard, node: Operation) -> Operand:
    kind, (value, other) = alike([guard.operand(each) for each in (node.arg, node.null_if_expr)], "a comparison")
    one, two = _spelled(guard, kind, [value, other])
    return Operand((one == two).ifelse(null(kind), value.value), value.range)
