"""A normalised database of orders, as TPC-H has it: lines belong to orders, orders to customers, and each line has a public part and a nation."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import evenhand as eh

CUSTOMERS, ORDERS, PARTS = 3_000, 30_000, 200
random = np.random.default_rng(8)

nations = pd.DataFrame({"n_nationkey": range(5), "n_name": ["Peru", "Kenya", "Japan", "Iran", "France"]})
parts = pd.DataFrame(
    {
        "p_partkey": range(PARTS),
        "p_type": random.choice(["brass", "tin", "steel"], PARTS),
        "p_size": random.integers(1, 51, PARTS),
    }
)
customer = pd.DataFrame({"o_custkey": range(CUSTOMERS), "c_nationkey": random.integers(0, 5, CUSTOMERS)})
customer["c_mktsegment"] = random.choice(["household", "machinery", "furniture"], CUSTOMERS)
orders = pd.DataFrame(
    {"o_orderkey": range(ORDERS), "o_custkey": (CUSTOMERS * random.random(ORDERS) ** 1.5).astype(int)}
)
orders["o_orderdate"] = pd.to_datetime("1996-01-01") + pd.to_timedelta(random.integers(0, 730, ORDERS), "D")
orders["o_orderpriority"] = random.choice(["urgent", "low"], ORDERS, p=[0.2, 0.8])
lines = pd.DataFrame({"l_orderkey": np.repeat(np.arange(ORDERS), random.integers(1, 8, ORDERS))})
lines["l_linenumber"] = lines.groupby("l_orderkey").cumcount() + 1
lines["l_partkey"] = random.integers(0, PARTS, len(lines))
lines["l_quantity"] = random.integers(1, 51, len(lines))
lines["l_extendedprice"] = (lines.l_quantity * random.uniform(10, 20, len(lines))).round(2)
lines["l_discount"] = random.choice([0, 0.05, 0.1], len(lines))
lines["l_returnflag"] = random.choice(["R", "N"], len(lines), p=[0.25, 0.75])

BOUNDS = {
    "l_quantity": eh.Column(bounds=(1, 50)),
    "l_extendedprice": eh.Column(bounds=(0, 1000), unit="$"),
    "l_discount": eh.Column(bounds=(0, 0.1)),
}
REVENUE = "SUM(l_extendedprice * (1 - l_discount), contribution_bounds_per_row => (0, 1000))"
LINES = "FROM orders JOIN lineitem ON o_orderkey = l_orderkey".replace(
    "o_orderkey = l", "orders.o_orderkey = lineitem.l"
)
PART = "JOIN part ON lineitem.l_partkey = part.p_partkey"
NATION = "JOIN customer USING (o_custkey) JOIN nation ON customer.c_nationkey = nation.n_nationkey"
QUESTIONS = {
    "Q1: revenue and lines by return flag": f"SELECT l_returnflag, {REVENUE} AS revenue, COUNT(*) AS n {LINES} WHERE l_returnflag IN ('R', 'N') GROUP BY 1",
    "Q3: revenue of furniture before a day": f"SELECT {REVENUE} AS revenue {LINES} {NATION} WHERE c_mktsegment = 'furniture' AND o_orderdate < DATE '1996-06-01'",
    "Q5: revenue by nation": f"SELECT n_name, {REVENUE} AS revenue {LINES} {NATION} GROUP BY n_name",
    "Q6: lines with a small discount": f"SELECT COUNT(*) AS n {LINES} WHERE l_discount BETWEEN 0.01 AND 0.06 AND l_quantity < 24",
    "Q10: customers who returned something": f"SELECT COUNT(DISTINCT o_custkey) AS customers {LINES} WHERE l_returnflag = 'R'",
    "Q12: lines of urgent orders": f"SELECT o_orderpriority, COUNT(*) AS n {LINES} WHERE o_orderpriority IN ('urgent', 'low') GROUP BY o_orderpriority",
    "Q14: quantity by type of part": f"SELECT p_type, SUM(l_quantity) AS quantity, AVG(l_quantity) AS mean {LINES} {PART} GROUP BY p_type",
    "Q18: lines per order": "SELECT AVG(n, contribution_bounds_per_row => (0, 10)) AS mean, COUNT(*) AS orders FROM "
    f"(SELECT o_custkey, o_orderkey, COUNT(*) AS n {LINES} GROUP BY o_custkey, o_orderkey) AS whole",
}


def numbers(frame: pd.DataFrame) -> np.ndarray:
    """The numbers of a result, its groups in order."""
    return frame.sort_values(list(frame.columns)[:1]).select_dtypes("number").to_numpy(float)


with tempfile.TemporaryDirectory() as folder:
    shop = Path(folder) / "shop.duckdb"
    tables = {"orders": orders, "lineitem": lines, "customer": customer, "part": parts, "nation": nations}
    with duckdb.connect(shop) as connection:
        for name, rows in tables.items():
            connection.register("given", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
        exact = {
            title: connection.sql(re.sub(", contribution_bounds_per_row => .*?[)]", "", query)).df()
            for title, query in QUESTIONS.items()
        }
    session = eh.Session(
        eh.read(shop, table="orders", user="o_custkey"), eh.Ledger(Path(folder) / "budget.db", epsilon=24)
    )
    joined: dict[str, Any] = {
        "lineitem": eh.read_part(shop, table="lineitem", columns=BOUNDS),
        "customer": eh.read(shop, table="customer", user="o_custkey"),
        "part": eh.read_public(parts),
        "nation": eh.read_public(nations),
    }
    furthest = 0.0
    for title, query in QUESTIONS.items():
        answer = session.sql(query, epsilon=3, tables=joined)
        released = answer.value if isinstance(answer.value, pd.DataFrame) else pd.DataFrame({"value": [answer.value]})
        furthest = max(furthest, float(np.abs(numbers(released) / numbers(exact[title]) - 1).max()))
        print(f"\n{title}\n{released.round().to_string(index=False)}")
    print(f"\nThe furthest from the exact answer: {furthest:.1%}.\n\n{answer.guarantee}")
