"""The words of SQL, in Ibis: what has one meaning there, and what is put together from operations of views."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from evenhand.guarantee import UsageError
from evenhand.tables.expressions import Column

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MOST_PADDED = 100
"""Characters that LPAD and RPAD fill up to."""


def constant_text(value: Column, role: str) -> str:
    """A text that was given: a pattern from the rows could take any time."""
    literal = getattr(value.op(), "value", None)
    if not isinstance(literal, str):
        raise UsageError(f"{role} takes a constant text: a pattern that comes from the rows could take any time.")
    return literal


def as_text(value: Column) -> Column:
    """A value as SQL writes it: whole numbers, dates and truth values have one spelling; others differ between engines."""
    import ibis

    kind = value.type()
    if kind.is_string():
        return value
    if kind.is_boolean():
        return ibis.cases((value, "true"), (~value, "false"))
    if kind.is_date():
        return formatted(value, strftime_pieces("%Y-%m-%d"))
    if kind.is_integer():
        return value.cast("string")
    raise UsageError(
        f"{kind} as text is not the same on every engine; expected text, whole numbers, dates or truth values. Write STRFTIME(moment, '%Y-%m-%d "
        "%H:%M'), or group numbers by FLOOR(x / 10) * 10."
    )


def joined(parts: Sequence[Column]) -> Column:
    """Texts one after the other, in one operation; null where one of them is."""
    return parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]


def null_as_empty(value: Column) -> Column:
    return as_text(value).fill_null("")


def padded(value: Column, width: int, fill: str, left: bool) -> Column:
    """LPAD and RPAD: cut where it is longer."""
    import ibis

    if not 0 <= width <= MOST_PADDED or len(fill) != 1:
        raise UsageError(f"LPAD and RPAD fill up to a constant width, at most {MOST_PADDED}, with one character.")
    text, filled = as_text(value), fill * width
    whole = (
        joined([ibis.literal(filled), text]).right(width) if left else joined([text, ibis.literal(filled)]).left(width)
    )
    return (text.length() >= width).ifelse(text.left(width), whole)


def logarithm(value: Column, base: float) -> Column:
    """Rounded, so that powers of the base have whole logarithms on every engine."""
    return (value.ln() / math.log(base)).round(9)


def named_by_number(number: Column, names: Sequence[str], first: int, length: int | None = None) -> Column:
    return number.cases(*((place, name[:length]) for place, name in enumerate(names, first)))


def month_name(value: Column, length: int | None = None) -> Column:
    return named_by_number(value.month(), MONTHS, 1, length)


def day_name(value: Column, length: int | None = None) -> Column:
    return named_by_number(value.day_of_week.index(), WEEKDAYS, 0, length)


def bucket(value: Column, low: Column, high: Column, count: int) -> Column:
    """WIDTH_BUCKET: 0 below the lower end, one more than there are from the upper end on."""
    return ((value - low) * count / (high - low)).clip(-1, count).floor() + 1


def last_day(value: Column) -> Column:
    import ibis

    return value.cast("date").truncate("M") + ibis.interval(months=1) - ibis.interval(days=1)


def same(value: Column, other: Column) -> Column:
    """IS NOT DISTINCT FROM: two nulls are the same."""
    return (value == other).fill_null(False) | (value.isnull() & other.isnull())


def _clock(value: Column) -> Column:
    return value.cast("timestamp") if value.type().is_date() else value


def _digits(number: Column, width: int) -> Column:
    return (number + 10**width).cast("string").right(width)


_PIECES: dict[str, Callable[[Column], Column]] = {
    "Y": lambda value: _digits(value.year(), 4),
    "y": lambda value: _digits(value.year() % 100, 2),
    "m": lambda value: _digits(value.month(), 2),
    "d": lambda value: _digits(value.day(), 2),
    "j": lambda value: _digits(value.day_of_year(), 3),
    "V": lambda value: _digits(value.week_of_year(), 2),
    "H": lambda value: _digits(_clock(value).hour(), 2),
    "I": lambda value: _digits((_clock(value).hour() + 11) % 12 + 1, 2),
    "M": lambda value: _digits(_clock(value).minute(), 2),
    "S": lambda value: _digits(_clock(value).second(), 2),
    "p": lambda value: named_by_number(_clock(value).hour() // 12, ("AM", "PM"), 0),
    "B": month_name,
    "b": lambda value: month_name(value, 3),
    "A": day_name,
    "a": lambda value: day_name(value, 3),
    "u": lambda value: (value.day_of_week.index() + 1).cast("string"),
    "w": lambda value: ((value.day_of_week.index() + 1) % 7).cast("string"),
    "q": lambda value: value.quarter().cast("string"),
    "-m": lambda value: value.month().cast("string"),
    "-d": lambda value: value.day().cast("string"),
    "-j": lambda value: value.day_of_year().cast("string"),
}  # fmt: skip
"""Parts of a moment as text, by the letters of strftime."""
_SHORT = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}
_TO_CHAR = {
    **{"YYYY": "Y", "YY": "y", "MM": "m", "DDD": "j", "DD": "d", "HH24": "H", "HH12": "I", "MI": "M", "SS": "S", "AM": "p", "PM": "p"},
    **{"FMMonth": "B", "FMDay": "A", "Mon": "b", "Dy": "a", "IW": "V", "ID": "u", "Q": "q"},
}  # fmt: skip
_JAVA = {
    **{"yyyy": "Y", "yy": "y", "MMMM": "B", "MMM": "b", "MM": "m", "M": "-m", "dd": "d", "d": "-d", "DDD": "j", "HH": "H", "hh": "I"},
    **{"mm": "M", "ss": "S", "a": "p", "EEEE": "A", "EEE": "a", "E": "a", "q": "q", "Q": "q"},
}  # fmt: skip
_MYSQL = {"i": "M", "s": "S", "M": "B", "W": "A", "h": "I", "v": "V", "c": "-m", "e": "-d"}

Piece = tuple[str, bool]
"""A letter of strftime, or a text as it is (False)."""


def strftime_pieces(pattern: str, other: Mapping[str, str] | None = None) -> list[Piece]:
    """A pattern such as ``%Y-%m``, piece by piece; ``other`` says which letters mean something else."""
    found: list[Piece] = []
    for text, code in re.findall(r"([^%]+)|%(-?.)", pattern, re.DOTALL):
        letter = (other or {}).get(code, code)
        if text or code == "%":
            found.append((text or "%", False))
        elif letter in _SHORT:
            found += strftime_pieces(_SHORT[letter])
        elif letter in _PIECES:
            found.append((letter, True))
        else:
            raise UsageError(f"the pattern {pattern!r}: %{code} is not possible; expected {_offered()}.")
    return found


def _offered() -> str:
    return ", ".join(f"%{letter}" for letter in sorted({*_PIECES, *_SHORT} - {"q"}, key=str.casefold))


def _token_pieces(pattern: str, tokens: Mapping[str, str], quote: str) -> list[Piece]:
    """A pattern such as ``YYYY-MM``, whose letters are tokens unless they are quoted."""
    words = "|".join(sorted(tokens, key=len, reverse=True))
    found: list[Piece] = []
    for quoted, token, text in re.findall(f"{quote}([^{quote}]*){quote}|({words})|(.)", pattern, re.DOTALL):
        if text.isalpha():
            raise UsageError(
                f"the pattern {pattern!r}: {text!r} is not possible here; expected {', '.join(tokens)}, other letters in {quote}."
            )
        found.append((tokens[token], True) if token else (quoted or text, False))
    return found


def to_char_pieces(pattern: str) -> list[Piece]:
    """A pattern of Postgres' TO_CHAR."""
    return _token_pieces(pattern, _TO_CHAR, '"')


