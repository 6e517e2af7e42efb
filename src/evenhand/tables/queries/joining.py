"""JOIN: with public tables, with parts, and with other tables of the same people, which the caller names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenhand.guarantee import UsageError, suggest
from evenhand.tables.parts import Part
from evenhand.tables.public import PublicTable
from evenhand.tables.queries.parsing import Parsed, Query
from evenhand.tables.table import Table
from evenhand.tables.views.sql import named

Scopes = dict[str, set[str]]
"""The columns that a name before the dot may stand for."""


def joined(
    query: Query,
    table: Table,
    find: Callable[[Parsed], Table | Part | PublicTable | None],
    names: Sequence[str],
    fan_out: int,
) -> tuple[Table, Scopes]:
    """The table beside those that the query joins, one after the other.

    Args:
        query: the query.
        table: what it is FROM.
        find: the table that a part of the query names; None if there is none.
        names: those that there are.
        fan_out: how many rows one row may meet, in each join; of a part, whose rows need no small one, as many as may be.
    """
    source = query.tree.args["from_"].this
    scopes: Scopes = {name.casefold(): set(table.columns) for name in (source.name, source.alias) if name}
    for node in query.tree.args.get("joins") or ():
        told, side, kind = f"JOIN {query.told(node.this)}", node.args.get("side"), node.args.get("kind")
        plain = type(node.this).__name__ in ("Table", "Subquery") and not node.args.get("method")
        if not plain or side not in (None, "", "LEFT") or kind not in (None, "", "INNER", "OUTER"):
            raise UsageError(f"{told}: expected JOIN or LEFT JOIN of a table by its name.")
        name = node.this.name
        other = find(node.this)
        if other is None:
            raise UsageError(
                f"{told}: there is no such table here; expected one of {list(names)}, given as sql(..., tables={{{name!r}: eh.read_public(...)}}), or "
                "eh.read_part(...) of rows that belong to others by a key."
                f"{suggest(name, names)}"
            )
        pairs = _keys(query, node, table, other, told)
        on = [key for key, _ in pairs]
        users = list(table.user) if isinstance(other, Table) else []
        if not set(users) <= set(on):
            raise UsageError(
                f"{told}: a table of the same people is joined by the user; expected USING ({', '.join(users)})."
            )
        by = {key: theirs for key, theirs in pairs if key not in users}
        same = [key for key, theirs in by.items() if key == theirs]
        added = [column for column in other.columns if column not in (*same, *getattr(other, "user", ()))]
        try:
            table = table.join(
                other,
                on=by or None,
                how="left" if side == "LEFT" else "inner",
                fan_out=None if isinstance(other, Part) else fan_out,
            )
        except UsageError as refusal:
            raise UsageError(f"{told}: {refusal}") from None
        seen = {*added, *(on if side != "LEFT" else ())}
        scopes |= {one.casefold(): seen for one in (name, node.this.alias) if one}
    return table, scopes


def _keys(
    query: Query, node: Parsed, table: Table, other: Table | Part | PublicTable, told: str
) -> list[tuple[str, str]]:
    """The columns of USING, or of ON a.x = b.y AND ..., of the left table and of the right one; of tables of people under one name."""
    from sqlglot import exp

    same = " of columns with the same name in both tables" if isinstance(other, Table) else ""
    expected = f"{told}: expected USING (column), or ON a.column = b.column{same}."
    if node.args.get("using"):
        columns = [
            each if type(each).__name__ == "Column" else exp.Column(this=each.copy()) for each in node.args["using"]
        ]
        return [(name, name) for name in (named(column, table.expression) for column in columns)]
    condition, found = node.args.get("on"), []
    parts = list(condition.flatten()) if type(condition).__name__ == "And" else [condition]
    for part in parts:
        sides = [part.this, part.expression] if type(part).__name__ == "EQ" else []
        if [type(side).__name__ for side in sides] != ["Column", "Column"]:
            raise UsageError(expected)
        right = {name.casefold() for name in (node.this.name, node.this.alias) if name}
        sides.sort(key=lambda side: side.table.casefold() in right)  # the left table first
        if sides[0].table.casefold() in right or sides[1].table.casefold() not in right:
            raise UsageError(expected)
        one = named(sides[0], table.expression)
        two = next((name for name in other.columns if name.casefold() == sides[1].name.casefold()), None)
        if two is None:
            raise UsageError(
                f"{query.told(sides[1])}: there is no such column; expected one of {list(other.columns)}."
                f"{suggest(sides[1].name, other.columns)}"
            )
        if one.casefold() != two.casefold() and isinstance(other, Table):
            raise UsageError(expected)
        found.append((one, one if isinstance(other, Table) else two))
    return found
