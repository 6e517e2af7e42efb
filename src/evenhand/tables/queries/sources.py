"""What a SELECT is from: a table, or a query inside the query; what is joined to it; and the rows that WHERE keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column
from evenhand.tables.parts import Part
from evenhand.tables.public import PublicTable
from evenhand.tables.queries.joining import Scopes, joined
from evenhand.tables.queries.parsing import Parsed, Query
from evenhand.tables.table import Table
from evenhand.tables.views.joins import LARGEST_FAN_OUT
from evenhand.tables.views.sql import named, sql_value

Tables: TypeAlias = Mapping[str, Table | Part | PublicTable]


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
        own: what it may be FROM, by name.
        tables: others, to be joined.
        views: by their full names, tables of a database, and common table expressions.
        fan_out: how many rows one row may meet in each join. SQL keeps every pair, so as many as may be unless one says so.
    """

    own: Mapping[str, Table] = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)
    views: Mapping[str, Table] = field(default_factory=dict)
    fan_out: int = LARGEST_FAN_OUT

    def source(self, query: Query) -> Source:
        """The rows of a SELECT."""
        node = query.tree.args.get("from_")
        if node is None:
            raise UsageError("the query has no FROM; expected FROM table.")
        start = self._from(query, node)
        named = {**self.own, **start.parts, **self.tables, **self.views}
        known: dict[str, Table | Part | PublicTable] = {name.casefold(): each for name, each in named.items()}

        def other(part: Parsed) -> Table | Part | PublicTable | None:
            if type(part).__name__ == "Subquery":
                return self._inner(query, part)
            return known.get(full_name(part)) or known.get(part.name.casefold())

        names = sorted({*start.parts, *self.tables, *self.views})
        source = Source(query, *joined(query, start, other, names, self.fan_out))
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
        from evenhand.tables.queries.local import local_view

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
        plain = type(source).__name__ == "Table"
        renamed = source.args.get("alias") is not None and source.args["alias"].args.get("columns")
        found = self.views.get(full_name(source)) or self.own.get(source.name.casefold()) if plain else None
        if renamed or found is None:
            parts = {**self.tables, **{name: part for own in self.own.values() for name, part in own.parts.items()}}
            if isinstance(parts.get(source.name), Part):
                raise UsageError(
                    f"FROM {query.told(source)}: whose its rows are follows from another table; write FROM that and JOIN {source.name}."
                )
            others = [f" or FROM {one}" for one in (*sorted({*self.own} - {"table"}), *self.views)]
            raise UsageError(
                f"FROM {query.shown(source)}{query.at(node)}: this session is about one table; write FROM table{''.join(others)}."
            )
        return found


def full_name(table: Parsed) -> str:
    """The name of a table with its schema, if that is written too; letter case does not count."""
    return ".".join(part.name for part in table.parts).casefold() if table.name else ""


def own_names(table: Table) -> dict[str, Table]:
    """The table by what it may be called in FROM: the table of a database, or the name of a file."""
    return dict.fromkeys(("table", *_called(table.source or "")), table)


def _called(source: str) -> set[str]:
    if not re.search(r"[/\\ .]", source):  # the type of an object
        return set()
    last = re.split(r"[/\\ .]", source)[-1] if " " in source else re.split(r"[/\\]", source)[-1].partition(".")[0]
    return {last.casefold()} if re.fullmatch(r"\w+", last) else set()
