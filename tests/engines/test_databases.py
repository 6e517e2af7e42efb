"""Tables of databases: a DuckDB file or connection, a Postgres URL; and folders and files that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pytest
from reference import expected, found

import evenhand as eh
from evenhand.session import Drafts
from watch import integers

ROWS = [("a", 1.0), ("a", None), ("b", 0.1), (None, 3.0), ("c", -5.0)]
ARROW = pa.table({"u": pa.array([u for u, _ in ROWS], pa.string()), "v": pa.array([v for _, v in ROWS], pa.float64())})
Source = Callable[..., eh.Table]


def fill(connection: Any) -> None:
    connection.register("arrow", ARROW)
    connection.execute("CREATE TABLE sales AS SELECT * FROM arrow; CREATE SCHEMA shop.shop")
    connection.execute("CREATE TABLE shop.shop.visits AS FROM sales")
    connection.execute("CREATE VIEW seen AS SELECT * FROM sales; CREATE VIEW few AS SELECT * FROM sales LIMIT 2")
    connection.unregister("arrow")


@pytest.fixture(params=["file", "connection", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """What reads a table by its name."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        backend = ibis.connect(url)
        backend.create_table("sales", ARROW)
        for statement in (
            "CREATE SCHEMA shop",
            "CREATE TABLE shop.visits AS SELECT * FROM sales",
            "CREATE VIEW seen AS SELECT * FROM sales",
            "CREATE VIEW few AS SELECT * FROM sales LIMIT 2",
        ):
            backend.raw_sql(statement)
        backend.con.commit()
        return lambda name=None, **more: eh.read(url, user="u", table=name, **more)
    connection = duckdb.connect(tmp_path / "shop.duckdb")
    fill(connection)
    if request.param == "connection":
        return lambda name=None, **more: eh.read(connection, user="u", table=name, **more)
    connection.close()
    return lambda name=None, **more: eh.read(tmp_path / "shop.duckdb", user="u", table=name, **more)


def test_a_table_of_a_database(source: Source) -> None:
    for name in ("sales", "shop.visits", "seen"):
        assert found(source(name)) == expected(ROWS, "presence")


def test_two_tables_of_a_database_can_be_joined(source: Source, request: pytest.FixtureRequest) -> None:
    if "connection" in request.node.name:
        pytest.skip("relations of a DuckDB connection share none that could be seen")
    one, other = source("sales"), source("shop.visits").derive(w="v + 1").select("w")
    assert one.join(other).columns == ("u", "v", "w")


def test_a_query_is_read_as_the_view_that_it_means(source: Source, request: pytest.FixtureRequest) -> None:
    assert found(source(query="SELECT * FROM shop.visits AS x WHERE x.v < 9 OR x.v IS NULL")) == expected(
        ROWS, "presence"
    )
    text = "WITH a AS (SELECT v + 1 AS w FROM sales WHERE v > -9) SELECT SUM(w) AS w, COUNT(*) AS n FROM a GROUP BY u HAVING COUNT(*) > 0"
    view = source(query=text, columns={"w": eh.Column(bounds=(-5, 5))})
    same = source("sales").where("v > -9").derive(w="v + 1").per_user(w="sum(w)", n="count(*)")
    sums = [integers(each, lambda ask: ask.sum("w", bounds=(-5, 5), epsilon=1)) for each in (view, same)]
    assert sums[0] == sums[1]
    assert view.facts["w"].bounds == (-5, 5)
    if "connection" not in request.node.name:
        assert source(
            query="SELECT a.v FROM sales a JOIN (SELECT COUNT(*) AS n FROM seen GROUP BY u) b USING (u)"
        ).columns == ("u", "v")


NO_VIEWS = {
    "SELECT v FROM few": "limited number of rows",
    "SELECT v FROM sales LIMIT 2": "LIMIT inside",
    "SELECT v FROM sales ORDER BY v": "ORDER BY inside",
    "SELECT v, COUNT(*) AS n FROM sales GROUP BY v": r"GROUP BY v \(line 1, column 45\)",
    "SELECT AVG(v) AS m FROM sales": "rows of all users",
    "SELECT v FROM sales WHERE v > random()": "RANDOM",
    "SELECT v FROM pg_sleep(9)": "by its name",
    "SELECT v FROM sale": "Did you mean 'sales'",
    "DROP TABLE sales": "not one SELECT",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) v FROM sales": "for questions",
}


