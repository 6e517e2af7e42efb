"""A release on a join of three tables against the bare engine's same join with ``GROUP BY customer``: orders, their lines (a part), public products.

TPC-H's size at scale 1 (1.5 million orders, 6 million lines), generated into a DuckDB file; the bare engine reads the same file through the same kind of
connection. "Two levels" has a table of packages between orders and lines. Both sides run by turns: the best of each is compared.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import duckdb

import evenhand as eh
from benchmarks.speed.timing import compare

BAR = 1.5
CUSTOMERS, ORDERS, LINES, PRODUCTS = 150_000, 1_500_000, 6_000_000, 20_000


def shop(folder: Path) -> Path:
    """A database of generated rows."""
    path = folder / "shop.duckdb"
    with duckdb.connect(path) as connection:
        for name, columns, rows in (
            (
                "orders",
                f"(random() * {CUSTOMERS})::BIGINT AS customer, range AS order_id, (random() * 7)::INT AS priority",
                ORDERS,
            ),
            (
                "lines",
                f"(random() * {ORDERS})::BIGINT AS order_id, (random() * {PRODUCTS})::BIGINT AS product_id, random() * 100 AS price, "
                "(random() * 50)::INT AS quantity, 'comment ' || (random() * 1000)::INT AS note",
                LINES,
            ),
            (
                "products",
                "range AS product_id, random() AS weight, 'kind ' || (random() * 30)::INT AS kind",
                PRODUCTS + 1,
            ),
            ("packages", f"(random() * {ORDERS})::BIGINT AS order_id, range AS package_id", 2 * ORDERS),
            ("packed", f"(random() * {2 * ORDERS})::BIGINT AS package_id, random() * 100 AS price", LINES),
        ):
            connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM range({rows})")
    return path


def run(repeats: int = 7) -> dict[str, float]:
    """Ratios to the bare engine; the first at most the bar."""
    with tempfile.TemporaryDirectory() as folder:
        path = shop(Path(folder))
        bare = duckdb.connect(path, read_only=True)
        products = eh.read_public(bare.sql("SELECT product_id, kind FROM products").to_arrow_table())
        orders = eh.read(path, table="orders", user="customer")
        lines, packages, packed = (eh.read_part(path, table=name) for name in ("lines", "packages", "packed"))
        ledger = eh.Ledger(Path(folder) / "budget.db", epsilon=1e6)
        three = orders.join(lines, on="order_id").join(products, on="product_id")
        levels = orders.join(packages, on="order_id").join(packed, on="package_id")

        def ask(table: eh.Table) -> object:
            return eh.Session(table, ledger).sum("price", bounds=(0, 100), epsilon=1, bounding=eh.TotalCap(5000))

        def grouped(joins: str) -> object:
            return bare.execute(
                f"SELECT count(*), sum(s), sum(n) FROM (SELECT customer, sum(price) AS s, count(*) AS n FROM orders {joins} GROUP BY customer)"
            ).fetchall()

        sides = {
            "three tables": ("JOIN lines USING (order_id) JOIN products USING (product_id)", three),
            "two tables": ("JOIN lines USING (order_id)", orders.join(lines, on="order_id")),
            "two levels": ("JOIN packages USING (order_id) JOIN packed USING (package_id)", levels),
        }
        found: dict[str, float] = {}
        for name, (joins, table) in sides.items():
            times = compare({"bare": partial(grouped, joins), "ours": partial(ask, table)}, repeats)
            found |= {name: times["ours"] / times["bare"], f"{name}, bare seconds": times["bare"]}
        return found


if __name__ == "__main__":
    for title, figure in run(int(sys.argv[1]) if len(sys.argv) > 1 else 7).items():
        print(f"{title:<28} {figure:6.2f}{f'  (bar {BAR})' if title == 'three tables' else ''}")
