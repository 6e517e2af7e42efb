"""A keeper's copy of a table: asked again and again it answers as the table would, and no question reads a file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import ibis
import pytest

import evenhand as eh
from evenhand.session import Drafts
from evenhand.statistics import Draft
from evenhand.tables.engines import copied as copies
from evenhand.tables.engines.copied import CopiedEngine, copied
from watch import Ask, watch


def opened(users: list[int]) -> eh.Table:
    """On a connection of its own, which may be locked."""
    backend = ibis.duckdb.connect()
    backend.raw_sql(
        f"CREATE TABLE rows AS SELECT u, (u % 5)::DOUBLE AS v, ['a', 'b'][u % 2 + 1] AS g FROM unnest({users}) AS t(u)"
    )
    return eh.read(backend.table("rows"), user="u")


ASKED: list[Ask] = [
    lambda ask: ask.count(epsilon=1),
    lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(2)),
    lambda ask: ask.sum("v", bounds=(0, 4), epsilon=1),
    lambda ask: ask.sum("v", bounds=(-1, 4), epsilon=1),
    lambda ask: ask.mean("v", bounds=(0, 4), epsilon=1),
    lambda ask: ask.count(by="g", keys=["a", "b"], epsilon=1),
]


def _sum(high: int, ask: Drafts) -> Draft:
    return ask.sum("v", bounds=(0, high), epsilon=1)


def test_the_copy_hands_over_the_integers_of_the_table() -> None:
    """Also when it was asked before, and whatever was asked in between; of its own table, not of another copy."""
    tables = [opened([number % 30 for number in range(300)]), opened([number % 7 for number in range(90)])]
    kept = [copied(table) for table in tables]
    for _ in range(2):
        for ask in ASKED:
            for table, copy in zip(tables, kept, strict=True):
                direct = watch(table, ask)
                again = watch(copy, ask, direct.steps)
                assert [step.integers for step in direct.steps] == [step.integers for step in again.steps]


def test_what_an_engine_remembers_is_of_one_view_and_one_unit() -> None:
    table = opened([number % 30 for number in range(300)])
    copy = copied(table)
    variants = [(each, each.where("v > 1"), replace(each, user=("g",))) for each in (table, copy)]
    for ask in ASKED[:2]:
        for one, two in zip(*variants, strict=True):
            direct = watch(one, ask)
            assert [step.integers for step in watch(two, ask, direct.steps).steps] == [
                step.integers for step in direct.steps
            ]


def test_the_copy_stays_as_it_was() -> None:
    table = opened([1, 1, 2])
    copy = copied(table)
    table.engine.backend.raw_sql("DELETE FROM rows")
    assert [step.integers for step in watch(copy, ASKED[0]).steps][-1] == [3]


def test_summaries_are_let_go_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "SUMMARIES", 3)
    copy = copied(opened(list(range(40))))
    engine = copy.engine
    assert isinstance(engine, CopiedEngine)
    for high in range(1, 9):
        watch(copy, partial(_sum, high))
        assert len(engine._summaries) <= 3
    stored = engine.backend.raw_sql("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall()
    assert stored == [(3,)]  # what is kept


def test_a_locked_copy_reads_no_file(tmp_path: Path) -> None:
    """Whatever SQL reaches DuckDB: files and settings are out of reach, and questions are answered as before."""
    import duckdb

    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    copy = copied(opened(list(range(50))))
    engine = copy.engine
    assert isinstance(engine, CopiedEngine)
    engine.lock()
    engine.lock()  # a second table on the same connection
    for sql in (
        f"SELECT * FROM read_csv('{secret}')", f"SELECT * FROM '{secret}'", f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM glob('{tmp_path}/*')", f"COPY (SELECT 1) TO '{tmp_path}/out.csv'", f"ATTACH '{tmp_path}/x.db'",
        f"EXPORT DATABASE '{tmp_path}/all'", "INSTALL httpfs", "LOAD httpfs", "SET enable_external_access = true",
        "RESET lock_configuration", "SET temp_directory = '/'",
    ):  # fmt: skip
        with pytest.raises(duckdb.Error):
            engine.backend.raw_sql(sql).fetchall()
    session = eh.Session(copy, eh.Ledger(tmp_path / "b.db", epsilon=10**6))
    exact = session.count(by="g", keys=["a", "b"], epsilon=1000, bounding=eh.TotalCap(1)).value["count"].tolist()
    assert exact == [25, 25]
    with pytest.raises(eh.EvenhandError):
        session.sql(f"SELECT COUNT(*) FROM read_csv('{secret}')", epsilon=1)
