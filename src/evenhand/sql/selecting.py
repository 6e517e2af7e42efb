"""What a SELECT asks for: columns to make, groups, statistics, and the order of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.guarantee import Relation, UsageError
from evenhand.sql.aggregates import Reader
from evenhand.sql.arithmetic import Expression, Operation, Released, columns_of, parse, walk
from evenhand.sql.having import Test, having
from evenhand.sql.ordering import Order
from evenhand.statistics import Count, Quantiles, Statistic, Sum, Users
from evenhand.tables import Bounds, Table
from evenhand.tables.expressions import Column
from evenhand.tables.queries.parsing import Parsed, Query, aggregates, words
from evenhand.tables.queries.sources import Source


@dataclass
class Select:
    """The parts of a query, as far as they were read.

    Args:
        query: the query.
        source: the rows that it is about.
        derived: the columns that have to be made, by name.
        groups: the group columns of the result, each with its expression.
        statistics: what has to be asked, by column; those that only ORDER BY, HAVING or arithmetic need have names of their own.
        shown: what each selected expression is called in the result.
        values: what each column of the result is, as arithmetic of what is asked.
    """

    query: Query
    source: Source
    derived: dict[str, Column] = field(default_factory=dict)
    groups: dict[str, Parsed] = field(default_factory=dict)
    statistics: dict[str, Statistic] = field(default_factory=dict)
    shown: list[tuple[str, Parsed]] = field(default_factory=list)
    values: dict[str, Expression] = field(default_factory=dict)

    def read(self) -> None:
        """Read the whole query; what it asks for is then known."""
        self._read_groups()
        later: list[tuple[int, Parsed, Parsed]] = []
        for item in self.query.tree.expressions:
            node = item.this if type(item).__name__ == "Alias" else item
            label = self._group_of(node, item.alias)
            statistic = None if label is not None else self._reader.read(node)
            if label is None and statistic is None:
                if not node.find(*aggregates()):
                    raise UsageError(
                        f"{self.query.told(node)} is neither an aggregate nor a group: releases are about many people. Write AVG(...), or name it in "
                        "GROUP BY."
                    )
                later.append((len(self.shown), item, node))
                label = ""
            elif statistic is not None:
                label = self._ask(statistic, item.alias or _label(statistic))
                self.values[label] = Released(label)
            self.shown.append((label or "", node))
        for place, item, node in later:  # they use what is selected beside them
            value = parse(self.query, node, self._leaf)
            self._require_totals(value, node)
            label = self._free(
                item.alias or words(self.query.shown(node)), [*self.groups, *self.statistics, *self.values]
            )
            self.values[label] = value
            self.shown[place] = (label, node)
        self.values = {
            label: self.values[label] for label, _ in self.shown if label in self.values
        }  # in the order of SELECT
        if not self.statistics and not self.groups:
            raise UsageError("the query asks for no number; expected an aggregate, such as COUNT(*).")
        if not self.statistics:  # names alone: how many people are behind each is what they are chosen by
            label = self._ask(Users(), "users")
            self.values[label] = Released(label)

    @property
    def _reader(self) -> Reader:
        return Reader(self.query, self._column, self._is_user, self._stated)

    def _ask(self, statistic: Statistic, name: str) -> str:
        """Note what has to be asked; returns its column."""
        label = self._free(name, [*self.groups, *self.statistics, *self.values])
        self.statistics[label] = statistic
        return label

    def _leaf(self, node: Parsed) -> Expression | None:
        """What a part of an expression is, if it is an aggregate; asked once, however often it stands in the query."""
        statistic = self._reader.read(node)
        if statistic is None:
            return None
        if type(statistic) is Quantiles:
            raise UsageError(
                f"{self.query.told(node)} has several numbers; expected one quantile, such as QUANTILE_CONT(x, 0.9)."
            )
        known = [name for name, one in self.statistics.items() if one == statistic]
        return Released(known[0] if known else self._ask(statistic, _label(statistic)))

    def _require_totals(self, value: Expression, node: Parsed) -> None:
        """Check that totals over groups are of what adds up, and that there are groups."""
        added = [
            part
            for each in walk(value)
            if isinstance(each, Operation) and each.symbol == "total"
            for part in columns_of(each)
        ]
        if added and not self.groups:
            raise UsageError(
                f"{self.query.told(node)}: a total of groups needs GROUP BY; without it the aggregate is the total."
            )
        if added and self.query.tree.args.get("limit") is not None:
            raise UsageError(
                f"{self.query.told(node)}: a total of all groups beside LIMIT, which leaves some out; leave LIMIT out, and cut the result."
            )
        for name in added:
            if not isinstance(self.statistics[name], Count | Sum):
                raise UsageError(
                    f"{self.query.told(node)}: the groups of {self.statistics[name].words} don't add up, since the same people may be in several, or "
                    "it is an average; expected SUM(COUNT(*)) OVER () or SUM(SUM(x)) OVER ()."
                )

    def view(self) -> Table:
        """The table with the rows and columns that the query is about."""
        # All at once, and from the columns as they were: a new column may have the name of an old one.
        return self.source.table.derive(**self.derived) if self.derived else self.source.table

    def keys(self) -> object:
        """The keys that WHERE lists for every group column, if it does: the analyst knows them."""
        where = self.source.where
        listed: dict[str, list[Any]] = {}
        for node in _conjuncts(where) if where is not None else ():
            column, values = _listed(node)
            if column is not None:
                listed.setdefault(self.source.named(column), values)
        found = {
            label: listed[self.source.named(node)]
            for label, node in self.groups.items()
            if type(node).__name__ == "Column" and self.source.named(node) in listed
        }
        return found if set(found) == set(self.groups) else None

    def order(self) -> list[Order]:
        """What the released rows are sorted by."""
        order = self.query.tree.args.get("order")
        if order is None:
            return []
        if not self.groups:
            raise UsageError(f"ORDER BY{self.query.at(order)}: there is only one row; leave it out.")
        return [Order(self._result(each.this, "ORDER BY"), bool(each.args.get("desc"))) for each in order.expressions]

    def having(self) -> Test | None:
        """Which of the released rows are kept."""
        node = self.query.tree.args.get("having")
        if node is None:
            return None
        if not self.groups:
            raise UsageError(f"HAVING{self.query.at(node)}: there is only one row; leave it out.")
        return having(self.query, node.this, lambda part: self._result(part, "HAVING"))

    def limit(self) -> int | None:
        """How many of the released rows are kept."""
        limit = self.query.tree.args.get("limit")
        if limit is None:
            return None
        count = limit.args.get("expression")
        if count is None or not str(count.this).isdigit():
            raise UsageError(f"LIMIT{self.query.at(limit)}: expected a whole number.")
        return int(count.this)

    def _read_groups(self) -> None:
        group = self.query.tree.args.get("group")
        if group is None:
            return
        selected = self.query.tree.expressions
        aliases = {item.alias.casefold(): item for item in selected if type(item).__name__ == "Alias"}
        items = list(group.expressions)
        if group.args.get("all"):
            items = [item for item in selected if not item.find(*aggregates())]
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
            if inner.find(*aggregates()):
                raise UsageError(
                    f"GROUP BY {self.query.told(inner)}: expected a column or an expression of one row, not an aggregate."
                )
            self._add_group(inner, item.alias)

    def _add_group(self, node: Parsed, alias: str) -> None:
        plain = self.source.named(node) if type(node).__name__ == "Column" else None
        label = alias or plain or self._free(words(self.query.shown(node)), [*self.source.table.columns, *self.groups])
        if label in self.groups:
            raise UsageError(f"GROUP BY {self.query.told(node)}: it is named twice.")
        if label != plain:
            self._derive(label, node)
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
            plain = self.source.named(node)
            if plain not in self.derived:
                return plain
        value = self.source.value(node)
        for made, column in self.derived.items():
            if column.equals(value):
                return made
        label = self._free(words(name or self.query.shown(node)), [*self.source.table.columns, *self.derived])
        self._derive(label, node)
        return label

    def _derive(self, label: str, node: Parsed) -> None:
        """Note a column to make; judged by itself first, so that a refusal says where it stands."""
        with self.source.at(node):
            self.derived[label] = self.source.value(node)
            self.source.table.derive(**{label: self.derived[label]})

    def _result(self, node: Parsed, clause: str) -> Expression:
        """What ORDER BY or HAVING means: a column of the result, or arithmetic of aggregates, which are asked if they are not selected."""
        labels = [label for label, _ in self.shown]
        if type(node).__name__ == "Literal" and str(node.this).isdigit() and 1 <= int(node.this) <= len(labels):
            label = labels[int(node.this) - 1]
            if not self._several(label):
                return self._value(label)

        def leaf(part: Parsed) -> Expression | None:
            for label, shown in self.shown:
                if not self._several(label) and (
                    shown == part or (type(part).__name__ == "Column" and label.casefold() == part.name.casefold())
                ):
                    return self._value(label)
            for label, group in self.groups.items():
                if group == part or (type(part).__name__ == "Column" and label.casefold() == part.name.casefold()):
                    return Released(label)
            return self._leaf(part)

        if leaf(node) is None and not node.find(*aggregates()) and type(node).__name__ in ("Column", "Literal"):
            known = [label for label in labels if not self._several(label)]
            raise UsageError(f"{clause} {self.query.told(node)}: expected a column of the result, one of {known}.")
        found = parse(self.query, node, leaf)
        if clause in ("ORDER BY", "HAVING") and any(type(each).__name__ == "Window" for each in node.walk()):
            raise UsageError(
                f"{clause} {self.query.told(node)}: totals of all groups are for SELECT; select it, and sort the result."
            )
        return found

    def _value(self, label: str) -> Expression:
        return self.values.get(label, Released(label))

    def _several(self, label: str) -> bool:
        """Whether a statistic has several columns in the result."""
        return type(self.statistics.get(label)) is Quantiles

    def _is_user(self, nodes: list[Parsed]) -> bool:
        plain = all(type(node).__name__ == "Column" for node in nodes)
        return plain and {self.source.named(node) for node in nodes} == set(self.source.table.user)

    def _stated(self, node: Parsed) -> Bounds | None:
        """What was stated about the bounds of a column."""
        if self.source.table.relation is not Relation.PRESENCE:
            raise UsageError(
                f"{self.query.told(node)}: with protects={self.source.table.relation.value!r} FILTER can't leave rows out, since how many there are is "
                "public. Filter by public columns in WHERE."
            )
        facts = self.source.table.facts.get(self.source.named(node)) if type(node).__name__ == "Column" else None
        low, high = (None, None) if facts is None else facts.range
        return None if low is None or high is None else (low, high)

    def _has(self, name: str) -> bool:
        return name.casefold() in {each.casefold() for each in self.source.table.columns}

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


def _label(statistic: Statistic) -> str:
    column = getattr(statistic, "column", None)
    return f"{statistic.name}_{column}" if column else statistic.name
