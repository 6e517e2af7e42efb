"""Stored times that an engine's own types don't reach: no row may make a query fail."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import expected, found

import evenhand as eh

_ZONES = (None, "UTC", "America/New_York")
KINDS = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in _ZONES),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
]  # fmt: skip


def _stored(kind: pa.DataType) -> pa.Array:
    """A null, an ordinary time, and the ends of what can be stored, in no order."""
    ends = np.iinfo(np.int32 if kind.bit_width == 32 else np.int64)
    numbers = [3600, ends.max, ends.min, -1, ends.max - 1, ends.min + 1, ends.max // 1000, ends.min // 1000, 3600]
    buffer = np.array([0, *numbers], ends.dtype).tobytes()
    return pa.Array.from_buffers(kind, 1 + len(numbers), [pa.py_buffer(b"\xfe\xff"), pa.py_buffer(buffer)])


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., eh.Session]:
    ledgers = itertools.count()

    def session(source: Any, user: str, engine: str | None = None) -> eh.Session:
        ledger = eh.Ledger(tmp_path / f"{next(ledgers)}.db", epsilon=1000, delta=0.01)
        return eh.Session(eh.read(source, user=user, engine=engine), ledger)

    return session


def _assert_answers(ask: Callable[..., eh.Session], source: Any, engine: str | None = None) -> None:
    """As the user, and as the key of groups."""
    if isinstance(source, pa.Table) and "duration" in str(source["t"].type):
        # DuckDB reads a duration as an interval, and intervals that are equal may be spelled differently.
        with pytest.raises(eh.DataError, match="may be spelled differently"):
            ask(source, "t", engine)
    else:
        ask(source, "t", engine).count(epsilon=1)
    ask(source, "u", engine).count(by="t", epsilon=1, delta=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_stored_time_of_an_arrow_table(kind: pa.DataType, ask: Any) -> None:
    times = _stored(kind)
    _assert_answers(ask, pa.table({"t": times, "u": range(len(times))}))
    _assert_answers(ask, pa.table({"t": times.dictionary_encode(), "u": range(len(times))}))


def test_times_within_range_are_themselves(ask: Any) -> None:
    moment = datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.UTC)
    frame = pd.DataFrame({"u": range(100), "t": pd.Series([moment] * 100, dtype="datetime64[s, UTC]")})
    answer = ask(frame, "u").count(by="t", keys=[moment], epsilon=100).value
    assert abs(answer["count"][0] - 100) < 5
    table = eh.read(pa.table({"u": pa.array([1, 2, None, 1, 10**9], pa.timestamp("ms")), "v": [1.0] * 5}), user="u")
    assert found(table) == expected([(1, 1), (2, 1), (1, 1), (3, 1)], "presence")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_any_stored_millisecond_of_a_parquet_file_on_spark(
    zone: str | None, spark: None, ask: Any, tmp_path: Path
) -> None:
    times = _stored(pa.timestamp("ms", zone))
    pq.write_table(pa.table({"t": times, "u": range(len(times))}), tmp_path / "t.parquet")
    _assert_answers(ask, tmp_path / "t.parquet", "spark")
    moment = datetime.datetime(2020, 2, 29, 12, 0, 0, 1000)
    some = pa.array([moment, None, datetime.datetime(1, 1, 1)], pa.timestamp("ms", zone))
    pq.write_table(pa.table({"t": some, "u": range(3)}), tmp_path / "s.parquet")
    rows = eh.read(tmp_path / "s.parquet", user="u", engine="spark").expression
    shown = rows.t.cast("string").execute()
    assert sorted(shown.dropna()) == ["0001-01-01 00:00:00", "2020-02-29 12:00:00.001"]
    assert shown.isna().sum() == 1
