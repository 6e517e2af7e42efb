"""SQL text as an Ibis expression over the rows of a table.

Only a translation: what comes out is judged like any other expression, operation by operation (``allowed.py``). A word that has no
translation is refused here, with its place in the text.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.tables.engines import DEFAULT
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.views.binding import problem, unprinted
from evenhand.tables.views.sql_words import BINARY, PARTS, TYPES, UNARY, UNITS

if TYPE_CHECKING:
    from evenhand.tables.table import Table

Parsed: TypeAlias = Any
"""A node of sqlglot's tree, whose attributes have no types."""

DIALECT = DEFAULT.ibis_name
"""SQL is read as the engine reads it that runs if none is named."""


def sql_expression(text: str, table: Table) -> Column:
    """A scalar SQL expression over the columns of a table, as an Ibis expression; per-user aggregates included.

    Example:
        >>> sql_expression("CASE WHEN amount > 100 THEN 'large' ELSE 'small' END", sales)
    """
    import sqlglot

    try:
        parsed = sqlglot.parse(text, dialect=DIALECT)
    except sqlglot.errors.SqlglotError as error:
        place = getattr(error, "errors", None)
        at = f" near line {place[0]['line']}, column {place[0]['col']}" if place else ""
        raise UsageError(f"{text!r} can't be read as SQL{at}; expected one expression, such as amount > 0.") from None
    if len(parsed) != 1 or parsed[0] is None:
        raise UsageError(f"{text!r} is not one SQL expression; expected one, such as amount > 0.")
    return sql_value(parsed[0], table.expression)


def sql_value(node: Parsed, rows: Rows, names: Callable[[Parsed], str] | None = None) -> Column:
    """A parsed SQL expression over some rows, as an Ibis expression.

    Args:
        node: what sqlglot parsed.
        rows: whose columns are meant.
        names: which column a reference means; by its name unless given, letter case ignored as SQL does unless it is quoted.
    """
    import ibis.common.exceptions as ibis_errors
    from ibis.common.annotations import SignatureValidationError

    reader = _Reader(rows, names or (lambda column: named(column, rows)))
    try:
        with unprinted():
            return reader.read(node)
    except (ibis_errors.IbisError, SignatureValidationError, TypeError, AttributeError, ArithmeticError) as error:
        raise UsageError(
            f"{_shown(node)} can't be understood: {problem(error)}. If a column was read as text, cast it: CAST(amount AS "
            "DOUBLE)."
        ) from None


def named(column: Parsed, rows: Rows) -> str:
    """The column of some rows that a reference means."""
    name, columns = column.name, list(rows.columns)
    exact = [each for each in columns if each == name]
    loose = [each for each in columns if each.casefold() == name.casefold()] if not column.this.quoted else []
    found = exact or loose
    if len(found) != 1:
        raise DataError(
            f"there is no column {name!r}{_place(column)}; the columns are {columns}.{suggest(name, columns)}"
        )
    return str(found[0])


