"""A reading that forms pairs of user and key hands over the same integers as one that copies rows."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.statistics.part import Part
from evenhand.statistics.per_row import PerRow
from evenhand.tables import paired as module
from watch import Ask, integers

_VALUES = [1 / 3, None, math.nan, math.inf, -math.inf, 7.0, -2.5, 0.1]
_MIXED, _ABOVE = (-2.5, 7.0), (1.0, 7.0)
_BY: dict[str, Any] = {"by": "g", "keys": ["a", "b", "nobody"], "delta": 1e-6}
_CLIP = eh.NormClip(3, norm=2)


def _ask(question: str, *arguments: Any, **options: Any) -> Ask:
    return lambda ask: getattr(ask, question)(*arguments, **{"epsilon": 1, **options})


ASKS: dict[str, tuple[str, Ask]] = {
    "users": ("presence", _ask("users", by="g", keys=["a", "b"])),
    "count, L2": ("presence", _ask("count", **_BY, bounding=_CLIP)),
    "sum, L2": ("presence", _ask("sum", "v", bounds=_MIXED, **_BY, bounding=_CLIP)),
    "sum, L2, all positive": ("presence", _ask("sum", "v", bounds=_ABOVE, **_BY, bounding=_CLIP)),
    "sum, L2, values": ("values", _ask("sum", "v", bounds=_MIXED, **_BY, bounding=_CLIP)),
    "mean, L2": ("presence", _ask("mean", "v", bounds=_MIXED, **_BY, bounding=_CLIP)),
    "mean, L2, values": ("values", _ask("mean", "v", bounds=_MIXED, **_BY, bounding=_CLIP)),
    "mean": ("presence", _ask("mean", "v", bounds=_MIXED, by="g", keys=["a", "b"])),
    "mean, values": ("values", _ask("mean", "v", bounds=_MIXED, by="g", keys=["a", "b"])),
    "hidden names": ("presence", _ask("aggregate", n=eh.count(), p=eh.users(), s=eh.sum("v", bounds=_MIXED),
                                      m=eh.mean("v", bounds=_ABOVE), by=["g", "h"], delta=0.1, epsilon=50, groups_per_user=100)),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    users = [user for user in range(8) for _ in range(2**user)] + [None] * 20
    places = range(len(users))
    return pa.table(
        {
            "u": pa.array(users, pa.int64()),
            "g": pa.array([("a", "b", "c", None)[place % 4] for place in places]),
            "h": pa.array([(0.0, -0.0, math.nan, 1.0, None)[place % 5] for place in places], pa.float64()),
            "v": pa.array([_VALUES[(place // 3) % len(_VALUES)] for place in places], pa.float64()),
        }
    )


@pytest.mark.parametrize("name", ASKS)
def test_pairs_hand_over_the_integers_of_rows(name: str, rows: pa.Table) -> None:
    relation, ask = ASKS[name]
    table = eh.read(rows, user="u", protects=relation, public=["g"] if relation == "values" else [])
    with mock.patch.object(PerRow, "_reading", autospec=True, side_effect=_rows_only) as asked:
        of_rows = integers(table, ask)
    assert asked.called
    with mock.patch("evenhand.statistics.per_row.paired", side_effect=module.paired) as formed:
        assert integers(table, ask) == of_rows
    assert formed.called, "this compares rows with rows"
    assert any(any(step) for step in of_rows), "all integers are zero: this compares nothing"


_READING = PerRow._reading


def _rows_only(release: PerRow, parts: Any) -> Any:
    rows = {name: mock.Mock(spec=Part, paired=None, forms_pairs=False) for name in parts}
    return _READING(release, rows)


def test_a_pair_with_more_rows_than_are_counted_keeps_its_bounds(rows: pa.Table) -> None:
    """However many rows a pair has, its sum is one that so many rows could have, and no larger than its size."""
    table, values = eh.read(rows, user="u"), (("v", eh.sum("v", bounds=_MIXED).grid),)
    grid = values[0][1]
    with (
        mock.patch.object(module, "MOST_ROWS", 5),
        module.paired(table, ["g"], [values]) as pairs,
    ):
        found = pairs.of(pairs.expression, values)
        columns = pairs.engine.evaluate(pairs.expression.select(**found)).to_pydict()
    assert max(columns["evenhand_rows"]) == 5
    for count, value, size in zip(columns["evenhand_rows"], columns["value_0"], columns["size_0"], strict=True):
        assert count * grid.bottom <= value <= count * grid.top
        assert abs(value) <= size
