"""Every strategy and statistic hands the same integers to the noise on DuckDB, on Spark and on Postgres."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.audit.group_distances import located_by_group
from watch import Ask, integers

on_spark = pytest.mark.spark
one_spark = pytest.mark.xdist_group("spark")

_VALUES = [1 / 3, None, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e300, 2.0**53 + 2, 7.0, -2.5, 0.1]
_SMALL = (-2.5, 7.0)
_HUGE = (-1e149, 1e140)
_TINY = (0.0, 1e-140)


_NAMES = ["", "é", "e\u0301", "a b", "日本", "\u200b", "O'Brien", "nan", "NULL", "A", "a", "\U0001f984"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users with 1, 2, 4, ... 2048 rows, and some rows of nobody; users and values of several types."""
    users = [user for user in range(12) for _ in range(2**user)] + [None] * 50
    days = [None if user is None else datetime.date(1969, 12, 25) + datetime.timedelta(user) for user in users]
    groups = [("a", "b", "c", None)[index % 4] for index in range(len(users))]
    values = [_VALUES[index % len(_VALUES)] for index in range(len(users))]
    whole = [(2**53 + 1, -(2**62), 0, 3, None)[index % 5] for index in range(len(users))]
    exact = [
        (Decimal("0.100"), Decimal("12345678901234567.891"), Decimal("-2.5"), None)[index % 4]
        for index in range(len(users))
    ]
    place = tmp_path_factory.mktemp("engines") / "t.parquet"
    columns = {
        "u": pa.array(users, pa.int64()),
        "name": pa.array([None if user is None else _NAMES[user] for user in users]),
        "day": pa.array(days, pa.date32()),
        "g": pa.array(groups),
        "v": pa.array(values, pa.float64()),
        "whole": pa.array(whole, pa.int64()),
        "exact": pa.array(exact, pa.decimal128(20, 3)),
    }
    pq.write_table(pa.table(columns), place)
    return place


@pytest.fixture
def in_postgres(path: Path, postgres_url: str) -> Any:
    """The same rows in a table of a real server."""
    return ibis.connect(postgres_url).create_table("nasty", pq.read_table(path))


def _ask(question: str, *arguments: Any, epsilon: Any = 1, **options: Any) -> Ask:
    return lambda ask: getattr(ask, question)(*arguments, epsilon=epsilon, **options)


ASKS: dict[str, tuple[str, Ask]] = {
    "in SQL": (
        "presence",
        _ask(
            "sql",
            "SELECT CASE WHEN whole > 1 THEN 'many' WHEN g = 'a' THEN 'a' END AS kind, date_trunc('week', day) AS week, COUNT(*) AS n, "
            "SUM(v / whole, contribution_bounds_per_row => (-2, 7)) AS s FROM table WHERE upper(name) <> 'O''BRIEN' AND exact < 1 "
            "GROUP BY kind, week",
            keys={"kind": ["many", "a"], "week": [datetime.date(1969, 12, 22), datetime.date(1969, 12, 29)]},
            bounding=eh.NormClip(3),
        ),
    ),
    "sum total cap": ("presence", _ask("sum", "v", bounds=_SMALL, bounding=eh.TotalCap("99.9"))),
    "sum total cap, huge": ("values", _ask("sum", "v", bounds=_HUGE, bounding=eh.TotalCap("1e60"))),
    "sum smooth weights": ("presence", _ask("sum", "v", bounds=_SMALL, bounding=eh.SmoothWeights("7/3"))),
    "sum smooth weights, tiny": ("values", _ask("sum", "v", bounds=_TINY, bounding=eh.SmoothWeights(2**20))),
    "sum centred": ("values", _ask("sum", "v", bounds=_SMALL, bounding=eh.CentredInterval("33.3"))),
    "mean smooth weights": ("presence", _ask("mean", "v", bounds=_HUGE, bounding=eh.SmoothWeights("0.001"))),
    "mean centred": ("values", _ask("mean", "v", bounds=_SMALL, bounding=eh.CentredInterval("0.001"))),
    "mean auto": ("presence", _ask("mean", "v", bounds=_SMALL)),
    "mean auto, values": ("values", _ask("mean", "v", bounds=_SMALL)),
    "count row limit": ("presence", _ask("count", bounding=eh.RowLimit(3))),
    "users": ("presence", _ask("users")),
    "means by group, located": (
        "presence",
        lambda ask: located_by_group(ask, "v", _SMALL, "g", ["a", "b"], other="rest"),
    ),
    "means by group, located, L2": (
        "presence",
        lambda ask: located_by_group(ask, "v", _SMALL, "g", ["a", "b"], delta=1e-6),
    ),
    "means by group": ("presence", _ask("mean", "v", bounds=_SMALL, by="g", keys=["a", "b"], other="rest")),
    "sums by group, Gaussian": (
        "presence",
        _ask("sum", "v", bounds=_SMALL, by="g", keys=["a", "b", "z"], delta=1e-6, bounding=eh.NormClip(9, norm=2)),
    ),
    "hidden groups, weighted": ("presence", _ask("users", by="g", delta=1e-6, groups_per_user=100)),
    "hidden groups, counted": ("presence", _ask("users", by="g", delta=1e-6, groups_per_user=9, epsilon=1000)),
    "variance": ("presence", _ask("variance", "v", bounds=_SMALL, bounding=eh.SmoothWeights(5))),
    "total per user": ("presence", _ask("per_user_mean", "v", bounds=(-1e3, 1e4), of="total")),
    "total per user, values": ("values", _ask("per_user_mean", "v", bounds=_HUGE, of="total")),
    "mean per user by group": ("presence", _ask("per_user_mean", "v", bounds=_TINY, by="g", keys=["a"], other="rest")),
    "histogram": ("values", _ask("histogram", "v", [-2.5, 0, 1, 7], bounding=eh.SmoothWeights(5))),
    "distinct": ("presence", _ask("distinct", "whole", values_per_user=2, by="g", keys=["a", "b"], other="rest")),
    "top": ("presence", _ask("top", ["g", "name"], 2, of="rows", delta=1e-6)),
    "bounds found": ("values", _ask("per_user_mean", "v", of="total", epsilon=1000)),
    "quantiles": ("presence", _ask("quantiles", "v", [0.25, 0.5], bounds=_SMALL, bounding=eh.SmoothWeights(5))),
}


