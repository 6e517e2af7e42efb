"""Keys that come from the data: no name of a group leaves because of one user, except with probability δ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from typing import Any
from unittest import mock

import duckdb
import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.noise import UNIT, NormalThreshold, TruncatedGeometric, Way
from evenhand.release import Receipt
from evenhand.session import Drafts
from evenhand.statistics import selection
from neighbouring import compare
from watch import watch

EPSILON, DELTA = Decimal(1), Decimal("1e-6")
SHARE = Decimal("0.4"), Decimal("4e-7")
"""What a selection may use of it."""


def _table(rows: Sequence[tuple[str, str | None]]) -> eh.Table:
    users, groups = zip(*rows, strict=True) if rows else ((), ())
    columns = {"u": pa.array(users, pa.string()), "g": pa.array(groups, pa.string())}
    return eh.read(pa.table(columns), user="u")


def _release(table: eh.Table, k: int | None) -> Any:
    draft = Drafts(table).count(by="g", epsilon=EPSILON, delta=DELTA, groups_per_user=k)
    assert draft.cost is not None
    return draft.run(Receipt(draft.cost.epsilon, draft.cost.delta, "test")).value


def supports(rows: Sequence[tuple[str, str | None]], k: int | None, way: Way | None = None) -> list[int]:
    """How much support each group has, before noise, largest first."""
    with mock.patch.object(selection, "given_way", return_value=way) if way else nullcontext():
        steps = watch(
            _table(rows), lambda ask: ask.count(by="g", epsilon=EPSILON, delta=DELTA, groups_per_user=k)
        ).steps
    return sorted(next(step.integers for step in steps if step.kind == "support"), reverse=True)


def moves(without: list[int], with_them: list[int]) -> list[int]:
    """How far sorted supports moved; a group that is not there has none."""
    length = max(len(without), len(with_them))
    padded = ([*numbers, *[0] * (length - len(numbers))] for numbers in (with_them, without))
    return [one - other for one, other in zip(*padded, strict=True)]


@given(
    others=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y"])), max_size=8),
    own=st.lists(st.sampled_from(["x", "y", "z", "w", "", None]), min_size=1, max_size=12),
)
def test_one_user_supports_at_most_k_groups_once(others: list[tuple[str, str]], own: list[str | None]) -> None:
    """The others have at most two groups, so nothing of theirs is drawn by chance."""
    counted = TruncatedGeometric.way(2, *SHARE)
    one = supports(list(others), 2, counted)
    other = supports([*others, *(("me", group) for group in own)], 2, counted)
    changes = moves(one, other)
    assert all(change in (0, 1) for change in changes)
    assert sum(changes) == min(2, len({group for group in own if group is not None}))


@given(
    others=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y"])), max_size=6),
    own=st.integers(1, 40),
    k=st.sampled_from([1, 2, 3, 7, 100]),
)
def test_weighted_supports_have_one_norm_whatever_the_number_of_groups(
    others: list[tuple[str, str]], own: int, k: int
) -> None:
    """The squared L2 norm is at most UNIT², exactly, also for users who are sampled; and hardly less.

    The user's groups are nobody else's, so sorted supports do not hide any move.
    """
    weighted = NormalThreshold.way(k, *SHARE)
    one = supports(list(others), k, weighted) if k > 1 else []
    mine = [("me", f"mine {number}") for number in range(own)]
    other = supports([*others, *mine] if k > 1 else mine, k, weighted)
    changes = [value for value in (Counter(other) - Counter(one)).elements() if value]
    assert len(changes) == min(k, own)
    assert len(set(changes)) == 1
    assert sum(change**2 for change in changes) <= UNIT**2
    assert sum(change**2 for change in changes) > UNIT**2 * (1 - 1e-3)


def test_which_groups_a_user_supports_is_drawn_anew_for_each_user_and_query() -> None:
    rows = [(f"user{user}", f"group{group}") for user in range(150) for group in range(50)]
    first, second = supports(rows, 1), supports(rows, 1)
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


@pytest.mark.parametrize("k", [1, 8])
def test_numbers_of_shown_groups_move_no_more_than_declared(k: int) -> None:
    """Groups that are shown on both tables, and one user with rows in all of them and in groups of their own; with k = 1 the
    numbers have a share of ε, with 8 they share (ε, δ) with the names."""
    crowd = [(f"user {number}", group) for number in range(400) for group in "abc"[: 1 + number % 3]]
    mine = [("me", group) for group in ("a", "b", "c", "mine", "mine too") for _ in range(30)]
    for what, options in (("count", {}), ("users", {"other": "rest"})):

        def ask(drafts: Drafts, what: str = what, options: dict[str, str] = options) -> Any:
            return getattr(drafts, what)(by="g", epsilon=8, delta=DELTA, groups_per_user=k, **options)

        one, other = _table(crowd), _table(crowd + mine)
        steps = watch(one, ask).steps
        assert [step.kind for step in steps][-1] == "sum"
        assert len(steps[-1].integers) == 3 + len(options), "all three groups are shown"
        if k > 1:  # whom a user supports is drawn, so supports can't be compared where one is
            compare(ask, one, other)
        assert (steps[-1].l1 is None) == (k > 1), "Gaussian noise beside names that are selected by it"


@pytest.mark.parametrize("k", [1, 2])
def test_numbers_of_supporters_move_by_one_user(k: int) -> None:
    """Where hardly anybody is in more than k groups they are the answer; a user more adds 1 to at most k of theirs."""
    crowd = [(f"user {number}", "abc"[(number + more) % 3]) for number in range(15_000) for more in range(k)]

    def run(rows: list[tuple[str, str]]) -> tuple[list[int], Any]:
        played = watch(_table(rows), lambda ask: ask.users(by="g", epsilon=EPSILON, delta=DELTA))
        assert [step.kind for step in played.steps] == ["sum", "support"], (
            "one histogram, then names and numbers at once"
        )
        assert played.steps[1].l1 == k
        return sorted(played.steps[1].integers, reverse=True), played.outcome

    (without, _), (with_me, outcome) = run(crowd), run([*crowd, *(("me", group) for group in ("a", "b", "mine"))])
    assert sum(moves(without, with_me)) == k
    assert max(moves(without, with_me)) == 1
    assert {value - 5_000 * k for value in outcome.value["users"]} <= {0, 1}
    assert outcome.bounding.parameter == k


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
