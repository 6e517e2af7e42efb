"""Every operation that views allow, on nasty values, on every engine: none raises, and all give the same."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ibis import _

import evenhand as eh
from evenhand.tables.views.allowed import RULES
from view_expressions import EXPRESSIONS, USER_BY_USER, nasty_rows


def results(table: eh.Table, most: int | None = None) -> dict[str, list[Any]]:
    """What the engine makes of all expressions, or of ``most`` for each operation: one column for each, in the order of u."""
    named = {f"{name}_{index}": given for name, each in EXPRESSIONS.items() for index, given in enumerate(each[:most])}
    view = table.derive(**named)
    wanted = {name: _storable(view.expression[name]) for name in named}
    found = table.engine.evaluate(view.expression.select("u", **wanted)).sort_by("u")
    return {name: found[name].to_pylist() for name in named}


def _storable(column: Any) -> Any:
    """Times and whole numbers as what comes back from every engine as it is."""
    kind = column.type()
    if kind.is_date() or kind.is_timestamp():
        parts = [column.year(), column.month(), column.day()]
        parts += [column.hour(), column.minute(), column.second()] if kind.is_timestamp() else []
        whole = sum((part.cast("int64") * 100 ** (5 - place) for place, part in enumerate(parts)), ibis.literal(0))
        return whole.cast("string")
    return (
        column.cast("string") if kind.is_integer() else column
    )  # pandas, on the way from Spark, makes doubles of integers


def canonical(name: str, value: Any) -> Any:
    """Values that engines may spell differently: bits of transcendental functions, -0.0, and case of letters beyond ASCII."""
    if isinstance(value, float) and math.isnan(value):
        return None  # pandas, on the way from Spark, takes one for the other
    if isinstance(value, float):
        return float(f"{value:.12g}") if name.startswith(("Ln", "Exp")) else value + 0.0
    return value


def test_every_operation_on_the_list_is_tried() -> None:
    assert set(EXPRESSIONS) == set(RULES)
    rows = eh.read(nasty_rows(), user="u").expression
    for name, given in EXPRESSIONS.items():
        for each in given:
            assert each.resolve(rows).op().find(getattr(ops, name)), (name, each)


NARROW = ("a", "b", "c", "t")
"""Columns that are made with known ends: of both signs, below 0, exchanged, truths."""


def narrowed(table: eh.Table) -> eh.Table:
    number = next(name for name, kind in table.expression.schema().items() if kind.is_floating())
    made = getattr(eh._, number)
    return table.derive(a=made.clip(-9, 1), b=made.clip(-7, -3), c=made.clip(5, 1).fill_null(7), t=made > 1)


def over_narrow(name: str) -> dict[str, Any]:
    """Everything that takes one or two numbers, of a column with known ends."""
    x = getattr(eh._, name) if name != "t" else eh._.t.cast("int64")
    made = {
        "negative": -x, "size": x.abs(), "negative size": -x.abs(), "floor": x.floor(), "ceiling": x.ceil(), "rounded": x.round(),
        "square": x**2, "itself": x**1, "sum": x + x, "difference": x - x, "product": x * -2, "quotient": x / 3,
        "least": ibis.least(x, -1), "greatest": ibis.greatest(x, -1), "filled": x.fill_null(-8), "without": x.nullif(1),
        "narrower": x.clip(-2, 3), "either": (x > 0).ifelse(x, -x), "whole": x.cast("int64"), "double": x.cast("float64"),
    }  # fmt: skip
    return {f"{name} {each}": expression for each, expression in made.items()}


def test_known_ends_hold_whatever_is_stored() -> None:
    """A number that lies beyond its ends would be clamped to them without a word."""
    table = narrowed(eh.read(nasty_rows(), user="u"))
    made = {each: expression for name in NARROW for each, expression in over_narrow(name).items()}
    made |= {"negative constants": "CASE WHEN t THEN -1 WHEN a > 0 THEN 2 ELSE 0 END", "constants": "greatest(-1, -2)"}
    view = table.derive(**made)
    ranges = {name: view.derived[name].bounds for name in (*NARROW, *made)}
    assert sum(ends is not None for ends in ranges.values()) > 30
    found = view.engine.evaluate(view.expression.select(*(name for name, ends in ranges.items() if ends is not None)))
    for name, ends in ranges.items():
        if ends is not None:
            values = [float(value) for value in found[name].to_pylist() if value is not None]
            assert all(ends[0] <= value <= ends[1] for value in values), (name, ends, min(values), max(values))


def assert_same(found: dict[str, list[Any]], expected: dict[str, list[Any]]) -> None:
    for name, values in found.items():
        pairs = zip(values, expected[name], strict=True)
        wrong = [row for row, (a, b) in enumerate(pairs) if canonical(name, a) != canonical(name, b)]
        assert not wrong, (name, [(row, values[row], expected[name][row]) for row in wrong[:3]])


def owned_rows() -> pa.Table:
    """Nasty rows of a few users."""
    rows = nasty_rows().slice(0, 60)
    return rows.set_column(0, "u", pa.array([f"user {place % 5}" for place in range(60)]))


def by_user(table: eh.Table, other: eh.Table, names: Iterable[str] = tuple(USER_BY_USER)) -> dict[str, list[str]]:
    """What views over several rows of a user give, as text."""
    found = {}
    for name in names:
        view = USER_BY_USER[name](table, other)
        new = [column for column in view.columns if column == "u" or column not in table.columns]
        wanted = {column: _storable(view.expression[column]) for column in new}
        rows = table.engine.evaluate(view.expression.select(**wanted)).to_pylist()
        found[name] = sorted(repr([canonical(column, row[column]) for column in new]) for row in rows)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What DuckDB makes of them, from a file: files carry statistics, out of which engines answer what they can."""
    path = tmp_path_factory.mktemp("nasty") / "nasty.parquet"
    pq.write_table(nasty_rows(), path, row_group_size=40)
    return results(eh.read(path, user="u"))


