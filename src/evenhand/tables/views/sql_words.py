"""The words of SQL that have one meaning in Ibis."""

from __future__ import annotations

import operator
from collections.abc import Callable

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column


def _constant(value: Column) -> str:
    literal = getattr(value.op(), "value", None)
    if not isinstance(literal, str):
        raise UsageError("LIKE takes a constant text: a pattern that comes from the rows could take any time.")
    return literal


TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "int64"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "float64"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "string"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"), "timestamp"),
    "BOOLEAN": "boolean",
    "DATE": "date",
}
UNITS = {"YEAR": "Y", "QUARTER": "Q", "MONTH": "M", "WEEK": "W", "DAY": "D", "HOUR": "h", "MINUTE": "m", "SECOND": "s"}
PARTS: dict[str, Callable[[Column], Column]] = {
    **{name: operator.methodcaller(name.lower()) for name in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")},
    "WEEK": operator.methodcaller("week_of_year"),
    **dict.fromkeys(("DOY", "DAYOFYEAR"), operator.methodcaller("day_of_year")),
    "ISODOW": lambda value: value.day_of_week.index() + 1,
    **dict.fromkeys(("DOW", "DAYOFWEEK"), lambda value: (value.day_of_week.index() + 1) % 7),
}  # fmt: skip
BINARY: dict[str, Callable[[Column, Column], Column]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv, "IntDiv": operator.floordiv},
    **{"Mod": operator.mod, "Pow": operator.pow, "EQ": operator.eq, "NEQ": operator.ne, "LT": operator.lt},
    **{"LTE": operator.le, "GT": operator.gt, "GTE": operator.ge, "And": operator.and_, "Or": operator.or_},
    "DPipe": operator.add,
    "Nullif": lambda value, other: value.nullif(other),
    "Like": lambda value, other: value.like(_constant(other)),
    "StartsWith": lambda value, other: value.startswith(other),
    "EndsWith": lambda value, other: value.endswith(other),
    "Contains": lambda value, other: value.contains(other),
    "Left": lambda value, other: value.left(other),
    "Right": lambda value, other: value.right(other),
}  # fmt: skip
UNARY: dict[str, Callable[[Column], Column]] = {
    **{"Not": operator.invert, "Neg": operator.neg, "Paren": lambda value: value},
    **{name: operator.methodcaller(name.lower()) for name in ("Abs", "Sqrt", "Ln", "Exp", "Floor", "Ceil", "Lower", "Upper", "Length")},
    **{name: PARTS[name.upper()] for name in ("Year", "Quarter", "Month", "Day", "Hour", "Minute", "Second", "Week")},
    **{"DayOfWeek": PARTS["DOW"], "DayOfYear": PARTS["DOY"], "DayOfWeekIso": PARTS["ISODOW"], "WeekOfYear": PARTS["WEEK"]},
    **{"Sum": operator.methodcaller("sum"), "Avg": operator.methodcaller("mean")},
    **{"Min": operator.methodcaller("min"), "Max": operator.methodcaller("max")},
    "Date": lambda value: value.cast("date"),
    "TsOrDsToDate": lambda value: value.cast("date"),
}  # fmt: skip
