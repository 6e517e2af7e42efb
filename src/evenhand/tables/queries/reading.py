"""``eh.read(database, query=...)``: a SELECT over tables of a database, as a view of them. The text is parsed and judged, and never sent."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.guarantee import UsageError
from evenhand.tables.queries.local import local_view
from evenhand.tables.queries.options import Options
from evenhand.tables.queries.parsing import parse_query, unnested
from evenhand.tables.queries.sources import Names, full_name
from evenhand.tables.table import Table


def read_query(text: str, opened: Callable[[str], Table]) -> Table:
    """The rows of a query that stays user-local.

    Args:
        text: the query.
        opened: opens a table of the database by its name.
    """
    from sqlglot import exp

    query = parse_query(text)
    if query.options != Options():
        raise UsageError(
            "query=...: ε, δ and bounds are for questions, session.sql(...); here a query says which rows they are about."
        )
    clause = query.tree.args.get("with_")
    common = {each.alias.casefold() for each in clause.expressions} if clause is not None else set()
    named = [node for node in query.tree.find_all(exp.Table) if full_name(node) not in common]
    for node in named:
        if not full_name(node):
            raise UsageError(f"FROM {query.told(node)}: expected a table of the database, by its name.")
    names = Names(views={full_name(node): opened(".".join(part.name for part in node.parts)) for node in named})
    with unnested():
        names = names.with_views(query)
        query.tree.set("with_", None)
        return local_view(query, names)
