"""Parts that a keeper offers: analysts join them in SQL by the columns that the keeper says, and by no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import evenhand as eh
from evenhand.service.answers import _described
from evenhand.service.config import _table
from evenhand.service.granted import Offered
from evenhand.service.pricing import Prices
from evenhand.service.shapes import Shape
from evenhand.service.slots import Slots
from evenhand.service.toml_lines import read_toml
from evenhand.session import Drafts
from evenhand.tables.engines.copied import beside
from watch import integers

TOML = """
[tables.orders]
source = "shop.duckdb"
table = "orders"
user = "customer"
population = "people"
rows = 3_000

[[tables.orders.part]]
name = "items"
on = { id = "order_id" }
rows = 2_000_000

[tables.orders.part.columns.price]
bounds = [0, 10]

[[tables.orders.part]]
name = "returns"
on = "item_id"
"""
ITEMS = "FROM orders JOIN items ON orders.id = items.order_id"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    with duckdb.connect(place / "shop.duckdb") as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT range % 40 AS customer, range AS id, range % 3 AS month FROM range(100)"
        )
        connection.execute(
            "CREATE TABLE items AS SELECT range % 120 AS order_id, range AS item_id, range % 11 AS price FROM range(600)"
        )
        connection.execute("CREATE TABLE returns AS SELECT range * 2 AS item_id, 'late' AS reason FROM range(50)")
    return place


def offered(folder: Path, text: str = TOML) -> Offered:
    desk: Any = None
    (folder / "keeper.toml").write_text(text)
    return _table(read_toml(folder / "keeper.toml").sections("tables")["orders"], {"people": desk}, folder)


def counted(table: eh.Table, query: str) -> Any:
    return integers(table, lambda ask: ask.sql(query, epsilon=1, bounding=eh.TotalCap(1000)))


def test_analysts_join_the_parts_of_their_keeper(folder: Path) -> None:
    """On the keeper's copy, and on those of its workers."""
    one = offered(folder)
    for table in (one.table, beside({"orders": one.table})["orders"]):
        assert counted(table, f"SELECT COUNT(*) {ITEMS}") == [[500]]
        assert counted(table, f"SELECT COUNT(*) {ITEMS} JOIN returns USING (item_id)") == [[50]]
        assert counted(table, f"SELECT COUNT(*) {ITEMS} LEFT JOIN returns USING (item_id) WHERE month = 0") == [[170]]
        assert counted(table, "SELECT COUNT(*) FROM orders") == [[100]]


@pytest.mark.parametrize(("query", "said"), [
    ("SELECT COUNT(*) FROM orders JOIN items ON orders.month = items.order_id", "may be joined by {'id': 'order_id'} only"),
    ("SELECT COUNT(*) FROM orders JOIN items ON orders.id = items.item_id", "may be joined by"),
    ("SELECT COUNT(*) FROM (SELECT customer, month AS id FROM orders) o JOIN items ON o.id = items.order_id", "may be joined by"),
    ("SELECT COUNT(*) FROM (SELECT customer, 1 AS id FROM orders) o JOIN items ON o.id = items.order_id", "made by a view"),
    ("SELECT COUNT(*) FROM (SELECT customer, id % 2 AS id FROM orders) o JOIN items ON o.id = items.order_id", "made by a view"),
    ("SELECT COUNT(*) FROM orders JOIN returns ON orders.id = returns.item_id", "may be joined by {'item_id': 'item_id'} only"),
    ("SELECT COUNT(*) FROM items", "whose its rows are"),
])  # fmt: skip
def test_a_hostile_analyst_reaches_rows_in_no_other_way(query: str, said: str, folder: Path) -> None:
    with pytest.raises(eh.UsageError, match=said):
        counted(offered(folder).table, query)


def test_prices_are_worked_out_from_shapes_alone(folder: Path) -> None:
    table = offered(folder).table
    shape = Shape.of(table)
    assert shape is not None
    query = f"SELECT SUM(price) AS total {ITEMS} JOIN returns USING (item_id)"
    there, here = (Drafts(each).sql(query, epsilon=1) for each in (shape.opened(), table))
    assert there.guarantee == here.guarantee
    assert "items (by order_id = id of orders) and returns (by item_id of items)" in here.guarantee.words()
    assert there.query == here.query
    assert counted(shape.opened(), f"SELECT COUNT(*) {ITEMS}") == [[0]]
    price = Prices({"orders": table}).price("orders", "text", {"ask": "sql", "text": query, "epsilon": 1}, None)
    assert price.guarantee == here.guarantee


def test_parts_are_described_and_take_time(folder: Path) -> None:
    one = offered(folder)
    items, returns = _described("orders", one)["parts"]
    assert (items["name"], items["on"]) == ("items", {"id": "order_id"})
    assert items["columns"][2] == {"name": "price", "type": "int64", "bounds": [0, 10]}
    assert returns["on"] == {"item_id": "item_id"}
    assert one.part_rows == 3_000_000
    slots = Slots({"orders": one.rows}, part_rows={"orders": one.part_rows})
    plain, sql = ({"statistic": "count"}, {"statistic": "count", "sql": "SELECT COUNT(*) FROM orders"})
    assert slots.of("orders", sql) > 100 * slots.of("orders", plain) / 2


@pytest.mark.parametrize(("old", "new", "said"), [
    ('on = { id = "order_id" }', 'on = "order_id"', r"line \d+: \[tables.orders.part.0\] .*no key column|no join column"),
    ('on = "item_id"', 'on = "nothing"', r"line \d+: \[tables.orders.part.1\] there is no key column 'nothing'"),
    ('name = "returns"', 'name = "items"', r"line \d+: \[tables.orders.part.1\] name = 'items': another part has it"),
    ('name = "items"', 'name = "it ems"', "expected a name as SQL has it"),
    ("rows = 2_000_000", "rows = 0", r"line \d+: \[tables.orders.part.0\] rows = 0"),
    ("rows = 2_000_000", "fan_out = 3", "'fan_out' is not known here"),
    ('on = "item_id"', 'on = "item_id"\nsource = "none.parquet"', "there is no file"),
    ("[[tables.orders.part]]", "[tables.orders.part]", "TOML|expected sections"),
    ('user = "customer"', 'user = "customer"\nprotects = "values"', "expected protects=\"presence\""),
])  # fmt: skip
def test_a_part_that_can_not_be_joined_is_a_mistake_of_the_file(old: str, new: str, said: str, folder: Path) -> None:
    with pytest.raises(eh.UsageError, match=said):
        offered(folder, TOML.replace(old, new, 1 if "[[" not in old else -1))
