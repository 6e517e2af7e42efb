"""Public keys find the rows that have them, or are refused before anything is paid."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from watch import integers

UUID = uuid.UUID(int=5)
DAY = datetime.date(2024, 1, 31)
MOMENT = datetime.datetime(2024, 1, 31, 1, 2, 3, 400000)
USERS = 5


def arrow(values: list[Any], kind: Any) -> Any:
    """A table in which everyone has the first key and one user the second."""
    if kind == pa.uuid():
        keys = pa.ExtensionArray.from_storage(kind, pa.array([value.bytes for value in values], pa.binary(16)))
    else:
        keys = pa.array(values, kind)
    places = pa.array([0] * USERS + [1])
    return pa.table({"u": range(USERS + 1), "k": keys.take(places)})


def counted(source: Any, keys: list[Any], engine: str | None = None, **options: Any) -> list[int]:
    """How many users each key finds, in steps of the count's grid."""
    asked = {"by": "k", "keys": keys, "epsilon": 1, "bounding": eh.SmoothWeights(1), **options}
    return integers(eh.read(source, user="u", engine=engine), lambda ask: ask.count(**asked))[0]


def found_first(source: Any, keys: list[Any], engine: str | None = None) -> bool:
    """Whether of two keys the first finds everyone and the second one user."""
    first, second = counted(source, keys, engine)
    return second > 0 and first == USERS * second