class _Reader:
    """Translates one expression."""

    def __init__(self, rows: Rows, names: Callable[[Parsed], str]) -> None:
        self.rows, self.names = rows, names

    def read(self, node: Parsed) -> Column:
        import ibis

        kind = type(node).__name__
        if kind in ("Add", "Sub") and type(node.expression).__name__ == "Interval":
            shift = _interval(node.expression)
            return self.read(node.this) + shift if kind == "Add" else self.read(node.this) - shift
        if kind in BINARY:
            return BINARY[kind](self.read(node.this), self.read(node.expression))
        if kind in UNARY:
            return UNARY[kind](self.read(node.this))
        if kind == "Column":
            return self.rows[self.names(node)]
        if kind == "Literal":
            return ibis.literal(node.this) if node.is_string else ibis.literal(_number(node.this))
        if kind == "Boolean":
            return ibis.literal(bool(node.this))
        if kind == "Null":
            return ibis.null()
        found = getattr(self, f"read_{kind.lower()}", None)
        if found is None:
            raise UsageError(
                f"{_shown(node)}{_place(node)} has no meaning in views; expected comparisons, arithmetic, CASE, CAST, COALESCE, functions of text "
                "or of dates. The list: docs/views.md."
            )
        return found(node)

    def read_cast(self, node: Parsed) -> Column:
        name = node.to.this.name
        if name not in TYPES:
            raise UsageError(
                f"{_shown(node)}: a cast to {node.to.sql()} is not possible; expected one of {sorted(TYPES)}."
            )
        if node.this.is_string and TYPES[name] in ("date", "timestamp"):
            return _moment(node.this.this, TYPES[name])
        return self.read(node.this).cast(TYPES[name])

    read_trycast = read_cast

    def read_case(self, node: Parsed) -> Column:
        import ibis

        default = self.read(node.args["default"]) if node.args.get("default") else None
        conditions = [self.read(branch.this) for branch in node.args["ifs"]]
        if node.this is not None:
            base = self.read(node.this)
            conditions = [base == value for value in conditions]
        results = [self.read(branch.args["true"]) for branch in node.args["ifs"]]
        return ibis.cases(*zip(conditions, results, strict=True), else_=default)

    def read_if(self, node: Parsed) -> Column:
        otherwise = self.read(node.args["false"]) if node.args.get("false") else None
        return self.read(node.this).ifelse(self.read(node.args["true"]), otherwise)

    def read_is(self, node: Parsed) -> Column:
        value = self.read(node.this)
        if type(node.expression).__name__ == "Null":
            return value.isnull()
        truth = self.read(node.expression)
        return value.fill_null(False) if truth.op().value else (~value).fill_null(False)

    def read_between(self, node: Parsed) -> Column:
        return self.read(node.this).between(self.read(node.args["low"]), self.read(node.args["high"]))

    def read_in(self, node: Parsed) -> Column:
        if node.args.get("query") is not None:
            raise UsageError(
                f"{_shown(node)}{_place(node)}: a subquery looks at the rows of all users together. Join the other table instead."
            )
        return self.read(node.this).isin([self.read(each) for each in node.expressions])

    def read_coalesce(self, node: Parsed) -> Column:
        import ibis

        return ibis.coalesce(self.read(node.this), *(self.read(each) for each in node.expressions))

    def read_least(self, node: Parsed) -> Column:
        import ibis

        return ibis.least(self.read(node.this), *(self.read(each) for each in node.expressions))

    def read_greatest(self, node: Parsed) -> Column:
        import ibis

        return ibis.greatest(self.read(node.this), *(self.read(each) for each in node.expressions))

    def read_concat(self, node: Parsed) -> Column:
        first, *others = (self.read(each) for each in node.expressions)
        for other in others:
            first = first + other
        return first

    def read_round(self, node: Parsed) -> Column:
        digits = node.args.get("decimals")
        return self.read(node.this).round(int(digits.this) if digits is not None else 0)

    def read_trim(self, node: Parsed) -> Column:
        if node.args.get("expression") is not None or node.args.get("position"):
            raise UsageError(f"{_shown(node)}: only white space is trimmed, on both sides; expected TRIM(text).")
        return self.read(node.this).strip()

    def read_substring(self, node: Parsed) -> Column:
        start, length = node.args["start"], node.args.get("length")
        return self.read(node.this).substr(int(start.this) - 1, None if length is None else int(length.this))

    def read_replace(self, node: Parsed) -> Column:
        return self.read(node.this).replace(node.expression.this, node.args["replacement"].this)

    def read_extract(self, node: Parsed) -> Column:
        name = node.this.name.upper()
        if name not in PARTS:
            raise UsageError(f"{_shown(node)}: expected one of {sorted(PARTS)}.")
        return PARTS[name](self.read(node.expression))

    def read_timestamptrunc(self, node: Parsed) -> Column:
        return self.read(node.this).truncate(_unit(node.args["unit"]))

    read_datetrunc = read_timestamptrunc

    def read_datediff(self, node: Parsed) -> Column:
        unit = node.args["unit"].name.lower()
        return self.read(node.this).delta(self.read(node.expression), unit=unit)

    def read_filter(self, node: Parsed) -> Column:
        aggregate, condition = self.read(node.this).op(), self.read(node.expression.this)
        if getattr(aggregate, "where", condition) is not None:
            raise UsageError(
                f"{_shown(node)}{_place(node)}: FILTER is for aggregates, as in SUM(x) FILTER (WHERE x > 0)."
            )
        return aggregate.copy(where=condition.op()).to_expr()

    def read_countif(self, node: Parsed) -> Column:
        return self.rows.count(where=self.read(node.this))

    def read_count(self, node: Parsed) -> Column:
        kind = type(node.this).__name__
        if kind in ("Star", "Literal"):
            return self.rows.count()
        if kind == "Distinct" and len(node.this.expressions) == 1:
            return self.read(node.this.expressions[0]).nunique()
        return self.read(node.this).count()


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(Decimal(text))


def _moment(text: str, kind: str) -> Column:
    import ibis

    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no {kind}; expected one like '2026-11-30'.") from None
    return ibis.literal(moment.date() if kind == "date" else moment, kind)


def _unit(node: Parsed) -> str:
    name = node.name.upper()
    if name not in UNITS:
        raise UsageError(f"{name} is no unit of time here; expected one of {list(UNITS)}.")
    return UNITS[name]


def _interval(node: Parsed) -> Column:
    import ibis

    if node.this is None or not str(node.this.this).lstrip("-").isdigit():
        raise UsageError(f"{_shown(node)}: expected a constant interval, such as INTERVAL '7' DAY.")
    return ibis.interval(int(node.this.this), unit=_unit(node.args["unit"]))


def _shown(node: Parsed) -> str:
    return str(node.sql(dialect=DIALECT))


def _place(node: Parsed) -> str:
    """Where a part stands in the text, if the parser noted it."""
    for each in node.walk():
        if "line" in each.meta:
            return f" (line {each.meta['line']}, column {each.meta['col']})"
    return ""
