"""Joins with parts give the same rows on every engine, from files, frames and databases, as plain Python does: also for odd keys and crowded ones."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ibis import _

import evenhand as eh
from evenhand.tables.views import reached
from watch import integers

CHANCE = random.Random(4)
KEYS = [None, "", "a", "A", "a ", "\u00e9", "e\u0301", "'; --", "none of the others"]
ORDERS = pa.table(
    {
        "person": [CHANCE.choice([None, "p", "P", "q", "r"]) for _row in range(30)],
        "code": [CHANCE.choice(KEYS[:-1]) for _row in range(30)],
        "number": pa.array([CHANCE.choice([None, *range(6)]) for _row in range(30)], pa.int32()),
    }
)
ITEMS = pa.table(
    {
        "number": pa.array([CHANCE.choice([None, *range(8), 3, 3, 3]) for _row in range(60)], pa.int64()),
        "code": [CHANCE.choice(KEYS) for _row in range(60)],
        "price": [CHANCE.choice([None, 0.0, 1.5, -2.0]) for _row in range(60)],
        "note": [CHANCE.choice([None, "", "b", "B"]) for _row in range(60)],
    }
)
Opened = tuple[eh.Table, Any]


def files(folder: Path, engine: str | None = None) -> Opened:
    for name, rows in (("orders", ORDERS), ("items", ITEMS)):
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=16)
    orders = eh.read(folder / "orders.parquet", user="person", engine=engine)
    return orders, eh.read_part(folder / "items.parquet", engine=engine)


def database(folder: Path) -> Opened:
    path = folder / "shop.duckdb"
    with duckdb.connect(path) as connection:
        for name, rows in (("orders", ORDERS), ("items", ITEMS)):
            connection.register("given", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
    return eh.read(path, table="orders", user="person"), eh.read_part(path, table="items")


def postgres(url: str) -> Opened:
    backend: Any = ibis.connect(url)
    for name, rows in (("orders", ORDERS), ("items", ITEMS)):
        backend.create_table(name, rows)
    backend.con.commit()
    return eh.read(url, table="orders", user="person"), eh.read_part(url, table="items")


SOURCES = ["frames", "files", "database", "postgres", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")])]  # fmt: skip


@pytest.fixture(params=SOURCES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    if request.param == "spark":
        request.getfixturevalue("spark")
        return files(tmp_path, "spark")
    if request.param == "postgres":
        return postgres(request.getfixturevalue("postgres_url"))
    if request.param == "frames":
        return eh.read(ORDERS, user="person"), eh.read_part(ITEMS, name="items")
    return files(tmp_path) if request.param == "files" else database(tmp_path)


def order(row: dict[str, Any], names: list[str]) -> list[Any]:
    """Nulls first, text by its bytes, numbers by value."""
    told = [row[name].encode() if isinstance(row[name], str) else row[name] for name in names]
    return [(value is not None, value) if value is not None else (False,) for value in told]


def expected(on: list[str], how: str, fan_out: int, most: int) -> Counter[str]:
    """The rows of a join, by its definition."""
    names, found = ITEMS.column_names, Counter[str]()
    added = [name for name in names if name not in on]
    for person in (None, "p", "P", "q", "r"):
        rows = [row for row in ORDERS.to_pylist() if row["person"] == person]
        taken = 0
        for row in sorted(rows, key=lambda row: order(row, ["code", "number"])):
            met = [
                item for item in ITEMS.to_pylist() if all(item[key] is not None and item[key] == row[key] for key in on)
            ]
            met = sorted(met, key=lambda item: order(item, names))[:fan_out]
            if how == "left" and not met:
                met = [dict.fromkeys(names)]
            taken += len(met)
            if taken > most and person is not None:
                break
            found.update(
                told({**row, **{f"{name}_": item[name] for name in added}}) for item in met if person is not None
            )
    return found


def told(row: dict[str, Any]) -> str:
    values = [row[name] for name in sorted(row)]
    return repr(
        [
            None if value is None or value != value else value if isinstance(value, str) else float(value) + 0.0
            for value in values
        ]
    )


@pytest.mark.parametrize(("on", "how", "fan_out", "most"), [
    (["number"], "inner", 1000, 10**6), (["number"], "left", 2, 10**6), (["code"], "inner", 3, 10**6), (["code"], "left", 1000, 8),
    (["number", "code"], "left", 1, 10**6), (["code"], "inner", 2, 5),
])  # fmt: skip
def test_every_engine_joins_the_same_rows(
    on: list[str], how: str, fan_out: int, most: int, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reached, "MOST_REACHED", most)
    orders, items = opened
    added = [name for name in ITEMS.column_names if name not in on]
    part = items.derive(**{f"{name}_": _[name] for name in added}).select(*on, *(f"{name}_" for name in added))
    if how == "left" or fan_out < 1000:  # the same order of columns as in the definition
        part = items.derive(**{f"{name}_": _[name] for name in added})
        part = part.select(*(name if name in on else f"{name}_" for name in ITEMS.column_names))
    view = orders.join(part, on=on, how=how, fan_out=fan_out).where(_.person.notnull())
    rows = view.engine.evaluate(
        view.expression.mutate(number=view.expression["number"].cast("string").cast("float64"))
    ).to_pylist()
    assert Counter(map(told, rows)) == expected(on, how, fan_out, most)


def test_integers_and_units_are_the_same_on_every_engine(opened: Opened) -> None:
    """As from the joined rows of one table, in memory."""
    orders, items = opened
    joined = orders.join(items.select("number", "price"), on="number", fan_out=4)
    by_number: dict[Any, list[Any]] = {}
    for item in sorted(ITEMS.to_pylist(), key=lambda item: order(item, ["number", "price"])):
        by_number.setdefault(item["number"], []).append(item["price"])
    rows = [
        {**row, "price": price}
        for row in ORDERS.to_pylist()
        if row["number"] is not None
        for price in by_number.get(row["number"], [])[:4]
    ]
    plain = eh.read(pa.Table.from_pylist(rows, pa.schema([*ORDERS.schema, ("price", pa.float64())])), user="person")
    for ask in (
        lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(7)),
        lambda ask: ask.sum("price", bounds=(-1, 2), epsilon=1, bounding=eh.TotalCap(9)),
        lambda ask: ask.count(by="code", keys=["a", "A", ""], epsilon=1, bounding=eh.RowLimit(1000)),
    ):
        assert integers(joined, ask) == integers(plain, ask)
    units = [each.per(["number", "code"], n=_.count(), total=_.price.sum()) for each in (joined, plain)]
    for ask in (
        lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(5)),
        lambda ask: ask.sum("n", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(9)),
        lambda ask: ask.count(by="code", keys=["a", "A", ""], epsilon=1, bounding=eh.RowLimit(1000)),
    ):
        assert integers(units[0], ask) == integers(units[1], ask)


def test_two_tables_of_a_database_are_read_in_one_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database's statement sees one state of all its tables, so none of them is copied first."""
    orders, items = database(tmp_path)
    sent: list[str] = []
    run = type(orders.engine).run

    def noted(engine: Any, sql: str) -> None:
        sent.append(sql)
        run(engine, sql)

    monkeypatch.setattr(type(orders.engine), "run", noted)
    eh.Session(
        orders.join(items.select("number", "price"), on="number"), eh.Ledger(tmp_path / "b.db", epsilon=1)
    ).count(epsilon=1)
    naming = [sql for sql in sent if '"orders"' in sql or '"items"' in sql]
    assert len(naming) == 1
    assert '"orders"' in naming[0] and '"items"' in naming[0]  # noqa: PT018


