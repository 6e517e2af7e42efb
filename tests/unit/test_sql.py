"""Questions in SQL are the questions that would have been asked in Python; what can't be asked is refused with its place in the text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.apps import cli, options
from evenhand.session import Drafts
from evenhand.statistics import Draft
from watch import integers

FRAME = pd.DataFrame(
    {
        "person": [f"p{index % 300}" for index in range(3000)],
        "stars": [index % 5 + 1.0 for index in range(3000)],
        "genre": [("drama", "comedy", "western")[index % 3] for index in range(3000)],
        "day": [pd.Timestamp("2026-01-01") + pd.Timedelta(days=index % 90) for index in range(3000)],
        "adult": [index % 2 == 0 for index in range(3000)],
    }
)
FACTS = {"stars": eh.Column(bounds=(1, 5), unit="stars"), "genre": eh.Column(keys=["drama", "comedy"])}
TABLE = eh.read(FRAME, user="person", columns=FACTS)
PAID: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
_ = eh._

SHOPS = eh.read_public(pd.DataFrame({"genre": ["drama", "comedy"], "shelf": ["left", "right"], "floor": [1, 2]}))
PEOPLE = eh.read(
    pd.DataFrame({"person": [f"p{index}" for index in range(300)], "age": [float(index % 80) for index in range(300)]}),
    user="person",
    columns={"age": eh.Column(bounds=(0, 120))},
)

Ask = Callable[[], Draft]
SAME: dict[str, Ask] = {
    "SELECT COUNT(*) FROM table": lambda: Drafts(TABLE).count(**PAID),
    "SELECT COUNT(DISTINCT t.person) FROM table AS t": lambda: Drafts(TABLE).users(**PAID),
    "SELECT COUNT(DISTINCT genre) FROM table": lambda: Drafts(TABLE).distinct("genre", **PAID),
    "select avg(STARS) from table where adult": lambda: Drafts(TABLE.where(_.adult)).mean("stars", **PAID),
    "SELECT MEDIAN(stars) FROM table": lambda: Drafts(TABLE).median("stars", **PAID),
    "SELECT STDDEV(stars) FROM table": lambda: Drafts(TABLE).std("stars", **PAID),
    "SELECT VAR_POP(stars) FROM table": lambda: Drafts(TABLE).variance("stars", **PAID),
    "SELECT per_user_mean(stars) FROM table": lambda: Drafts(TABLE).per_user_mean("stars", **PAID),
    "SELECT QUANTILE_CONT(stars, [0.1, 0.9]) FROM table": lambda: Drafts(TABLE).quantiles("stars", [0.1, 0.9], **PAID),
    "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY stars) FROM table": (
        lambda: Drafts(TABLE).quantiles("stars", [0.9], **PAID)
    ),
    "SELECT COUNT_IF(stars > 3) FROM table": (
        lambda: Drafts(TABLE.derive(count_if_stars_3=(_.stars > 3).ifelse(1, 0))).sum(
            "count_if_stars_3", bounds=(0, 1), **PAID
        )
    ),
    "SELECT SUM(stars) FILTER (WHERE adult) FROM table": (
        lambda: Drafts(TABLE.derive(case_when_adult_then_stars_end=_.adult.ifelse(_.stars, None))).sum(
            "case_when_adult_then_stars_end", bounds=(1, 5), **PAID
        )
    ),
    "SELECT COUNT(*) FILTER (WHERE stars > 3) FROM table": (
        lambda: Drafts(TABLE.derive(count_if_stars_3=(_.stars > 3).ifelse(1, 0))).sum(
            "count_if_stars_3", bounds=(0, 1), **PAID
        )
    ),
    "WITH a AS (SELECT *, stars / 2 AS half FROM table WHERE adult), b AS (SELECT person, SUM(half) AS t FROM a GROUP BY 1) SELECT AVG(t) FROM b": (
        lambda: Drafts(TABLE.where(_.adult).derive(half=_.stars / 2).per_user(t=_.half.sum())).mean("t", **PAID)
    ),
    "SELECT COUNT(*) FROM (SELECT MAX(stars) FILTER (WHERE adult) AS m FROM table GROUP BY person HAVING COUNT(*) > 2 AND COUNT_IF(adult) > 1) WHERE m > 3": (
        lambda: Drafts(
            TABLE.per_user(m=_.stars.max(where=_.adult), h=(_.count() > 2) & (_.count(where=_.adult) > 1))
            .where(_.h)
            .where(_.m > 3)
        ).count(**PAID)
    ),
    "WITH t AS (SELECT person, AVG(stars) AS m FROM table GROUP BY person) SELECT AVG(stars - m) FROM table JOIN t USING (person)": (
        lambda: Drafts(TABLE.join(TABLE.per_user(m=_.stars.mean()), fan_out=1000).derive(stars_m=_.stars - _.m)).mean(
            "stars_m", **PAID
        )
    ),
    "SELECT s.shelf, COUNT(*) AS count FROM (SELECT t.* FROM table t) AS x JOIN shops s USING (genre) GROUP BY s.shelf": (
        lambda: Drafts(TABLE.join(SHOPS, on="genre", fan_out=1000)).count(by="shelf", **PAID)
    ),
    "SELECT genre, AVG(stars) AS m, COUNT(*) AS n FROM table GROUP BY genre": (
        lambda: Drafts(TABLE).aggregate(by="genre", m=eh.mean("stars"), n=eh.count(), **PAID)
    ),
    "SELECT date_trunc('month', day) AS month, SUM(stars * 2) AS s FROM table WHERE stars > 1 GROUP BY month": (
        lambda: Drafts(TABLE.where(_.stars > 1).derive(month=_.day.truncate("M"), stars_2=_.stars * 2)).aggregate(
            by="month", s=eh.sum("stars_2"), **PAID
        )
    ),
    "SELECT COUNT(*) AS count FROM table WHERE genre IN ('western', 'drama') AND stars > 1 GROUP BY genre": (
        lambda: Drafts(TABLE.where(_.genre.isin(["western", "drama"]), _.stars > 1)).count(
            by="genre", keys=["western", "drama"], **PAID
        )
    ),
    "SELECT CASE WHEN adult THEN 'old' ELSE 'young' END AS age, COUNT(*) FROM table GROUP BY 1": (
        lambda: Drafts(TABLE.derive(age=_.adult.ifelse("old", "young"))).count(by="age", **PAID)
    ),
    "SELECT s.shelf, AVG(t.stars) AS m FROM table t JOIN shops s ON t.genre = s.genre WHERE s.floor < 3 GROUP BY s.shelf": (
        lambda: Drafts(TABLE.join(SHOPS, on="genre").where(_.floor < 3)).aggregate(
            by="shelf", m=eh.mean("stars"), **PAID
        )
    ),
    "SELECT AVG(age) FROM table LEFT JOIN people p USING (person) WHERE p.age > 18": (
        lambda: Drafts(TABLE.join(PEOPLE, how="left", fan_out=1000).where(_.age > 18)).mean("age", **PAID)
    ),
    "SELECT genre AS day, COUNT(DISTINCT person) AS users FROM table GROUP BY ALL": (  # keeps the keys of genre
        lambda: Drafts(TABLE.derive(day=_.genre)).users(by="day", **PAID)
    ),
}


def asked(text: str, **options: Any) -> Draft:
    return Drafts(TABLE).sql(text, **{**PAID, "tables": {"shops": SHOPS, "People": PEOPLE}, **options})


def session(tmp_path: Path) -> eh.Session:
    return eh.Session(TABLE, eh.Ledger(tmp_path / "b.db", epsilon=10_000, delta=0.1))


@pytest.mark.parametrize("text", SAME)
def test_a_query_asks_what_python_would(text: str) -> None:
    sql, python = asked(text), SAME[text]()
    assert {name: value for name, value in sql.query.items() if name != "sql"} == python.query
    assert (sql.cost, sql.guarantee, sql.statistic) == (python.cost, python.guarantee, python.statistic)
    if "JOIN shops" in text:  # what a public table may name is public
        assert sql.query["facts"]["shelf"] == {"keys": 2}


def test_the_ledger_keeps_the_question_in_one_spelling(tmp_path: Path) -> None:
    one = session(tmp_path)
    previewed = one.preview.sql("select count(*)  from table -- all", epsilon=1)
    assert previewed.cost.epsilon == 1
    assert not one.ledger.events
    one.sql("select count(*)  from table -- all", epsilon=1)
    assert one.ledger.events[0].query["sql"] == 'SELECT COUNT(*) FROM "table"'


def test_what_is_released_is_sorted_and_cut(tmp_path: Path) -> None:
    """With next to no noise; intervals and verdicts go with their groups."""
    text = "SELECT genre, COUNT(*) AS n, COUNT_IF(adult) AS m FROM table WHERE genre <> 'drama' OR stars > 2 GROUP BY genre"
    one = session(tmp_path)
    plain = one.sql(text, epsilon=900, delta="1e-6", keys=["drama", "comedy", "western"])
    found = one.sql(
        f"{text} ORDER BY n DESC, genre LIMIT 2", epsilon=900, delta="1e-6", keys=["drama", "comedy", "western"]
    )
    assert list(plain.value["genre"]) == ["drama", "comedy", "western"]
    assert set(found.value["genre"]) == {"comedy", "western"}
    assert list(found.value["n"]) == sorted(found.value["n"], reverse=True)
    frame = found.interval(0.95)
    assert list(frame["genre"]) == list(found.value["genre"])
    assert list(frame["n"]) == list(found.value["n"])
    assert (frame["n_low"] < frame["n_high"]).all()
    assert len(found.verdicts()) == 2
    assert len(found.noise_interval(0.9)) == 2
    by_name = one.sql(f"{text} ORDER BY 1 DESC", epsilon=900, delta="1e-6", keys=["drama", "comedy", "western"])
    assert list(by_name.value["genre"]) == ["western", "drama", "comedy"]
    having = "HAVING NOT (n BETWEEN 900 AND 2000 OR genre = 'western') AND COUNT_IF(adult) > -1 ORDER BY genre"
    few = one.sql(f"{text} {having}", epsilon=900, delta="1e-6", keys=["drama", "comedy", "western"])
    assert list(few.value["genre"]) == ["drama"]
    assert len(few.interval(0.95)) == 1
    none = one.sql(f"{text} HAVING n > genre", epsilon=900, delta="1e-6", keys=["drama", "comedy", "western"])
    assert not len(none.value), "what can't be compared is unknown"


@pytest.mark.parametrize(
    "select",
    [
        "COUNT(DISTINCT day) AS x",
        "QUANTILE_CONT(stars, 0.9) AS x",
        "MEDIAN(stars) AS x",
        "STDDEV(stars) AS x",
        "COUNT(adult) AS x",
    ],
)
def test_every_aggregate_has_the_name_that_the_query_gives_it(select: str, tmp_path: Path) -> None:
    found = session(tmp_path).sql(f"SELECT genre, {select} FROM table GROUP BY genre ORDER BY x DESC", epsilon=100)
    assert list(found.value.columns) == ["genre", "x"]
    assert list(found.value["x"]) == sorted(found.value["x"], reverse=True)


def test_sorting_never_fails_once_it_is_paid_for(tmp_path: Path) -> None:
    text = "SELECT stars, COUNT(*) AS n FROM table WHERE stars IN (1, 2) GROUP BY stars ORDER BY stars DESC"
    found = session(tmp_path).sql(text, epsilon=100, other="rest")
    assert list(found.value["stars"]) == ["rest", 2, 1]


BIGQUERY = """SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS (epsilon = 2, delta = 1e-7, privacy_unit_column = person, max_groups_contributed = 3)
  day, AVG(stars, contribution_bounds_per_row => (0, 6)) AS m, SUM(stars) AS s
