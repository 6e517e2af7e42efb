"""Queries inside a query: common table expressions, and subqueries in FROM and JOIN.

Each becomes a view, which keeps users apart: rows with other columns, or one row per user. What would group by something else, or look at
the rows of several users, is refused.
"""

from __future__ import annotations

from evenhand.guarantee import UsageError
from evenhand.tables.queries.parsing import Parsed, Query, aggregates, refuse_parts, words
from evenhand.tables.queries.sources import Names, Source
from evenhand.tables.table import Table

_INNER = {"expressions", "from_", "joins", "where", "group", "having", "kind", "hint", "operation_modifiers"}


def local_view(query: Query, names: Names) -> Table:
    """The view that a query inside the query is."""
    refuse_parts(query, _INNER)
    source = names.source(query)
    group = query.tree.args.get("group")
    first = next((node for item in query.tree.expressions for node in item.find_all(*aggregates())), None)
    if group is not None:
        return _per_user(source, group)
    having = query.tree.args.get("having")
    if first is not None or having is not None:
        raise UsageError(
            f"{query.told(first if first is not None else having)} looks at the rows of all users together, so that one user's rows would change "
            f"another's. Here aggregates are per user: GROUP BY {', '.join(source.table.user)}."
        )
    return _rows(source)


def _rows(source: Source) -> Table:
    """Rows with some of their columns, and with new ones."""
    kept: list[str] = []
    made: dict[str, Parsed] = {}
    for item in source.query.tree.expressions:
        if item.is_star:
            kept += _starred(source, item)
        elif type(item).__name__ == "Column":
            kept.append(source.named(item))
        else:
            _add(source, made, item)
    both = [name for name in made if name in kept]
    twice = [name for name in kept if kept.count(name) > 1]
    if both or twice:
        raise UsageError(f"{source.query.told(source.query.tree)}: the columns {both or twice} are selected twice.")
    table = source.table
    for name, node in made.items():
        with source.at(node):
            table.derive(**{name: source.value(node)})  # judged by itself, for its place in the text
    derived = table.derive(**{name: source.value(node) for name, node in made.items()}) if made else table
    return derived.select(*kept, *made)


def _starred(source: Source, item: Parsed) -> list[str]:
    star = item.this if type(item).__name__ == "Column" else item
    if any(star.args.values()):
        raise UsageError(f"{source.query.told(item)}: expected * by itself, or the names of columns.")
    if type(item).__name__ != "Column":
        return list(source.table.columns)
    scope = source.scopes.get(item.table.casefold())
    if scope is None:
        raise UsageError(f"{source.query.told(item)}: there is no table {item.table!r} in this query.")
    return [name for name in source.table.columns if name in scope]


def _per_user(source: Source, group: Parsed) -> Table:
    """One row per user, or per user and other columns."""
    query, users = source.query, set(source.table.user)
    items = query.tree.expressions
    selected = [item.this if type(item).__name__ == "Alias" else item for item in items]
    keys = []
    for node in group.expressions:
        number = int(node.this) if type(node).__name__ == "Literal" and str(node.this).isdigit() else 0
        keys.append(selected[number - 1] if 1 <= number <= len(selected) else node)
    for key in keys:
        if type(key).__name__ != "Column":
            raise UsageError(
                f"GROUP BY {query.told(key)}: expected columns; make one in a query inside, and group by its name: GROUP BY "
                f"{', '.join(source.table.user)}, basket."
            )
    names = list(dict.fromkeys(source.named(key) for key in keys))
    others = [name for name in names if name not in users]
    if not users <= set(names):
        told = query.told(keys[names.index(others[0])]) if others else query.at(group)
        raise UsageError(
            f"GROUP BY {told}: the rows that a question is about have groups of one user each, since groups that users share would "
            f"let one user's rows change another's. Expected GROUP BY {', '.join(source.table.user)}, alone or with other columns; group by other columns "
            "alone in the question itself."
        )
    if any(name for name in group.args if name != "expressions" and group.args[name]):
        raise UsageError(f"GROUP BY{query.at(group)}: expected columns: GROUP BY {', '.join(source.table.user)}.")
    made: dict[str, Parsed] = {}
    selected_keys = []
    for item in items:
        name = source.named(item) if type(item).__name__ == "Column" and not item.is_star else None
        if name in others:
            selected_keys.append(name)
        elif name not in users:
            _add(source, made, item)

    def grouped(**columns: object) -> Table:
        return (
            source.table.per([*source.table.user, *others], **columns) if others else source.table.per_user(**columns)
        )

    having = query.tree.args.get("having")
    condition = "having"
    while condition in {*made, *names}:
        condition += "_"
    count = "row_count" if "row_count" not in names else "row_count_"
    wanted = {**made, condition: having.this} if having is not None else made or {count: _count_all()}
    for name, node in wanted.items():
        with source.at(node):
            grouped(**{name: source.value(node)})
    table = grouped(**{name: source.value(node) for name, node in wanted.items()})
    kept = table.where(table.expression[condition]) if having is not None else table
    return kept.select(*selected_keys, *made) if others or having is not None else kept


def _add(source: Source, made: dict[str, Parsed], item: Parsed) -> None:
    """A column that is made, by its name."""
    node = item.this if type(item).__name__ == "Alias" else item
    name = item.alias or words(source.query.shown(node))
    plain = source.named(node) if type(node).__name__ == "Column" and not node.is_star else None
    if name in source.table.user and plain == name:
        return
    if plain in source.table.user or name in source.table.user:
        raise UsageError(
            f"{source.query.told(item)}: the user column {plain or name!r} keeps its name and its values, since it says whose rows are bounded."
        )
    if name in made:
        raise UsageError(f"{source.query.told(item)}: the column {name!r} is selected twice.")
    made[name] = node


def _count_all() -> Parsed:
    from sqlglot import exp

    return exp.Count(this=exp.Star())
