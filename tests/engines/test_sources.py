"""Everything that ``eh.read`` accepts gives the same integers."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
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
    "lazy polars": lambda folder: pl.from_arrow(ARROW).lazy(),
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


@pytest.mark.parametrize(
    "source",
    [None, 5, [1, 2], {"u": [1]}, object(), pd.Series([1]), b"t.parquet"],
    ids=lambda source: type(source).__name__,
)
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(eh.UsageError, match="can't be read; expected a path or glob"):
        eh.read(source, user="u")


def test_a_notebook_without_widgets_reads_tables() -> None:
    """DuckDB raises there when its progress bar is switched off."""
    script = Path(__file__).with_name("notebook.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "('u',)", done.stdout + done.stderr
