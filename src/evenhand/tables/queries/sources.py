"""What a SELECT is from: a table, or a query inside the query; what is joined to it; and the rows that WHERE keeps."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from evenhand.guarantee import Relation, UsageError
from evenhand.tables.engines import DEFAULT
from evenhand.tables.expressions import Column
from evenhand.tables.parts import Part
from evenhand.tables.public import PublicTable
from evenhand.tables.queries.joining import Scopes, joined
from evenhand.tables.queries.parsing import Parsed, Query
from evenhand.tables.table import Table
from evenhand.tables.views.joins import LARGEST_FAN_OUT, _require_same_people
from evenhand.tables.views.sql import named, sql_value

Tables: TypeAlias = Mapping[str, Table | Part | PublicTable]


@dataclass(frozen=True)
class Source:
    """The rows that a SELECT is about, and how it names their columns.

    Args:
        query: the SELECT.
        table: the rows.
        scopes: the columns that a name before the dot may stand for.
        where: the condition on them, with constants in the place of queries of public tables.
    """

    query: Query
    table: Table
    scopes: Scopes = field(default_factory=dict)
    where: Parsed | None = None

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
        public: whether the query is of public tables, so that no other may stand in it.
        fan_out: how many rows one row may meet in each join. SQL keeps every pair, so as many as may be unless one says so.
    """

    own: Mapping[str, Table] = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)
    views: Mapping[str, Table | PublicTable] = field(default_factory=dict)
    public: bool = False
    fan_out: int = LARGEST_FAN_OUT

    def source(self, query: Query) -> Source:
        """The rows of a SELECT."""
        from sqlglot import exp

        node = query.tree.args.get("from_")
        if node is None:
            raise UsageError("the query has no FROM; expected FROM table.")
        start = self._from(query, node)
        if isinstance(start, PublicTable) and self.public:
            start = as_people(start)
        if isinstance(start, PublicTable):
            raise UsageError(
                f"FROM {query.told(node.this)}: the table is public, so there is nothing to release: ask its owner's database. A question is FROM a table "
                "of people, and may JOIN it."
            )
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
        columns, where = source.table.columns, where.copy()
        for node in list(where.find_all(exp.In)):
            if node.args.get("query") is not None:
                source = self._with_members(source, node)
        with source.at(where.this):
            kept = source.table.where(source.value(where.this))
        return replace(source, table=kept if kept.columns == columns else kept.select(*columns), where=where.this)

    def _with_members(self, source: Source, node: Parsed) -> Source:
        """The rows of a query that has ``x IN (SELECT ...)``, with what tells whether x is one of them in its place.

        Of a public table they are constants. Of the people themselves, whether a user is among them is a function of that user's rows.
        """
        from sqlglot import exp

        query, inner = source.query, node.args["query"].this
        told = query.told(node)
        if type(inner).__name__ != "Select" or len(inner.expressions) != 1 or inner.expressions[0].is_star:
            raise UsageError(f"{told}: expected IN (SELECT column FROM ...), of one column.")
        if inner.args.get("distinct") is not None and inner.args["distinct"].args.get("on") is None:
            inner.set("distinct", None)
        found = self._inner(query, node.args["query"])
        if isinstance(found, PublicTable):
            (column,) = found.columns
            values = sorted({value for value in found.rows[column].to_pylist() if value is not None}, key=str)
            node.set("query", None)
            node.set("expressions", [_literal(value, told) for value in values] or [exp.Null()])
            return source
        (asked,) = inner.expressions
        users = (
            len(found.user) == 1
            and type(asked).__name__ == "Column"
            and asked.name.casefold() == found.user[0].casefold()
        )
        ours = type(node.this).__name__ == "Column" and (source.named(node.this),) == source.table.user
        if not users or not ours:
            raise UsageError(
                f"{told}: which rows it finds would depend on the rows of other users. Expected the user column on both sides, as in "
                f"{source.table.user[0]} IN (SELECT {found.user[0]} FROM ...), or a query of a public table."
            )
        member = "in_query"
        while member in source.table.columns:
            member += "_"
        with source.at(node):
            rows = found.select().per_user(**{member: "count(*)"})
            joined = source.table.join(rows, how="left", fan_out=1)
        node.replace(
            exp.Not(this=exp.Is(this=exp.Column(this=exp.to_identifier(member, quoted=True)), expression=exp.Null()))
        )
        return replace(source, table=joined)

    def with_views(self, query: Query) -> Names:
        """The names with the query's common table expressions, each of which may use those before it."""
        names = self
        clause = query.tree.args.get("with_")
        for each in clause.expressions if clause is not None else ():
            if each.alias.casefold() in names.views:
                raise UsageError(f"WITH {each.alias}{query.at(each)}: the name is given twice.")
            view = names._inner(query, each)
            if isinstance(view, PublicTable):
                view = replace(view, name=f"the public query {each.alias!r}")
            names = replace(names, views={**names.views, each.alias.casefold(): view})
        return names

    def _inner(self, query: Query, node: Parsed) -> Table | PublicTable:
        from sqlglot import exp

        from evenhand.tables.queries.local import local_view

        columns = node.args["alias"].args.get("columns") if node.args.get("alias") else None
        if type(node.this).__name__ != "Select" or columns:
            raise UsageError(
                f"{query.told(node)}: expected WITH name AS (SELECT ...), or FROM (SELECT ...) AS name, of one SELECT."
            )
        inner = replace(query, tree=node.this)
        if self._is_public(inner.tree):
            shared = replace(
                self, own={}, tables=_public_only(self.tables), views=_public_only(self.views), public=True
            )
            if inner.tree.args.get("group") is not None or any(
                item.find(exp.AggFunc) for item in inner.tree.expressions
            ):
                raise UsageError(
                    f"{query.told(node)}: a query of a public table takes its rows and columns; sum it up before, in the frame that eh.read_public opens."
                )
            return as_public(local_view(inner, shared))
        return local_view(inner, self)

    def _is_public(self, select: Parsed) -> bool:
        """Whether a SELECT is from a public table, or from a query of one."""
        node = select.args.get("from_")
        while node is not None and type(node.this).__name__ == "Subquery":
            node = node.this.this.args.get("from_")
        return node is not None and isinstance(self._named(node.this), PublicTable)

    def _named(self, source: Parsed) -> Table | Part | PublicTable | None:
        """The table of a name; of several that have it, the query's own views and the table that it is about come first."""
        if type(source).__name__ != "Table":
            return None
        others = {name.casefold(): other for name, other in self.tables.items()}
        name = source.name.casefold()
        return self.views.get(full_name(source)) or self.own.get(name) or others.get(name)

    def _from(self, query: Query, node: Parsed) -> Table | PublicTable:
        source = node.this
        if type(source).__name__ == "Subquery":
            return self._inner(query, source)
        renamed = source.args.get("alias") is not None and source.args["alias"].args.get("columns")
        found = self._named(source)
        parts = {**self.tables, **{name: part for own in self.own.values() for name, part in own.parts.items()}}
        if isinstance(found, Part) or (found is None and isinstance(parts.get(source.name), Part)):
            raise UsageError(
                f"FROM {query.told(source)}: whose its rows are follows from another table; write FROM that and JOIN {source.name}."
            )
        if isinstance(found, Table) and self.own:
            try:
                _require_same_people(next(iter(self.own.values())), found, "FROM")
            except UsageError as refusal:
                raise UsageError(f"FROM {query.shown(source)}{query.at(node)}: {refusal}") from None
        if renamed:
            raise UsageError(
                f"FROM {query.shown(source)}{query.at(node)}: columns are renamed in SELECT; leave the names out."
            )
        if found is None:
            others = [
                f" or FROM {one}"
                for one in dict.fromkeys((*sorted({*self.own} - {"table"}), *self.views, *self.tables))
            ]
            raise UsageError(
                f"FROM {query.shown(source)}{query.at(node)}: there is no such table here; write FROM table{''.join(others)}. Others are given as "
                f"sql(..., tables={{{source.name!r}: ...}})."
            )
        return found


