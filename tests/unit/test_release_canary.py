"""Nothing read from a row appears in an error, a repr, a log or a traceback."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.session import Drafts
from evenhand.tables import Secret

CANARY = "canary-7f3a"
NUMBER = 48151623.42


@pytest.fixture
def silence(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the test prints and logs must hold no canary."""
    caplog.set_level(logging.DEBUG)
    yield
    said = capfd.readouterr()
    assert not _holds(said.out + said.err + caplog.text)


def _holds(text: str) -> bool:
    return CANARY in text or "48151623" in text or "48,151,623" in text


def _fails_quietly(work: Callable[[], Any]) -> None:
    """The work ends in an Evenhand error, and neither it nor anything chained to it holds the canary."""
    with pytest.raises(eh.EvenhandError) as caught:
        work()
    error: BaseException = caught.value
    assert not _holds("".join(traceback.format_exception(error)))
    chained = [error]
    while chained:
        one = chained.pop()
        assert not _holds(f"{one} {one!r} {one.args}")
        chained += [other for other in (one.__cause__, one.__context__) if other is not None]


def _ask(source: Any, **options: Any) -> Any:
    """Read and run a sum, as far as it goes."""
    draft = Drafts(eh.read(source, user="user", **options)).sum("v", bounds=(0, 1), epsilon=1, bounding=eh.TotalCap(1))
    assert draft.cost is not None
    return draft.run(eh.release.Receipt(draft.cost.epsilon, draft.cost.delta, "test"))


def _corrupt_parquet(folder: Path) -> Path:
    """The schema is whole, the pages are not."""
    pq.write_table(pa.table({"user": [CANARY] * 1000, "v": [NUMBER] * 1000}), folder / "t.parquet", compression="none")
    body = bytearray((folder / "t.parquet").read_bytes())
    body[4:60] = b"\xff" * 56
    (folder / "t.parquet").write_bytes(body)
    return folder / "t.parquet"


def _failing_relation(folder: Path) -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE rows AS SELECT '{CANARY}' AS user, '{CANARY}' AS text")
    return connection.sql("SELECT user, CAST(text AS DOUBLE) AS v FROM rows")


def _failing_expression(folder: Path) -> Any:
    backend = ibis.duckdb.connect()
    backend.con.execute(f"CREATE TABLE rows AS SELECT '{CANARY}' AS user, '{CANARY}' AS text")
    rows = backend.table("rows")
    return rows.select("user", v=rows.text.cast("float64"))


def _vanishing(folder: Path) -> Any:
    pq.write_table(pa.table({"user": [CANARY], "v": [NUMBER]}), folder / "t.parquet")
    backend = ibis.duckdb.connect()
    rows = backend.read_parquet(folder / "t.parquet")
    (folder / "t.parquet").unlink()
    return rows


FAILING: dict[str, Callable[[Path], Any]] = {
    "a failing lazy frame": lambda folder: pl.LazyFrame({"user": [CANARY]}).with_columns(v=pl.col("user").cast(pl.Float64)),
    "a corrupt file": _corrupt_parquet,
    "a failing relation": _failing_relation,
    "a failing expression": _failing_expression,
    "a file that vanished": _vanishing,
}  # fmt: skip


ODD: dict[str, Callable[[Path], Any]] = {
    "a mixed pandas column": lambda folder: pd.DataFrame({"user": [CANARY, 1], "v": [NUMBER, 1]}, dtype=object),
    "an unconvertible pandas column": lambda folder: pd.DataFrame({"user": [CANARY, object()], "v": [NUMBER, 1]}),
    "an integer beyond 64 bits": lambda folder: pd.DataFrame({"user": [CANARY] * 2, "v": [2**70 + int(NUMBER), 1]}),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_sources_are_read_by_rule_and_quote_nothing(kind: str, tmp_path: Path, silence: None) -> None:
    """Refusing them would tell that somebody's value is odd."""
    assert isinstance(_ask(ODD[kind](tmp_path)).value, float)


@pytest.mark.parametrize("kind", FAILING)
def test_failing_sources_quote_nothing(kind: str, tmp_path: Path, silence: None) -> None:
    source = FAILING[kind](tmp_path)
    _fails_quietly(lambda: _ask(source))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("t.parquet", f"PAR1{CANARY}"),
        ("t.json", f'[{{"user": "{CANARY}", "v": '),
        ("t.csv", f"user,v\r{CANARY},1\r"),
        ("t.csv.gz", CANARY),
    ],
)
def test_unreadable_files_quote_nothing(name: str, body: str, tmp_path: Path, silence: None) -> None:
    (tmp_path / name).write_text(body)
    _fails_quietly(lambda: _ask(tmp_path / name))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_failing_spark_queries_quote_nothing(spark: None, silence: None) -> None:
    """PySpark logs a failed query with the offending value unless it is told not to."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    frame = session.createDataFrame([(CANARY, CANARY)], "user string, text string")
    frame.createOrReplaceTempView("canaries")
    failing = session.sql("SELECT user, CAST(text AS DOUBLE) AS v FROM canaries")
    _fails_quietly(lambda: _ask(failing))


def test_text_where_numbers_are_expected_is_null_not_an_error(tmp_path: Path, silence: None) -> None:
    (tmp_path / "t.csv").write_text(f"user,v\n{CANARY},{CANARY}\n")
    assert isinstance(_ask(tmp_path / "t.csv").value, float)


def test_nothing_prints_what_it_holds(tmp_path: Path, silence: None) -> None:
    rows = pa.table({"user": [CANARY], "v": [NUMBER], "g": [CANARY]})
    pq.write_table(rows, tmp_path / "t.parquet")
    for source in (rows, tmp_path / "t.parquet", rows.to_pandas()):
        table = eh.read(source, user="user")
        session = eh.Session(table, eh.Ledger(tmp_path / "b.db", epsilon=10))
        draft = Drafts(table).sum("v", bounds=(0, 1), epsilon=1)
        preview = session.preview.sum("v", bounds=(0, 1), epsilon=1)
        released = session.sum("v", bounds=(0, 1), epsilon=1)
        for thing in (table, session, draft, preview, released, session.ledger, session.ledger.events, released.error):
            assert not _holds(f"{thing} {thing!r}")
        assert not _holds(released.to_html() + str(released.to_dict()) + str(preview.to_dict()))


def test_a_secret_keeps_its_mouth_shut() -> None:
    secret = Secret(NUMBER)
    assert not _holds(f"{secret} {secret!r} {secret:>20} {[secret]} {secret!s}")
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        vars(secret)


def test_a_query_that_names_a_column_wrongly_names_columns_only(silence: None) -> None:
    rows = pa.table({"user": [CANARY], "v": [NUMBER]})
    _fails_quietly(lambda: eh.read(rows, user="usr"))
    _fails_quietly(lambda: Drafts(eh.read(rows, user="user")).sum("w", bounds=(0, 1), epsilon=1))
    _fails_quietly(lambda: Drafts(eh.read(rows, user="user")).mean("user", bounds=(0, 1), epsilon=1))
