"""Threads that ask at the same time get their own answers, and no errors: on one backend, and on one connection."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.noise import seam
from evenhand.release import Receipt
from evenhand.session import Drafts

SIZES, TIMES = (10, 777, 3), 12


def opened(kind: str) -> list[eh.Table]:
    if kind == "arrow":
        return [eh.read(pa.table({"u": list(range(size)), "g": ["a"] * size}), user="u") for size in SIZES]
    connection = duckdb.connect()
    for size in SIZES:
        connection.execute(f"CREATE TABLE t{size} AS SELECT i AS u, 'a' AS g FROM range({size}) r(i)")
    if kind == "relation":
        return [eh.read(connection.sql(f"SELECT * FROM t{size}"), user="u") for size in SIZES]
    backend = ibis.duckdb.from_connection(connection)
    return [eh.read(backend.table(f"t{size}"), user="u") for size in SIZES]


def answers(table: eh.Table, found: Counter[Any]) -> None:
    """Exact numbers of users, and by group; or the kind of error."""
    for _ in range(TIMES):
        for by in (None, "g"):
            given: dict[str, Any] = {"by": by, "keys": ["a"], "bounding": eh.NormClip(1)} if by else {}
            draft = Drafts(table).users(epsilon=1, **given)
            assert draft.cost is not None
            try:
                with seam.replaced(seam.silent):
                    value = draft.run(Receipt(draft.cost.epsilon, draft.cost.delta, "test")).value
                found[int(value["users"].iloc[0]) if by else value] += 1
            except Exception as error:
                found[f"{type(error).__name__}: {error}"] += 1


@pytest.mark.parametrize("kind", ["arrow", "table", "relation"])
def test_threads_get_their_own_answers(kind: str) -> None:
    tables = opened(kind)
    found: list[Counter[Any]] = [Counter() for _ in SIZES]
    threads = [threading.Thread(target=answers, args=pair) for pair in zip(tables, found, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Counter({size: 2 * TIMES}) for size in SIZES]
