"""Keys that come from the data: no name of a group leaves because of one user, except with probability δ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.release import Receipt
from evenhand.session import Drafts
from evenhand.statistics import selection
from watch import watch

EPSILON, DELTA = Decimal(1), Decimal("1e-6")


class Recording:
    """An engine that notes the one table with supporters: groups, and how many users each has before noise."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.name, self.found = engine, engine.name, Counter[bytes]()

    @contextmanager
    def kept(self, expression: Any) -> Iterator[Any]:
        with self.engine.kept(expression) as table:
            if "supporters" in table.columns:
                columns = self.engine.fetch(table).reveal().to_pydict()
                self.found = Counter(dict(zip(columns["evenhand_key_0"], map(int, columns["supporters"]), strict=True)))
            yield table

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def _table(rows: Sequence[tuple[str, str | None]]) -> eh.Table:
    users, groups = zip(*rows, strict=True) if rows else ((), ())
    return eh.read(pa.table({"u": pa.array(users, pa.string()), "g": pa.array(groups, pa.string())}), user="u")


def _release(table: eh.Table, k: int | None) -> Any:
    draft = Drafts(table).count(by="g", epsilon=EPSILON, delta=DELTA, groups_per_user=k)
    assert draft.cost is not None
    return draft.run(Receipt(draft.cost.epsilon, draft.cost.delta, "test")).value


def supporters(rows: Sequence[tuple[str, str | None]], k: int) -> Counter[bytes]:
    """How many users support each group, before noise."""
    table = _table(rows)
    recording = Recording(table.engine)
    _release(replace(table, engine=recording), k)  # type: ignore[arg-type]
    return recording.found


@given(
    others=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y"])), max_size=8),
    own=st.lists(st.sampled_from(["x", "y", "z", "w", "", None]), min_size=1, max_size=12),
)
def test_one_user_supports_at_most_k_groups_once(others: list[tuple[str, str]], own: list[str | None]) -> None:
    """The others have at most two groups, so nothing of theirs is drawn by chance."""
    k = 2
    without = supporters(list(others), k)
    with_them = supporters([*others, *(("me", group) for group in own)], k)
    changes = {group: with_them[group] - without[group] for group in {*with_them, *without}}
    assert all(change in (0, 1) for change in changes.values())
    assert sum(changes.values()) == min(k, len({group for group in own if group is not None}))


def test_which_groups_a_user_supports_is_drawn_anew_for_each_user_and_query() -> None:
    rows = [(f"user{user}", f"group{group}") for user in range(150) for group in range(50)]
    first, second = supporters(rows, 1), supporters(rows, 1)
    assert len(first) > 1, "all users support the same group"
    assert first != second, "the draw is the same for every query (a false alarm: below 1e-15)"


@pytest.mark.parametrize("kind", ["table", "relation"])
def test_draws_do_not_follow_the_seed_of_the_caller(kind: str) -> None:
    """Neither the rows nor the groups that are kept of a user; five draws that agree by chance: below 1e-6."""
    connection = duckdb.connect(config={"threads": 1})
    rows = "SELECT 'u' || (i // 2) AS u, 'g' || (i % 2) AS g, (i % 2)::double AS v FROM range(2000) r(i)"
    connection.execute(f"CREATE TABLE t AS {rows}")
    table = ibis.duckdb.from_connection(connection).table("t") if kind == "table" else connection.sql("SELECT * FROM t")
    opened = eh.read(table, user="u")

    def drawn(ask: Any) -> set[str]:
        found = set()
        for _ in range(5):
            connection.execute("SELECT setseed(0.42)").fetchall()
            found.add(repr([step.integers for step in watch(opened, ask).steps]))
        return found

    limited = drawn(lambda ask: ask.sum("v", bounds=(0, 1), epsilon=1, bounding=eh.RowLimit(1)))
    selected = drawn(lambda ask: ask.count(by="g", epsilon=1, delta=1e-6, groups_per_user=1, bounding=eh.NormClip(1)))
    assert len(limited) > 1
    assert len(selected) > 1


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "20"])
@pytest.mark.parametrize("delta", ["1e-9", "1e-4", "0.1"])
def test_the_threshold_hides_a_group_of_one_user(k: int, epsilon: str, delta: str) -> None:
    """P(any of k groups with one supporter is shown) ≤ δ, for discrete Laplace noise of scale k/ε; and not wastefully so."""
    q = math.exp(-float(epsilon) / k)
    needed = selection.threshold(k, Decimal(epsilon), Decimal(delta))

    def leaks(threshold: int) -> float:
        return k * q ** (threshold - 1) / (1 + q)

    assert leaks(needed) <= float(delta)
    assert needed == 2 or leaks(needed - 1) > float(delta) * 0.99


def test_a_lonely_group_stays_hidden_and_a_large_one_shows() -> None:
    rows = [(f"user{number}", "crowd") for number in range(2000)] + [("me", "my secret diagnosis")]
    shown = _release(_table(rows), 1)
    assert list(shown["g"]) == ["crowd"]


def test_keys_are_sorted_whatever_the_order_of_rows() -> None:
    rows = [(f"user{number}", group) for group in ("b", "a", "c") for number in range(500)]
    assert list(_release(_table(rows), 3)["g"]) == ["a", "b", "c"]
    assert list(_release(_table(rows[::-1]), 3)["g"]) == ["a", "b", "c"]


def test_an_empty_table_shows_no_groups() -> None:
    assert len(_release(_table([]), None)) == 0


def test_without_delta_secret_keys_are_refused() -> None:
    table = eh.read(pa.table({"u": ["a"], "g": ["x"]}), user="u")
    with pytest.raises(eh.UsageError, match="needs delta"):
        Drafts(table).count(by="g", epsilon=1)


def test_under_values_only_public_columns_form_groups() -> None:
    rows = pa.table({"u": ["a"], "g": ["x"]})
    with pytest.raises(eh.UsageError, match="would reveal a private column"):
        Drafts(eh.read(rows, user="u", protects="values")).count(by="g", keys=["x"], epsilon=1)
    public = eh.read(rows, user="u", protects="values", public=["g"])
    assert Drafts(public).count(by="g", keys=["x"], epsilon=1).cost is None
