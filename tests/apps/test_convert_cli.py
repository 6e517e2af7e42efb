"""``evenhand convert`` as a keeper would call it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.apps.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def convert(*words: str) -> Any:
    return CliRunner().invoke(app, ["convert", *words])


def test_a_csv_becomes_a_table_that_protects_values(folder: Path) -> None:
    (folder / "t.csv").write_text('note,v,user\n"a, b",1.5,x\n,abc,y\n"c""d", inf ,x\n\n')
    with pytest.raises(eh.UsageError, match=r"evenhand convert t\.csv"):
        eh.read("t.csv", user="user", protects="values")
    result = convert("t.csv", "t.parquet", "--numbers", "v")
    assert result.exit_code == 0, result.output
    assert "3 rows in t.parquet: note (string), v (double), user (string)" in result.output
    assert "1 values of v are no numbers and became null" in result.output
    rows = pq.read_table("t.parquet").to_pydict()
    assert rows == {"note": ["a, b", None, 'c"d'], "v": [1.5, None, float("inf")], "user": ["x", "y", "x"]}
    assert (folder / "t.parquet").stat().st_mode & 0o077 == 0
    assert eh.Session(eh.read("t.parquet", user="user", protects="values"), eh.Ledger("b.db", epsilon=1)).count(
        epsilon=1
    ).value == 3  # fmt: skip


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("t.jsonl", b'{"u": "a", "v": 1}\n\n{"v": NaN, "u": "\\ud800b"}\n'),
        ("t.json", b'{"u": "a", "v": 1}\n{"v": NaN, "u": "\\ud800b"}'),
        ("t.json", b'[{"u": "a", "v": 1},\n {"v": "x", "u": "b"}]'),
        ("t.json.gz", gzip.compress(b'\xef\xbb\xbf[{"u": "a", "v": 1}, {"u": "b", "v": {}}]')),
    ],
    ids=["lines", "lines as .json", "document", "packed document"],
)
def test_json_with_declared_columns(name: str, body: bytes, folder: Path) -> None:
    (folder / name).write_bytes(body)
    result = convert(name, "t.parquet", "--columns", "u,v", "--numbers", "v", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["columns"] == {"u": "string", "v": "double"}
    assert pq.read_table("t.parquet").to_pydict() == {"u": ["a", "b"], "v": [1.0, None]}


def test_quoted_line_feeds(folder: Path) -> None:
    (folder / "t.csv").write_bytes(b'\xef\xbb\xbfu,v\r\n"a\nb",1\r\nc,"2"\r\n')
    assert convert("t.csv", "t.parquet", "--quoted-newlines").exit_code == 0
    assert pq.read_table("t.parquet").to_pydict() == {"u": ["a\nb", "c"], "v": ["1", "2"]}


def test_records_that_cant_be_read_are_refused_or_left_out(folder: Path) -> None:
    (folder / "t.csv").write_text("u,v\na,1\nb,2,3\nc\nd,4\n")
    refused = convert("t.csv", "t.parquet")
    assert refused.exit_code == 4 or isinstance(refused.exception, eh.DataError)
    assert "2 records of 't.csv' can't be read: t.csv line 3, t.csv line 4." in str(refused.exception)
    assert not (folder / "t.parquet").exists()
    result = convert("t.csv", "t.parquet", "--drop-malformed")
    assert "2 records were left out, the first at t.csv line 3" in result.output
    assert pq.read_table("t.parquet").to_pydict() == {"u": ["a", "d"], "v": ["1", "4"]}


WRONG: list[tuple[tuple[str, ...], type[Exception], str]] = [
    (("t.csv", "there.parquet"), eh.UsageError, "exists already"),
    (("t.csv", "no/such/t.parquet"), eh.UsageError, "can't be written"),
    (("t.csv", "t.txt"), eh.UsageError, "does not end in .parquet"),
    (("there.parquet", "t.parquet"), eh.UsageError, "Parquet already"),
    (("nowhere.csv", "t.parquet"), eh.DataError, "no file 'nowhere.csv'"),
    (("t.csv", "t.parquet", "--numbers", "w"), eh.DataError, r"no column 'w'.*\['u', 'v'\]"),
    (("t.csv", "t.parquet", "--columns", "u"), eh.UsageError, "--columns is for JSON"),
    (("t.jsonl", "t.parquet"), eh.UsageError, "--columns is missing"),
    (("t.jsonl", "t.parquet", "--columns", "u", "--quoted-newlines"), eh.UsageError, "is for CSV"),
    (("t.jsonl", "t.parquet", "--columns", "u"), eh.DataError, "1 records of"),
    (("t.json", "t.parquet", "--columns", "u"), eh.DataError, "not one JSON document"),
    (("open.csv", "t.parquet", "--quoted-newlines"), eh.DataError, "line 2"),
]


@pytest.mark.parametrize(("words", "error", "message"), WRONG)
def test_what_is_refused_leaves_no_file(
    words: tuple[str, ...], error: type[Exception], message: str, folder: Path
) -> None:
    (folder / "t.csv").write_text("u,v\na,1\n")
    (folder / "t.jsonl").write_text("nonsense\n")
    (folder / "t.json").write_text("[1, 2")
    (folder / "open.csv").write_text('u,v\na,"1\n')
    (folder / "there.parquet").write_bytes(b"kept")
    with pytest.raises(error, match=message):
        raise convert(*words).exception
    assert not (folder / "t.parquet").exists()
    assert (folder / "there.parquet").read_bytes() == b"kept"
