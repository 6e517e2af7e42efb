"""From the expression that was given to one that can't raise: each operation by its rule on the list (``allowed.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column, Operation, Rows
from evenhand.tables.views.operand import Kind, Operand, Range, entered, given

if TYPE_CHECKING:
    from evenhand.tables.engines import Engine

MOST_STEPS = 100
"""Operations of one expression, as it is given."""
MOST_SIZE = 20_000
"""Operations of one expression, as engines see it: guards repeat their operands."""


class Guard:
    """Judges the operation graph of expressions over some rows, and rewrites it.

    Args:
        engine: what will evaluate them.
        rows: the only rows whose columns may be used.
        known: the ranges of columns that are results of rules already.
    """

    def __init__(self, engine: Engine, rows: Rows, known: Mapping[str, Range]) -> None:
        self.engine, self.rows, self.known = engine, rows, known
        self._done: dict[Operation, Operand] = {}
        self.shared: dict[Operation, str] = {}
        """What rules repeat and engines should compute once for each row, with the names of columns for it; see `staged`."""

    def checked(self, expression: Column) -> Operand:
        """The expression, rewritten; refuses it before anything is read if it is not on the list or too large."""
        require_shallow(expression)
        made = self.operand(expression.op())
        require_small(made.value)
        return made

    def operand(self, node: Operation) -> Operand:
        """An operation as an operand of the next one."""
        if node not in self._done:
            self._done[node] = self._operand(node)
        return self._done[node]

    def _operand(self, node: Operation) -> Operand:
        import ibis.expr.operations as ops

        from evenhand.tables.views.allowed import RULES, refusal

        if isinstance(node, ops.Literal):
            return given(node.value, node.dtype)
        if isinstance(node, ops.Alias):
            return self.operand(node.arg)
        if isinstance(node, ops.Field):
            return self._column(node)
        rule = RULES.get(type(node).__name__)
        if rule is None or type(node) is not getattr(ops, type(node).__name__, None):
            raise refusal(node)
        return rule(self, node)

    def _column(self, node: Operation) -> Operand:
        if node.rel != self.rows.op():
            raise UsageError(
                f"the column {node.name!r} belongs to other rows than those of this table; expected columns of this table, written as "
                "_.name. Join the other table first."
            )
        column = node.to_expr()
        if node.name in self.known:
            return Operand(column, self.known[node.name])
        made = entered(self.engine, column)
        if made.kind is Kind.REAL:
            self.shared[made.value.op()] = f"evenhand_shared_{len(self.shared)}"
        return made


def staged(rows: Rows, *steps: Mapping[Operation, str]) -> tuple[Rows, Callable[[Column], Column]]:
    """The rows with columns for what expressions over them share, each step computed from those before; and how such an expression is
    written over these rows.
    """
    below = rows
    places: dict[Operation, Operation] = {}
    for shared in steps:
        made = {name: node.replace(places).to_expr() for node, name in shared.items()}
        below = below.mutate(**made) if made else below
        names = {**{node: field.name for node, field in places.items() if node != rows.op()}, **shared}
        places = {rows.op(): below.op(), **{node: below[name].op() for node, name in names.items()}}
    return below, lambda expression: expression.op().replace(places).to_expr()


def require_shallow(expression: Column) -> None:
    """Check that an expression, as it is given, can be walked through."""
    if depth(expression.op()) > MOST_STEPS:
        raise UsageError(f"the expression has more than {MOST_STEPS} operations within each other; derive it in steps.")


def require_small(expression: Column) -> None:
    """Check that an expression, as engines will see it, is of a size that they can plan."""
    if size(expression.op()) > MOST_SIZE:
        raise UsageError(
            "the expression is too large once it is guarded against overflow; make it smaller, or store a part of it as a column of the table."
        )


def depth(node: Operation) -> int:
    """How many operations lie within each other, counted without recursion."""
    import ibis.expr.operations as ops
    from ibis.common.graph import Graph

    found: dict[Operation, int] = {}
    graph, _ = Graph.from_bfs(node, filter=ops.Value).toposort()
    for each, below in graph.items():
        found[each] = 1 + max((found[child] for child in below), default=0)
    return found[node]


def size(node: Operation) -> int:
    """How many operations an engine sees if it writes out every repetition, those in derived columns below included."""
    import ibis.expr.operations as ops
    from ibis.common.graph import Graph

    found: dict[Operation, int] = {}
    graph, _ = Graph.from_bfs(node).toposort()
    for each in graph:
        if isinstance(each, ops.Field):
            found[each] = found.get(getattr(each.rel, "values", {}).get(each.name), 1)
        elif isinstance(each, ops.Value):
            found[each] = 1 + sum(found.get(child, 1) for child in each.__children__)
    return found[node]
