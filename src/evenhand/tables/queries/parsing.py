"""A query as a tree, if it is one SELECT from one table; all else is refused with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from evenhand.guarantee import UsageError
from evenhand.tables.queries.options import Options, place, read_options
from evenhand.tables.views.sql import DIALECT, in_sql

Parsed: TypeAlias = Any
"""A node of sqlglot's tree, whose attributes have no types."""

_READ = {"with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit"}
_READ |= {"kind", "hint", "operation_modifiers"}
_PLAIN = {"this", "db", "catalog", "alias", "expression"}
"""Of the tables that a query names, and of LIMIT."""
_LONGEST_NAME = 40
_LONGEST_TEXT = 100_000
MOST_SELECTS, MOST_SELECTED = 20, 100
"""In one query: each SELECT becomes a view, and each selected expression of a question a statistic; more would take minutes to judge."""
_REASONS = {
    "with_": "WITH inside a query that is inside another; write all common table expressions at the beginning",
    "order": "ORDER BY inside; order what is released",
    "limit": "LIMIT inside; which rows are left would depend on the rows of other users",
    "distinct": "SELECT DISTINCT inside, or DISTINCT ON; count different values in the question itself: COUNT(DISTINCT x)",
    "qualify": "QUALIFY; filter the released result instead",
    "windows": "WINDOW; rows of different users would meet",
    "offset": "OFFSET; cut the released result instead",
    "laterals": "LATERAL",
    "sample": "a sample; each reading would be another table",
}


@dataclass(frozen=True)
class Query:
    """A parsed SELECT.

    Args:
        text: as given.
        dialect: whose words it uses.
        tree: what sqlglot parsed.
        options: what it says about its own price.
    """

    text: str
    dialect: str
    tree: Parsed
    options: Options

    def at(self, node: Parsed) -> str:
        """Where a part stands in the text, in parentheses; nothing if that is not known."""
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        return f" ({place(self.text, min(starts))})" if starts else ""

    def shown(self, node: Parsed) -> str:
        """A part as SQL."""
        return in_sql(node, self.dialect)

    def told(self, node: Parsed) -> str:
        """A part as SQL, and where it stands."""
        return f"{self.shown(node)}{self.at(node)}"

    @property
    def normalised(self) -> str:
        """The same question in one spelling, for the ledger."""
        return in_sql(self.tree, DIALECT, comments=False)