def test_a_query_that_is_no_view_is_refused(source: Source) -> None:
    for text, says in NO_VIEWS.items():
        with pytest.raises(eh.EvenhandError, match=says):
            source(query=text)
    with pytest.raises(eh.UsageError, match="in the place of table"):
        source("sales", query="SELECT v FROM sales")


def test_a_name_that_is_wrong_or_missing(source: Source) -> None:
    with pytest.raises(eh.DataError, match="Did you mean 'sales'"):
        source("sale")
    with pytest.raises(eh.UsageError, match=r"which table.*'sales'"):
        source(None)


def test_a_view_that_is_not_a_function_of_stored_rows_is_refused(source: Source) -> None:
    with pytest.raises(eh.UsageError, match="limited number of rows"):
        source("few")


def test_a_database_that_is_written_to(tmp_path: Path) -> None:
    """Never read beside a writer that it can't be kept apart from; the writer's own connection is read as it stands."""
    writer = duckdb.connect(tmp_path / "shop.duckdb")
    fill(writer)
    with pytest.raises(eh.DataError, match="can't be opened for reading"):
        eh.read(tmp_path / "shop.duckdb", user="u", table="sales")
    table = eh.read(writer, user="u", table="sales")
    writer.execute("BEGIN; INSERT INTO sales VALUES ('d', 2.0)")
    assert found(table) == expected([*ROWS, ("d", 2.0)], "presence")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"source": "no.duckdb", "table": "t"}, "there is no file"),
        ({"source": "text.duckdb", "table": "t"}, "can't be opened for reading"),
        ({"source": "rows.csv", "table": "t"}, "is for databases"),
        ({"source": "shop.duckdb", "table": "t", "engine": "spark"}, "leave it out"),
        ({"source": "shop.duckdb", "table": "t", "columns": ["u"]}, "are for files"),
        ({"source": "postgresql://secret:hunter2@127.0.0.1:1/none", "table": "t"}, "can't be opened"),
    ],
)
def test_what_can_not_be_opened(
    given: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.duckdb").write_text("no database at all" * 1000)
    (tmp_path / "rows.csv").write_text("u,v\na,1\n")
    with pytest.raises(eh.EvenhandError, match=says) as error:
        eh.read(user="u", **given)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(("inside", "kind"), [("_delta_log/0.json", "Delta"), ("metadata/v1.metadata.json", "Iceberg")])
def test_folders_whose_files_hold_deleted_rows_are_refused(inside: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / inside).parent.mkdir()
    (tmp_path / inside).write_text("{}")
    pd.DataFrame({"u": [1], "v": [2.0]}).to_parquet(tmp_path / "part.parquet")
    (tmp_path / "data").mkdir()
    pd.DataFrame({"u": [1], "v": [2.0]}).to_parquet(tmp_path / "data" / "part.parquet")
    for path in (".", "part.parquet", "*.parquet", "data/*.parquet"):
        with pytest.raises(eh.UsageError, match=f"{kind} format"):
            eh.read(tmp_path / path, user="u")


FIRST = {"u": [1, 2], "v": [1.5, 2.5]}


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ({"u": [3]}, "lacks the column 'v'"),
        ({"u": [3], "v": [1.0], "w": [1]}, "has a column 'w'"),
        ({"u": [3], "v": ["1.5"]}, "another type"),
    ],
)
def test_files_of_different_shape_are_refused(second: dict[str, Any], says: str, engine: str, tmp_path: Path) -> None:
    """A value of one file that has no place in the type of another would raise once rows are read."""
    pd.DataFrame(FIRST).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame(second).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(eh.DataError, match=says):
        eh.read(tmp_path / "*.parquet", user="u", engine=engine)


def test_files_with_their_columns_in_another_order_are_one_table(tmp_path: Path) -> None:
    pd.DataFrame(FIRST).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"v": [10.0], "u": [3]}).to_parquet(tmp_path / "b.parquet")
    table = eh.read(tmp_path / "*.parquet", user="u")
    assert found(table) == expected([(1, 1.5), (2, 2.5), (3, 10.0)], "presence")
    assert Drafts(table).count(epsilon=1).query["statistic"] == "count"
