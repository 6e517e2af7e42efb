"""Public bucket edges: exact integers, one bucket a user."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.bounding.strategy import LARGEST_BOUND
from evenhand.guarantee import UsageError
from evenhand.profiles import Buckets, row_buckets, total_buckets, users_by_bucket
from evenhand.tables import Grid, read


def test_edges_are_the_integer_parts_of_powers_of_the_cube_root_of_four() -> None:
    assert row_buckets().edges[:12] == (0, 1, 2, 4, 6, 10, 16, 25, 40, 64, 101, 161)
    assert 2**40 in row_buckets().edges


@given(st.integers(1, 2**50))
def test_total_buckets_hold_the_unit_and_stay_in_range(unit: int) -> None:
    buckets = total_buckets(unit)
    assert unit in buckets.edges
    assert buckets.edges[0] == 0
    assert buckets.edges[-1] <= LARGEST_BOUND
    assert buckets.size <= 120


@given(st.integers(1, 2**50), st.data())
def test_no_bucket_ends_below_what_a_row_adds_at_least(unit: int, data: st.DataObject) -> None:
    least = data.draw(st.integers(1, unit))
    found, all_of_them = total_buckets(unit, least=least).edges, total_buckets(unit).edges
    assert found == (0, *(edge for edge in all_of_them if edge >= least))
    assert Grid.about((1.0, 5.0), 0.0).least == Grid.about((-5.0, -1.0), 0.0).least == 2**28 // 8
    assert Grid.about((-1.0, 5.0), 0.0).least == 0


@given(st.integers(-5, 2**40))
def test_a_user_falls_into_the_bucket_that_its_edges_say(x: int) -> None:
    buckets = row_buckets()
    index = int(buckets.index(np.array([x]))[0])
    assert index == sum(edge < x for edge in buckets.edges)
    assert index == 0 or buckets.edges[index - 1] < x
    assert index == len(buckets.edges) or x <= buckets.edges[index]


def test_one_user_more_changes_one_count_by_one() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 10_000, 500)
    buckets = row_buckets()
    change = buckets.histogram(np.append(x, 77)) - buckets.histogram(x)
    assert np.abs(change).sum() == 1


@pytest.mark.parametrize("edges", [(), (1, 2), (0, 2, 2), (0, 3, 1)])
def test_bad_edges_are_refused(edges: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="edges"):
        Buckets(edges)


def test_a_unit_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match="unit"):
        total_buckets(0)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    "buckets", [row_buckets(), total_buckets(100), Buckets((0,))], ids=lambda buckets: buckets.size
)
def test_the_engine_counts_users_as_python_does(buckets: Buckets, kind: pa.DataType) -> None:
    """At, before and after every edge, at the ends of the type, and null; DuckDB has a function for 64-bit integers only."""
    around = [edge + step for edge in buckets.edges for step in (-1, 0, 1, 1)]
    whole = [x for x in (*around, -(2**63), 2**63 - 1) if kind != pa.int32() or abs(x) < 2**31]
    for values in ([], whole, [*whole, None], [2**31 - 1]):
        column = pa.array(values, pa.int64()).cast(kind, safe=False)
        found = pa.table({"u": [str(i) for i, _ in enumerate(values)], "x": column})
        users = (table := read(found, user="u")).expression
        counts = users_by_bucket(table, users, users.x, buckets).integers().reveal()
        known = [-math.inf if x is None else x for x in found["x"].to_pylist()]
        assert counts == [sum(sum(edge < x for edge in buckets.edges) == i for x in known) for i in range(buckets.size)]
