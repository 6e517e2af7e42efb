"""Views that work user by user: ``per``, ``per_user`` and ``window``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.guarantee import Relation, UsageError
from evenhand.tables.expressions import Column, Operation, Rows
from evenhand.tables.spelling import group_key, user_id
from evenhand.tables.views.allowed import refusal
from evenhand.tables.views.binding import bound
from evenhand.tables.views.guard import Guard, require_shallow, require_small, staged
from evenhand.tables.views.operand import TYPES, Operand
from evenhand.tables.views.ordering import total_order, user_window
from evenhand.tables.views.reductions import Reduced, reduced
from evenhand.tables.views.rows import inputs, judged, require_new, require_public, typed, viewed

if TYPE_CHECKING:
    from evenhand.tables.table import Table

LARGEST_SHIFT = 1000


def per_user(table: Table, columns: Mapping[str, object]) -> Table:
    """One row for each user."""
    return _per(table, [], columns, "per_user")


def per(table: Table, keys: str | Sequence[str], columns: Mapping[str, object]) -> Table:
    """One row for each user and each combination of their values in the columns ``keys``."""
    names = [keys] if isinstance(keys, str) else list(keys)
    if not names:
        raise UsageError(
            "per(...) got no keys; expected columns, such as per(['household', 'basket'], total=_.amount.sum())."
        )
    for name in names:
        require_public(table, table.expression[table.require(name, "key")], "per(...)", "which rows there are")
    return _per(table, [name for name in dict.fromkeys(names) if name not in table.user], columns, "per")


def _per(table: Table, keys: list[str], columns: Mapping[str, object], role: str) -> Table:
    rows, guard = table.expression, judged(table)
    given = {name: _given(table, name, expression, f"{role}({name}=...)") for name, expression in columns.items()}
    if not given:
        raise UsageError(f"{role}(...) got no columns; expected some, such as total=_.amount.sum().")
    taken = [name for name in given if name in keys]
    if taken:
        raise UsageError(
            f"{role}(...): {taken} are keys, which keep their names and values; expected other names for new columns."
        )
    found = {node: reduced(guard, node) for expression in given.values() for node in _aggregates(expression.op())}
    parts = {name: part for place, each in enumerate(found.values()) for name, part in _named(place, each).items()}
    rows, parts = _staged(guard, found, parts)
    made, finished = _outer(table, given, found, _grouped(table, rows, keys, parts))
    public = tuple(name for name, expression in given.items() if inputs(expression) <= {*table.public, *table.user})
    kept = (*table.user, *keys)
    changes = {
        "public": (*(name for name in table.public if name in kept), *public),
        "text": table.text & set(kept),
        "derived": {
            **{name: known for name, known in table.derived.items() if name in keys},
            **{name: operand.range for name, operand in made.items()},
        },
        "facts": {name: known for name, known in table.facts.items() if name in kept},
        "growth": table.growth if keys else 1,
        "per_person": table.per_person if keys else 1,
    }
    return viewed(table, finished.select(*kept, **_values(made)), changes)


def _grouped(table: Table, rows: Rows, keys: Sequence[str], parts: Mapping[str, Column]) -> Rows:
    """One row for each user and key, under their columns: ids and keys in the one spelling by which they are told apart everywhere."""
    known = {f"evenhand_per_{place}": group_key(table.engine, rows[name]) for place, name in enumerate(keys)}
    told_by = {**table.user_keys(rows), **known}
    columns = dict(zip(told_by, (*table.user, *keys), strict=True))
    ids = {columns[name]: user_id(table.engine, rows[columns[name]], key) for name, key in told_by.items()}
    told = {name: rows[name] for name, made in ids.items() if made is None}
    grouped = rows.group_by(**told_by, **told).aggregate(**parts)
    made = {
        column: user_id(table.engine, rows[column], grouped[name])
        for name, column in columns.items()
        if column not in told
    }
    return grouped.mutate(**made)


def window(table: Table, order_by: str | Sequence[str] | None, columns: Mapping[str, object]) -> Table:
    """The rows with more columns, computed from the other rows of the same user."""
    import ibis

    rows, guard = table.expression, judged(table)
    keys = [order_by] if isinstance(order_by, str) else list(order_by or ())
    for name in set(columns) & {"group_by", "partition_by"}:
        raise UsageError(
            f"window({name}=...): a window is over the rows of one user, and {name} would be the name of a new column. For groups within a user, "
            "write table.per(['household', 'basket'], total=_.amount.sum())."
        )
    for key in keys:
        require_public(table, rows[table.require(key, "order_by column")], "an order", "which row comes first")
    given = {name: _given(table, name, expression, f"window({name}=...)") for name, expression in columns.items()}
    found = {
        node: _windowed(guard, node, bool(keys))
        for expression in given.values()
        for node in _aggregates(expression.op())
    }
    whole = ibis.window(group_by=user_window(table))
    running = ibis.window(group_by=user_window(table), order_by=total_order(table, keys), rows=(None, 0))
    shift = ibis.window(group_by=user_window(table), order_by=total_order(table, keys))
    parts: dict[str, Column] = {}
    for place, (node, each) in enumerate(found.items()):
        over = (shift if type(node).__name__ in _SHIFTS else running) if keys else whole
        parts |= {name: part.over(over) for name, part in _named(place, each).items()}
    rows, parts = _staged(guard, found, parts)
    seen = rows.mutate(**parts)
    made, finished = _outer(table, given, found, seen)
    known = {*table.public, *table.user}
    public = [name for name, expression in given.items() if inputs(expression) | set(keys) <= known]
    changes = {
        "public": (*(name for name in table.public if name not in made), *public),
        "text": table.text - set(made),
        "facts": {name: known for name, known in table.facts.items() if name not in made},
        "derived": {**table.derived, **{name: operand.range for name, operand in made.items()}},
    }
    kept = [name for name in table.columns if name not in made]
    return viewed(table, finished.select(*kept, **_values(made)), changes)


def _given(table: Table, name: str, expression: object, role: str) -> Column:
    require_new(table, name)
    made = bound(table, expression, role)
    require_shallow(made)
    if table.relation is Relation.LABELS:
        require_public(table, made, f"the column {name!r}", "what a model may use as a feature")
    return made


def _aggregates(node: Operation) -> list[Operation]:
    """The aggregates of an expression, not those within others."""
    import ibis.expr.operations as ops

    if isinstance(node, ops.WindowFunction):
        raise refusal(node)
    if isinstance(node, ops.Reduction | ops.Analytic):
        return [node]
    return [found for child in node.__children__ if isinstance(child, ops.Value) for found in _aggregates(child)]


def _named(place: int, each: Reduced) -> dict[str, Column]:
    return {f"evenhand_part_{place}_{index}": part for index, part in enumerate(each.parts)}


def _staged(
    guard: Guard, found: Mapping[Operation, Reduced], parts: Mapping[str, Column]
) -> tuple[Rows, dict[str, Column]]:
    """The rows with what aggregates share as columns, and the parts over these rows."""
    for part in (part for each in found.values() for part in each.parts):
        require_small(part)
    shared = {
        each.shared.op(): f"evenhand_summed_{place}"
        for place, each in enumerate(found.values())
        if each.shared is not None
    }
    rows, over = staged(guard.rows, guard.shared, shared)
    return rows, {name: over(part) for name, part in parts.items()}


def _outer(
    table: Table, given: Mapping[str, Column], found: Mapping[Operation, Reduced], rows: Rows
) -> tuple[dict[str, Operand], Rows]:
    """The expressions around the aggregates, judged over rows that hold these; and those rows."""
    finished = rows.mutate(
        **{
            _name(place): each.finish(*(rows[name] for name in _named(place, each)))
            for place, each in enumerate(found.values())
        }
    )
    known = {name: known for name, known in table.derived.items() if name in rows.columns}
    known |= {_name(place): each.range for place, each in enumerate(found.values())}
    guard = Guard(table.engine, finished, known)
    places: dict[Operation, Operation] = {node: finished[_name(place)].op() for place, node in enumerate(found)}
    places |= {table.expression[name].op(): finished[name].op() for name in table.columns if name in finished.columns}
    made = {}
    for name, expression in given.items():
        made[name] = guard.checked(_replaced(expression.op(), places).to_expr())
    return made, finished


def _replaced(node: Operation, places: Mapping[Operation, Operation]) -> Operation:
    """An expression with other nodes in the place of some, which are not looked into."""
    import ibis.expr.operations as ops

    if node in places:
        return places[node]
    if isinstance(node, ops.Field):
        raise UsageError(
            f"the column {node.name!r} has a value in each row of a user, and one value per user was asked for. Aggregate it: "
            f"_.{node.name}.max()."
        )

    def changed(argument: object) -> object:
        if isinstance(argument, tuple):
            return tuple(changed(each) for each in argument)
        return _replaced(argument, places) if isinstance(argument, ops.Value) else argument

    arguments = [changed(argument) for argument in node.__args__]
    return node if not node.__args__ else type(node)(*arguments)


def _name(place: int) -> str:
    return f"evenhand_reduced_{place}"


def _values(made: Mapping[str, Operand]) -> dict[str, Column]:
    return {name: typed(operand) for name, operand in made.items()}


def _windowed(guard: Guard, node: Operation, ordered: bool) -> Reduced:
    """A function of a window."""
    name = type(node).__name__
    if name == "CountDistinct":
        raise UsageError("nunique() is not computed in windows; use per_user(n=_.x.nunique()) and join it.")
    if name not in _SHIFTS:
        return reduced(guard, node)
    if not ordered:
        raise UsageError(f"{name.lower()}() needs an order; expected window(order_by='day', previous=_.amount.lag()).")
    steps = 1 if node.offset is None else guard.operand(node.offset).literal
    if not isinstance(steps, int) or not 1 <= steps <= LARGEST_SHIFT or node.default is not None:
        raise UsageError(f"{name.lower()}(n) takes a constant between 1 and {LARGEST_SHIFT}, and no default.")
    operand = guard.operand(node.arg)
    if operand.kind not in TYPES:
        raise UsageError(
            f"{name.lower()}() of {operand.kind.value} is not possible; expected a number, a text or a date."
        )
    value = operand.value
    return Reduced((_SHIFTS[name](value, steps),), lambda part: part, operand.range)


def _lag(value: Column, steps: int) -> Column:
    return value.lag(steps)


def _lead(value: Column, steps: int) -> Column:
    return value.lead(steps)


_SHIFTS: dict[str, Callable[[Column, int], Column]] = {"Lag": _lag, "Lead": _lead}