FROM `project.data.table` GROUP BY day"""


def test_a_query_can_move_over_from_bigquery() -> None:
    moved = Drafts(TABLE).sql(BIGQUERY)
    python = Drafts(TABLE).aggregate(
        by="day", epsilon=2, delta="1e-7", groups_per_user=3, m=eh.mean("stars", bounds=(0, 6)), s=eh.sum("stars")
    )
    assert (moved.cost, moved.query["parts"]) == (python.cost, python.query["parts"])
    short = Drafts(TABLE).sql(BIGQUERY.replace("epsilon = 2, delta = 1e-7", "epsilon=2, delta=.01"))  # as they write it
    assert short.cost == Drafts(TABLE).sql(BIGQUERY.replace("1e-7", "0.01")).cost
    with pytest.raises(eh.UsageError, match="leave one of them out"):
        Drafts(TABLE).sql(BIGQUERY, epsilon=3)
    with pytest.raises(eh.UsageError, match="told apart by"):
        Drafts(TABLE).sql(BIGQUERY.replace("= person", "= day"))


MULTIPLIED = "WITH a AS (SELECT person, stars AS s FROM table), b AS (SELECT person, stars AS t FROM table) SELECT SUM(s + t) FROM table JOIN a USING (person) JOIN b USING (person)"

REFUSED = {
    "": "expected a query",
    MULTIPLIED: r"JOIN b \(line 1, .*1,000 times as many by this join: 1,000,000; expected at most 1,000 in all",
    "SELECT COUNT(*) FROM": "line 1, column",
    "SELECT COUNT(*) FROM table WHERE x = 'a": "not closed",
    "SELECT COUNT(*) FROM table; SELECT 1": "not one SELECT",
    "DELETE FROM table": "not one SELECT",
    "SELECT COUNT(*)": "no FROM",
    "SELECT COUNT(*) FROM other": r"FROM other \(line 1, column 22\)",
    "SELECT stars\nFROM table": r"stars \(line 1, column 8\) is neither",
    "SELECT genre,\n  AVG(starz) FROM table GROUP BY genre": r"'starz' \(line 2, column 7\).*Did you mean 'stars'",
    "SELECT COUNT(*) FROM table WHERE stars > 1 AND RANDOM() > 0.5": r"RANDOM\(\) \(line 1, column 48\)",
    "SELECT COUNT(*) FROM table WHERE stars > (SELECT AVG(stars) FROM table)": "a subquery",
    "SELECT COUNT(*) FROM table WHERE stars IN (SELECT stars FROM table)": "rows of other users",
    "SELECT COUNT(*) FROM table WHERE EXISTS (SELECT 1 FROM table)": "EXISTS|subquery",
    "SELECT COUNT(*) FROM table WHERE COUNT(*) > 1": "rows of all users",
    "SELECT COUNT(*) FROM table WHERE ROW_NUMBER() OVER () < 5": "a window",
    "SELECT SUM(stars) OVER () FROM table": "a window",
    "SELECT COUNT(*) FROM (SELECT * FROM table LIMIT 5)": r"LIMIT inside.*other users \(line 1, column 49\)",
    "SELECT COUNT(*) FROM (SELECT * FROM table ORDER BY day)": "ORDER BY inside",
    "SELECT COUNT(*) FROM (SELECT DISTINCT genre FROM table)": "SELECT DISTINCT",
    "SELECT COUNT(*) FROM (SELECT * FROM table UNION ALL SELECT * FROM table)": "of one SELECT",
    "SELECT COUNT(*) FROM (SELECT * FROM table TABLESAMPLE 10%)": "SAMPLE has no meaning",
    "SELECT COUNT(*) FROM (SELECT * EXCLUDE (day) FROM table)": "by itself",
    "SELECT COUNT(*) FROM (SELECT stars, stars FROM table)": "selected twice",
    "SELECT COUNT(*) FROM (SELECT genre AS person FROM table)": "keeps its name",
    "SELECT COUNT(*) FROM (SELECT person AS p FROM table)": "keeps its name",
    "SELECT COUNT(*) FROM (SELECT stars - AVG(stars) AS d FROM table)": r"AVG\(stars\) \(line 1, column 38\) looks at the rows of all users",
    "SELECT AVG(n) FROM (SELECT genre, COUNT(*) AS n FROM table GROUP BY genre)": r"GROUP BY genre \(line 1, column 69\): .* groups of one user each",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM table GROUP BY genre, day)": r"GROUP BY genre \(line 1, column 62\).*one user each",
    "SELECT AVG(n) FROM (SELECT person, MEDIAN(stars) AS n FROM table GROUP BY person)": r"MEDIAN\(stars\) \(line 1, column 36\)",
    "SELECT AVG(n) FROM (SELECT person, stars AS n FROM table GROUP BY 1)": "stars .*Aggregate it",
    "WITH RECURSIVE a AS (SELECT * FROM table) SELECT COUNT(*) FROM a": "RECURSIVE",
    "WITH a AS (WITH b AS (SELECT * FROM table) SELECT * FROM b) SELECT COUNT(*) FROM a": "WITH inside",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM table) SELECT COUNT(*) FROM a": r"FROM b \(line 1, column 26\)",
    "WITH a AS (SELECT * FROM table), a AS (SELECT * FROM table) SELECT COUNT(*) FROM a": "twice",
    "SELECT COUNT(*) FROM table TABLESAMPLE 10%": "SAMPLE has no meaning",
    "SELECT COUNT(*) FROM table AS t (a, b)": "renamed",
    "SELECT genre, COUNT(*) FROM table GROUP BY genre LIMIT 5%": "LIMIT",
    "WITH t AS (SELECT 1) SELECT COUNT(*) FROM t": "no FROM",
    "SELECT COUNT(*) FROM table JOIN b USING (genre)": r"JOIN b \(line 1, column 33\): there is no such table",
    "SELECT COUNT(*) FROM table, shops": "expected USING",
    "SELECT COUNT(*) FROM table CROSS JOIN shops": "expected JOIN or LEFT JOIN",
    "SELECT COUNT(*) FROM table FULL JOIN shops USING (genre)": "expected JOIN or LEFT JOIN",
    "SELECT COUNT(*) FROM table JOIN shops ON stars > 2": "expected USING",
    "SELECT COUNT(*) FROM table t JOIN shops s ON t.genre = s.genre OR true": "expected USING",
    "SELECT COUNT(*) FROM table JOIN (SELECT 1 FROM table) AS s USING (genre)": r"expected USING \(person\)",
    "SELECT COUNT(*) FROM table LEFT JOIN shops s USING (genre) WHERE s.genre IS NULL": "belongs to the left table",
    "SELECT COUNT(*) FROM table JOIN people USING (genre)": r"expected USING \(person\)",
    "SELECT COUNT(*) FROM table UNION SELECT 1": "not one SELECT",
    "SELECT genre, COUNT(*) FROM table GROUP BY genre HAVING genre LIKE 'd%'": "about what was released",
    "SELECT COUNT(*) FROM table HAVING COUNT(*) > 1": "only one row",
    "SELECT genre, COUNT(*) FROM table GROUP BY ROLLUP (genre)": "ROLLUP",
    "SELECT SUM(DISTINCT stars) FROM table": "DISTINCT is for COUNT",
    "SELECT SUM(stars) FILTER (WHERE stars > AVG(stars)) FROM table": r"\(line 1, column 12\).*rows of all users",
    "SELECT meen(stars) FROM table": "no such function",
    "SELECT STRING_AGG(genre, ',') FROM table": "is not released",
    "SELECT COUNT(*) FROM table GROUP BY COUNT(*)": "not an aggregate",
    "SELECT genre, COUNT(*) FROM table GROUP BY 5": "2 selected columns",
    "SELECT genre, COUNT(*) FROM table GROUP BY genre ORDER BY stars": "ORDER BY stars",
    "SELECT genre, QUANTILE_CONT(stars, [0.1, 0.2]) AS q FROM table GROUP BY genre ORDER BY q": "one of \\['genre'\\]",
    "SELECT genre, COUNT(*) FROM table GROUP BY genre LIMIT stars": "LIMIT",
    "SELECT COUNT(*) FROM table OFFSET 5": "OFFSET",
    "SELECT QUANTILE_CONT(stars, stars) FROM table": "numbers between 0 and 1",
    "SELECT COUNT(*) FROM table WHERE other.stars > 1": "no table 'other'",
    "SELECT person AS x, COUNT(*) AS person FROM table GROUP BY x, day, day": "named twice",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = 1) COUNT(*) FROM table": "Did you mean 'epsilon'",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1 COUNT(*) FROM table": "can't be used|expected it once",
    "SELECT AVG(stars, contribution_bounds_per_group => (0, 5)) FROM table": "here bounds are of one value",
    "SELECT AVG(stars, contribution_bounds_per_row => (5, 0)) FROM table": "contribution_bounds_per_row",
    "SELECT AVG(stars, contribution_bounds_per_row (0, 5)) FROM table": r"contribution_bounds_per_row \(line 1, column 19\)",
    "SELECT EXTRACT(DAYOFWEEK FROM day) AS d, COUNT(*) FROM `table` GROUP BY d": "begin on Sundays",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_can_not_be_asked_is_refused_before_anything_is_spent(text: str) -> None:
    with pytest.raises(eh.EvenhandError, match=REFUSED[text]):
        asked(text)


def test_two_joins_share_the_rows_that_one_may_become() -> None:
    draft = asked(MULTIPLIED, fan_out=31)
    assert draft.query["fan_out"] == 31
    with pytest.raises(eh.UsageError, match="1,024"):
        asked(MULTIPLIED, fan_out=32)
    summed = MULTIPLIED.replace("stars AS s FROM table", "SUM(stars) AS s FROM table GROUP BY person")
    assert "fan_out" not in asked(summed).query


def test_under_values_a_filter_on_private_columns_is_refused() -> None:
    known = eh.read(FRAME, user="person", protects="values", public=["genre"], columns=FACTS)
    assert Drafts(known).sql("SELECT AVG(stars) FROM table WHERE genre = 'drama'", epsilon=1).query["column"] == "stars"
    with pytest.raises(eh.UsageError, match="private columns"):
        Drafts(known).sql("SELECT AVG(stars) FROM table WHERE stars > 2", epsilon=1)


def test_a_backtick_in_a_text_changes_nothing_else() -> None:
    """In BigQuery's words "genre" would be a text."""
    assert "\"genre\" = 'a`b'" in asked("SELECT COUNT(*) FROM table WHERE \"genre\" = 'a`b'").query["sql"]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("films.parquet")

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["evenhand", "sql", *arguments, "films.parquet", "--ledger", "b.db", "--json"])
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    text = "SELECT genre, COUNT(*) AS n FROM films GROUP BY genre ORDER BY n"
    keys = ("--keys", "genre=drama,comedy")
    assert run(text, "--user", "person", "--epsilon", "1", "--budget", "3", "--budget-delta", "1e-6", *keys) == 0
    assert {row["genre"] for row in json.loads(capsys.readouterr().out)["value"]} == {"drama", "comedy"}
    assert run(BIGQUERY.replace("project.data.table", "films"), "--preview") == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["epsilon"] == 2
    assert run(text) == 2
    assert "--user and --epsilon are missing" in capsys.readouterr().out
    assert run("SELECT COUNT(*) FROM films", "--user", "person", "--epsilon", "9") == 3


