"""Leaving out what a statement computes and never uses: a question about one column of a view pays for that column only.

Engines leave out columns on their own, but not all of them aggregates: DuckDB counts distinct values that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evenhand.tables.expressions import Operation


def pruned(statement: Operation) -> Operation:
    """The statement without columns that no later step uses, as far down as each step has one input."""
    import ibis.expr.operations as ops

    steps: list[tuple[Operation, dict[str, Operation]]] = []
    changed = 0
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
        if isinstance(node, ops.Project | ops.Aggregate) and len(made) < len(getattr(node, "metrics", node.schema)):
            changed = len(steps)
        node = node.parent
    if not changed:
        return statement
    node = steps[changed - 1][0].parent
    for step, made in reversed(steps[:changed]):
        values = {name: _moved(value, step.parent, node) for name, value in made.items()}
        if isinstance(step, ops.Project):
            node = ops.Project(node, values)
        elif isinstance(step, ops.Aggregate):
            groups = {name: _moved(key, step.parent, node) for name, key in step.groups.items()}
            node = ops.Aggregate(node, groups, values)
        elif isinstance(step, ops.Filter):
            node = ops.Filter(node, tuple(_moved(each, step.parent, node) for each in step.predicates))
        else:
            node = ops.Project(node, {name: ops.Field(node, name) for name in _among(step.schema, set(node.schema))})
    return node


def _moved(value: Operation, rows: Operation, to: Operation) -> Operation:
    """An expression over some rows, over others. Only values are walked through: below every column there is a whole statement."""
    import ibis.expr.operations as ops

    def moved(node: Operation, changed: dict[str, Any] | None) -> Operation:
        arguments = {**dict(zip(node.__argnames__, node.__args__, strict=True)), **(changed or {})}
        places = {
            name: to for name, argument in arguments.items() if isinstance(argument, ops.Relation) and argument == rows
        }
        return node.__recreate__({**arguments, **places}) if places or changed else node

    return value.replace(moved, filter=ops.Value)


def _among(names: Iterable[str], wanted: set[str]) -> list[str]:
    return [name for name in names if name in wanted]


def _fields(values: Iterable[Operation]) -> set[str]:
    """The columns of the step below that some expressions use."""
    import ibis.expr.operations as ops

    return {field.name for value in values for field in value.find(ops.Field, filter=ops.Value)}
