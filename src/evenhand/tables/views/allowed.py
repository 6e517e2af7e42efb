"""The operations that views may use: all of them, in one list. What is not on it is refused before anything is read.

Each one works on the values of a single row, gives the same result for the same row whatever else is in the table, and gives a result (or null) for
every value. Its rule says how: it gets operands that are in range (see ``operand.py``) and gives back one that is.
``tests/engines/test_view_operations.py`` runs every rule on nasty values on every engine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Operation
from evenhand.tables.views import casts, logic, numbers, text, times
from evenhand.tables.views.guard import Guard
from evenhand.tables.views.operand import Operand

Rule = Callable[[Guard, Operation], Operand]

RULES: dict[str, Rule] = {
    "Add": numbers.add,
    "Subtract": numbers.subtract,
    "Multiply": numbers.multiply,
    "Divide": numbers.divide,
    "FloorDivide": numbers.floor_divide,
    "Modulus": numbers.modulus,
    "Negate": numbers.negate,
    "Abs": numbers.absolute,
    "Power": numbers.power,
    "Sqrt": numbers.square_root,
    "Ln": numbers.logarithm,
    "Exp": numbers.exponential,
    "Floor": numbers.floor,
    "Ceil": numbers.ceiling,
    "Round": numbers.rounded,
    "Clip": numbers.clip,
    "Least": numbers.smallest,
    "Greatest": numbers.greatest,
    "Equals": logic.compares(operator.eq, ordered=False),
    "NotEquals": logic.compares(operator.ne, ordered=False),
    "Less": logic.compares(operator.lt, ordered=True),
    "LessEqual": logic.compares(operator.le, ordered=True),
    "Greater": logic.compares(operator.gt, ordered=True),
    "GreaterEqual": logic.compares(operator.ge, ordered=True),
    "Between": logic.between,
    "InValues": logic.is_among,
    "And": logic.joins(operator.and_),
    "Or": logic.joins(operator.or_),
    "Xor": logic.differs,
    "Not": logic.inverts,
    "IsNull": logic.is_null,
    "NotNull": logic.is_known,
    "IfElse": logic.if_else,
    "SearchedCase": logic.searched_case,
    "SimpleCase": logic.simple_case,
    "Coalesce": logic.first_known,
    "NullIf": logic.null_if,
    "Cast": casts.cast,
    "TryCast": casts.cast,
    "Lowercase": text.changes(lambda value: value.lower(), grows=True),
    "Uppercase": text.changes(lambda value: value.upper(), grows=True),
    "Strip": text.changes(lambda value: value.strip()),
    "StringLength": text.length,
    "StringContains": text.contains,
    "StartsWith": text.starts_with,
    "EndsWith": text.ends_with,
    "StringSQLLike": text.like,
    "StringReplace": text.replaced,
    "Substring": text.substring,
    "StringSlice": text.sliced,
    "StrRight": text.right,
    "StringFind": text.position,
    "ArrayIndex": text.part_between,
    "StringConcat": text.concatenated,
    "ExtractYear": times.part("year", 1, 9999),
    "ExtractQuarter": times.part("quarter", 1, 4),
    "ExtractMonth": times.part("month", 1, 12),
    "ExtractDay": times.part("day", 1, 31),
    "ExtractDayOfYear": times.part("day_of_year", 1, 366),
    "ExtractWeekOfYear": times.part("week_of_year", 1, 53),
    "ExtractHour": times.part("hour", 0, 23, clock=True),
    "ExtractMinute": times.part("minute", 0, 59, clock=True),
    "ExtractSecond": times.part("second", 0, 59, clock=True),
    "DayOfWeekIndex": times.weekday,
    "Date": times.day,
    "DateTruncate": times.truncated,
    "TimestampTruncate": times.truncated,
    "DateAdd": times.shifted(1),
    "TimestampAdd": times.shifted(1),
    "DateSub": times.shifted(-1),
    "TimestampSub": times.shifted(-1),
    "DateDelta": times.difference,
    "TimestampDelta": times.difference,
}
"""By the name of the Ibis operation. (By name, so that Ibis is imported only when a view is made.)"""

_TOGETHER = "it looks at the rows of all users together, so that one user's rows would change another's"
_OWN = "Ask for it as a statistic of the session, or per user: table.per_user(total=_.amount.sum())."
_ORDER = "it depends on the order in which rows happen to be read, or on rows of other users"
_OWN_ORDER = "Write table.window(order_by=..., previous=_.amount.lag())."
_CHANCE = "it gives another value each time, so that two readings of one row differ"
_LENGTH = "its length comes from the rows, and a long one would make the query fail or last"

REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("RandomScalar", "RandomUUID"), (_CHANCE, "Leave it out: releases draw their own noise.")),
    **dict.fromkeys(("TimestampNow", "DateNow"), (_CHANCE, "Give the moment as a constant: datetime.date(2026, 11, 30).")),
    **dict.fromkeys(("RowID", "RowNumber", "NTile", "MinRank", "DenseRank", "PercentRank", "CumeDist"), (_ORDER, _OWN_ORDER)),
    **dict.fromkeys(("Lag", "Lead", "NthValue", "WindowFunction"), (_ORDER, _OWN_ORDER)),
    **dict.fromkeys(("First", "Last", "Arbitrary", "ArgMin", "ArgMax", "Mode"), (_ORDER, "Use min(), max() or a window with an order.")),
    **dict.fromkeys(("ArrayCollect", "GroupConcat"), (_ORDER, "Use count(), sum(), min() or max() per user.")),
    **dict.fromkeys(("Sum", "Mean", "Count", "CountStar", "CountDistinct", "Min", "Max", "Any", "All"), (_TOGETHER, _OWN)),
    **dict.fromkeys(("Variance", "StandardDev", "Median", "Quantile", "MultiQuantile", "ApproxMedian"), (_TOGETHER, _OWN)),
    **dict.fromkeys(("ScalarSubquery", "InSubquery", "ExistsSubquery"), (_TOGETHER, "Join the other table: table.join(other, on=...).")),
    **dict.fromkeys(("Repeat", "LPad", "RPad", "StringJoin"), (_LENGTH, "Join texts with +.")),
    **dict.fromkeys(
        ("RegexSearch", "RegexExtract", "RegexReplace", "RegexSplit"),
        ("engines read patterns differently, and some take exponential time on a text", "Use like(), contains() or startswith()."),
    ),
    **dict.fromkeys(("ScalarUDF", "AggUDF"), ("what a function of your own does can't be checked", "Write it with Ibis operations.")),
    **dict.fromkeys(("LStrip", "RStrip"), ("engines differ in what they take for white space there", "Write _.name.strip().")),
    "StringSplit": ("it gives a list", "Take one part of it: _.name.split('-')[0]."),
    "IsNan": ("NaN counts as null here", "Write _.x.isnull()."),
    "Strftime": ("engines spell dates differently", "Use truncate(), year(), month() or another part."),
    "Hash": ("each engine has its own hash", "Group by the column itself."),
}  # fmt: skip


def refusal(node: Operation) -> UsageError:
    """Why an operation is not on the list, and what to write instead."""
    name = type(node).__name__
    kinds = [kind.__name__ for kind in type(node).__mro__]
    reason, instead = next(
        (REASONS[kind] for kind in kinds if kind in REASONS),
        (
            "it is not on the list of operations that work on one row at a time, never fail, and mean the same on every engine",
            "The list: docs/views.md.",
        ),
    )
    return UsageError(f"the operation {name} can't be part of a view: {reason}. {instead}")