@pytest.fixture(scope="module")
def expected_by_user() -> dict[str, list[str]]:
    return by_user(eh.read(owned_rows(), user="u"), eh.read(owned_rows(), user="u"))


@pytest.fixture
def interpreted(spark: None) -> Iterator[None]:
    """Spark without compiling each query to Java: for a few rows that takes most of the time."""
    from evenhand.tables.engines.spark_session import spark_backend

    conf = spark_backend()._session.conf
    before = {name: conf.get(name) for name in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")}
    for name, value in zip(before, ("false", "NO_CODEGEN"), strict=True):
        conf.set(name, value)
    yield
    for name, value in before.items():
        conf.set(name, value)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_computes_the_same_as_duckdb(
    expected: dict[str, list[Any]], expected_by_user: dict[str, list[str]], tmp_path: Path, interpreted: None
) -> None:
    """By default a few expressions for each operation: Spark takes a tenth of a second to plan one."""
    path = tmp_path / "nasty.parquet"
    pq.write_table(nasty_rows(), path)
    most = None if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1
    assert_same(results(eh.read(path, user="u", engine="spark"), most), expected)
    pq.write_table(owned_rows(), tmp_path / "owned.parquet")
    table, other = (eh.read(tmp_path / "owned.parquet", user="u", engine="spark") for _ in range(2))
    found = by_user(table, other, ("aggregates", "windows", "public joins"))
    assert found == {name: expected_by_user[name] for name in found}


@pytest.mark.xdist_group("spark")
def test_postgres_computes_the_same_as_duckdb(
    expected: dict[str, list[Any]], expected_by_user: dict[str, list[str]], postgres_url: str
) -> None:
    backend = ibis.connect(postgres_url)
    rows = backend.create_table("nasty", nasty_rows())
    assert_same(results(eh.read(rows, user="u")), expected)
    owned = backend.create_table("owned", owned_rows())
    assert by_user(eh.read(owned, user="u"), eh.read(owned, user="u")) == expected_by_user


def test_values_that_only_postgres_has(postgres_url: str) -> None:
    """Infinite times and decimals, NaN as a decimal, times with a zone: null or in range, and nothing raises."""
    backend = ibis.connect(postgres_url)
    backend.raw_sql(
        "CREATE TABLE odd AS SELECT 1 AS u, x::timestamp AS m, x::timestamptz AS z, x::date AS d, n::numeric AS c "
        "FROM (VALUES ('infinity', 'NaN'), ('-infinity', 'infinity'), ('4713-01-01 BC', '1e-5000'), ('2024-02-29 12:00', '1e300')) AS t (x, n)"
    ).close()
    table = eh.read(backend.table("odd"), user="u")
    view = table.derive(
        y=_.m.year(),
        w=_.m.truncate("W").year(),
        h=_.z.hour(),
        e=(_.d + ibis.interval(days=3)).day(),
        p=_.c * 2,
        q=_.c / _.c,
        r=_.c > 0,
        s=_.c.round(2),
    ).per_user(**{name: _[name].count() for name in "ywhepqrs"}, last=_.m.max().year(), total=_.c.sum())
    (found,) = table.engine.evaluate(view.expression).to_pylist()
    assert (found["y"], found["last"], found["r"], found["p"]) == (1, 2024, 3, 1)
    assert found["total"] == 2.0**54
