"""Arithmetic of aggregates, ``SUM(a) / COUNT(*)``: a tree over released numbers, worked out after the release and free of charge."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from evenhand.guarantee import UsageError
from evenhand.tables.queries.parsing import Parsed, Query, aggregates

MOST_STEPS = 50
"""Of one expression: it is worked out when the release is paid for, so nothing may run out then."""


@dataclass(frozen=True)
class Released:
    """A column of what is released: an aggregate, or a group."""

    column: str


@dataclass(frozen=True)
class Constant:
    """A number that the query gives."""

    value: float


@dataclass(frozen=True)
class Operation:
    """What is made of other parts.

    Args:
        symbol: one of `OPERATORS`.
        parts: what it takes.
    """

    symbol: str
    parts: tuple[Expression, ...]


Expression: TypeAlias = "Released | Constant | Operation"

OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "negative": operator.neg,
    "total": operator.methodcaller("total"),
}
"""How the parts of an expression are put together: with Python's operators, whatever is released."""

_SYMBOLS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "SafeDivide": "/"}
_UNCHANGED = ("Paren", "Round", "Coalesce", "Nullif")
"""Around a released number they change nothing: it is never null, its digits are for `print`, and a quotient by nearly 0 is wide and unusable."""
_LARGEST = 1e100


def combine(
    expression: Expression, releases: Mapping[str, Any], operators: Mapping[str, Callable[..., Any]] = OPERATORS
) -> Any:  # noqa: ANN401 - whatever the operators make of what is released
    """The expression, given what each of its columns stands for.

    Args:
        expression: the tree.
        releases: by column: releases, or the numbers of one row.
        operators: how parts are put together.
    """
    if isinstance(expression, Released):
        return releases[expression.column]
    if isinstance(expression, Constant):
        return expression.value
    return operators[expression.symbol](*(combine(part, releases, operators) for part in expression.parts))


def columns_of(expression: Expression) -> set[str]:
    """The columns that an expression is made of."""
    return {each.column for each in walk(expression) if isinstance(each, Released)}


def number_in(row: Mapping[str, Any], expression: Expression) -> Any:  # noqa: ANN401 - a cell of a released frame
    """What an expression is in one released row, from its numbers alone; None where it has none. Never raises."""
    if isinstance(expression, Released):
        return row.get(expression.column)
    try:
        found = float(combine(expression, row, _OF_A_ROW))
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return None
    return None if math.isnan(found) else found


def _quotient(one: float, other: float) -> float:
    return one / other if other else math.nan


_OF_A_ROW = {**OPERATORS, "/": _quotient}


def parse(query: Query, node: Parsed, leaf: Callable[[Parsed], Expression | None]) -> Expression:
    """Arithmetic as a tree.

    Args:
        query: where it stands.
        node: what is computed.
        leaf: what a part is if it is an aggregate, or a column of the result.
    """
    found = _parse(query, node, leaf, MOST_STEPS)
    if not columns_of(found):
        raise UsageError(
            f"{query.told(node)} is the same whatever the rows are: releases are about many people. Leave it out."
        )
    return found


def _parse(query: Query, node: Parsed, leaf: Callable[[Parsed], Expression | None], left: int) -> Expression:
    kind = type(node).__name__
    if left <= 0:
        raise UsageError(
            f"the expression{query.at(node)} has more than {MOST_STEPS} operations within each other; make it smaller."
        )
    known = leaf(node)
    if known is not None:
        return known

    def part(of: Parsed) -> Expression:
        return _parse(query, of, leaf, left - 1)

    if (kind in _UNCHANGED and _is_unchanged(kind, node)) or (
        kind in ("Cast", "TryCast") and node.to.this.name in ("FLOAT", "DOUBLE", "DECIMAL")
    ):
        return part(node.this)
    if kind == "Neg":
        return _folded("negative", part(node.this))
    if kind in _SYMBOLS:
        one, other = part(node.this), part(node.expression)
        if _SYMBOLS[kind] == "/" and other == Constant(0.0):
            raise UsageError(f"{query.told(node)} is a division by 0; expected another number.")
        return _folded(_SYMBOLS[kind], one, other)
    if kind == "Literal" and not node.is_string:
        return Constant(_constant(query, node))
    if kind == "Window":
        return _total(query, node, part)
    raise UsageError(f"{query.told(node)} can't be computed from released numbers: {_reason(kind, node)}")


def _is_unchanged(kind: str, node: Parsed) -> bool:
    others = [node.expression] if kind == "Nullif" else node.expressions if kind == "Coalesce" else []
    return all(
        type(other).__name__ == "Literal" and float(other.this if not other.is_string else "nan") == 0
        for other in others
    )


def _folded(symbol: str, *parts: Expression) -> Expression:
    """An operation; worked out at once if it is one of constants."""
    constants = [part.value for part in parts if isinstance(part, Constant)]
    if len(constants) == len(parts):
        return Constant(float(OPERATORS[symbol](*constants)))
    return Operation(symbol, parts)


def _constant(query: Query, node: Parsed) -> float:
    value = float(node.this)
    if not abs(value) <= _LARGEST:
        raise UsageError(f"the number {query.told(node)} is too large; expected one below {_LARGEST:g}.")
    return value


def _total(query: Query, node: Parsed, part: Callable[[Parsed], Expression]) -> Expression:
    """``SUM(COUNT(*)) OVER ()``: the total of what is released."""
    plain = not any(value for name, value in node.args.items() if name not in ("this", "over"))
    if plain and type(node.this).__name__ == "Sum" and node.this.find(*aggregates()) is not None:
        inner = node.this.this
        if inner.find(*aggregates()) is not None:
            return Operation("total", (part(inner),))
    raise UsageError(
        f"{query.told(node)} is a window: rows of different users would meet. Of what is released, expected SUM(COUNT(*)) OVER (), the total of all "
        "groups; of each user's own rows, table.window(...) in Python."
    )


def _reason(kind: str, node: Parsed) -> str:
    if kind in ("Case", "If", "GT", "LT", "GTE", "LTE", "EQ", "NEQ", "And", "Or", "Not"):
        return "a noisy number may lie on either side of a limit. Use HAVING, or compare the result with its interval: release.interval(0.95)."
    if kind == "Column":
        return (
            "it is a column of single rows, neither an aggregate nor a group. Write AVG(...), or name it in GROUP BY."
        )
    return "expected +, −, * and / of aggregates and constants; apply other functions to the result, .value and .interval(0.95)."


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all its parts."""
    yield expression
    if isinstance(expression, Operation):
        for part in expression.parts:
            yield from walk(part)
