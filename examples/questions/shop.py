"""A generated shop: sales to households, products that everybody may know, and what is known about each household."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import evenhand as eh
from evenhand.tables import PublicTable

DEPARTMENTS = ["bakery", "dairy", "drinks", "household", "produce"]
REGIONS = ["east", "north", "south", "west"]
FACTS = {
    "amount": eh.Column(bounds=(0, 50), unit="€"),
    "department": eh.Column(keys=DEPARTMENTS),
    "region": eh.Column(keys=REGIONS),
    "size": eh.Column(bounds=(1, 8), unit="people"),
}


@dataclass(frozen=True)
class Shop:
    """The three tables: ``sales`` and ``households`` are about people, ``products`` is public."""

    sales: eh.Table
    households: eh.Table
    products: PublicTable

    @property
    def with_products(self) -> eh.Table:
        """Sales with what is known about their product."""
        return self.sales.join(self.products, on="product_id")

    @property
    def with_households(self) -> eh.Table:
        """Sales with what is known about their household."""
        return self.sales.join(self.households)


def generate(folder: Path, households: int = 4_000, seed: int = 7) -> None:
    """Write the tables as Parquet files."""
    random = np.random.default_rng(seed)
    sales = np.ceil(np.exp(random.normal(2.2, 0.9, households))).astype(int)
    who = np.repeat(np.arange(households), sales)
    product = random.zipf(1.3, len(who)) % 300
    price = np.round(random.gamma(2.0, 4.0, 300) + 0.5, 2)
    first = datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(int(day)) for day in random.integers(0, 181, len(who))]
    columns = {
        "household": [f"h{number}" for number in who],
        "product_id": product,
        "day": days,
        "amount": np.round(price[product] * random.uniform(0.8, 1.2, len(who)), 2),
        "coupon": random.random(len(who)) < 0.2,
    }
    pq.write_table(pa.table(columns), folder / "sales.parquet")
    known = {"product_id": np.arange(300), "department": random.choice(DEPARTMENTS, 300), "price": price}
    pq.write_table(pa.table(known), folder / "products.parquet")
    about = {
        "household": [f"h{number}" for number in range(households)],
        "region": random.choice(REGIONS, households),
        "size": random.integers(1, 7, households),
    }
    pq.write_table(pa.table(about), folder / "households.parquet")


def opened(read: Callable[[str], eh.Table], public: Callable[[str], PublicTable]) -> Shop:
    """The shop on some engine: ``read`` opens a table of people by its name, ``public`` a public one."""
    return Shop(read("sales"), read("households"), public("products"))


def on_duckdb(folder: Path) -> Shop:
    """The shop from its files."""
    return opened(
        lambda name: eh.read(folder / f"{name}.parquet", user="household", population="households", columns=_of(name)),
        lambda name: eh.read_public(folder / f"{name}.parquet"),
    )


def _of(name: str) -> dict[str, eh.Column]:
    """The facts about a table's columns."""
    names = {"sales": ["amount"], "households": ["region", "size"]}[name]
    return {column: FACTS[column] for column in names}
