"""Columns of CSV and JSON have the types that were declared, or those of a public sample; no cell changes what another one is."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.session import Drafts
from evenhand.tables.declared_types import KINDS, parse_types

DATE, TIME = datetime.date, datetime.datetime
CELLS: dict[str, list[tuple[str, Any]]] = {
    "text": [("x", "x"), (" x ", " x "), ("", None)],
    "int": [("7", 7), ("-4", -4), (" +12 ", 12), ("1.5", None), ("1e3", None), ("12345678901234567890", None), ("0x1", None), ("", None)],
    "float": [("3.5", 3.5), (" 1e3 ", 1000.0), ("-.5", -0.5), ("nan", None), ("1,5", None), ("1_0", None), ("", None)],
    "bool": [("true", True), ("No", False), (" Y ", True), ("0", False), ("maybe", None), ("", None)],
    "date": [
        ("2026-01-05", DATE(2026, 1, 5)), ("2024-02-29", DATE(2024, 2, 29)), ("2023-02-29", None), ("5/1/2026", None), ("0000-01-01", None),
        ("2026-01-05 10:00", None), ("", None),
    ],
    "date %d/%m/%Y": [
        ("5/1/2026", DATE(2026, 1, 5)), ("05/01/2026", DATE(2026, 1, 5)), ("29/2/2023", None), ("2026-01-05", None), ("1/1/2026/3", None),
        ("1//2026", None), ("1/1/26", None), ("001/1/2026", None), ("/", None), ("", None),
    ],
    "date %m-%d-%Y": [("1-5-2026", DATE(2026, 1, 5)), ("13-5-2026", None), ("-1-5-2026", None)],
    "timestamp": [
        ("2026-01-05 10:00", TIME(2026, 1, 5, 10)), ("2026-01-05T23:59:59.5", TIME(2026, 1, 5, 23, 59, 59, 500000)),
        ("2026-01-05", TIME(2026, 1, 5)), ("2026-01-05 24:00", None), ("", None),
    ],
}  # fmt: skip


def written(tmp_path: Path, kind: str, cells: list[str], name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text("u,v\n" + "".join(f'p{place},"{cell}"\n' for place, cell in enumerate(cells)))
    return path


def values(table: eh.Table) -> list[Any]:
    found = table.engine.fetch(table.expression.select("u", "v").order_by("u")).reveal()
    return list(found["v"].to_pylist())


def test_every_type_is_tried() -> None:
    assert {kind.partition(" ")[0] for kind in CELLS} == set(KINDS)


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_is_a_value_of_its_type_or_null(kind: str, tmp_path: Path) -> None:
    table = eh.read(written(tmp_path, kind, [cell for cell, _ in CELLS[kind]]), user="u", types={"v": kind})
    assert values(table) == [value for _, value in CELLS[kind]]
    lines = [{"u": f"p{place}", "v": cell} for place, (cell, _) in enumerate(CELLS[kind])]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    same = eh.read(tmp_path / "t.jsonl", user="u", columns=["u", "v"], types={"v": kind})
    assert [value or None for value in values(same)] == [value or None for value in values(table)]


@pytest.mark.parametrize("kind", CELLS)
def test_one_persons_cell_changes_nothing_else(kind: str, tmp_path: Path) -> None:
    """The schema, and every other person's value, whatever one person's cell holds. A reader that looks at the rows is caught."""
    chance, nasty = (
        random.Random(3),
        ["", "x", "5", "2026-01-05", "true", "1e999", "\ufeff", "'; DROP TABLE t", "9" * 5000],
    )
    usual = [cell for cell, value in CELLS[kind] if value is not None]
    caught = 0
    for _ in range(5):
        cells = [chance.choice(usual) for _ in range(6)]
        place = chance.randrange(6)
        changed = [chance.choice(nasty) if at == place else cell for at, cell in enumerate(cells)]
        one, other = (
            eh.read(written(tmp_path, kind, each, f"{name}.csv"), user="u", types={"v": kind})
            for name, each in (("a", cells), ("b", changed))
        )
        assert one.expression.schema() == other.expression.schema()
        assert [v for at, v in enumerate(values(one)) if at != place] == [
            v for at, v in enumerate(values(other)) if at != place
        ]
        sniffed = [pd.read_csv(tmp_path / f"{name}.csv")["v"].dtype for name in "ab"]
        caught += sniffed[0] != sniffed[1]
    assert caught or kind.startswith(("text", "date", "timestamp", "bool"))


def test_typed_columns_need_no_casts(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("u,day,amount\n" + "".join(f"p{k % 50},2026-0{1 + k % 3}-01,{k % 7}.5\n" for k in range(600)))
    table = eh.read(path, user="u", types={"day": "date", "amount": "float"})
    session = eh.Session(table, eh.Ledger(tmp_path / "b.db", epsilon=10_000, delta=0.1))
    found = session.sql(
        "SELECT STRFTIME(day, '%m') AS m, AVG(amount) AS a FROM sales GROUP BY m ORDER BY m", epsilon=900, delta="1e-3"
    )
    assert list(found.value["m"]) == ["01", "02", "03"]
    assert all(abs(value - 3.5) < 0.2 for value in found.value["a"])


def test_facts_may_say_the_type(tmp_path: Path) -> None:
    path = written(tmp_path, "int", ["1", "2"])
    (tmp_path / "t.toml").write_text('[columns.v]\ntype = "int"\nbounds = [0, 5]\n')
    table = eh.read(path, user="u", types={"v": "float"})
    assert str(table.expression.schema()["v"]) == "int64"
    assert Drafts(table).sum("v", epsilon=1).query["bounds"] == [0, 5]


def test_a_public_sample_says_types_and_the_table_itself_does_not(tmp_path: Path) -> None:
    path = written(tmp_path, "int", ["1", "x"])
    sample = tmp_path / "sample.csv"
    sample.write_text("u,v,more\nsomebody,3,2026-01-01\n")
    assert str(eh.read(path, user="u", types=sample).expression.schema()["v"]) == "int64"
    given = eh.read_public(pa.table({"v": [1.5], "u": ["x"]}))
    assert str(eh.read(path, user="u", types=given).expression.schema()["v"]) == "float64"
    (tmp_path / "link.csv").symlink_to(path)
    for itself in (path, str(tmp_path / "link.csv")):
        with pytest.raises(eh.UsageError, match="is the table itself"):
            eh.read(tmp_path / "t.csv", user="u", types=itself)


REFUSED: list[tuple[Any, str]] = [
    ({"v": "integer"}, "no type; expected one of text, int.*Did you mean 'int'"),
    ({"w": "int"}, "there is no column 'w'"),
    ({"u": "date"}, "ids are compared as they are spelled"),
    ({"v": "date %d%m%Y"}, "in any order with one sign between them"),
    ({"v": "date %d/%d/%Y"}, "in any order"),
    ({"v": "int %d/%m/%Y"}, "no type"),
    (5, "expected a type for each column"),
    ({"v": 5}, "no type"),
]


@pytest.mark.parametrize(("types", "words"), REFUSED)
def test_what_is_no_type_is_refused(types: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(eh.EvenhandError, match=words):
        eh.read(written(tmp_path, "int", ["1"]), user="u", types=types)


def test_a_column_with_a_type_keeps_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"u": ["a"], "v": [1.5]})
    assert str(eh.read(frame, user="u", types={"v": "float"}).expression.schema()["v"]) == "float64"
    with pytest.raises(eh.UsageError, match="holds float64 by its schema, and 'date' was declared"):
        eh.read(frame, user="u", types={"v": "date"})


def test_ids_may_be_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("u,v\n7,1\n007,2\nx,3\n8,4\n")
    table = eh.read(path, user="u", types={"u": "int", "v": "float"})
    people = eh.read(pd.DataFrame({"u": [7, 8], "age": [30, 40]}), user="u")
    joined = table.join(people)
    rows = joined.engine.fetch(joined.expression.select("v", "age").order_by("v")).reveal().to_pylist()
    assert rows == [{"v": 1.0, "age": 30}, {"v": 2.0, "age": 30}, {"v": 4.0, "age": 40}]


def test_under_values_types_move_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("u,g,v\na,x,3\nb,y,oops\n")
    table = eh.read(path, user="u", public=["g"], protects="values", types={"v": "float"})
    assert values(table) == [3.0, None]
    assert parse_types(None) == {}
