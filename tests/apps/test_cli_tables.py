"""The command line on tables of databases and with facts about columns; several statistics in one debit."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import evenhand as eh
from evenhand.apps import cli

Run = Callable[..., str]
PAID = ("--epsilon", "1", "--ledger", "b.db", "--budget", "10")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Call ``evenhand`` in a folder with a database; returns what it prints, or its error after the exit code."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(
        {
            "person": [f"p{index % 300}" for index in range(3000)],
            "stars": [index % 5 + 1.0 for index in range(3000)],
            "genre": [("drama", "comedy")[index % 2] for index in range(3000)],
        }
    )
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE films AS SELECT * FROM frame")
    frame.to_csv(tmp_path / "films.csv", index=False)

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["evenhand", *arguments])
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                return f"{end.code} {capfd.readouterr().err}"
        return capfd.readouterr().out

    return call


FILMS = ("shop.duckdb", "--table", "films", "--user", "person")


def test_describe_writes_a_template_that_can_be_used_as_it_is_and_filled_in(run: Run) -> None:
    assert run("describe", *FILMS, "--out", "facts.toml") == ""
    text = Path("facts.toml").read_text()
    assert tomllib.loads(text) == {"columns": {"stars": {}, "genre": {}}}
    assert not any(value in text for value in ("drama", "p17"))
    filled = text.replace("# bounds = [0, 100]", "bounds = [1, 5]", 1).replace('# unit = ""', 'unit = "stars"', 1)
    Path("facts.toml").write_text(filled.replace('# keys = ["a", "b"]', 'keys = ["comedy", "drama"]'))
    asked = ("mean", *FILMS, "--value", "stars", "--by", "genre", "--columns", "facts.toml", "--explain")
    shown = run("release", *asked, *PAID)
    assert "2 groups, in stars" in shown
    assert "stated with the table: stars from 1 to 5, 2 keys of genre" in shown
    assert run("describe", *FILMS, "--out", "facts.toml").startswith(
        "2 evenhand: --out facts.toml: there is such a file"
    )


def test_names_that_need_quotes_are_quoted_in_a_template(tmp_path: Path) -> None:
    from evenhand.tables.columns import template

    names = ["a b", 'say "x"', "tab\there", "ü", "\x7f", "plain-1"]
    table = eh.read(pd.DataFrame({"u": [1], **{name: [1.0] for name in names}}), user="u")
    assert list(tomllib.loads(template(table, "x\ny"))["columns"]) == names


def test_several_statistics_in_one_debit(run: Run) -> None:
    asked = ("--ask", "n=count", "--ask", "average=mean:stars:1:5", "--by", "genre", "--keys", "drama,comedy")
    found = json.loads(run("aggregate", *FILMS, *asked, *PAID, "--csv", "out.csv", "--json"))
    assert set(found["value"][0]) == {"genre", "n", "average"}
    assert len(eh.Ledger("b.db").events) == 1
    assert list(pd.read_csv("out.csv")["genre"]) == ["drama", "comedy"]


def test_rows_and_columns_of_a_view(run: Run) -> None:
    view = (
        "--derive",
        "half=stars / 2",
        "--derive",
        "large=half > 1",
        "--where",
        "genre = 'drama'",
        "--where",
        "large",
    )
    found = json.loads(run("release", "mean", *FILMS, *view, "--value", "half", "--bounds", "0:3", *PAID, "--json"))
    assert found["statistic"] == "mean of half"
    assert eh.Ledger("b.db").events[0].asked.table == "shop.duckdb films"


def test_a_public_table_beside_the_rows(run: Run) -> None:
    Path("kinds:old.csv").write_text("genre,kind\ndrama,sad\ncomedy,merry\ncomedy,light\n")  # two rows for one key
    asked = ("--ask", "n=count", "--by", "kind", "--keys", "sad,merry,light", "--bounding", "row-limit:20")
    refused = run("aggregate", *FILMS, "--join", "kinds:old.csv:genre", *asked, *PAID)
    assert refused.startswith("2 ")
    assert "2 rows of the public table 'kinds:old.csv'" in refused
    assert not Path("b.db").exists()
    spent = ("--epsilon", "1000", "--ledger", "b.db", "--budget", "1000")
    found = json.loads(run("aggregate", *FILMS, "--join", "kinds:old.csv:genre:2", *asked, *spent, "--json"))
    counts = {row["kind"]: row["n"] for row in found["value"]}
    # 1,500 rows of each genre, each once beside every row of its key; noise of scale 20 / 1000.
    assert all(abs(counts[kind] - 1500) <= 10 for kind in ("sad", "merry", "light"))


def test_a_release_as_csv(run: Run) -> None:
    run(
        "release",
        "mean",
        "films.csv",
        "--user",
        "person",
        "--value",
        "stars",
        "--bounds",
        "1:5",
        *PAID,
        "--csv",
        "m.csv",
    )
    assert list(pd.read_csv("m.csv").columns) == ["statistic", "value", "low", "high", "usable"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("aggregate", *FILMS, "--ask", "count"), "expected a name"),
        (("aggregate", *FILMS, "--ask", "a=count", "--ask", "a=users"), "expected a name of its own"),
        (("aggregate", *FILMS, "--ask", "a=meen:stars"), "Did you mean 'mean'"),
        (("aggregate", *FILMS, "--ask", "a=mean"), "with its column"),
        (("aggregate", *FILMS, "--ask", "a=count:stars"), "with its column"),
        (("aggregate", *FILMS, "--ask", "a=count", "--keys", "x"), "--keys without --by"),
        (("aggregate", *FILMS, "--ask", "a=count", "--join", "kinds.csv"), "expected FILE:COLUMN"),
        (("aggregate", *FILMS, "--ask", "a=count", "--join", "nowhere.csv:genre"), "can't be read"),
        (("release", "count", "shop.duckdb", "--user", "person"), "table= is missing"),
        (("release", "count", *FILMS, "--derive", "large"), "expected NAME=EXPRESSION"),
        (("release", "count", *FILMS, "--where", "random() < 0.5"), "another value each time"),
        (("release", "count", *FILMS, "--csv", "no/where.csv"), "can't be written"),
        (("release", "count", *FILMS, "--columns", "none.toml"), "can't be read"),
    ],
)
def test_bad_calls_end_with_a_helpful_line_and_no_ledger(arguments: tuple[str, ...], says: str, run: Run) -> None:
    assert says in run(*arguments, *PAID)
    assert not Path("b.db").exists()
