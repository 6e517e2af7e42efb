"""Views that work row by row: ``where``, ``derive``, ``select``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.guarantee import DataError, Relation, UsageError
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.views.binding import bound
from evenhand.tables.views.guard import Guard, staged
from evenhand.tables.views.operand import TYPES, Kind, Operand, null

if TYPE_CHECKING:
    from evenhand.tables.table import Table

Facts: TypeAlias = dict[str, Any]
"""Fields of `Table`."""

RESERVED = "evenhand_"
"""How the columns that queries add to a table's own begin."""


def where(table: Table, conditions: Iterable[object]) -> Table:
    """The rows for which all conditions are true."""
    kept = []
    for given in conditions:
        expression = bound(table, given, "where(...)")
        require_public(table, expression, "a filter", "which rows there are")
        operand = judged(table).checked(expression)
        if operand.kind is not Kind.TRUTH:
            raise UsageError(
                f"where(...) got {operand.kind.value}; expected a condition that is true or false: _.amount > 0."
            )
        kept.append(operand.value)
    return viewed(table, table.expression.filter(*kept)) if kept else table


def derive(table: Table, columns: Mapping[str, object]) -> Table:
    """The rows with more columns, or other ones."""
    guard = judged(table)
    made: dict[str, Operand] = {}
    public, text = list(table.public), set(table.text)
    copied: Facts = {}  # what is stated about a column holds for a copy, and for nothing else that is made of it
    for name, given in columns.items():
        require_new(table, name)
        expression = bound(table, given, f"derive({name}=...)")
        made[name] = guard.checked(expression)
        known = inputs(expression)
        if table.relation is Relation.LABELS:
            require_public(table, expression, f"the column {name!r}", "what a model may use as a feature")
        public = [column for column in public if column != name]
        if known <= {*table.public, *table.user}:
            public.append(name)
        text.discard(name)
        if _is_plain_copy(expression):
            text |= {name} if known <= table.text else set()
            copied |= dict.fromkeys([name], table.facts[min(known)]) if known <= set(table.facts) else {}
    below, over = staged(table.expression, guard.shared)
    rows = below.mutate(**{name: over(typed(operand)) for name, operand in made.items()}).drop(*guard.shared.values())
    derived = {**table.derived, **{name: operand.range for name, operand in made.items()}}
    stated = {name: known for name, known in table.facts.items() if name not in made} | copied
    for name in text & set(made):
        derived.pop(name)
    return viewed(table, rows, {"public": tuple(public), "text": frozenset(text), "derived": derived, "facts": stated})


def indicator(table: Table, name: str, condition: object) -> Table:
    """The rows with one more column, under a name of the framework's own: 1 where a condition is true, else 0, also where it is null."""
    import ibis

    expression = bound(table, condition, "a condition")
    guard = judged(table)
    operand = guard.checked(expression)
    if operand.kind is not Kind.TRUTH:
        raise UsageError(
            f"a share was asked of {operand.kind.value}; expected a condition that is true or false: _.product == 'soda'."
        )
    below, over = staged(table.expression, guard.shared)
    one, zero = (ibis.literal(number, "int64") for number in (1, 0))
    made = below.mutate(**{name: ibis.cases((over(operand.value), one), else_=zero)}).drop(*guard.shared.values())
    public = (*table.public, name) if inputs(expression) <= {*table.public, *table.user} else table.public
    return viewed(table, made, {"public": public})


def select(table: Table, names: Iterable[str]) -> Table:
    """The rows with these columns, and the user columns, which always stay."""
    require_movable(table)
    wanted = {*(table.require(name) for name in names), *table.user}
    kept = [name for name in table.columns if name in wanted]
    return viewed(table, table.expression.select(*kept), facts(table, kept))


def facts(table: Table, kept: Iterable[str]) -> Facts:
    """What is known of some columns of a table, as fields of `Table`."""
    names = set(kept)
    return {
        "public": tuple(name for name in table.public if name in names),
        "text": table.text & names,
        "derived": {name: known for name, known in table.derived.items() if name in names},
        "facts": {name: known for name, known in table.facts.items() if name in names},
    }


def viewed(table: Table, rows: Rows, changes: Facts | None = None) -> Table:
    """The table with other rows. What was noted of the old rows (a profile) is not about these."""
    from ibis.expr.format import pretty

    table.engine.require_views()
    _require_told_apart(table, rows)
    definition = hashlib.sha256(pretty(rows.op()).encode()).hexdigest()[:16]
    snapshot = None if table.snapshot is None else f"{table.snapshot}/{definition}"
    made = replace(table, expression=rows, snapshot=snapshot, declared=table.promised, **(changes or {}))
    if table.relation is not Relation.PRESENCE:
        return made
    # Nothing is public under presence, whatever a table was read with: there is nothing to follow.
    return replace(made, public=tuple(name for name in table.public if name in rows.columns))


def _require_told_apart(table: Table, rows: Rows) -> None:
    """Check that new names differ from all others in more than case: engines would take one column for another, a private one for a public one."""
    seen: dict[str, str] = {}
    for name in rows.columns:
        other = seen.setdefault(name.casefold(), name)
        if other != name and not {other, name} <= set(table.columns):
            raise UsageError(
                f"the columns {other!r} and {name!r} differ only in case, and engines take them for one; expected another name."
            )


def judged(table: Table) -> Guard:
    """What judges expressions over the rows of a table."""
    require_movable(table)
    return Guard(table.engine, table.expression, table.derived)


def typed(operand: Operand) -> Column:
    """A result with the type of its kind."""
    import ibis

    if operand.kind is Kind.NULL:
        return null(Kind.REAL)
    if operand.kind is Kind.OTHER:
        return operand.value
    value = operand.value
    return value if str(value.type()) == TYPES[operand.kind] else ibis.cast(value, TYPES[operand.kind])


def inputs(expression: Column) -> set[str]:
    """The columns that an expression uses."""
    import ibis.expr.operations as ops

    return {field.name for field in expression.op().find(ops.Field, filter=ops.Value)}


def require_new(table: Table, name: str) -> None:
    """Check that a column may get this name."""
    if name in table.user:
        raise UsageError(
            f"the user column {name!r} can't be redefined: it says whose rows are bounded. Give the new column another name."
        )
    if name.casefold().startswith(RESERVED) or not name:
        raise UsageError(f"the name {name!r} can't be used: names that begin with {RESERVED!r} are kept for queries.")


def require_public(table: Table, expression: Column, what: str, shows: str) -> None:
    """Under values and labels: check that an expression uses public columns only."""
    private = sorted(inputs(expression) - {*table.public, *table.user})
    if table.relation is not Relation.PRESENCE and private:
        raise UsageError(
            f"{what} uses the private columns {private}: with protects={table.relation.value!r}, {shows} is public, and it would depend on "
            f"them. Declare them with eh.read(..., public={private}) if they are public, or protect presence."
        )


def require_movable(table: Table) -> None:
    """Under values and labels: check that a private value can't move what else is in its row."""
    if table.positional and table.relation is not Relation.PRESENCE:
        raise DataError(
            f"with protects={table.relation.value!r} a CSV can't be used for views: a delimiter in a private value would move public columns. "
            "Convert the file to Parquet first: evenhand convert table.csv table.parquet --numbers ..."
        )


def _is_plain_copy(expression: Column) -> bool:
    import ibis.expr.operations as ops

    node = expression.op()
    while isinstance(node, ops.Alias):
        node = node.arg
    return isinstance(node, ops.Field)
