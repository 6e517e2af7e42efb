"""How often a statement would read a source."""

from __future__ import annotations

from evenhand.tables.expressions import Operation


def scans(statement: Operation, source: Operation) -> int:
    """In how many places a statement takes its rows from ``source``, each of which an engine may scan on its own.

    A relation that is used in two places counts twice, whatever an engine makes of that.
    """
    import ibis.expr.operations as ops
    from ibis.common.graph import Graph

    # These name the relation that they are evaluated over, and read nothing on their own.
    names = (ops.Field, ops.CountStar, ops.CountDistinctStar)
    graph, _ = Graph.from_bfs(statement).toposort()
    found: dict[Operation, int] = {}
    for node in graph:
        if node == source:
            found[node] = 1
        elif isinstance(node, names):
            found[node] = 0
        else:
            found[node] = sum(found[child] for child in node.__children__)
    return found[statement]