def parse_query(text: str) -> Query:
    """Parse a query: as BigQuery writes it if it uses BigQuery's words or quotes, else as DuckDB and Postgres do."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError("sql(...): expected a query such as SELECT genre, AVG(rating) FROM table GROUP BY genre.")
    if len(text) > _LONGEST_TEXT:
        raise UsageError(
            f"the query has {len(text):,} characters; expected at most {_LONGEST_TEXT:,}. Join a public table with long lists of values."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError("the query holds half of a surrogate pair, which is no character; leave it out.")
    with unnested():
        return _parsed(text)


@contextmanager
def unnested() -> Iterator[None]:
    """A block in which an expression that is nested too deeply to be read is refused."""
    try:
        yield
    except RecursionError:
        raise UsageError(
            "the query has too many operations within each other; make it smaller, or derive columns in steps."
        ) from None


def _parsed(text: str) -> Query:
    import sqlglot

    words = re.sub(r"'(?:[^']|'')*'", "''", text).upper()
    dialect = "bigquery" if "`" in words or "DIFFERENTIAL_PRIVACY" in words else DIALECT
    readable, options = read_options(text, dialect)
    try:
        trees = sqlglot.parse(readable, dialect=dialect)
    except sqlglot.errors.ParseError as error:
        found = error.errors[0] if error.errors else {}
        where = (
            f" (line {found['line']}, column {found['col']}, near {found['highlight']!r})" if found.get("line") else ""
        )
        raise UsageError(
            f"the query can't be read as SQL{where}: {found.get('description', 'syntax error').rstrip('.')}."
        ) from None
    except sqlglot.errors.SqlglotError:
        raise UsageError("the query can't be read as SQL.") from None
    if len(trees) != 1 or type(trees[0]).__name__ != "Select":
        raise UsageError(
            "the query is not one SELECT; expected SELECT ... FROM table, without anything before or after."
        )
    query = Query(text, dialect, _grouped(_as_written(trees[0])), options)
    for node in query.tree.walk():
        if "start" in node.meta:  # sqlglot notes where a word ends
            start = node.meta["start"]
            node.meta["col"] = start - text.rfind("\n", 0, start)
    _refuse(query)
    return query


def _as_written(tree: Parsed) -> Parsed:
    """The tree without what sqlglot would write differently, as functions that it writes as they are."""
    from sqlglot import exp

    names = {
        exp.ToChar: "TO_CHAR",
        exp.Initcap: "INITCAP",
        exp.ApproxQuantiles: "APPROX_QUANTILES",
    }  # it would list all of the quantiles
    for node in list(tree.find_all(*names)):
        others = (
            [node.args.get("format")]
            if isinstance(node, exp.ToChar)
            else [node.expression]
            if isinstance(node, exp.ApproxQuantiles)
            else []
        )
        node.replace(
            exp.Anonymous(
                this=names[type(node)], expressions=[node.this, *(part for part in others if part is not None)]
            )
        )
    return tree


def _grouped(tree: Parsed) -> Parsed:
    """SELECT DISTINCT of groups as the GROUP BY that it is; groups differ from each other anyway."""
    from sqlglot import exp

    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        tree.set("distinct", None)
        if tree.args.get("group") is None and not any(item.find(exp.AggFunc) for item in tree.expressions):
            tree.set("group", exp.Group(all=True))
    return tree


def refuse_parts(query: Query, known: set[str]) -> None:
    """Refuse a SELECT that has other parts than these."""
    for name, part in query.tree.args.items():
        if part and name not in known:
            first = part[0] if isinstance(part, list) else part
            where = query.at(first) if hasattr(first, "walk") else ""
            raise UsageError(
                f"the query has {_REASONS.get(name, name.upper())}{where}. Here a query is one SELECT, of columns and aggregates."
            )


def _refuse(query: Query) -> None:
    tree = query.tree
    selects = [node for node in tree.walk() if type(node).__name__ == "Select"]
    if len(selects) > MOST_SELECTS or any(len(each.expressions) > MOST_SELECTED for each in selects):
        raise UsageError(
            f"the query has {len(selects)} SELECTs, of up to {max(len(each.expressions) for each in selects)} expressions; expected at most "
            f"{MOST_SELECTS}, of {MOST_SELECTED} each."
        )
    refuse_parts(query, _READ)
    for node in tree.walk():
        kind = type(node).__name__
        inside = kind == "Subquery" and type(node.parent).__name__ not in ("From", "Join", "In")
        if kind == "Exists":
            raise UsageError(
                f"the query has EXISTS{query.at(node)}. Write it by the user column, as household IN (SELECT household FROM homes WHERE size > 3), or JOIN "
                "the other table."
            )
        window = kind == "Window" and not _is_total(tree, node)
        if inside or window:
            reason = "a subquery" if inside else "a window: rows of different users would meet"
            instead = (
                "Here queries stand in FROM, JOIN, WITH and x IN (SELECT ...)"
                if inside
                else "Of what is released, SUM(COUNT(*)) OVER () is the total; of each user's own rows, table.window(...) in Python"
            )
            raise UsageError(f"the query has {reason}{query.at(node)}. {instead}.")
    if tree.args.get("with_") is not None and tree.args["with_"].args.get("recursive"):
        raise UsageError(f"the query has WITH RECURSIVE{query.at(tree.args['with_'])}; leave RECURSIVE out.")
    parts = [tree.args["limit"]] if tree.args.get("limit") is not None else []
    for part in (*parts, *(node for node in tree.walk() if type(node).__name__ in ("Table", "Subquery"))):
        more = [name for name, value in part.args.items() if value and name not in _PLAIN]
        if more:
            raise UsageError(
                f"{query.told(part)}: {more[0].replace('_', ' ').upper()} has no meaning here; leave it out."
            )
    if query.dialect == "bigquery":
        _refuse_other_weeks(query)
    for node in tree.walk():
        if type(node).__name__ in ("Rollup", "Cube", "GroupingSets"):
            raise UsageError(
                f"GROUP BY{query.at(node)}: expected columns or expressions, without ROLLUP, CUBE or GROUPING SETS."
            )


def _is_total(tree: Parsed, node: Parsed) -> bool:
    """Whether a window is ``SUM(COUNT(*)) OVER ()`` in the question itself: of what is released."""
    inner = node.this
    nested = type(inner).__name__ == "Sum" and inner.this is not None and inner.this.find(*aggregates()) is not None
    return nested and node.parent_select is tree


def _refuse_other_weeks(query: Query) -> None:
    """BigQuery's weeks begin on Sundays, and so do its numbers of weekdays, from 1."""
    for node in query.tree.walk():
        kind = type(node).__name__
        unit = node.args.get("unit") if kind.endswith("Trunc") else node.this if kind == "Extract" else None
        if unit is not None and unit.name.upper() in ("WEEK", "DAYOFWEEK"):
            raise UsageError(
                f"{query.shown(node)}{query.at(node)}: BigQuery's weeks begin on Sundays, those here on Mondays. Group by day, or write the query "
                "in the words of DuckDB: date_trunc('week', day), dayofweek(day)."
            )


def aggregates() -> tuple[type, ...]:
    """The kinds of nodes that are aggregates."""
    from sqlglot import exp

    return (exp.AggFunc,)


def words(text: str) -> str:
    """A name for an expression without one."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:_LONGEST_NAME] or "expression"
