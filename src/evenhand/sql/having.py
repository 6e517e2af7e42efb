"""HAVING on what was released: a condition on noisy numbers and shown names, so it costs nothing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from evenhand.guarantee import UsageError
from evenhand.sql.arithmetic import Expression, number_in
from evenhand.sql.ordering import rank
from evenhand.tables.queries.parsing import Parsed, Query

Row: TypeAlias = Mapping[str, Any]
Test: TypeAlias = Callable[[Row], bool | None]
"""Whether a released row meets a condition; None where that is unknown, since a value is missing or of another kind."""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    **{"EQ": operator.eq, "NEQ": operator.ne, "LT": operator.lt},
    **{"LTE": operator.le, "GT": operator.gt, "GTE": operator.ge},
}


def having(query: Query, node: Parsed, result: Callable[[Parsed], Expression]) -> Test:
    """A condition on released rows.

    Args:
        query: where it stands.
        node: the condition.
        result: what a part of it is, as arithmetic of what is released.
    """
    kind = type(node).__name__
    if kind == "Paren":
        return having(query, node.this, result)
    if kind == "Not":
        return _negated(having(query, node.this, result))
    if kind in ("And", "Or"):
        return _both(having(query, node.this, result), having(query, node.expression, result), every=kind == "And")
    if kind == "Between":
        value, low, high = (_value(each, result) for each in (node.this, node.args["low"], node.args["high"]))
        return _both(_compared(operator.le, low, value), _compared(operator.le, value, high), every=True)
    if kind in _COMPARISONS:
        return _compared(_COMPARISONS[kind], _value(node.this, result), _value(node.expression, result))
    raise UsageError(
        f"HAVING {query.told(node)}: it is about what was released; expected comparisons of groups, aggregates and constants, as in HAVING "
        "COUNT(*) > 100 AND SUM(a) / COUNT(*) < 5. Conditions on rows stand in WHERE."
    )


def _value(node: Parsed, result: Callable[[Parsed], Expression]) -> Callable[[Row], Any]:
    sign, inner = (-1, node.this) if type(node).__name__ == "Neg" else (1, node)
    if type(inner).__name__ == "Literal" and not (inner.is_string and sign < 0):
        constant = inner.this if inner.is_string else sign * float(inner.this)
        return lambda row: constant
    value = result(node)
    return lambda row: number_in(row, value)


def _compared(compare: Callable[[Any, Any], bool], left: Callable[[Row], Any], right: Callable[[Row], Any]) -> Test:
    def test(row: Row) -> bool | None:
        one, other = rank(left(row)), rank(right(row))
        return compare(one, other) if one and other and one[0] == other[0] else None

    return test


def _negated(test: Test) -> Test:
    def negated(row: Row) -> bool | None:
        found = test(row)
        return None if found is None else not found

    return negated


def _both(one: Test, other: Test, every: bool) -> Test:
    def test(row: Row) -> bool | None:
        found = (one(row), other(row))
        decided = not every  # false decides AND, true decides OR, whatever the other is
        return decided if decided in found else None if None in found else every

    return test
