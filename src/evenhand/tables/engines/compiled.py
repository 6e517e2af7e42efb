"""Statements in an engine's words, written once for all that differ only in the names of Evenhand's own tables.

Ibis takes 5 to 20 ms to write one, a third of a release of a small table. A release that is asked for again makes tables of other
names and is else the same.
"""

from __future__ import annotations

import datetime
import enum
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal

from evenhand.tables.expressions import Backend, Operation, Rows

_OWN = re.compile(r"evenhand_\d+_\d+")
_EXACT = (str, int, type(None), enum.Enum)  # equal values of one type are written alike
_BY_REPR = (float, Decimal, bytes, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)  # 0.0 == -0.0
_MOST = 256

_written: OrderedDict[Hashable, list[str]] = OrderedDict()
_lock = threading.Lock()


class _UnknownError(Exception):
    """Something that this module doesn't know how to compare."""


def compiled(expression: Rows, kind: type, write: Callable[[Rows], str]) -> str:
    """What ``write`` makes of the expression, from memory where one of the same shape and kind was written before.

    Args:
        expression: the statement.
        kind: of the writer, such as a backend's class.
        write: from an expression to SQL; may depend on nothing but the expression and the kind.
    """
    try:
        shape, names = _shape(expression.op())
    except _UnknownError:
        return write(expression)
    with _lock:
        pieces = _written.get((kind, shape))
        if pieces is not None:
            _written.move_to_end((kind, shape))
    if pieces is None:
        # Text between names, and the places of the names. Whole names: one may be the beginning of another.
        parts = re.split(f"({_OWN.pattern})", write(expression))
        pieces = [str(names.index(part)) if index % 2 else part for index, part in enumerate(parts)]
        with _lock:
            _written[kind, shape] = pieces
            if len(_written) > _MOST:
                _written.popitem(last=False)
    return "".join(names[int(piece)] if index % 2 else piece for index, piece in enumerate(pieces))


def written_through(backend: Backend, expression: Rows) -> str:
    """An expression as SQL, in which what only picks and computes columns is read again where it is used again.

    Engines store a common table expression that is named twice, with all of its columns, before they go on: three columns of two rows for one that
    counts keys. What joins, groups, sorts or draws is stored, as they have it.
    """
    import ibis.expr.operations as ops
    from sqlglot import exp

    query = backend.compiler.to_sqlglot(expression)
    stored = (
        exp.Join,
        exp.Window,
        exp.AggFunc,
        exp.Subquery,
        exp.Distinct,
        exp.Group,
        exp.Order,
        exp.Limit,
        exp.SetOperation,
    )
    if not expression.op().find((ops.RandomScalar, ops.RandomUUID)):  # each reading would draw anew
        for each in query.ctes:
            each.set("materialized", None if each.this.find(*stored) else False)
    return str(query.sql(dialect=backend.dialect))


def _shape(statement: Operation) -> tuple[Hashable, list[str]]:
    """The statement without the names of Evenhand's own tables, and these names in order. No shape leads to a connection."""
    import ibis.expr.datatypes as dt
    import ibis.expr.operations as ops
    import ibis.expr.schema as sch
    from ibis.common.graph import Graph

    graph, _ = Graph.from_bfs(statement).toposort()
    places: dict[Operation, int] = {}
    names: list[str] = []
    shape: list[Hashable] = []

    def part(argument: object) -> Hashable:
        if isinstance(argument, ops.Node):
            return (ops.Node, places[argument])
        if isinstance(argument, tuple):
            return tuple(map(part, argument))
        if isinstance(argument, frozenset):
            return frozenset(map(part, argument))
        if isinstance(argument, Mapping):
            return (Mapping, *((name, part(value)) for name, value in argument.items()))
        if isinstance(argument, str) and _OWN.search(argument):
            raise _UnknownError  # it would be taken for the name of a table
        if isinstance(argument, dt.DataType | sch.Schema | ops.Namespace):
            return (dt.DataType, argument)
        if isinstance(argument, _EXACT):
            return (type(argument), argument)
        if isinstance(argument, _BY_REPR):
            return (type(argument), repr(argument))
        raise _UnknownError

    for node in graph:
        places[node] = len(places)
        if not isinstance(node, ops.PhysicalTable):
            shape.append((type(node), *map(part, node.args)))
        elif not isinstance(node, ops.DatabaseTable | ops.UnboundTable):
            raise _UnknownError
        else:
            own = _OWN.fullmatch(node.name) is not None
            shape.append((type(node), len(names) if own else node.name, node.schema, node.namespace))
            names += [node.name] if own else []
    return tuple(shape), names
