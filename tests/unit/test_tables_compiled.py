"""A statement that is remembered is the one that Ibis would have written."""

from __future__ import annotations

from typing import Any

import ibis
import pytest

from evenhand.tables.engines import compiled as remembered
from evenhand.tables.engines.base import fresh_name

BACKEND = ibis.duckdb.connect()


def written(expression: Any) -> tuple[str, bool]:
    """The statement, and whether Ibis was asked for it."""
    asked: list[object] = []

    def write(rows: Any) -> str:
        asked.append(rows)
        return str(BACKEND.compile(rows))

    return remembered.compiled(expression, object, write), bool(asked)


def own(**columns: str) -> Any:
    return ibis.table(columns or {"u": "string", "v": "float64"}, name=fresh_name())


def _joined(one: Any, other: Any) -> Any:
    rows = one.join(other, "u").filter(one.v > 0.5).drop("v_right")
    return rows.group_by("u").aggregate(n=rows.count(), s=rows.v.clip(0, 2).sum())


def test_tables_of_other_names_are_asked_from_memory() -> None:
    remembered._written.clear()
    for round_number in range(3):
        expression = _joined(own(), own())
        sql, asked = written(expression)
        assert sql == BACKEND.compile(expression)
        assert asked == (round_number == 0)


def test_a_name_may_be_the_beginning_of_another() -> None:
    remembered._written.clear()
    columns = {"u": "string", "v": "float64"}
    for one, other in (("evenhand_7_1", "evenhand_7_11"), ("evenhand_8_2", "evenhand_8_3")):
        expression = _joined(ibis.table(columns, name=one), ibis.table(columns, name=other))
        assert written(expression)[0] == BACKEND.compile(expression)


def test_a_table_joined_with_itself_is_not_one_joined_with_another() -> None:
    one, other = own(), own()
    for pair in ((one, other), (one, one.view()), (other, one)):
        assert written(_joined(*pair))[0] == BACKEND.compile(_joined(*pair))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        ("a", "b"),
        (ibis.literal("2024-01-01").cast("date"), ibis.literal("2024-01-02").cast("date")),
    ],
)
def test_what_differs_otherwise_is_written_anew(one: Any, other: Any) -> None:
    remembered._written.clear()
    for literal in (one, other):
        expression = own().select(x=literal if hasattr(literal, "op") else ibis.literal(literal))
        sql, asked = written(expression)
        assert asked
        assert sql == BACKEND.compile(expression)


@pytest.mark.parametrize(
    "columns", [{"u": "int64", "v": "float64"}, {"u": "string", "w": "float64"}, {"v": "float64", "u": "string"}]
)
def test_columns_count(columns: dict[str, str]) -> None:
    written(own().distinct())
    expression = own(**columns).distinct()
    assert written(expression)[0] == BACKEND.compile(expression)


def test_a_text_that_looks_like_a_table_stays_as_it_is() -> None:
    for _ in range(2):
        table = own()
        expression = table.filter(table.u == table.op().name)
        assert written(expression) == (BACKEND.compile(expression), True)


def test_rows_in_memory_are_not_remembered() -> None:
    for _ in range(2):
        assert written(ibis.memtable({"u": [1]}))[1]


def test_memory_is_bounded() -> None:
    for number in range(remembered._MOST + 20):
        remembered.compiled(own().limit(number), object, lambda rows: "")
    assert len(remembered._written) <= remembered._MOST
