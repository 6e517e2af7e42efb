"""Everything that ``eh.read`` accepts gives the same integers."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import BOUNDS, expected, found

import evenhand as eh
from watch import integers

ROWS = [("a", 1.0), ("a", None), ("b", math.nan), ("b", math.inf), ("b", 0.1), (None, 3.0), ("c", -5.0)]
ARROW = pa.table({"u": pa.array([u for u, _ in ROWS], pa.string()), "v": pa.array([v for _, v in ROWS], pa.float64())})


def _relation(tmp_path: Path) -> Any:
    connection = duckdb.connect()
    connection.register("rows", ARROW)
    return connection.sql("SELECT * FROM rows")


def _file_relation(tmp_path: Path) -> Any:
    pq.write_table(ARROW, tmp_path / "t.parquet")
    return duckdb.connect().sql(f"SELECT * FROM '{tmp_path}/t.parquet'")


def _ibis_table(tmp_path: Path) -> Any:
    backend = ibis.duckdb.connect(tmp_path / "t.duckdb")
    backend.con.register("arrow", ARROW)
    backend.con.execute("CREATE TABLE rows AS SELECT * FROM arrow")
    return backend.table("rows")


def _path(tmp_path: Path) -> Any:
    pq.write_table(ARROW, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda folder: ARROW.to_pandas(),
    "pandas on Arrow": lambda folder: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with categories": lambda folder: ARROW.to_pandas().astype({"u": "category"}),
    "polars": lambda folder: pl.from_arrow(ARROW),
    "lazy polars": lambda folder: pl.LazyFrame(ARROW),
    "Arrow table": lambda folder: ARROW,
    "Arrow batch": lambda folder: ARROW.to_batches()[0],
    "Arrow reader": lambda folder: ARROW.to_reader(),
    "DuckDB relation": _relation,
    "DuckDB relation over a file": _file_relation,
    "Ibis table": _ibis_table,
    "Ibis expression": lambda folder: _ibis_table(folder).filter(ibis._.u.isnull() | (ibis._.u != "nobody")),
    "Ibis memtable": lambda folder: ibis.memtable(ARROW),
    "path": _path,
    "text path": lambda folder: str(_path(folder)),
}


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_integers(kind: str, relation: str, tmp_path: Path) -> None:
    table = eh.read(SOURCES[kind](tmp_path), user="u", protects=relation)
    assert found(table) == expected(ROWS, relation)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_serves_a_chosen_bound(kind: str, tmp_path: Path) -> None:
    """The choice keeps a per-user table in the engine for a while; not every source lets us write to its connection."""
    steps = integers(eh.read(SOURCES[kind](tmp_path), user="u"), lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1))
    assert steps == integers(eh.read(ARROW, user="u"), lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_spark_frame_runs_where_it_lives(spark: None) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    frame = session.createDataFrame(ROWS, "u string, v double")
    for relation in ("presence", "values"):
        table = eh.read(frame, user="u", protects=relation)
        assert table.engine.name == "spark"
        assert found(table) == expected(ROWS, relation)


@pytest.fixture
def postgres_rows(postgres_url: str) -> Any:
    return ibis.connect(postgres_url).create_table("rows", ARROW)


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_a_postgres_table_runs_where_it_lives(relation: str, postgres_rows: Any) -> None:
    table = eh.read(postgres_rows, user="u", protects=relation)
    assert table.engine.name == "postgres"
    assert found(table) == expected(ROWS, relation)


DECIMALS = [
    "1.5", "0.1", "1e400", "-1e400", "1e16000", "1e-400", "-1e-400", "1e-16000", "1e307", "NaN", "Infinity", "-Infinity", None,
]  # fmt: skip


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_decimals_beyond_doubles_on_postgres(relation: str, postgres_url: str) -> None:
    """Postgres raises at their cast to doubles; they are clamped, or zero, as text is, and NaN is null."""
    backend = ibis.connect(postgres_url)
    backend.raw_sql("CREATE TABLE wide (u int, v numeric)").close()
    values = ", ".join(f"({user}, {'NULL' if text is None else repr(text)})" for user, text in enumerate(DECIMALS))
    backend.raw_sql(f"INSERT INTO wide VALUES {values}").close()
    rows = [(user, None if text is None else float(text)) for user, text in enumerate(DECIMALS)]
    assert found(eh.read(backend.table("wide"), user="u", protects=relation)) == expected(rows, relation)


def test_an_error_inside_a_source_is_not_shown() -> None:
    """It may quote rows."""
    schema = pa.schema([("u", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise ValueError("row of Ann: 17")

    with pytest.raises(eh.DataError, match="can't be converted") as caught:
        eh.read(pa.RecordBatchReader.from_batches(schema, batches()), user="u")
    assert "Ann" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "source",
    [None, 5, [1, 2], {"u": [1]}, object(), pd.Series([1]), b"t.parquet"],
    ids=lambda source: type(source).__name__,
)
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(eh.UsageError, match="can't be read; expected a path or glob"):
        eh.read(source, user="u")


class _Odd:
    """An object that would rather not be looked at."""

    def __str__(self) -> str:
        raise AssertionError

    __repr__ = __eq__ = __hash__ = __float__ = __str__  # type: ignore[assignment]


OBJECTS: list[tuple[Any, str | None]] = [
    ("a", "a"), ("\ud800b\udfff", "b"), (b"c\xff", "c"), (None, None), (math.nan, None), (pd.NA, None), (pd.NaT, None), (np.nan, None),
    (7, "7"), (-(10**5000), "-inf"), (10**5000, "inf"), (True, "true"), (np.int8(3), "3"), (np.float32(0.5), "0.5"), (math.inf, "inf"), (0.1, "0.1"),
    (Decimal("10.00"), "10.00"), (Decimal("sNaN"), None), (datetime.date(2020, 2, 29), "2020-02-29"), (pd.Timestamp(2020, 2, 29), "2020-02-29T00:00:00"),
    (uuid.UUID(int=1), str(uuid.UUID(int=1))), ({"diagnosis": 1}, None), ([1], None), (object(), None), (_Odd(), None), (1j, None),
]  # fmt: skip


def _frames(objects: Sequence[Any]) -> dict[str, Any]:
    column = pd.Series(list(objects), dtype=object)
    frames: dict[str, Any] = {"pandas": pd.DataFrame({"u": range(len(column)), "x": column})}
    frames["polars"] = pl.DataFrame({"u": range(len(column)), "x": pl.Series(list(objects), dtype=pl.Object)})
    return frames


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_objects_are_text_one_by_one(kind: str) -> None:
    table = eh.read(_frames([value for value, _ in OBJECTS])[kind], user="u")
    rows = table.engine.fetch(table.expression.order_by("u")).reveal()
    assert rows["x"].to_pylist() == [text for _, text in OBJECTS]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_no_object_changes_what_is_shown_of_a_table(kind: str) -> None:
    shown = set()
    for value, _ in OBJECTS:
        table = eh.read(_frames([Decimal("1.00"), value])[kind], user="u")
        shown.add((repr(table), str(table.expression.schema())))
        assert len(found(table, "x")) <= 2
    assert len(shown) == 1


def test_categories_and_text_that_are_objects() -> None:
    texts = ["a", "\ud800b", None, "a"]
    mixed = pd.Categorical.from_codes([0, 1, -1, 0], pd.Index(["a", {"x": 1}["x"]], dtype=object))
    plain = pd.array(["a", "b", None, "a"], dtype=pd.StringDtype("python"))
    frame = pd.DataFrame({"u": range(4), "text": pd.Series(texts, dtype=object), "mixed": mixed, "plain": plain})
    table = eh.read(frame, user="u")
    rows = table.engine.fetch(table.expression.order_by("u")).reveal()
    assert rows["text"].to_pylist() == ["a", "b", None, "a"]
    assert rows["mixed"].to_pylist() == ["a", "1", None, "a"]
    assert rows["plain"].to_pylist() == ["a", "b", None, "a"]
    assert "mixed: text" in repr(table)
    assert "plain: string" in repr(table)


BYTES = [
    b"ok",
    b"secret\xff\xfe",
    b"\xe2\x82",
    b"a\xed\xa0\x80b",
    b"\xc3\xa9\x80",
    b"",
    b"\xf0\x9f\x98\x80\xf0\x9f\x98",
]


def _unchecked() -> pa.Table:
    return pa.table({"u": pa.array(BYTES, pa.binary()).view(pa.string()), "v": [1.0] * len(BYTES)})


def test_text_of_a_parquet_file_is_utf8(engine: str, tmp_path: Path) -> None:
    """Spark and Impala write what they are given; DuckDB refuses the file, and Arrow the query, because of one row."""
    pq.write_table(_unchecked(), tmp_path / "t.parquet")
    _assert_utf8(eh.read(tmp_path / "t.parquet", user="u", engine=engine))


def test_text_of_an_arrow_table_is_utf8() -> None:
    plain = _unchecked()
    encoded = pa.table({"u": plain["u"].combine_chunks().dictionary_encode(), "v": plain["v"]})
    for table in (plain, encoded):
        _assert_utf8(eh.read(table, user="u"))


def _assert_utf8(table: eh.Table) -> None:
    rows = table.engine.fetch(table.expression).reveal()
    assert Counter(rows["u"].to_pylist()) == Counter(text.decode("utf-8", "ignore") for text in BYTES)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_text_of_a_spark_frame_is_utf8(spark: None, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    pq.write_table(_unchecked(), tmp_path / "t.parquet")
    session = SparkSession.getActiveSession()
    assert session is not None
    _assert_utf8(eh.read(session.read.parquet(str(tmp_path / "t.parquet")), user="u"))


@pytest.mark.parametrize(
    "name", ["evenhand_group", "evenhand_key_0", "evenhand_user_0", "EVENHAND_weight", "evenhand_"]
)
@pytest.mark.parametrize("kind", SOURCES)
def test_names_of_columns_inside_queries_are_refused(name: str, kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    """A source's column of such a name would take the place of the one that a query adds."""
    monkeypatch.setitem(globals(), "ARROW", ARROW.append_column(name, pa.array([0, 5, -1, 0, 0, 0, 0])))
    with pytest.raises(eh.DataError, match=f"{name}.*rename"):
        eh.read(SOURCES[kind](tmp_path), user="u")


def test_a_notebook_without_widgets_reads_tables() -> None:
    """DuckDB raises there when its progress bar is switched off."""
    script = Path(__file__).with_name("notebook.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "('u',)", done.stdout + done.stderr
