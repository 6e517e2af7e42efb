"""Sources that can be set to another state while a release reads them; all states differ in the rows of one user, the victim."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import evenhand as eh

MANY = 1500
OTHERS = [(f"u{user}", group, 0.5) for user in range(6) for group in ("a", "b")]

Rows = list[tuple[str, str, float]]
Victim = dict[str, Rows]

PRESENCE: Victim = {
    "small": [("victim", "a", 3.0)],
    "giant": [("victim", "a", 3.0)] * MANY,
    "elsewhere": [("victim", "b", -1.0)] * MANY,
    "gone": [],
}
VALUES: Victim = {"low": [("victim", "a", -1.0)] * 40, "high": [("victim", "a", 3.0)] * 40}
CHANGES = {"presence": [("small", "giant"), ("giant", "elsewhere")], "values": [("low", "high")]}


def arrow(rows: Rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.string(), pa.string(), pa.float64())
    return pa.table({name: pa.array(column, dtype) for name, column, dtype in zip("ugv", columns, types, strict=True)})


def literal(row: tuple[str, str, float]) -> str:
    return "'{}', '{}', {}".format(*row)


class Source:
    """A source that can be set to a state while it is open."""

    library = "duckdb"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, rows: Rows) -> None:
        """Other clients make these the victim's rows."""
        raise NotImplementedError

    def opened(self) -> Any:
        """What is handed to ``eh.read``."""
        raise NotImplementedError

    def read(self, relation: str) -> eh.Table:
        return eh.read(self.opened(), user="u", protects=relation, public=["g"] if relation == "values" else [])


class DuckTable(Source):
    """A table of a DuckDB database, which another connection writes to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.connection = duckdb.connect()
        self.connection.execute("CREATE TABLE t (u varchar, g varchar, v double)")
        self.connection.execute(f"INSERT INTO t VALUES {', '.join(f'({literal(row)})' for row in OTHERS)}")
        self.writer = self.connection.cursor()

    def put(self, rows: Rows) -> None:
        self.writer.execute("BEGIN")
        self.writer.execute("DELETE FROM t WHERE u = 'victim'")
        for row, copies in Counter(rows).items():
            self.writer.execute(f"INSERT INTO t SELECT {literal(row)} FROM range({copies})")
        self.writer.execute("COMMIT")

    def opened(self) -> Any:
        return ibis.duckdb.from_connection(self.connection).table("t")


class DuckRelation(DuckTable):
    def opened(self) -> Any:
        return self.connection.sql("SELECT * FROM t")


class DuckExpression(DuckTable):
    """An Ibis expression that names the table twice: a release that reads it once still sees two."""

    def opened(self) -> Any:
        table = super().opened()
        return table.filter(table.v < 0.6).union(table.filter(table.v >= 0.6))


class ParquetFile(Source):
    """A file that is replaced by another one of the same name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path, self.count = folder / "t.parquet", itertools.count()
        self.put([])

    def put(self, rows: Rows) -> None:
        fresh = self.folder / f"{next(self.count)}.tmp"
        pq.write_table(arrow([*OTHERS, *rows]), fresh)
        os.replace(fresh, self.path)

    def opened(self) -> Any:
        return str(self.path)


class ParquetView(ParquetFile):
    """The same behind an Ibis table of the caller's own DuckDB."""

    def opened(self) -> Any:
        return ibis.duckdb.connect().read_parquet(self.path)


class Frame(Source):
    """A pandas frame whose arrays are written to in place: Arrow does not copy them.

    The victim always has as many rows; those that are not part of the state are in a group that nobody asks about.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        rows = [(int(user[1:]), float(ord(group)), value) for user, group, value in OTHERS]
        self.frame = pd.DataFrame([*rows, *[(99, 0.0, 0.5)] * MANY], columns=["u", "g", "v"])
        self.g, self.v = (self.frame[name].to_numpy() for name in "gv")
        for column in (self.g, self.v):
            column.flags.writeable = True

    def put(self, rows: Rows) -> None:
        first = len(OTHERS)
        self.g[first:], self.v[first:] = 0, 0.5
        self.g[first : first + len(rows)] = [ord(group) for _, group, _ in rows]
        self.v[first : first + len(rows)] = [value for _, _, value in rows]

    def opened(self) -> Any:
        return self.frame


class PostgresTable(Source):
    """A table of a live Postgres server, which another client writes to."""

    library = "psycopg"

    def __init__(self, url: str) -> None:
        import psycopg

        self.backend = ibis.connect(url)
        self.writer = psycopg.connect(url, autocommit=True)
        self.writer.execute("CREATE TABLE t (u text, g text, v double precision)")
        self.writer.execute(f"INSERT INTO t VALUES {', '.join(f'({literal(row)})' for row in OTHERS)}")

    def put(self, rows: Rows) -> None:
        with self.writer.transaction():
            self.writer.execute("DELETE FROM t WHERE u = 'victim'")
            for row, copies in Counter(rows).items():
                self.writer.execute(f"INSERT INTO t SELECT {literal(row)} FROM generate_series(1, {copies})")

    def opened(self) -> Any:
        return self.backend.table("t")
