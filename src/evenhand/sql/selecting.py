"""What a SELECT asks for: columns to make, groups, statistics, and the order of the result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.sql.aggregates import Reader
from evenhand.sql.joining import Scopes, joined
from evenhand.sql.ordering import Order
from evenhand.sql.parsing import Parsed, Query
from evenhand.statistics import Quantiles, Statistic
from evenhand.tables import PublicTable, Table
from evenhand.tables.expressions import Column
from evenhand.tables.views.sql import named, sql_value

_LONGEST_NAME = 40


@dataclass
class Select:
    """The parts of a query, as far as they were read.

    Args:
        query: the query.
        table: what it is about; after `read`, beside what it joins, and with the rows that WHERE keeps.
        tables: those that it may join, by name.
        scopes: the columns that a name before the dot may stand for.
        derived: the columns that have to be made, by name.
        groups: the group columns of the result, each with its expression.
        statistics: by the column that they get in the result.
        shown: what each selected expression is called in the result.
    """

    query: Query
    table: Table
    tables: Mapping[str, Table | PublicTable]
    scopes: Scopes = field(default_factory=dict)
    derived: dict[str, Column] = field(default_factory=dict)
    groups: dict[str, Parsed] = field(default_factory=dict)
    statistics: dict[str, Statistic] = field(default_factory=dict)
    shown: list[tuple[str, Parsed]] = field(default_factory=list)

    def read(self) -> None:
        """Read the whole query; what it asks for is then known."""
        self._check_from()
        self.table, self.scopes = joined(self.query, self.table, self.tables)
        where = self.query.tree.args.get("where")
        if where is not None:
            self.table = self.table.where(self._value(where.this))
        self._read_groups()
        reader = Reader(self.query, self._column, self._is_user)
        for item in self.query.tree.expressions:
            node = item.this if type(item).__name__ == "Alias" else item
            label = self._group_of(node, item.alias)
            if label is None:
                statistic = reader.read(node)
                if statistic is None:
                    raise UsageError(
                        f"{self._told(node)} is neither an aggregate nor a group: releases are about many people. Write AVG(...), or name it in "
                        "GROUP BY."
                    )
                label = self._free(item.alias or _label(statistic), [*self.groups, *self.statistics])
                self.statistics[label] = statistic
            self.shown.append((label, node))
        if not self.statistics:
            raise UsageError("the query asks for no number; expected an aggregate, such as COUNT(*).")
        single = [name for name, one in self.statistics.items() if not one.aggregates]
        if single and len(self.statistics) > 1:
            raise UsageError(
                f"{single[0]}: COUNT(DISTINCT ...) of other columns than the user is asked by itself; leave the others out."
            )

    def view(self) -> Table:
        """The table with the rows and columns that the query is about."""
        # All at once, and from the columns as they were: a new column may have the name of an old one.
        return self.table.derive(**self.derived) if self.derived else self.table

    def keys(self) -> object:
        """The keys that WHERE lists for every group column, if it does: the analyst knows them."""
        where = self.query.tree.args.get("where")
        listed: dict[str, list[Any]] = {}
        for node in _conjuncts(where.this) if where is not None else ():
            column, values = _listed(node)
            if column is not None:
                listed.setdefault(self._named(column), values)
        found = {
            label: listed[self._named(node)]
            for label, node in self.groups.items()
            if type(node).__name__ == "Column" and self._named(node) in listed
        }
        return found if set(found) == set(self.groups) else None

    def order(self) -> list[Order]:
        """What the released rows are sorted by."""
        order = self.query.tree.args.get("order")
        if order is None:
            return []
        if not self.groups:
            raise UsageError(f"ORDER BY{self.query.at(order)}: there is only one row; leave it out.")
        return [Order(self._result(each.this), bool(each.args.get("desc"))) for each in order.expressions]

    def limit(self) -> int | None:
        """How many of the released rows are kept."""
        limit = self.query.tree.args.get("limit")
        if limit is None:
            return None
        count = limit.args.get("expression")
        if count is None or not str(count.this).isdigit():
            raise UsageError(f"LIMIT{self.query.at(limit)}: expected a whole number.")
        return int(count.this)

    def _check_from(self) -> None:
        source = self.query.tree.args.get("from_")
        if source is None:
            raise UsageError("the query has no FROM; expected FROM table.")
        name = source.this.name
        known = {"table", *_names(self.table.source or "")}
        renamed = source.this.args.get("alias") is not None and source.this.args["alias"].args.get("columns")
        if type(source.this).__name__ != "Table" or renamed or name.casefold() not in known:
            raise UsageError(
                f"FROM {self.query.shown(source.this)}{self.query.at(source)}: this session is about one table; write FROM table"
                f"{''.join(f' or FROM {one}' for one in sorted(known - {'table'}))}."
            )

    def _read_groups(self) -> None:
        group = self.query.tree.args.get("group")
        if group is None:
            return
        selected = self.query.tree.expressions
        aliases = {item.alias.casefold(): item for item in selected if type(item).__name__ == "Alias"}
        items = list(group.expressions)
        if group.args.get("all"):
            items = [item for item in selected if not item.find(*_aggregates())]
        for node in items:
            item = node
            if type(node).__name__ == "Literal" and str(node.this).isdigit():
                if not 1 <= int(node.this) <= len(selected):
                    raise UsageError(
                        f"GROUP BY {node.this}{self.query.at(node)}: there are {len(selected)} selected columns."
                    )
                item = selected[int(node.this) - 1]
            elif type(node).__name__ == "Column" and not node.table and not self._has(node.name):
                item = aliases.get(node.name.casefold(), node)
            else:  # the same expression may have a name in the list
                same = [one for one in selected if type(one).__name__ == "Alias" and one.this == node]
                item = same[0] if same else node
            inner = item.this if type(item).__name__ == "Alias" else item
            if inner.find(*_aggregates()):
                raise UsageError(
                    f"GROUP BY {self._told(inner)}: expected a column or an expression of one row, not an aggregate."
                )
            self._add_group(inner, item.alias)

    def _add_group(self, node: Parsed, alias: str) -> None:
        plain = self._named(node) if type(node).__name__ == "Column" else None
        label = alias or plain or self._free(_words(self.query.shown(node)), [*self.table.columns, *self.groups])
        if label in self.groups:
            raise UsageError(f"GROUP BY {self._told(node)}: it is named twice.")
        if label != plain:
            self.derived[label] = self._value(node)
        self.groups[label] = node

    def _group_of(self, node: Parsed, alias: str) -> str | None:
        """The group column that a selected expression is."""
        for label, group in self.groups.items():
            if node == group and (not alias or alias == label):
                return label
        return None

    def _column(self, node: Parsed, name: str | None = None) -> str:
        """The column that an aggregate is of: one of the table, or one that is made for it."""
        if type(node).__name__ == "Column":
            plain = self._named(node)
            if plain not in self.derived:
                return plain
        value = self._value(node)
        for made, column in self.derived.items():
            if column.equals(value):
                return made
        label = self._free(_words(name or self.query.shown(node)), [*self.table.columns, *self.derived])
        self.derived[label] = value
        return label

    def _result(self, node: Parsed) -> str:
        """The column of the result that ORDER BY means."""
        labels = [label for label, _ in self.shown]
        if type(node).__name__ == "Literal" and str(node.this).isdigit() and 1 <= int(node.this) <= len(labels):
            label = labels[int(node.this) - 1]
            if not self._several(label):
                return label
        for label, shown in self.shown:
            if self._several(label):
                continue
            if shown == node or (type(node).__name__ == "Column" and label.casefold() == node.name.casefold()):
                return label
        known = [label for label in labels if not self._several(label)]
        raise UsageError(f"ORDER BY {self._told(node)}: expected a column of the result, one of {known}.")

    def _several(self, label: str) -> bool:
        """Whether a statistic has several columns in the result."""
        return type(self.statistics.get(label)) is Quantiles

    def _is_user(self, nodes: list[Parsed]) -> bool:
        plain = all(type(node).__name__ == "Column" for node in nodes)
        return plain and {self._named(node) for node in nodes} == set(self.table.user)

    def _value(self, node: Parsed) -> Column:
        return sql_value(node, self.table.expression, self._named)

    def _named(self, column: Parsed) -> str:
        scope = self.scopes.get(column.table.casefold()) if column.table else set(self.table.columns)
        if scope is None:
            raise UsageError(f"{self._told(column)}: there is no table {column.table!r} in this query.")
        name = named(column, self.table.expression)
        if name not in scope:
            raise UsageError(
                f"{self._told(column)}: expected a column that {column.table!r} brings, one of {sorted(scope)}; a column that LEFT JOIN is by belongs "
                "to the left table."
            )
        return name

    def _has(self, name: str) -> bool:
        return name.casefold() in {each.casefold() for each in self.table.columns}

    def _told(self, node: Parsed) -> str:
        return f"{self.query.shown(node)}{self.query.at(node)}"

    def _free(self, name: str, taken: Sequence[str]) -> str:
        used, number, found = {each.casefold() for each in taken}, 1, name
        while found.casefold() in used:
            number += 1
            found = f"{name}_{number}"
        return found


def _conjuncts(node: Parsed) -> list[Parsed]:
    kind = type(node).__name__
    if kind == "Paren":
        return _conjuncts(node.this)
    return [*_conjuncts(node.this), *_conjuncts(node.expression)] if kind == "And" else [node]


def _listed(node: Parsed) -> tuple[Parsed | None, list[Any]]:
    """The column and the constants of ``column IN (...)`` or ``column = ...``."""
    kind = type(node).__name__
    values = node.expressions if kind == "In" else [node.expression] if kind == "EQ" else []
    constant = bool(values) and all(type(value).__name__ == "Literal" for value in values)
    if not constant or type(node.this).__name__ != "Column":
        return None, []
    return node.this, list(dict.fromkeys(value.this for value in values))


def _names(source: str) -> set[str]:
    """What a table may be called in FROM: the table of a database, or the name of a file."""
    if not re.search(r"[/\\ .]", source):  # the type of an object
        return set()
    last = re.split(r"[/\\ .]", source)[-1] if " " in source else re.split(r"[/\\]", source)[-1].partition(".")[0]
    return {last.casefold()} if re.fullmatch(r"\w+", last) else set()


def _label(statistic: Statistic) -> str:
    column = getattr(statistic, "column", None)
    return f"{statistic.name}_{column}" if column else statistic.name


def _words(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:_LONGEST_NAME] or "expression"


def _aggregates() -> tuple[type, ...]:
    from sqlglot import exp

    return (exp.AggFunc,)