def test_files_are_written_before_anything_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was paid for is not lost because nobody reads on."""

    def closed(_said: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(options, "show_json", closed)
    paid = options.ReleaseOptions(
        "", "", epsilon="1", ledger=str(tmp_path / "b.db"), as_json=True, csv=tmp_path / "out.csv"
    )
    with pytest.raises(BrokenPipeError):
        paid.settle(Drafts(TABLE).sql("SELECT genre, COUNT(*) AS n FROM table GROUP BY genre", epsilon=1))
    assert "genre,n,n_low,n_high" in (tmp_path / "out.csv").read_text()


ORDERS = pa.table({"person": [1, 1, 2, 3], "id": [10, 11, 11, 12], "month": [1, 1, 2, 2]})
LINES = pa.table({"order_id": [10, 10, 11, None, 13], "product": [1, 2, 1, 1, 1], "price": [1.0, 2.0, 4.0, 8.0, 16.0]})
RETURNS = pa.table({"product": [2, 3], "reason": ["late", "torn"]})
PARTS: dict[str, Any] = {
    "lines": eh.read_part(LINES, name="lines", columns={"price": eh.Column(bounds=(0, 10))}),
    "returns": eh.read_part(RETURNS, name="returns"),
    "products": eh.read_public(pa.table({"number": [1, 2], "kind": ["x", "y"]})),
}
JOINED: dict[str, Callable[[eh.Table], tuple[eh.Table, str]]] = {
    "SELECT SUM(price) FROM table o JOIN lines l ON o.id = l.order_id": lambda table: (
        table.join(PARTS["lines"], on={"id": "order_id"}), "sum",
    ),
    "SELECT SUM(price) FROM table LEFT JOIN lines ON lines.order_id = table.id WHERE month = 1": lambda table: (
        table.join(PARTS["lines"], on={"id": "order_id"}, how="left").where("month = 1"), "sum",
    ),
    "SELECT SUM(l.price) FROM table o JOIN lines l ON o.id = l.order_id LEFT JOIN returns USING (product) WHERE reason IS NULL": lambda table: (
        table.join(PARTS["lines"].join(PARTS["returns"], on="product", how="left"), on={"id": "order_id"}).where("reason IS NULL"), "sum",
    ),
    "SELECT SUM(price) FROM table o JOIN lines l ON o.id = l.order_id JOIN products p ON l.product = p.number WHERE kind = 'x'": lambda table: (
        table.join(PARTS["lines"].join(PARTS["products"], on={"product": "number"}), on={"id": "order_id"}).where("kind = 'x'"), "sum",
    ),
    "SELECT SUM(price) FROM (SELECT person, id AS basket, SUM(price) AS price FROM table o JOIN lines l ON o.id = l.order_id GROUP BY person, id HAVING COUNT(*) > 1) b": lambda table: (
        table.join(PARTS["lines"], on={"id": "order_id"}).per("id", price="SUM(price)", n="COUNT(*)").where("n > 1"), "sum",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", JOINED)
def test_parts_and_units_in_sql(text: str) -> None:
    """The same integers as of the view in Python."""
    table = eh.read(ORDERS, user="person")
    view, _kind = JOINED[text](table)
    given: dict[str, Any] = {"epsilon": 1, "bounding": eh.TotalCap(9)}
    bounds = "" if "AS basket" not in text else ", contribution_bounds_per_row => (0, 10)"
    found = integers(
        table,
        lambda ask: ask.sql(text.replace("SUM(price) FROM (", f"SUM(price{bounds}) FROM ("), tables=PARTS, **given),
    )
    assert found == integers(view, lambda ask: ask.sum("price", bounds=(0, 10), **given))


REFUSED_PARTS = {
    "SELECT COUNT(*) FROM lines": r"whose its rows are follows from another table; write FROM that and JOIN lines",
    "SELECT COUNT(*) FROM table o JOIN lines l ON o.id = l.nothing": "l.nothing .*there is no such column",
    "SELECT COUNT(*) FROM table o JOIN lines l ON o.id = l.product + 1": "expected USING",
    "SELECT COUNT(*) FROM table o RIGHT JOIN lines l ON o.id = l.order_id": "expected JOIN or LEFT JOIN",
    "SELECT COUNT(*) FROM table o FULL JOIN lines l ON o.id = l.order_id": "expected JOIN or LEFT JOIN",
    "SELECT COUNT(*) FROM table o JOIN lines l ON o.id = l.order_id JOIN lines m ON o.id = m.order_id": "part of this table already",
    "SELECT COUNT(*) FROM (SELECT person, 1 AS id FROM table) o JOIN lines l ON o.id = l.order_id": r"JOIN lines.*made by a view",
    "SELECT COUNT(*) FROM table o JOIN (SELECT * FROM lines) l ON o.id = l.order_id": "whose its rows are",
}


@pytest.mark.parametrize("text", REFUSED_PARTS)
def test_parts_that_can_not_be_joined_in_sql(text: str) -> None:
    session = Drafts(eh.read(ORDERS, user="person"))
    with pytest.raises(eh.UsageError, match=REFUSED_PARTS[text]):
        session.sql(text, epsilon=1, tables=PARTS)


def test_a_table_that_offers_parts_needs_no_other_names() -> None:
    table = replace(eh.read(ORDERS, user="person"), parts={"lines": PARTS["lines"]})
    text = "WITH some AS (SELECT * FROM table WHERE month = 1) SELECT COUNT(*) FROM some JOIN lines ON some.id = lines.order_id"
    assert integers(table, lambda ask: ask.sql(text, epsilon=1, bounding=eh.TotalCap(9))) == [[3]]