# Users and values of other types: one question is enough, what differs is how they are read.
TYPES: dict[str, tuple[Any, str]] = {
    "users by name": ("name", "v"),
    "users by date": ("day", "v"),
    "users by two columns": (["name", "day"], "v"),
    "whole numbers": ("u", "whole"),
    "decimals": ("u", "exact"),
}


def _of_type(value: str) -> Ask:
    return _ask("mean", value, bounds=_SMALL, bounding=eh.SmoothWeights("7/3"))


def _same(path: Path, other: Any, ask: Ask, user: Any = "u", relation: str = "presence", **options: Any) -> None:
    here = integers(eh.read(path, user=user, protects=relation), ask)
    assert here == integers(eh.read(other, user=user, protects=relation, **options), ask)
    assert any(any(step) for step in here), "all integers are zero: this compares nothing"


@on_spark
@one_spark
@pytest.mark.parametrize("name", ASKS)
def test_both_engines_hand_over_the_same_integers(name: str, path: Path, spark: None) -> None:
    relation, ask = ASKS[name]
    _same(path, path, ask, relation=relation, engine="spark")


@on_spark
@one_spark
@pytest.mark.parametrize("name", TYPES)
def test_spark_reads_types_like_duckdb(name: str, path: Path, spark: None) -> None:
    user, value = TYPES[name]
    _same(path, path, _of_type(value), user, engine="spark")


@pytest.mark.parametrize("name", ASKS)
def test_postgres_hands_over_the_same_integers(name: str, path: Path, in_postgres: Any) -> None:
    relation, ask = ASKS[name]
    _same(path, in_postgres, ask, relation=relation)


@pytest.mark.parametrize("name", TYPES)
def test_postgres_reads_types_like_duckdb(name: str, path: Path, in_postgres: Any) -> None:
    user, value = TYPES[name]
    _same(path, in_postgres, _of_type(value), user)


@on_spark
@one_spark
def test_a_row_limit_draws_as_many_rows_on_both_engines(path: Path, spark: None) -> None:
    """Which rows is chance; how many, and so the weight of the mean, is not."""
    ask = _ask("mean", "v", bounds=_SMALL, bounding=eh.RowLimit(5))
    weights = {engine: sum(integers(eh.read(path, user="u", engine=engine), ask)[0]) for engine in ("duckdb", "spark")}
    assert weights["duckdb"] == weights["spark"] > 0
