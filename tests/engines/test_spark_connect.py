"""Frames of a Spark Connect session: stored rows are read, with the same integers as elsewhere; all else is refused.

One process of its own, because a session of Connect changes what PySpark is for the rest of a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import expected, found

import evenhand as eh
from evenhand.tables.engines.spark_connect import require_stored

ROWS = [("a", 1.0), ("a", None), ("b", 0.1), (None, 3.0), ("c", -5.0), ("c", float("nan")), ("c", 7.5)]
PUBLIC = pa.table({"u": ["a", "c"], "kind": [1, 2]})


class Message(SimpleNamespace):
    """A message of the protocol, as far as it is looked at."""

    def WhichOneof(self, _: str) -> str:  # noqa: N802 - the protocol's name
        return str(self.which)


def frame(which: str = "data_source", rel: str = "read", streaming: bool = False, **source: Any) -> Any:
    plain = {
        "format": "parquet",
        "paths": ["x.parquet"],
        "schema": "",
        "options": {},
        "predicates": [],
        "source_name": "",
    }
    named = Message(unparsed_identifier="t", options=source.get("options", {}))
    read = Message(which=which, data_source=Message(**(plain | source)), named_table=named, is_streaming=streaming)
    root = Message(root=Message(which=rel, read=read))
    catalog = SimpleNamespace(getTable=lambda _: SimpleNamespace(tableType=source.get("kind", "MANAGED")))
    rows = [
        {"col_name": "Provider", "data_type": "a column"},
        {"col_name": "Provider", "data_type": source.get("provider", "PARQUET")},
    ]
    session = SimpleNamespace(client=None, catalog=catalog, sql=lambda _: SimpleNamespace(collect=lambda: rows))
    return SimpleNamespace(sparkSession=session, _plan=SimpleNamespace(to_proto=lambda _: root))


def test_stored_rows_are_taken() -> None:
    require_stored(frame())
    require_stored(frame("named_table"))


@pytest.mark.parametrize(
    "given",
    [
        {"rel": "sample"},
        {"rel": "sql"},
        {"rel": "extension"},
        {"streaming": True},
        {"format": "csv"},
        {"format": "jdbc"},
        {"format": ""},
        {"paths": []},
        {"schema": "u int"},
        {"options": {"modifiedBefore": "2020"}},
        {"predicates": ["u > 1"]},
        {"source_name": "x"},
        {"which": "named_table", "kind": "VIEW"},
        {"which": "named_table", "kind": "TEMPORARY"},
        {"which": "named_table", "options": {"versionAsOf": "1"}},
        {"which": "named_table", "provider": "jdbc"},
    ],
    ids=str,
)
def test_what_is_more_than_stored_rows_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(eh.EngineError, match=r"Spark Connect session and can't be used.*spark\.read\.parquet"):
        require_stored(frame(**given))


def views(table: eh.Table) -> list[Any]:
    """The integers of some views."""
    _ = eh._
    return [
        found(table.where(_.v > -6).derive(half=_.v / 2).per_user(v=_.half.sum())),
        found(table.window(order_by="v", w=_.v.lag()), "w"),
        found(table.join(eh.read_public(PUBLIC), on="u")),
    ]


def test_a_real_session(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect is NOT tested here: install evenhand[spark-connect]")
    users, values = zip(*ROWS, strict=True)
    rows = pa.table({"u": pa.array(users, pa.string()), "v": pa.array(values, pa.float64())})
    pq.write_table(rows, tmp_path / "rows.parquet")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, __file__],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    exact = [expected(ROWS, "presence"), *views(eh.read(tmp_path / "rows.parquet", user="u"))]
    assert answers["integers"] == [[list(user) for user in each] for each in exact]
    assert answers["accepted"] == []
    assert answers["released"] == ["number of rows", "mean"]


def main() -> None:
    """What the process of `test_a_real_session` does, in a folder with one file; prints a line of JSON."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    rows = spark.read.parquet(str(Path("rows.parquet").absolute()))
    table = eh.read(rows, user="u")
    rows.write.saveAsTable("kept")
    spark.sql("CREATE VIEW sampled AS SELECT * FROM kept WHERE rand() < 0.5")
    more: dict[str, Any] = {
        "filter": rows.where("v > 1"),
        "sample": rows.sample(0.5),
        "sql": spark.sql("SELECT * FROM kept"),
        "view": spark.table("sampled"),
        "union": rows.union(rows),
        "path": "rows.parquet",
    }
    accepted = []
    for name, source in more.items():
        try:
            eh.read(source, user="u", engine="spark" if name == "path" else None)
            accepted.append(name)
        except eh.EngineError as refused:
            if "Spark Connect" not in str(refused):
                raise
    session = eh.Session(eh.read(spark.table("kept"), user="u"), eh.Ledger("b.db", epsilon=2))
    released = [session.count(epsilon=1).statistic, session.mean("v", bounds=(0, 1), epsilon=1).statistic.split()[0]]
    print(json.dumps({"integers": [found(table), *views(table)], "accepted": accepted, "released": released}))


if __name__ == "__main__":
    main()
