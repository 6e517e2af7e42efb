"""What a SELECT is from: a table, or a query inside the query; what is joined to it; and the rows that WHERE keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from evenhand.guarantee import UsageError
from evenhand.sql.joining import Scopes, joined
from evenhand.sql.parsing import Parsed, Query
from evenhand.tables import PublicTable, Table
from evenhand.tables.expressions import Column
from evenhand.tables.views.sql import named, sql_value

Tables: TypeAlias = Mapping[str, Table | PublicTable]


@dataclass(frozen=True)
class Source:
    """The rows that a SELECT is about, and how it names their columns.

    Args:
        query: the SELECT.
        table: the rows.
        scopes: the columns that a name before the dot may stand for.
    """

    query: Query
    table: Table
    scopes: Scopes = field(default_factory=dict)

    def value(self, node: Parsed) -> Column:
        """An expression over these rows."""
        return sql_value(node, self.table.expression, self.named)

    def named(self, column: Parsed) -> str:
        """The column that a reference means."""
        scope = self.scopes.get(column.table.casefold()) if column.table else set(self.table.columns)
        if scope is None:
            raise UsageError(f"{self.query.told(column)}: there is no table {column.table!r} in this query.")
        name = named(column, self.table.expression)
        if name not in scope:
            raise UsageError(
                f"{self.query.told(column)}: expected a column that {column.table!r} brings, one of {sorted(scope)}; a column that LEFT JOIN is by "
                "belongs to the left table."
            )
        return name

    @contextmanager
    def at(self, node: Parsed) -> Iterator[None]:
        """Refusals of what a part of the query becomes say where it stands."""
        try:
            yield
        except UsageError as refusal:
            raise UsageError(
                str(refusal) if "(line " in str(refusal) else f"{self.query.told(node)}: {refusal}"
            ) from None


@dataclass(frozen=True)
class Names:
    """The tables that a query may name.

    Args:
        table: the one that the session is about.
        called: what it may be called in FROM.
        tables: others, to be joined.
        views: common table expressions, which stay user-local.
    """

    table: Table
    called: frozenset[str]
    tables: Tables
    views: Mapping[str, Table] = field(default_factory=dict)

    def source(self, query: Query) -> Source:
        """The rows of a SELECT."""
        node = query.tree.args.get("from_")
        if node is None:
            raise UsageError("the query has no FROM; expected FROM table.")
        start = self._from(query, node)
        known = {name.casefold(): other for name, other in {**self.tables, **self.views}.items()}

        def other(part: Parsed) -> Table | PublicTable | None:
            return self._inner(query, part) if type(part).__name__ == "Subquery" else known.get(part.name.casefold())

        source = Source(query, *joined(query, start, other, sorted(known)))
        where = query.tree.args.get("where")
        if where is None:
            return source
        with source.at(where.this):
            return replace(source, table=source.table.where(source.value(where.this)))

    def with_views(self, query: Query) -> Names:
        """The names with the query's common table expressions, each of which may use those before it."""
        names = self
        clause = query.tree.args.get("with_")
        for each in clause.expressions if clause is not None else ():
            if each.alias.casefold() in names.views:
                raise UsageError(f"WITH {each.alias}{query.at(each)}: the name is given twice.")
            view = names._inner(query, each)
            names = replace(names, views={**names.views, each.alias.casefold(): view})
        return names

    def _inner(self, query: Query, node: Parsed) -> Table:
        from evenhand.sql.local import local_view

        columns = node.args["alias"].args.get("columns") if node.args.get("alias") else None
        if type(node.this).__name__ != "Select" or columns:
            raise UsageError(
                f"{query.told(node)}: expected WITH name AS (SELECT ...), or FROM (SELECT ...) AS name, of one SELECT."
            )
        return local_view(replace(query, tree=node.this), self)

    def _from(self, query: Query, node: Parsed) -> Table:
        source = node.this
        if type(source).__name__ == "Subquery":
            return self._inner(query, source)
        name, plain = source.name.casefold(), type(source).__name__ == "Table"
        renamed = source.args.get("alias") is not None and source.args["alias"].args.get("columns")
        if plain and not renamed and name in self.views and not source.args.get("db"):
            return self.views[name]
        if not plain or renamed or name not in self.called:
            others = [f" or FROM {one}" for one in (*sorted(self.called - {"table"}), *self.views)]
            raise UsageError(
                f"FROM {query.shown(source)}{query.at(node)}: this session is about one table; write FROM table{''.join(others)}."
            )
        return self.table


def called(source: str) -> set[str]:
    """What a table may be called in FROM: the table of a database, or the name of a file."""
    if not re.search(r"[/\\ .]", source):  # the type of an object
        return set()
    last = re.split(r"[/\\ .]", source)[-1] if " " in source else re.split(r"[/\\]", source)[-1].partition(".")[0]
    return {last.casefold()} if re.fullmatch(r"\w+", last) else set()
