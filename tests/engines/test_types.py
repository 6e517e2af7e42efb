"""User ids and values of every type that tables hold."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import expected, found

import evenhand as eh
from evenhand.tables import Grid
from evenhand.tables.summaries import CEILING

_DAY = datetime.date(2020, 2, 29)
_NOON = datetime.datetime(2020, 2, 29, 12)

USERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [2**53, 2**53 + 1, -(2**63), None, 2**53]),
    "uint64": (pa.uint64(), [2**64 - 1, 2**64 - 2, 2**64 - 1]),
    "int8": (pa.int8(), [-1, 1, None]),
    "string": (pa.string(), ["", None, "a", "A", "é", "e\u0301", "a\u0000", "a"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None, "a"]),
    "binary": (pa.binary(), [b"\xff\x00", b"\xff", b"", None]),
    "fixed binary": (pa.binary(2), [b"ab", b"\xff\x00", None]),
    "bool": (pa.bool_(), [True, False, None, True]),
    "float64": (pa.float64(), [0.0, 1.5, math.nan, None, math.inf, 1.5]),
    "float64 without nulls": (pa.float64(), [0.0, 1.5, math.nan]),
    "float64, one number": (pa.float64(), [1.0, 1.0, math.nan]),
    "float32 without nulls": (pa.float32(), [0.0, 1.5, math.nan]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.10"), Decimal("1.11"), None]),
    "date": (pa.date32(), [_DAY, datetime.date(1, 1, 1), None, _DAY]),
    "timestamp": (pa.timestamp("us"), [_NOON, _NOON.replace(microsecond=1), None]),
    "timestamp in nanoseconds": (pa.timestamp("ns"), [_NOON, _NOON.replace(microsecond=1), None]),
    "timestamp with zone": (pa.timestamp("us", "UTC"), [_NOON, None]),
    "time": (pa.time64("us"), [datetime.time(1), datetime.time(2), None]),
    "uuid": (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None]),
    "list": (pa.list_(pa.int64()), [[1], [1, 2], None, [1]]),
    "nothing but nulls": (pa.null(), [None, None]),
}  # fmt: skip


def _write(path: Path, users: pa.Array, values: pa.Array) -> Path:
    pq.write_table(pa.table({"u": users, "v": values}), path)
    return path


@pytest.mark.parametrize("kind", USERS)
def test_users_of_any_type(kind: str, engine: str, tmp_path: Path) -> None:
    dtype, users = USERS[kind]
    values = [float(index) / 4 for index in range(len(users))]
    path = _write(tmp_path / "t.parquet", pa.array(users, dtype), pa.array(values))
    rows = [(repr(user) if isinstance(user, list) else user, value) for user, value in zip(users, values, strict=True)]
    assert found(eh.read(path, user="u", engine=engine)) == expected(rows, "presence")


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [2**53 + 1, 2**63 - 1, -(2**63), 3, None]),
    "uint64": (pa.uint64(), [2**64 - 1, 3, None]),
    "int8": (pa.int8(), [-128, 127, 3, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "float64 without nulls": (pa.float64(), [1.0, math.nan]),
    "float64, several numbers": (pa.float64(), [1.0, -2.2, 7.0, math.nan]),
    "float64 with infinities": (pa.float64(), [-math.inf, math.inf, math.nan, 5e-324]),
    "float32": (pa.float32(), [0.1, 3.3, math.nan, None]),
    "float32 without nulls": (pa.float32(), [1.0, math.nan]),
    "narrow decimal": (pa.decimal128(5, 2), [Decimal("1.10"), Decimal("-3.33"), None]),
    "wide decimal": (pa.decimal128(38, 19), [Decimal("1.1000000000000000001"), Decimal("0.3333333333333333333"), None]),
    "huge decimal": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-(10**37)), None]),
    "nothing but nulls": (pa.null(), [None, None]),
}  # fmt: skip


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("kind", VALUES)
def test_values_of_any_type(kind: str, relation: str, engine: str, tmp_path: Path) -> None:
    dtype, values = VALUES[kind]
    array = pa.array(values, dtype)
    path = _write(tmp_path / "t.parquet", pa.array(range(len(values))), array)
    stored = [value if value is None else _as_float(value) for value in array.to_pylist()]
    table = eh.read(path, user="u", protects=relation, engine=engine)
    assert found(table) == expected(enumerate(stored), relation)


def _as_float(value: Any) -> float:
    return float(str(value)) if isinstance(value, Decimal) else float(value)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.date32(), pa.timestamp("us"), pa.binary(), pa.list_(pa.int64())], ids=str
)
def test_values_that_are_no_numbers_are_refused(kind: pa.DataType, engine: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "t.parquet", pa.array([1]), pa.array([None], kind))
    with pytest.raises(eh.DataError, match=r"'v' holds .*not numbers"):
        found(eh.read(path, user="u", engine=engine))


def test_sums_saturate_and_never_raise(engine: str, tmp_path: Path) -> None:
    """Spark raises when 64 bits overflow; no table may make a query fail. The grid is made coarse enough to get there."""
    steep = Grid(low=0.0, high=1.0, origin=0.0, exponent=52)
    users: Sequence[int] = [0] + [1] * 2 + [2] * 3 + [3] * 10
    path = _write(tmp_path / "t.parquet", pa.array(users), pa.array([1.0] * len(users)))
    table = eh.read(path, user="u", engine=engine)
    assert found(table, grid=steep) == [(1, 2**52), (2, 2**53), (3, CEILING), (10, CEILING)]


@pytest.mark.parametrize("user", ["rows", "above_0", "user_0", "group", "select", "a b", 'a"b', "Ü"])
def test_a_user_column_may_have_any_name(user: str, engine: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({user: [1, 1, 2], "v": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet")
    table = eh.read(tmp_path / "t.parquet", user=user, engine=engine)
    assert found(table) == expected([(1, 1.0), (1, 2.0), (2, 3.0)], "presence")


def test_two_user_columns_name_one_person(engine: str, tmp_path: Path) -> None:
    users = [("a", "bc"), ("ab", "c"), ("a", None), (None, "c"), ("", ""), ("a", "bc")]
    first, second = (pa.array([user[index] for user in users], pa.string()) for index in (0, 1))
    pq.write_table(pa.table({"u": first, "w": second, "v": [1.0] * 6}), tmp_path / "t.parquet")
    table = eh.read(tmp_path / "t.parquet", user=["u", "w"], engine=engine)
    assert found(table) == expected([(user, 1.0) for user in users], "presence")


def test_the_user_column_may_be_the_value_column(engine: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1, 1, 2]}), tmp_path / "t.parquet")
    table = eh.read(tmp_path / "t.parquet", user="v", engine=engine)
    assert found(table) == expected([(1, 1), (1, 1), (2, 2)], "presence")
