"""For each operation that views allow, some expressions that use it, and rows with nasty values to try them on."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import ibis
import pyarrow as pa
from ibis import _

import evenhand as eh

DAY, TIME = datetime.date, datetime.datetime
WHOLE = [None, 0, 1, -1, 7, 2**31, 2**53, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
REAL = [
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, 2.5, -7.25, 1e15, 2.0**53, 5e-324, -1e-310, 1e-200, 1e60, -1e200,
    1.7976931348623157e308,
]  # fmt: skip
TEXT = [
    None, "", " ", "a", "Ab%", "5", " -7.5e2\n", "1e999", "1e-999", "-inf", "nan", "9" * 30, "123456789012345678", "+12", "0x1A", "1_000",
    "2024-02-29", "2023-02-29", "0000-01-01", "1900-02-29", "2024-13-01", "2024-02-29 23:59:59.999999", "2024-02-29T24:00", "2024-02-29 7:00",
    "2024-01-01\u2028", "\u0663", "12\n", "12\u0085", "'; DROP", "\\", "_%", "x" * 3000, "\ue000\U0001f600b",
]  # fmt: skip
DATES = [
    None,
    DAY(1, 1, 1),
    DAY(1582, 10, 10),
    DAY(1970, 1, 1),
    DAY(2024, 2, 29),
    DAY(2024, 12, 30),
    DAY(2027, 1, 3),
    DAY(9999, 12, 31),
]
TIMES = [
    None, TIME(1, 1, 1), TIME(1969, 12, 31, 23, 59, 59, 999999), TIME(2024, 2, 29, 12, 30, 15, 500000), TIME(2026, 3, 29, 2, 30),
    TIME(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip
TRUTH = [None, True, False]
SMALL = [None, 127, -128, 0, 3]
MONEY = [None, "0.00", "-0.01", "9999999999.99", "123.45"]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{name: (pa.int64(), WHOLE) for name in "ij"},
    **{name: (pa.float64(), REAL) for name in "xy"},
    **{name: (pa.string(), TEXT) for name in "st"},
    **{name: (pa.date32(), DATES) for name in "de"},
    **{name: (pa.timestamp("us"), TIMES) for name in "mn"},
    **{name: (pa.bool_(), TRUTH) for name in "pq"},
    **{name: (pa.int8(), SMALL) for name in "ab"},
    "w": (pa.float32(), [None, 0.1, math.nan, -math.inf, 3.4e38]),
    "c": (pa.decimal128(12, 2), [None if text is None else Decimal(text) for text in MONEY]),
    "z": (pa.timestamp("us", "UTC"), TIMES),
}
DAYS = ibis.interval(days=40)

EXPRESSIONS: dict[str, list[Any]] = {
    "Add": [_.i + _.j, _.a + 2**61 - 1 + (2**61 - 1),  _.x + _.y, _.a + _.b, _.i + _.x, _.c + _.x, _.i + _.j + _.a + 1, _.w + 1],
    "Subtract": [_.i - _.j, _.x - _.y, _.x - _.y - _.x, _.c - 1],
    "Multiply": [_.i * _.j, _.i * 2**61 * 4, _.a * 2**40 * 2**40 * 3, 2**50 * (2**50 * _.a), _.x * _.y, _.x * _.y * _.x * _.y * _.x * _.y, _.a * _.b, _.i * 3, _.i * _.j * _.i, _.w * _.c, (_.x - _.y) * (_.x - _.y)],
    "Divide": [_.i / _.j, _.x / _.y, _.i / _.a, _.c / 3, 1 / (_.x - _.y), _.x / _.y / _.x / _.y],
    "FloorDivide": [_.i // _.j, _.i // 7, _.x // _.y],
    "Modulus": [_.i % _.j, _.a % _.b, _.i % 7],
    "Negate": [-_.i, -_.x, -_.a],
    "Abs": [_.i.abs(), _.x.abs(), _.a.abs(), _.c.abs()],
    "Power": [_.x**2, _.i**3],
    "Sqrt": [_.x.sqrt(), _.i.sqrt(), (_.x * _.y).sqrt()],
    "Ln": [_.x.ln(), _.i.ln()],
    "Exp": [_.x.exp(), _.a.exp()],
    "Floor": [_.x.floor(), _.i.floor(), _.c.floor()],
    "Ceil": [_.x.ceil(), _.w.ceil()],
    "Round": [_.x.round(), _.x.round(2), _.c.round(1), _.i.round()],
    "Clip": [_.x.clip(0, 5), _.i.clip(lower=-5), _.c.clip(upper=1.5)],
    "Least": [ibis.least(_.x, _.y), ibis.least(_.i, _.a, 3)],
    "Greatest": [ibis.greatest(_.x, _.i), ibis.greatest(_.a, _.b)],
    "Equals": [_.i == _.j, _.x == _.y, _.s == _.t, _.d == _.e, _.m == _.n, _.p == _.q, _.i == _.x, _.d == _.m, _.d == "2024-02-29", _.c == 123.45, _.z == _.m],
    "NotEquals": [_.i != _.a, _.s != "a", _.x != 0],
    "Less": [_.i < _.j, _.x < _.y, _.s < _.t, _.d < _.e, _.m < _.n, _.x < 0.5, _.w < _.c],
    "LessEqual": [_.s <= "a", _.x <= _.i],
    "Greater": [_.i > 0, _.x > 1e300 / 2, _.d > DAY(2000, 1, 1), _.m > "2024-01-01 10:00:00"],
    "GreaterEqual": [_.s >= _.t, _.x >= 0],
    "Between": [_.i.between(-1, 10), _.x.between(_.y, 1), _.s.between("5", "a"), _.d.between("1970-01-01", "2025-01-01")],
    "InValues": [_.i.isin([1, 7]), _.x.isin([0, 2.5]), _.s.isin(["a", "5"]), _.d.isin([DAY(2024, 2, 29)])],
    "And": [_.p & _.q, (_.x > 0) & (_.i > 0)],
    "Or": [_.p | _.q, (_.x > 0) | _.p],
    "Xor": [_.p ^ _.q],
    "Not": [~_.p, ~(_.x > 0)],
    "IsNull": [_.x.isnull(), _.s.isnull(), (_.i + _.j).isnull(), _.z.isnull()],
    "NotNull": [_.x.notnull(), _.c.notnull()],
    "IfElse": [_.p.ifelse(_.x, _.i), (_.x > 0).ifelse("yes", "no"), _.q.ifelse(_.d, None)],
    "SearchedCase": [ibis.cases((_.x > 0, _.x.sqrt()), (_.i == 0, 1 / _.x), else_=0), ibis.cases((_.p, _.s))],
    "SimpleCase": [_.i.cases((0, "none"), (1, "one"), else_="many"), _.s.cases(("a", 1), else_=2)],
    "Coalesce": [ibis.coalesce(_.x, _.y, 0), ibis.coalesce(_.s, "none"), _.i.fill_null(0)],
    "NullIf": [_.i.nullif(0), _.x.nullif(_.y), _.s.nullif("")],
    "Cast": [
        *(_.s.cast("float64"), _.s.cast("int64"), _.s.cast("date"), _.s.cast("timestamp"), _.x.cast("int64"), _.i.cast("float64")),
        *(_.i.cast("string"), _.a.cast("string"), _.p.cast("int64"), _.d.cast("timestamp"), _.m.cast("date"), _.c.cast("float64")),
        *(_.x.cast("int8"), _.i.cast("int16"), _.z.cast("date"), _.w.cast("float64"), _.s.replace("x", "").cast("float64")),
    ],
    "TryCast": [_.s.try_cast("float64"), _.x.try_cast("int64")],
    "Lowercase": [_.s.lower()],
    "Uppercase": [_.s.upper()],
    "Strip": [_.s.strip()],
    "StringLength": [_.s.length()],
    "StringContains": [_.s.contains("2"), _.s.contains("%"), _.s.contains("")],
    "StartsWith": [_.s.startswith("2024"), _.s.startswith("\\")],
    "EndsWith": [_.s.endswith("9"), _.s.endswith("\n"), _.s.endswith("")],
    "StringSQLLike": [_.s.like("%2%"), _.s.like("_"), _.s.like("%\n"), _.s.like("")],
    "StringReplace": [_.s.replace("2", ""), _.s.replace("\\", "'"), _.s.replace("99", "'")],
    "Substring": [_.s.substr(1, 2), _.s.substr(0, 0), _.s.substr(3), _.s.left(3), _.s.substr(5000, 10)],
    "StringSlice": [_.s[1:3], _.s[2:], _.s[:4], _.s[3:1]],
    "StrRight": [_.s.right(2), _.s.right(0)],
    "StringFind": [_.s.find("2"), _.s.find("-"), _.s.find("\\"), _.s.find("9999")],
    "ArrayIndex": [_.s.split("-")[0], _.s.split("-")[1], _.s.split("2")[3], _.s.split("99")[2], _.s.split("\\")[1]],
    "StringConcat": [_.s + _.t, _.s + "-" + _.s, _.s + "'"],
    **{
        f"Extract{name}": [getattr(_.d, call)(), getattr(_.m, call)(), getattr(_.z, call)()]
        for name, call in (
            *(("Year", "year"), ("Quarter", "quarter"), ("Month", "month"), ("Day", "day"), ("DayOfYear", "day_of_year")),
            ("WeekOfYear", "week_of_year"),
        )
    },
    **{f"Extract{name}": [getattr(_.m, name.lower())(), getattr(_.z, name.lower())()] for name in ("Hour", "Minute", "Second")},
    "DayOfWeekIndex": [_.d.day_of_week.index(), _.m.day_of_week.index()],
    "Date": [_.m.date(), _.z.date()],
    "DateTruncate": [_.d.truncate(unit) for unit in "YQMWD"],
    "TimestampTruncate": [*(_.m.truncate(unit) for unit in ("Y", "Q", "M", "W", "D", "h", "m", "s")), _.z.truncate("h")],
    "DateAdd": [_.d + DAYS, _.d + ibis.interval(months=1), _.d + ibis.interval(years=-3)],
    "TimestampAdd": [_.m + DAYS, _.m + ibis.interval(hours=30), _.m + ibis.interval(months=1)],
    "DateSub": [_.d - DAYS, _.d - ibis.interval(weeks=2)],
    "TimestampSub": [_.m - DAYS, _.z - ibis.interval(seconds=61)],
    "DateDelta": [_.d.delta(_.e, unit=unit) for unit in ("day", "month", "year")],
    "TimestampDelta": [_.m.delta(_.n, unit=unit) for unit in ("day", "hour", "minute", "second", "month")],
}  # fmt: skip
"""For each operation on the list, some expressions that use it."""


def nasty_rows() -> pa.Table:
    """All values of each column, beside many values of the others; column u numbers the rows."""
    many = 160
    chance = random.Random(7)
    columns: dict[str, pa.Array] = {"u": pa.array(range(many), pa.int64())}
    for name, (kind, values) in COLUMNS.items():
        filled = list(itertools.islice(itertools.cycle(values), many))
        chance.shuffle(filled)
        columns[name] = pa.array(filled, kind)
    return pa.table(columns)


Build = Callable[[eh.Table, eh.Table], eh.Table]
"""A view of a table, and of another one of the same people."""
PRODUCTS = eh.read_public(
    pa.table({"i": [0, 1, 1, 7, None], "price": [1.5, None, 2.0, float("nan"), 3.0], "s_": ["x", "y", "", "z", "w"]})
)
STATES = eh.read_public(
    pa.table({"s": ["a", "A", "", "5"], "d_": [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)]})
)
USER_BY_USER: dict[str, Build] = {
    "aggregates": lambda table, _other: table.per_user(
        rows=_.count(), known=_.x.count(), total=_.x.sum(), whole=_.i.sum(), mean=_.w.mean(), low=_.x.min(), high=_.y.max(), first=_.d.min(),
        last=_.m.max(), texts=_.s.nunique(), numbers=_.x.nunique(), some=_.p.any(), every=_.q.all(), positive=_.x.sum(where=_.x > 0),
        money=_.c.sum(), share="sum(x) / count(*)", span=_.d.max().delta(_.d.min(), unit="day"), ones=(_.x > 1).sum(),
    ),
    "windows": lambda table, _other: table.window(
        order_by=["d", "x"], before=_.x.lag(), after=_.s.lead(2), place=_.count(), so_far=_.x.sum(), best=_.x.max(), gap=_.x - _.x.lag(),
    ),
    "windows without order": lambda table, _other: table.window(total=_.x.sum(), share=_.x / _.x.sum(), rows=_.count()),
    "public joins": lambda table, _other: table.join(PRODUCTS, on="i", fan_out=2).join(STATES, on="s", how="left").derive(cost=_.price * _.x),
    "private joins": lambda table, other: table.select("x", "i").join(other.select("s", "y"), fan_out=2).derive(z=_.x + _.y),
    "joins on a key": lambda table, other: table.select("x", "a").join(other.select("y", "a"), on="a", how="left"),
}  # fmt: skip
"""Views over several rows of a user."""
