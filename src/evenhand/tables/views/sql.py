"""SQL text as an Ibis expression over the rows of a table.

Only a translation: what comes out is judged like any other expression, operation by operation (``allowed.py``). A word that has no
translation is refused here, with its place in the text.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.guarantee import DataError, EvenhandError, UsageError, suggest
from evenhand.tables.engines import DEFAULT
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.views.binding import problem, unprinted
from evenhand.tables.views.sql_words import (
    BINARY,
    INSTEAD,
    PARTS,
    TYPES,
    UNARY,
    UNITS,
    as_text,
    bucket,
    date_format_pieces,
    formatted,
    joined,
    logarithm,
    null_as_empty,
    padded,
    strftime_pieces,
    to_char_pieces,
)

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
    except RecursionError:
        raise UsageError("the SQL expression has too many operations within each other; derive it in steps.") from None
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
    except RecursionError:
        raise UsageError("the SQL expression has too many operations within each other; derive it in steps.") from None
    except EvenhandError:
        raise
    except (LookupError, ValueError) as error:  # a function with too few or other arguments than it takes
        raise UsageError(
            f"{_shown(node)} can't be understood: a function has other arguments than it takes ({type(error).__name__}). The list: docs/views.md."
        ) from None
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
        if kind in BINARY or kind in UNARY:
            self._require_understood(node)
        if kind in ("Add", "Sub"):
            return self._sum(node, kind)
        if kind in BINARY:
            found = BINARY[kind](self.read(node.this), self.read(node.expression))
            return ~found if node.args.get("negate") else found
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
        return found(node) if found is not None else self._refused(node, kind)

    def _refused(self, node: Parsed, kind: str) -> Column:
        reason, instead = INSTEAD.get(
            kind, INSTEAD.get(str(node.this).upper() if kind == "Anonymous" else "", ("", ""))
        )
        if reason:
            raise UsageError(f"{_shown(node)}{_place(node)} can't be used: {reason}. {instead}.")
        raise UsageError(
            f"{_shown(node)}{_place(node)} has no meaning in views; expected comparisons, arithmetic, CASE, CAST, COALESCE, functions of text "
            "or of dates. The list: docs/views.md."
        )

    def _require_understood(self, node: Parsed) -> None:
        """Refuse what the parser noted about a part and what would be dropped here without a word."""
        for name, value in node.args.items():
            if value and name not in _NOTED:
                raise UsageError(
                    f"{_shown(node)}{_place(node)}: {name.replace('_', ' ').upper()} has no meaning here; leave it out."
                )

    def _sum(self, node: Parsed, kind: str) -> Column:
        """A sum or difference: of numbers, of a moment and an interval or a number of days, of two dates in days."""
        import ibis

        one, right = self.read(node.this), node.expression
        if type(right).__name__ == "Interval":
            other = _interval(right)
        elif one.type().is_date() and type(right).__name__ == "Literal" and not right.is_string:
            other = ibis.interval(days=whole(right, "a number of days"))
        else:
            other = self.read(right)
            temporal = [each.type().is_date() or each.type().is_timestamp() for each in (one, other)]
            if kind == "Sub" and all(each.type().is_date() for each in (one, other)):
                return one.delta(other, unit="day")
            if all(temporal):
                raise UsageError(
                    f"{_shown(node)}{_place(node)}: a difference of moments is an interval; expected DATE_DIFF('hour', earlier, later)."
                )
        return BINARY[kind](one, other)

    def read_dateadd(self, node: Parsed) -> Column:
        shift = node.expression if type(node.expression).__name__ == "Interval" else None
        interval = (
            _interval(shift) if shift is not None else _made_interval(node.expression, node.args.get("unit"), node)
        )
        value = self.read(node.this)
        return value + interval if type(node).__name__.endswith("Add") else value - interval

    read_datesub = read_timestampadd = read_timestampsub = read_tsordsadd = read_datetimeadd = read_datetimesub = (
        read_dateadd
    )

    def read_timetostr(self, node: Parsed) -> Column:
        value, pattern = node.this, node.args["format"]
        if type(value).__name__ == "Literal" and value.is_string:  # DuckDB takes both orders
            value, pattern = pattern, value
        return formatted(self.read(value), strftime_pieces(text_of(pattern, "STRFTIME")))

    def read_datebin(self, node: Parsed) -> Column:
        step = node.this
        if type(step).__name__ != "Interval" or str(getattr(step.this, "this", "")) != "1":
            raise UsageError(
                f"{_shown(node)}{_place(node)}: expected TIME_BUCKET(INTERVAL '1 month', day), of one unit."
            )
        return self.read(node.expression).truncate(_unit(step.args["unit"]))

    def read_strtotime(self, node: Parsed) -> Column:
        if text_of(node.args["format"], "STRPTIME") not in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S"):
            raise UsageError(
                f"{_shown(node)}{_place(node)}: text is read as a date in one way; expected dates like 2026-11-30: CAST(day AS DATE)."
            )
        return self.read(node.this).cast("timestamp")

    def read_anonymous(self, node: Parsed) -> Column:
        """Functions that this dialect of the parser has no node for."""
        name, given = str(node.this).upper(), node.expressions
        if name == "DATE_FORMAT" and len(given) == 2:
            return formatted(self.read(given[0]), date_format_pieces(text_of(given[1], name)))
        if name == "TO_CHAR" and len(given) == 2:
            return formatted(self.read(given[0]), to_char_pieces(text_of(given[1], name)))
        if name in ("FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME", "STRFTIME") and len(given) == 2:
            return formatted(self.read(given[1]), strftime_pieces(text_of(given[0], name)))
        if name in ("DATE_PART", "DATEPART") and len(given) == 2:
            return self._part(str(given[0].name), given[1], node)
        if name in ("DATE_SUB", "DATE_ADD") and len(given) == 2 and type(given[1]).__name__ == "Interval":
            value, shift = self.read(given[0]), _interval(given[1])
            return value + shift if name == "DATE_ADD" else value - shift
        if name == "TO_DATE" and given:
            return self.read(given[0]).cast("date")
        if name == "IFF" and len(given) == 3:
            condition, one, other = (self.read(each) for each in given)
            return condition.ifelse(one, other)
        if name == "ISNULL" and len(given) == 1:
            return self.read(given[0]).isnull()
        return self._refused(node, "Anonymous")

    def read_splitpart(self, node: Parsed) -> Column:
        place = whole(node.args["part_index"], "SPLIT_PART(text, separator, place)")
        if place < 1:
            raise UsageError(f"{_shown(node)}{_place(node)}: expected a place of 1 or more, from the left.")
        return self.read(node.this).split(text_of(node.args["delimiter"], "SPLIT_PART"))[place - 1]

    def read_bracket(self, node: Parsed) -> Column:
        if type(node.this).__name__ != "Split" or len(node.expressions) != 1:
            return self._refused(node, "Bracket")
        place = whole(node.expressions[0], "a place in SPLIT(text, separator)")
        return self.read(node.this.this).split(text_of(node.this.expression, "SPLIT"))[place]

    def read_strposition(self, node: Parsed) -> Column:
        if node.args.get("position") is not None or node.args.get("occurrence") is not None:
            raise UsageError(f"{_shown(node)}{_place(node)}: expected POSITION('a' IN text), from the beginning.")
        return self.read(node.this).find(text_of(node.args["substr"], "POSITION")) + 1

    def read_widthbucket(self, node: Parsed) -> Column:
        value, low, high = (self.read(each) for each in (node.this, node.args["min_value"], node.args["max_value"]))
        return bucket(value, low, high, whole(node.args["num_buckets"], "WIDTH_BUCKET(x, low, high, count)"))

    def read_pad(self, node: Parsed) -> Column:
        fill = node.args.get("fill_pattern")
        filling = " " if fill is None else text_of(fill, "LPAD")
        return padded(
            self.read(node.this), whole(node.expression, "LPAD(text, width)"), filling, bool(node.args.get("is_left"))
        )

    def read_log(self, node: Parsed) -> Column:
        if node.expression is None:
            return logarithm(self.read(node.this), 10)
        base = _number(str(node.this.this)) if type(node.this).__name__ == "Literal" else 0
        if base <= 1:
            raise UsageError(f"{_shown(node)}{_place(node)}: expected a constant base above 1, as in LOG(2, x).")
        return logarithm(self.read(node.expression), base)

    def read_trunc(self, node: Parsed) -> Column:
        self._require_understood(node)
        return self.read(node.this).cast("int64")

    def read_nvl2(self, node: Parsed) -> Column:
        return self.read(node.this).notnull().ifelse(self.read(node.args["true"]), self.read(node.args["false"]))

    def read_concatws(self, node: Parsed) -> Column:
        import ibis

        separator = text_of(node.expressions[0], "CONCAT_WS")
        parts = [self.read(each) for each in node.expressions[1:]]
        if not parts:
            raise UsageError(f"{_shown(node)}{_place(node)}: expected texts to join, as in CONCAT_WS('-', a, b).")
        known = [part.isnull().ifelse("", joined([ibis.literal(separator), as_text(part)])) for part in parts]
        return joined(known).substr(len(separator))

    def read_cast(self, node: Parsed) -> Column:
        name = node.to.this.name
        if name not in TYPES:
            raise UsageError(
                f"{_shown(node)}: a cast to {node.to.sql()} is not possible; expected one of {sorted(TYPES)}."
            )
        if node.this.is_string and TYPES[name] in ("date", "timestamp"):
            return _moment(node.this.this, TYPES[name])
        value = self.read(node.this)
        return as_text(value) if TYPES[name] == "string" else value.cast(TYPES[name])

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
        if node.args.get("query") is not None or not node.expressions:
            raise UsageError(
                f"{_shown(node)}{_place(node)}: expected a list of constants, or in WHERE of a question a query of the user column or of a public table. Join the other table instead."
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
        as_one = null_as_empty if node.args.get("coalesce") else as_text  # BigQuery's is null where a part is
        return joined([as_one(self.read(each)) for each in node.expressions])

    def read_round(self, node: Parsed) -> Column:
        digits = node.args.get("decimals")
        return self.read(node.this).round(0 if digits is None else whole(digits, "ROUND(x, digits)"))

    def read_trim(self, node: Parsed) -> Column:
        inner, position = node.this, node.args.get("position")
        both = type(inner).__name__ == "Trim" and {position, inner.args.get("position")} == {"LEADING", "TRAILING"}
        if (
            node.args.get("expression") is not None
            or (position and not both)
            or (both and inner.args.get("expression") is not None)
        ):
            raise UsageError(f"{_shown(node)}: only white space is trimmed, on both sides; expected TRIM(text).")
        return self.read(inner.this if both else inner).strip()

    def read_substring(self, node: Parsed) -> Column:
        start, length = (node.args.get(name) for name in ("start", "length"))
        role = "SUBSTRING(text, start, length)"
        first, many = whole(start, role), None if length is None else whole(length, role)
        if first < 0 and many is None:
            return self.read(node.this).right(-first)
        if first < 1:
            raise UsageError(
                f"{_shown(node)}{_place(node)}: the first character is number 1; expected {role} from there, or RIGHT(text, n)."
            )
        return self.read(node.this).substr(first - 1, many)

    def read_replace(self, node: Parsed) -> Column:
        return self.read(node.this).replace(
            text_of(node.expression, "REPLACE"), text_of(node.args["replacement"], "REPLACE")
        )

    def read_extract(self, node: Parsed) -> Column:
        return self._part(node.this.name, node.expression, node)

    def _part(self, name: str, of: Parsed, node: Parsed) -> Column:
        if name.upper() not in PARTS:
            raise UsageError(f"{_shown(node)}{_place(node)}: expected one of {sorted(PARTS)}.")
        return PARTS[name.upper()](self.read(of))

    def read_timestamptrunc(self, node: Parsed) -> Column:
        if node.args.get("zone") is not None:
            raise UsageError(f"{_shown(node)}{_place(node)}: times are in UTC here; leave the zone out.")
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


_NOTED = {"this", "expression", "negate", "safe", "typed", "ignore_nulls"}
"""What the parser may note about an operation that is read here, or that changes nothing."""
_MOST_DIGITS = 400


def _number(text: str) -> int | float:
    if len(text) > _MOST_DIGITS:
        raise UsageError(f"a number of {len(text)} characters can't be used; expected one below 1e300.")
    return int(text) if text.isdigit() else float(Decimal(text))


def whole(node: Parsed, role: str) -> int:
    """A whole number that was given."""
    negative = type(node).__name__ == "Neg"
    text = str((node.this if negative else node).this) if node is not None else ""
    if not (text.isdigit() and text.isascii()) or len(text) > 9:
        raise UsageError(
            f"{role} takes whole numbers as constants, and {'nothing' if node is None else _shown(node)} was given."
        )
    return -int(text) if negative else int(text)


def text_of(node: Parsed, role: str) -> str:
    """A text that was given."""
    if type(node).__name__ != "Literal" or not node.is_string:
        raise UsageError(
            f"{role} takes a constant text, and {_shown(node)} was given: a pattern that comes from the rows could take any time."
        )
    return str(node.this)


def _moment(text: str, kind: str) -> Column:
    import ibis

    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no {kind}; expected one like '2026-11-30'.") from None
    return ibis.literal(moment.date() if kind == "date" else moment, kind)


def _unit(node: Parsed) -> str:
    name = node.name.upper()
    name = name if name in UNITS else name.removesuffix("S")
    if name not in UNITS:
        raise UsageError(f"{name} is no unit of time here; expected one of {list(UNITS)}.")
    return UNITS[name]


def _interval(node: Parsed) -> Column:
    return _made_interval(node.this, node.args.get("unit"), node)


def _made_interval(count: Parsed, unit: Parsed, node: Parsed) -> Column:
    import ibis

    text = "" if count is None or type(count).__name__ not in ("Literal", "Neg") else _shown(count).strip("'")
    if unit is None or not re.fullmatch("-?[0-9]{1,9}", text):
        raise UsageError(f"{_shown(node)}{_place(node)}: expected a constant interval, such as INTERVAL '7' DAY.")
    return ibis.interval(int(text), unit=_unit(unit))


def _shown(node: Parsed) -> str:
    return in_sql(node, DIALECT)


def in_sql(node: Parsed, dialect: str, comments: bool = True) -> str:
    """A part as SQL; what a dialect can't express stays as it was written, without a word on the terminal."""
    import sqlglot

    return str(node.sql(dialect=dialect, comments=comments, unsupported_level=sqlglot.ErrorLevel.IGNORE))


def _place(node: Parsed) -> str:
    """Where a part stands in the text, if the parser noted it."""
    for each in node.walk():
        if "line" in each.meta:
            return f" (line {each.meta['line']}, column {each.meta['col']})"
    return ""
