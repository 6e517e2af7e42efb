"""SQLite hands over the integers that DuckDB does, for every question; what its values and columns may be changes nothing else."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from test_outcomes import QUESTIONS

import evenhand as eh
from watch import Ask, integers, watch

VALUES = [1 / 3, None, math.inf, -math.inf, -0.0, 5e-324, 1e300, 7.0, -2.5, 0.1]
USERS = [f"user {user}" for user in range(9) for _ in range(2**user)] + [None] * 20
COLUMNS = {
    "u": pa.array(USERS),
    "g": pa.array([("a", "B", "b", "é", None)[index % 5] for index in range(len(USERS))]),
    "v": pa.array([VALUES[index % len(VALUES)] for index in range(len(USERS))], pa.float64()),
    "x": pa.array([float(index % 7) for index in range(len(USERS))], pa.float64()),
}
DRAWN = ("row limit", "top", "distinct", "selected")
"""Questions for which rows or groups of a user are drawn: the same only up to chance."""
VIEWS = ("share", "share, users", "share by", "sql, members")
"""Questions about rows that are computed, which SQLite is not trusted with."""
ASKS: dict[str, Ask] = {
    name: ask
    for name, ask in QUESTIONS.items()
    if name not in ("profile", "describe", "plan", "no such column", *VIEWS)
}


def database(folder: Path, columns: dict[str, Sequence[Any]], declared: str) -> Any:
    place = folder / f"rows{len(list(folder.iterdir()))}.db"
    with sqlite3.connect(place) as connection:
        connection.execute(f"CREATE TABLE t ({declared})")
        rows = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
        connection.execute("CREATE VIEW w AS SELECT u, random() AS v FROM t")
    return ibis.sqlite.connect(place)


@pytest.fixture(scope="module")
def here() -> eh.Table:
    """The rows on DuckDB."""
    return eh.read(pa.table(COLUMNS), user="u")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> eh.Table:
    """The rows on SQLite; users under a collation that takes some of them for equal."""
    plain = {name: column.to_pylist() for name, column in COLUMNS.items()}
    folder = tmp_path_factory.mktemp("sqlite")
    return eh.read(
        database(folder, plain, "u TEXT COLLATE NOCASE, g TEXT COLLATE NOCASE, v DOUBLE, x REAL").table("t"), user="u"
    )


@pytest.mark.parametrize("name", ASKS)
def test_it_hands_over_the_integers_that_duckdb_does(name: str, here: eh.Table, there: eh.Table) -> None:
    on_duckdb, on_sqlite = watch(here, ASKS[name]), watch(there, ASKS[name])
    mine, theirs = ([step.integers for step in run.steps] for run in (on_sqlite, on_duckdb))
    if any(word in name for word in DRAWN):
        assert "row limit" in name or mine[0] == theirs[0]
        assert len(mine) == len(theirs)
    else:
        assert mine == theirs
        assert on_sqlite.seen == on_duckdb.seen


@pytest.mark.parametrize("name", VIEWS)
def test_questions_about_computed_rows_are_refused_for_nothing(name: str, there: eh.Table, tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "ledger.db", epsilon=100)
    with pytest.raises(eh.UsageError, match="Give Evenhand the rows instead"):
        QUESTIONS[name](eh.Session(there, ledger))
    assert ledger.spent.epsilon == 0


def test_groups_and_rows_that_are_drawn(here: eh.Table, there: eh.Table) -> None:
    """Which rows and groups a user keeps is chance; how many is not."""

    def limited(ask: Any) -> Any:
        return ask.mean("v", bounds=(-2.5, 7.0), epsilon=1, bounding=eh.RowLimit(5))

    def hidden(ask: Any) -> Any:
        return ask.count(by="g", epsilon=1, delta=1e-3, groups_per_user=4)

    assert sum(integers(here, limited)[0]) == sum(integers(there, limited)[0]) > 0
    assert [sorted(step) for step in integers(here, hidden)] == [sorted(step) for step in integers(there, hidden)]


def test_a_value_of_another_type_changes_nothing_but_its_own_row(tmp_path: Path) -> None:
    """Any value fits any column of SQLite; none of them may make a release fail, or another row count otherwise."""
    plain: dict[str, Sequence[Any]] = {"u": ["a", "b", "c"], "n": [1, 2, 3], "v": [1.0, 2.0, 3.0], "g": ["x", "x", "y"]}
    declared = "u TEXT, n INTEGER, v DOUBLE, g TEXT"

    def seen(columns: dict[str, Sequence[Any]]) -> list[Any]:
        table = eh.read(database(tmp_path, columns, declared).table("t"), user="u")
        return [
            integers(table, ask)
            for ask in (
                lambda ask: ask.sum("v", bounds=(0, 9), epsilon=1, bounding=eh.TotalCap(9)),
                lambda ask: ask.sum("n", bounds=(0, 9), epsilon=1, bounding=eh.TotalCap(9)),
                lambda ask: ask.count(by="g", keys=["x", "y"], epsilon=1, bounding=eh.NormClip(3)),
            )
        ]

    expected = seen(plain | {"v": [1.0, 2.0, None], "n": [1, 2, None], "g": ["x", "x", None]})
    for odd in ("text", b"\xff\xfe", None):
        changed: dict[str, Sequence[Any]] = {
            "v": [1.0, 2.0, odd],
            "n": [1, 2, odd],
            "g": ["x", "x", None if isinstance(odd, str) else odd],
        }
        assert seen(plain | changed) == expected
    assert seen(plain | {"u": ["a", "b", b"blob"]}) == seen(plain | {"u": ["a", "b", None]})


def test_the_largest_integers(tmp_path: Path) -> None:
    columns: dict[str, Sequence[Any]] = {"u": ["a", "a", "b", "b"], "n": [2**63 - 1, 2**63 - 1, -(2**63), 2**53 + 1]}
    there = eh.read(database(tmp_path, columns | {"v": [0.0] * 4}, "u TEXT, n INTEGER, v DOUBLE").table("t"), user="u")
    here = eh.read(pa.table(columns), user="u")
    for bounds in ((-1, 9), (-(2.0**62), 2.0**62)):

        def ask(ask: Any, bounds: tuple[float, float] = bounds) -> Any:
            return ask.mean("n", bounds=bounds, epsilon=1)

        assert integers(there, ask) == integers(here, ask)
    by: dict[str, Any] = {"by": "n", "keys": [2**63 - 1, -(2**63), 5]}
    assert integers(there, lambda ask: ask.count(**by, epsilon=1)) == integers(
        here, lambda ask: ask.count(**by, epsilon=1)
    )


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    source = database(tmp_path, {"u": ["a", "b"], "v": [1.0, 2.0]}, "u TEXT, v DOUBLE")
    source.con.execute("UPDATE t SET u = CAST(x'61ff' AS TEXT) WHERE v = 2.0")
    table = eh.read(source.table("t"), user="u")
    assert integers(table, lambda ask: ask.users(epsilon=1)) == [[1]]  # both are "a" without the byte


def test_users_under_a_collation_are_told_apart(tmp_path: Path) -> None:
    source = database(tmp_path, {"u": ["ann", "ANN", "Ann"], "v": [1.0, 2.0, 3.0]}, "u TEXT COLLATE NOCASE, v DOUBLE")
    assert integers(eh.read(source.table("t"), user="u"), lambda ask: ask.users(epsilon=1)) == [[3]]


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_table_is_asked_like_another(rows: int, tmp_path: Path) -> None:
    """Ibis tells the types of results from their rows."""
    columns: dict[str, Sequence[Any]] = {name: column.to_pylist()[:rows] for name, column in COLUMNS.items()}
    table = eh.read(database(tmp_path, columns, "u TEXT, g TEXT, v DOUBLE, x DOUBLE").table("t"), user="u")
    session = eh.Session(table, eh.Ledger(tmp_path / "b.db", epsilon=10, delta="0.1"))
    session.count(epsilon=1)
    session.mean("v", bounds=(0, 1), epsilon=1)
    session.count(by="g", epsilon=1, delta=1e-6)
    assert len(session.ledger.events) == 3


def test_sources_are_checked(tmp_path: Path) -> None:
    source = database(tmp_path, {"u": ["a"], "v": [1.0]}, "u TEXT, v DOUBLE")
    with pytest.raises(eh.UsageError, match="not an ordinary table"):
        eh.read(source.table("w"), user="u")
    with pytest.raises(eh.UsageError, match="expression over tables"):
        eh.read(source.table("t").limit(3), user="u")


def test_no_transaction_is_left_open(tmp_path: Path) -> None:
    """It would keep writers of the database out."""
    source = database(tmp_path, {"u": ["a"], "g": ["x"], "v": [1.0]}, "u TEXT, g TEXT, v DOUBLE")
    session = eh.Session(eh.read(source.table("t"), user="u"), eh.Ledger(tmp_path / "b.db", epsilon=10))
    session.count(by="g", keys=["x", "y"], epsilon=1)
    assert not source.con.in_transaction


def test_an_engine_that_breaks_its_promise_is_noticed(
    here: eh.Table, there: eh.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison has a broken twin: an engine that rounds to the nearest integer instead of down."""
    monkeypatch.setattr(type(there.engine), "floor", lambda self, value: value.round().cast("float64"))
    ask = ASKS["mean, given"]
    assert integers(here, ask) != integers(there, ask)


def test_what_may_fail_because_of_a_value_is_refused(there: eh.Table, tmp_path: Path) -> None:
    session = eh.Session(there, eh.Ledger(tmp_path / "b.db", epsilon=10))
    for ask in (
        lambda: there.where(eh._.v > 1),
        lambda: there.derive(w=eh._.v.ln()),
        lambda: there.union(there),
        lambda: there.per_user(n=eh._.v.sum()),
        lambda: session.sql("SELECT COUNT(*) FROM table WHERE v > 1", epsilon=1),
    ):
        with pytest.raises(eh.UsageError, match=r"can't be filtered, computed with or joined.*to_pyarrow"):
            ask()
    assert session.ledger.events == ()