def test_tables_on_two_connections_are_refused(tmp_path: Path) -> None:
    orders, _items = database(tmp_path)
    pq.write_table(ITEMS, tmp_path / "items.parquet")
    with pytest.raises(eh.UsageError, match="on different connections"):
        orders.join(eh.read_part(tmp_path / "items.parquet").select("number", "price"), on="number")


def test_parts_of_text_files_and_uuids(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("person,id\n1,7\n2,7\n2,8\n3,x\n")
    (tmp_path / "items.csv").write_text("id,price\n7,1.5\n7,2\n8,\nbroken\n9,4\n")
    table = eh.read(tmp_path / "orders.csv", user="person").join(eh.read_part(tmp_path / "items.csv"), on="id")
    assert integers(table, lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(100))) == [[5]]
    ids = [uuid.UUID(int=number).bytes for number in (1, 2)]
    owners = pa.table({"person": [1, 2], "id": pa.array(ids, pa.uuid())})
    parts = pa.table({"id": pa.array([*ids, ids[0]], pa.uuid()), "x": [1, 2, 3]})
    joined = eh.read(owners, user="person").join(eh.read_part(parts, name="parts"), on="id")
    assert integers(joined, lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(100))) == [[3]]


def test_sqlite_refuses_as_for_every_view(tmp_path: Path) -> None:
    backend: Any = ibis.sqlite.connect(tmp_path / "shop.sqlite")
    backend.con.execute("CREATE TABLE orders (person TEXT, number INTEGER)")
    backend.con.execute("CREATE TABLE items (number INTEGER, price REAL)")
    orders = eh.read(backend.table("orders"), user="person")
    with pytest.raises(eh.UsageError, match="can't be filtered, computed with or joined"):
        orders.join(eh.read_part(backend.table("items"), name="items"), on="number")


def test_pandas_row_numbers_are_no_columns(tmp_path: Path) -> None:
    for name, rows in (("orders", ORDERS), ("items", ITEMS)):
        frame = rows.to_pandas()
        frame.index = pd.Index([place**2 for place in range(len(frame))])
        frame.to_parquet(tmp_path / f"{name}.parquet")
    orders = eh.read(tmp_path / "orders.parquet", user="person")
    part = eh.read_part(tmp_path / "items.parquet")
    assert "__index_level_0__" in orders.columns
    assert "__index_level_0__" not in part.columns