_ROW = "evenhand_row"
"""Stands for the user in a view of public rows."""


def as_people(public: PublicTable) -> Table:
    """Public rows as a table with one row per user, so that queries of them are read and judged like others."""
    import pyarrow as pa

    rows = public.rows.append_column(_ROW, pa.array(range(public.rows.num_rows), pa.int64()))
    engine = DEFAULT.open_arrow(rows)
    return Table(engine.rows, engine, (_ROW,), Relation.PRESENCE)


def as_public(view: Table) -> PublicTable:
    """The rows of such a view, which are public too: they are read here, once."""
    names = [name for name in view.columns if name not in view.user]
    if not names:
        raise UsageError(
            "a query of a public table selects none of its columns; expected SELECT product_id FROM products."
        )
    return PublicTable(
        view.engine.quietly(lambda: view.engine.evaluate(view.expression.select(*names))), "the public query"
    )


def _public_only(tables: Mapping[str, Table | Part | PublicTable]) -> dict[str, PublicTable]:
    return {name: one for name, one in tables.items() if isinstance(one, PublicTable)}


def _literal(value: object, told: str) -> Parsed:
    from sqlglot import exp

    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.Literal.number(value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("date"))
    raise UsageError(
        f"{told}: values of type {type(value).__name__} can't be compared here; expected whole numbers, text or dates."
    )


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
