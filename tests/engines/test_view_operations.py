"""Every operation that views allow, on nasty values, on every engine: none raises, and all give the same."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.tables.views.allowed import RULES
from view_expressions import EXPRESSIONS, nasty_rows


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
    if isinstance(value, float) and not math.isnan(value):
        return float(f"{value:.12g}") if name.startswith(("Ln", "Exp")) else value + 0.0
    return value


def test_every_operation_on_the_list_is_tried() -> None:
    assert set(EXPRESSIONS) == set(RULES)
    rows = eh.read(nasty_rows(), user="u").expression
    for name, given in EXPRESSIONS.items():
        for each in given:
            assert each.resolve(rows).op().find(getattr(ops, name)), (name, each)


def assert_same(found: dict[str, list[Any]], expected: dict[str, list[Any]]) -> None:
    for name, values in found.items():
        pairs = zip(values, expected[name], strict=True)
        wrong = [row for row, (a, b) in enumerate(pairs) if canonical(name, a) != canonical(name, b)]
        assert not wrong, (name, [(row, values[row], expected[name][row]) for row in wrong[:3]])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What DuckDB makes of them, from a file: files carry statistics, out of which engines answer what they can."""
    path = tmp_path_factory.mktemp("nasty") / "nasty.parquet"
    pq.write_table(nasty_rows(), path, row_group_size=40)
    return results(eh.read(path, user="u"))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_computes_the_same_as_duckdb(expected: dict[str, list[Any]], tmp_path: Path, spark: None) -> None:
    """By default a few expressions for each operation: Spark takes a tenth of a second to plan one."""
    path = tmp_path / "nasty.parquet"
    pq.write_table(nasty_rows(), path)
    most = None if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1
    assert_same(results(eh.read(path, user="u", engine="spark"), most), expected)


@pytest.mark.xdist_group("spark")
def test_postgres_computes_the_same_as_duckdb(expected: dict[str, list[Any]], postgres_url: str) -> None:
    rows = ibis.connect(postgres_url).create_table("nasty", nasty_rows())
    assert_same(results(eh.read(rows, user="u")), expected)