FOUND: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "uuid": (pa.uuid(), [UUID, uuid.UUID(int=6)], [UUID, str(uuid.UUID(int=6)).upper()]),
    "int8": (pa.int8(), [7, -128], [7.0, "-128"]),
    "float32": (pa.float32(), [0.1, -0.0], ["0.1", 0]),
    "decimal": (pa.decimal128(4, 1), [Decimal("1.5"), Decimal(-2)], [1.5, "-2.00"]),
    "time": (pa.time64("us"), [MOMENT.time(), datetime.time(1)], [MOMENT.time(), "01:00:00"]),
    "date": (pa.date32(), [DAY, datetime.date(1, 1, 1)], [pd.Timestamp(DAY), "0001-01-01"]),
    "timestamp": (pa.timestamp("ms"), [MOMENT, datetime.datetime(1970, 1, 1)], [np.datetime64(MOMENT, "ns"), "1970-01-01"]),
    "text": (pa.string(), ["7", "2024-01-31"], [7, DAY]),
    "binary": (pa.binary(), [b"ab", b"\xff"], ["ab", b"\xff"]),
    "interval": (pa.duration("us"), [datetime.timedelta(1), datetime.timedelta(2)], ["24:00:00", "48:00:00"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", FOUND)
def test_a_key_finds_its_rows(kind: str) -> None:
    dtype, values, keys = FOUND[kind]
    assert found_first(arrow(values, dtype), keys)


OBJECTS: list[list[Any]] = [
    [True, False], [1.5, -0.25], [MOMENT, DAY], [UUID, "a"], [7, "b"], [np.float64(2.5), b"bytes"], [MOMENT.time(), None, 3],
]  # fmt: skip


@pytest.mark.parametrize("values", OBJECTS, ids=str)
def test_a_python_object_finds_itself(values: list[Any]) -> None:
    first, second = values[0], values[-1]
    frame = pd.DataFrame({"u": range(USERS + 1), "k": pd.Series([first] * USERS + [second], dtype=object)})
    assert found_first(frame, [first, second])


REFUSED: dict[str, tuple[Any, list[Any], str]] = {
    "beyond int8": (pa.int8(), [300], "300, which the column 'k' of type int8 can't hold"),
    "beyond int64": (pa.int64(), [7, 10**30], "10000.* can't hold"),
    "beyond float32": (pa.float32(), [1e300], "can't hold"),
    "fraction": (pa.int64(), [7.5], "7.5, which is no int64"),
    "too many digits": (pa.decimal128(4, 1), ["1.5", "1.55"], "1.55.* can't hold"),
    "too large": (pa.decimal128(4, 1), [10**9], "can't hold"),
    "decimal NaN": (pa.decimal128(4, 1), ["NaN"], "no decimal"),
    "decimal infinity": (pa.decimal128(4, 1), ["Infinity"], "can't hold"),
    "float NaN": (pa.float64(), ["nan"], "no float64"),
    "missing": (pa.float64(), [pd.NA], "missing value"),
    "no uuid": (pa.uuid(), ["nonsense"], "no uuid"),
    "surrogate": (pa.string(), ["a\ud800"], "text that stands there"),
    "truth as text": (pa.string(), [True], "text that stands there"),
    "decimal as text": (pa.string(), [Decimal("1.5")], "text that stands there"),
    "nanoseconds": (pa.timestamp("ns"), ["2024-01-31 00:00:00.000000001"], "no timestamp"),
    "beyond nanoseconds": (pa.timestamp("ns"), ["0001-01-01"], "can't hold"),
    "time of a day": (pa.date32(), [MOMENT], "no date"),
    "short hour": (pa.time64("us"), ["1:02:03.000004"], "no time"),
    "timedelta": (pa.duration("us"), [datetime.timedelta(1)], "text that a release by this column shows"),
    "same float32": (pa.float32(), [0.1, 0.10000000149011612], "more than once"),
    "same moment": (pa.timestamp("us"), [MOMENT, MOMENT.replace(tzinfo=datetime.UTC)], "more than once"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_key_that_cannot_be_found_is_refused_before_the_debit(case: str, tmp_path: Path) -> None:
    kind, keys, message = REFUSED[case]
    keys_column = pa.array([None], pa.binary(16)).cast(kind) if kind == pa.uuid() else pa.array([None], kind)
    session = eh.Session(
        eh.read(pa.table({"u": [1], "k": keys_column}), user="u"), eh.Ledger(tmp_path / "l.db", epsilon=1)
    )
    with pytest.raises(eh.UsageError, match=message):
        session.count(by="k", keys=keys, epsilon=1)
    assert session.ledger.remaining.epsilon == 1


def test_a_decimal_has_several_spellings_among_objects() -> None:
    frame = pd.DataFrame({"u": [1], "k": pd.Series([Decimal("1.50")], dtype=object)})
    with pytest.raises(eh.UsageError, match="text that stands there"):
        counted(frame, [Decimal("1.5")])


def test_the_label_of_the_rest_is_no_key() -> None:
    with pytest.raises(eh.UsageError, match="same label"):
        counted(arrow(["a", "other"], pa.string()), ["a", "other"], other="other")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("kind", ["float32"])
def test_a_key_finds_its_rows_on_spark(kind: str, spark: None, tmp_path: Path) -> None:
    dtype, values, keys = FOUND[kind]
    pq.write_table(arrow(values, dtype), tmp_path / "t.parquet")
    assert found_first(tmp_path / "t.parquet", keys, engine="spark")


POSTGRES: dict[str, tuple[list[str], list[Any]]] = {
    "uuid": ([str(UUID), str(uuid.UUID(int=6))], [UUID, str(uuid.UUID(int=6))]),
    "numeric": (["1.50", "12345678901234567890123456789.012345"], [1.5, "12345678901234567890123456789.0123450"]),
    "real": (["0.1", "-0"], [0.1, 0.0]),
    "timetz": (["01:02:03+02:00", "01:02:03.4-05:30"], ["01:02:03+02:00", "01:02:03.4-05:30"]),
    "inet": (["10.0.0.1", "10.0.0.1/8"], ["10.0.0.1", "10.0.0.1/8"]),
}


def in_postgres(url: str, kind: str, values: list[str], counts: tuple[int, int] = (USERS, 1)) -> Any:
    connection = ibis.connect(url.replace("postgresql://", "postgres://"))
    keys = [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
    rows = ", ".join(f"({user}, '{key}'::{kind})" for user, key in enumerate(keys))
    with connection._safe_raw_sql(f"CREATE TABLE t (u bigint, k {kind}); INSERT INTO t VALUES {rows}"):
        pass
    return connection.table("t")


@pytest.mark.parametrize("kind", POSTGRES)
def test_a_key_finds_its_rows_on_postgres(kind: str, postgres_url: str) -> None:
    values, keys = POSTGRES[kind]
    assert found_first(in_postgres(postgres_url, kind, values), keys)


@pytest.mark.parametrize("kind", ["numeric", "numeric(10, 2)"])
def test_not_a_number_is_no_key_and_no_user_on_postgres(kind: str, postgres_url: str, tmp_path: Path) -> None:
    source = in_postgres(postgres_url, kind, ["1.5", "NaN"], counts=(50, 50))
    ledgers = [eh.Ledger(tmp_path / f"{name}.db", epsilon=100, delta=0.1) for name in ("selected", "public")]
    secret = eh.Session(eh.read(source, user="u"), ledgers[0])
    selected = secret.count(by="k", epsilon=50, delta="0.01", groups_per_user=1)
    known = eh.Session(eh.read(source, user="u", protects="values", public=["k"]), ledgers[1])
    public = known.count(by="k", epsilon=1)
    assert selected.value["k"].tolist() == public.value["k"].tolist() == [Decimal("1.5")]
    assert integers(eh.read(source, user="k"), lambda ask: ask.users(epsilon=1)) == [[1]]
