"""Leaving out what a statement computes and never uses: a question about one column of a view pays for that column only.

Engines leave out columns on their own, but not all of them aggregates: DuckDB counts distinct values that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.tables.expressions import Operation


def pruned(statement: Operation) -> Operation:
    """The statement without columns that no later step uses, as far down as each step has one input."""
    import ibis.expr.operations as ops

    steps: list[tuple[Operation, dict[str, Operation]]] = []
    node, wanted = statement, set(statement.schema)
    while isinstance(node, ops.Project | ops.Aggregate | ops.DropColumns | ops.Filter):
        made: dict[str, Operation] = {}
        if isinstance(node, ops.Project):
            # A relation has columns, also where its rows are only counted.
            made = {name: node.values[name] for name in _among(node.values, wanted) or list(node.values)[:1]}
            wanted = _fields(made.values())
        elif isinstance(node, ops.Aggregate):
            made = {name: node.metrics[name] for name in _among(node.metrics, wanted)}
            wanted = _fields([*made.values(), *node.groups.values()])
        elif isinstance(node, ops.Filter):
            wanted |= _fields(node.predicates)
        steps.append((node, made))
        node = node.parent
    for step, made in reversed(steps):
        below = {step.parent: node}
        values = {name: value.replace(below) for name, value in made.items()}
        if isinstance(step, ops.Project):
            node = ops.Project(node, values)
        elif isinstance(step, ops.Aggregate):
            node = ops.Aggregate(node, {name: key.replace(below) for name, key in step.groups.items()}, values)
        elif isinstance(step, ops.Filter):
            node = ops.Filter(node, tuple(each.replace(below) for each in step.predicates))
        else:
            node = ops.Project(node, {name: ops.Field(node, name) for name in _among(step.schema, set(node.schema))})
    return node


def _among(names: Iterable[str], wanted: set[str]) -> list[str]:
    return [name for name in names if name in wanted]


def _fields(values: Iterable[Operation]) -> set[str]:
    """The columns of the step below that some expressions use."""
    import ibis.expr.operations as ops

    return {field.name for value in values for field in value.find(ops.Field, filter=ops.Value)}
