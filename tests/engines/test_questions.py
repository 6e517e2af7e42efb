"""The twelve questions of ``examples/questions``: the same integers in Python and in SQL, on DuckDB, Postgres and Spark."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from watch import integers

sys.path.append(str(Path(__file__).parents[2] / "examples" / "questions"))

from questions import QUESTIONS, Question, in_sql
from shop import FACTS, Shop, generate, on_duckdb, opened

TITLES = {question.title: question for question in QUESTIONS}
ON_SPARK = TITLES if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else list(TITLES)[2:9:3]
"""A few here, all of them in the long run: Spark takes a second for each."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    generate(place, households=150)
    return place


@pytest.fixture(scope="module")
def shop(folder: Path) -> Shop:
    return on_duckdb(folder)


def known(question: Question, steps: list[list[int]]) -> list[Any]:
    """The integers; where names are hidden, the sums of the first two steps: which groups a user with many supports is drawn at random,
    and which are found follows from that."""
    return [sum(step) for step in steps[:2]] if "delta" in question.options else steps


def of_sql(question: Question, shop: Shop) -> list[Any]:
    return known(question, integers(shop.sales, partial(in_sql, question, shop)))


@pytest.mark.parametrize("title", TITLES)
def test_python_and_sql_ask_the_same(title: str, shop: Shop) -> None:
    question = TITLES[title]
    asked = integers(question.table(shop), question.python)
    assert known(question, asked) == of_sql(question, shop)
    assert any(any(step) for step in asked)


@pytest.fixture
def in_postgres(folder: Path, postgres_url: str) -> Shop:
    connection: Any = ibis.connect(postgres_url)
    facts = {"sales": ["amount"], "households": ["region", "size"]}
    for name in facts:
        connection.create_table(name, pq.read_table(folder / f"{name}.parquet"))
    return opened(
        lambda name: eh.read(
            postgres_url, table=name, user="household", population="households",
            columns={column: FACTS[column] for column in facts[name]},
        ),
        lambda name: eh.read_public(folder / f"{name}.parquet"),
    )  # fmt: skip


def test_postgres_hands_over_the_same_integers(shop: Shop, in_postgres: Shop) -> None:
    for question in QUESTIONS:
        assert of_sql(question, in_postgres) == of_sql(question, shop), question.title


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_hands_over_the_same_integers(folder: Path, shop: Shop, spark: None) -> None:
    facts = {"sales": ["amount"], "households": ["region", "size"]}
    there = opened(
        lambda name: eh.read(
            folder / f"{name}.parquet", user="household", population="households", engine="spark",
            columns={column: FACTS[column] for column in facts[name]},
        ),
        lambda name: eh.read_public(folder / f"{name}.parquet"),
    )  # fmt: skip
    for title in ON_SPARK:
        assert of_sql(TITLES[title], there) == of_sql(TITLES[title], shop), title
