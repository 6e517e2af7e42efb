"""A source whose rows are not determined by what is stored is refused when it is opened; one that only looks like it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh

UNSTABLE = {
    "random in a filter": "SELECT * FROM t WHERE random() < 0.5",
    "random behind a macro": "SELECT *, shaken(v) AS w FROM t",
    "random in a view of a view": "SELECT * FROM over_chance",
    "random in a common table expression": "WITH c AS (SELECT u, v, uuid() AS w FROM t) SELECT * FROM c",
    "random in a subquery": "SELECT * FROM t WHERE v > (SELECT random())",
    "a sample": "SELECT * FROM t USING SAMPLE 10%",
    "a sample of a table": "SELECT * FROM t TABLESAMPLE 10%",
    "the current time": "SELECT *, now() AS w FROM t",
    "the current date, as a name": "SELECT *, current_date AS w FROM t",
    "row numbers": "SELECT *, row_number() OVER () AS w FROM t",
    "the row before": "SELECT *, lag(v) OVER (PARTITION BY u) AS w FROM t",
    "row ids": "SELECT *, rowid AS w FROM t",
    "rows side by side": "SELECT t.* FROM t POSITIONAL JOIN (SELECT v AS w FROM t)",
    "a running sum": "SELECT u, sum(v) OVER (ROWS UNBOUNDED PRECEDING) AS v FROM t",
    "the first of a group": "SELECT u, first(v) AS v FROM t GROUP BY u",
    "a list": "SELECT u, list(v)[1] AS v FROM t GROUP BY u",
    "one row of each": "SELECT DISTINCT ON (u) * FROM t",
    "an age": "SELECT u, age(TIMESTAMP '2020-01-01') AS v FROM t",
    "a view, its name in other letters": "SELECT * FROM CHANCE",
    "one overload of a macro": "SELECT u, twofold(v) AS v FROM t",
    "a view of a schema": "SELECT * FROM other.twin",
    "a limit": "SELECT * FROM t LIMIT 3",
    "a limit in a view": "SELECT * FROM few",
    "a file twice": "SELECT a.* FROM '{file}' a JOIN '{file}' b USING (u)",
    "a file twice through a common table expression": (
        "WITH c AS (SELECT * FROM read_parquet('{file}')) SELECT a.* FROM c a JOIN c b USING (u)"
    ),
    "a file twice through a view": "SELECT a.* FROM on_file a JOIN on_file b USING (u)",
}
STABLE = {
    "a table": "SELECT * FROM t",
    "a table twice": "SELECT a.* FROM t a JOIN (SELECT u, count(*) FROM t GROUP BY u) b USING (u)",
    "a view": "SELECT * FROM plain",
    "a macro": "SELECT u, doubled(v) AS v FROM t",
    "a sum of a user": "SELECT *, sum(v) OVER (PARTITION BY u) AS w FROM t",
    "a file": "SELECT * FROM '{file}'",
    "two files": "SELECT a.* FROM '{file}' a JOIN '{other}' b USING (u)",
    "a name in quotes": "SELECT *, 'random() LIMIT 5 now()' AS note FROM t",
    "a rank that has no ties": "SELECT *, rank() OVER (PARTITION BY u ORDER BY v) AS w FROM t",
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    for name in ("file", "other"):
        pq.write_table(pa.table({"u": ["a", "b"], "v": [1.0, 2.0]}), tmp_path / f"{name}.parquet")
    with duckdb.connect() as opened:
        for statement in (
            "CREATE TABLE t AS SELECT 'a' AS u, 1.0::DOUBLE AS v",
            "CREATE MACRO shaken(x) AS x + random()",
            "CREATE MACRO doubled(x) AS x * 2",
            "CREATE MACRO twofold(x) AS x + random(), (x, y) AS x + y",
            "CREATE SCHEMA other",
            "CREATE VIEW other.twin AS SELECT * FROM t WHERE random() < 0.5",
            "CREATE VIEW chance AS SELECT * FROM t WHERE random() < 0.5",
            "CREATE VIEW over_chance AS SELECT * FROM chance",
            "CREATE VIEW few AS SELECT * FROM t LIMIT 3",
            "CREATE VIEW plain AS SELECT * FROM t WHERE v > 0",
            f"CREATE VIEW on_file AS SELECT * FROM '{tmp_path}/file.parquet'",
        ):
            opened.execute(statement)
        yield opened


def opened(connection: duckdb.DuckDBPyConnection, kind: str, sql: str, folder: Path) -> eh.Table:
    sql = sql.format(file=folder / "file.parquet", other=folder / "other.parquet")
    if kind == "relation":
        return eh.read(connection.sql(sql), user="u")
    connection.execute(f"CREATE VIEW asked AS {sql}")
    return eh.read(ibis.duckdb.from_connection(connection).table("asked"), user="u")


@pytest.mark.parametrize("kind", ["relation", "ibis"])
@pytest.mark.parametrize("case", UNSTABLE)
def test_rows_that_change_are_refused(connection: Any, kind: str, case: str, tmp_path: Path) -> None:
    with pytest.raises(eh.UsageError, match=r"depends on .* store its result"):
        opened(connection, kind, UNSTABLE[case], tmp_path)


@pytest.mark.parametrize("kind", ["relation", "ibis"])
@pytest.mark.parametrize("case", STABLE)
def test_rows_that_stay_are_not(connection: Any, kind: str, case: str, tmp_path: Path) -> None:
    table = opened(connection, kind, STABLE[case], tmp_path)
    session = eh.Session(table, eh.Ledger(tmp_path / "b.db", epsilon=1))
    session.users(epsilon=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.sample(0.5),
        lambda t: t.mutate(w=ibis.random()),
        lambda t: t.mutate(w=ibis.now()),
        lambda t: t.limit(5),
        lambda t: t.mutate(w=ibis.row_number()),
        lambda t: t.mutate(w=t.v.lag()),
        lambda t: t.group_by("u").aggregate(v=t.v.first()),
    ],
)
def test_ibis_expressions_that_change_are_refused(connection: Any, change: Any) -> None:
    with pytest.raises(eh.UsageError, match="depends on"):
        eh.read(change(ibis.duckdb.from_connection(connection).table("t")), user="u")


def test_tables_of_another_duckdb_file_are_one_snapshot(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "own.duckdb") as own:
        own.execute("CREATE TABLE t AS SELECT 'a' AS u")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path}/own.duckdb' AS own")
        eh.read(connection.sql("SELECT * FROM own.t"), user="u")


def test_postgres(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in (
            "CREATE TABLE t (u text, v float8)",
            "CREATE VIEW chance AS SELECT * FROM t WHERE random() < 0.5",
            "CREATE VIEW over_chance AS SELECT * FROM chance",
            "CREATE VIEW clock AS SELECT *, clock_timestamp() AS w FROM t",
            "CREATE VIEW today AS SELECT *, current_date AS w FROM t",
            "CREATE VIEW few AS SELECT * FROM t LIMIT 3",
            "CREATE VIEW sampled AS SELECT * FROM t TABLESAMPLE BERNOULLI (10)",
            "CREATE VIEW numbered AS SELECT *, row_number() OVER () AS w FROM t",
            "CREATE FUNCTION shaken(x float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN x; END'",
            "CREATE VIEW shaken AS SELECT u, shaken(v) AS v FROM t",
            "CREATE VIEW listed AS SELECT u, (array_agg(v))[1] AS v FROM t GROUP BY u",
            "CREATE VIEW plain AS SELECT a.u, a.v AS \"limit\", upper(a.u) AS w, 'random() LIMIT' AS note FROM t a JOIN t b USING (u)",
            "CREATE FOREIGN DATA WRAPPER nowhere",
            "CREATE SERVER elsewhere FOREIGN DATA WRAPPER nowhere",
            "CREATE FOREIGN TABLE far (u text, v float8) SERVER elsewhere",
            "CREATE VIEW on_far AS SELECT * FROM far",
            "CREATE TABLE parts (u text, v float8) PARTITION BY LIST (u)",
            "CREATE FOREIGN TABLE far_part PARTITION OF parts FOR VALUES IN ('a') SERVER elsewhere",
        ):
            connection.execute(statement)
    backend = ibis.connect(postgres_url)
    for stable in ("t", "plain"):
        eh.read(backend.table(stable), user="u")
    names = (
        "chance",
        "over_chance",
        "clock",
        "today",
        "few",
        "sampled",
        "numbered",
        "shaken",
        "far",
        "on_far",
        "parts",
    )
    for unstable in names:
        with pytest.raises(eh.UsageError, match="depends on"):
            eh.read(backend.table(unstable), user="u")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark(spark: None) -> None:
    from pyspark.sql import SparkSession, functions

    session = SparkSession.getActiveSession()
    assert session is not None
    frame = session.createDataFrame([("a", 1.0), ("b", 2.0)], "u string, v double")
    eh.read(frame.withColumn("w", functions.upper("u")).join(frame.groupBy("u").count(), "u"), user="u")
    for unstable in (
        frame.sample(0.5),
        frame.limit(1),
        frame.dropDuplicates(["u"]),
        frame.groupBy("u").agg(functions.collect_list("v")[0].alias("v")),
        frame.withColumn("w", functions.rand()),
        frame.withColumn("w", functions.current_timestamp()),
        frame.withColumn("w", functions.monotonically_increasing_id()),
        frame.withColumn("w", functions.expr("uuid()")),
        frame.withColumn("w", functions.expr("row_number() OVER (PARTITION BY u ORDER BY 1)")),
    ):
        with pytest.raises(eh.UsageError, match="depends on"):
            eh.read(unstable, user="u")


def test_a_frame_that_a_connection_knows_is_read() -> None:
    import pandas as pd

    with duckdb.connect() as connection:
        connection.register("frame", pd.DataFrame({"u": ["a", "b"]}))
        for source in (connection.sql("SELECT * FROM frame"), ibis.duckdb.from_connection(connection).table("frame")):
            eh.read(source, user="u")


def test_a_postgres_connection_that_may_only_read_is_refused(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (u text)")
    backend = ibis.connect(postgres_url)
    backend.raw_sql("SET default_transaction_read_only = on").close()
    backend.con.commit()
    with pytest.raises(eh.UsageError, match="temporary tables"):
        eh.read(backend.table("t"), user="u")


def test_a_relation_that_public_keys_cannot_reach_is_refused() -> None:
    connection = duckdb.connect(config={"enable_external_access": "false"})
    with pytest.raises(eh.UsageError, match="external access"):
        eh.read(connection.sql("SELECT 'a' AS u"), user="u")