def date_format_pieces(pattern: str) -> list[Piece]:
    """A pattern of DATE_FORMAT: MySQL's if it has %, else Spark's."""
    return strftime_pieces(pattern, _MYSQL) if "%" in pattern else _token_pieces(pattern, _JAVA, "'")


def formatted(value: Column, pieces: Sequence[Piece]) -> Column:
    """A date or timestamp as text."""
    import ibis

    if not (value.type().is_date() or value.type().is_timestamp()):
        raise UsageError(
            f"a date or a timestamp is expected, and {value.type()} was given. Cast text first: CAST(day AS DATE)."
        )
    if not any(is_part for _, is_part in pieces):
        raise UsageError(f"the pattern shows no part of a moment; expected {_offered()} in it, such as '%Y-%m'.")
    return joined([_PIECES[piece](value) if is_part else ibis.literal(piece) for piece, is_part in pieces])


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
INSTEAD: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("RegexpLike", "RegexpILike", "SimilarTo", "RegexpExtract", "RegexpReplace", "RegexpFullMatch"),
        ("engines read patterns differently, and some take exponential time on a text", "Write LIKE, STARTS_WITH, CONTAINS or SPLIT_PART"),
    ),
    **dict.fromkeys(
        ("CurrentDate", "CurrentTimestamp", "CurrentTime", "NOW", "GETDATE", "TODAY", "SYSDATE", "AGE"),
        ("it gives another value each day", "Write the day as a constant: DATE '2026-11-30'"),
    ),
    **dict.fromkeys(("Rand", "Randn", "Uuid", "RANDOM"), ("it gives another value each time", "Leave it out: releases draw their own noise")),
    **dict.fromkeys(("Reverse", "INITCAP", "Translate"), ("engines differ in what a letter is", "Write UPPER, LOWER or SUBSTRING")),
    **dict.fromkeys(("Repeat", "Space"), ("its length comes from the rows", "Write LPAD or CONCAT")),
    "Escape": ("engines differ in escapes", "Write CONTAINS(text, '%')"),
    "Subquery": ("it looks at the rows of all users together", "Join the other table, or write x IN (SELECT ...)"),
    "All": ("it looks at the rows of all users together", "Write the values: x > 5"),
    "Any": ("it looks at the rows of all users together", "Write the values: x IN (1, 2), or x LIKE 'a%' OR x LIKE 'b%'"),
    **dict.fromkeys(("MD5", "SHA", "SHA2", "HASH"), ("each engine has its own", "Group by the column itself")),
}  # fmt: skip
"""What has no translation, why, and what to write."""
BINARY: dict[str, Callable[[Column, Column], Column]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv, "IntDiv": operator.floordiv},
    **{"Mod": operator.mod, "Pow": operator.pow, "EQ": operator.eq, "NEQ": operator.ne, "LT": operator.lt},
    **{"LTE": operator.le, "GT": operator.gt, "GTE": operator.ge, "And": operator.and_, "Or": operator.or_},
    "DPipe": lambda value, other: joined([as_text(value), as_text(other)]),
    "Nullif": lambda value, other: value.nullif(other),
    "Like": lambda value, other: value.like(constant_text(other, "LIKE")),
    "ILike": lambda value, other: value.lower().like(constant_text(other, "ILIKE").lower()),
    "NullSafeEQ": same,
    "NullSafeNEQ": lambda value, other: ~same(value, other),
    "SafeDivide": operator.truediv,
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
    **dict.fromkeys(("Date", "TsOrDsToDate"), lambda value: value.cast("date")),
    "TsOrDsToTimestamp": lambda value: value.cast("timestamp"),
    **{"Dayname": day_name, "Monthname": month_name, "LastDay": last_day},
    "Sign": lambda value: (value > 0).ifelse(1, (value < 0).ifelse(-1, (value == 0).ifelse(0, None))),
}  # fmt: skip
