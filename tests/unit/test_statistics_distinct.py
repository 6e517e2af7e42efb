"""Different values: the assignment of values to users, its sensitivity, and what a release says."""

from __future__ import annotations

import itertools
import random
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

import evenhand as eh
from evenhand.guarantee import Relation, parse_epsilon
from evenhand.noise import seam
from evenhand.session import Drafts
from evenhand.statistics.distinct import _STEPS, LIMITS, _scores
from evenhand.statistics.supporters import supported
from watch import integers, watch

Table = dict[int, set[int]]
"""The values of each user; tens are groups."""


def _found(table: Table) -> pa.Table:
    """What `numbered_pairs` hands over, in plain Python."""
    users = sorted((user for user in table if table[user]), key=lambda user: (len(table[user]), user))
    alone = {value for user in users if len(table[user]) == 1 for value in table[user]}
    rest = sorted({value for user in users for value in table[user]} - alone)
    rows = [
        (value // 10, len(table[user]), users.index(user), rest.index(value))
        for user in users for value in table[user] - alone
    ]  # fmt: skip
    rows += [
        (group, sum(value // 10 == group for value in alone), -1, -1) for group in {value // 10 for value in alone}
    ]
    random.Random(1).shuffle(rows)
    names = ("evenhand_group", "evenhand_size", "evenhand_user", "evenhand_value")
    return pa.table({name: pa.array([row[place] for row in rows], pa.int64()) for place, name in enumerate(names)})


def _reference(table: Table, limit: int) -> list[int]:
    """The rule as the proof states it."""
    taken: set[int] = set()
    for user in sorted(table, key=lambda user: (len(table[user]), user)):
        taken.update(sorted(table[user] - taken)[:limit])
    return [sum(value // 10 == group for value in taken) for group in range(2)]


def _tables(count: int) -> list[Table]:
    chance = random.Random(4)
    return [
        {
            user: set(chance.sample(range(20), min(20, int(chance.paretovariate(0.7)))))
            for user in chance.sample(range(9), 6)
        }
        for _ in range(count)
    ]


def test_values_are_taken_by_the_rule() -> None:
    for table in _tables(150):
        limits = (1, 2, 3, 5, 20)
        assert supported(_found(table), 2, limits) == [_reference(table, limit) for limit in limits]


def test_one_user_adds_at_most_their_limit_and_takes_nothing_away() -> None:
    attained = 0
    for table in _tables(60):
        for limit in (1, 3):
            (whole,) = supported(_found(table), 2, (limit,))
            for user in table:
                (less,) = supported(_found({other: table[other] for other in table if other != user}), 2, (limit,))
                moved = [more - fewer for more, fewer in zip(whole, less, strict=True)]
                assert min(moved) >= 0
                assert sum(moved) <= limit
                attained += sum(moved) == limit == 3
    assert attained


def test_a_score_moves_by_at_most_its_steps() -> None:
    """Sums under the limits that one user may leave behind: each up by 0 to ℓ, in one direction; under values in both."""
    chance = random.Random(5)
    for relation, epsilon in itertools.product((Relation.PRESENCE, Relation.VALUES), ("0.1", "3")):
        for _ in range(100):
            before = [[chance.randrange(3000)] for _ in LIMITS]
            low = 0 if relation is Relation.PRESENCE else -1
            after = [
                [count + chance.choice((low * limit, 0, limit))] for (count,), limit in zip(before, LIMITS, strict=True)
            ]
            one, other = (_scores(parse_epsilon(epsilon), 1, relation, counts)[0] for counts in (before, after))
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) <= _STEPS * relation.moves


def test_the_assignment_is_close_to_the_largest_possible() -> None:
    rng = np.random.default_rng(2)
    for limit in (1, 4):
        user = np.repeat(np.arange(300), np.minimum(rng.zipf(1.5, 300), 60))
        table: Table = {one: set() for one in range(300)}
        for one, value in zip(user.tolist(), rng.integers(0, 600, len(user)).tolist(), strict=True):
            table[one].add(value)
        (found,) = supported(_one_group(_found(table)), 1, (limit,))
        pairs = [
            (one * limit + slot, value) for one, values in table.items() for value in values for slot in range(limit)
        ]
        rows, columns = zip(*pairs, strict=True)
        graph = csr_matrix((np.ones(len(pairs)), (rows, columns)), shape=(300 * limit, 600))
        best = int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
        assert 0.95 * best <= found[0] <= best


def _one_group(found: pa.Table) -> pa.Table:
    total = found.filter(pa.compute.less(found["evenhand_user"], 0))["evenhand_size"].to_pylist()
    rest = found.filter(pa.compute.greater_equal(found["evenhand_user"], 0)).to_pylist()
    rows = [{**row, "evenhand_group": 0} for row in rest]
    rows += [{"evenhand_group": 0, "evenhand_size": sum(total), "evenhand_user": -1, "evenhand_value": -1}]
    return pa.Table.from_pylist(rows)


def _opened(table: Table, **options: Any) -> eh.Table:
    rows: list[tuple[int | None, int, int | None]] = [(1, 0, None), (None, 0, 3)]
    rows += [
        (user, value // 10, value) for user, values in table.items() for value in values for _ in range(1 + user % 3)
    ]
    names = {"u": 0, "g": 1, "v": 2}
    return eh.read(pa.table({name: [row[place] for row in rows] for name, place in names.items()}), user="u", **options)


def test_the_engine_numbers_pairs_as_plain_python_does() -> None:
    for table, limit in zip(_tables(4), (1, 3, 2, 1), strict=True):
        ask = partial(Drafts.distinct, column="v", values_per_user=limit, by="g", keys=[0, 1], epsilon=1)
        assert integers(_opened(table), ask) == [_reference(table, limit)]


def test_a_chosen_bound_is_good_where_it_is_obvious() -> None:
    """Without noise: everybody has one value, or everybody has ten of their own."""
    one = {user: {user % 50} for user in range(400)}
    ten = {user: set(range(10 * user, 10 * user + 10)) for user in range(400)}
    for table, limit in ((one, 1), (ten, 12)):
        chosen = watch(_opened(table), lambda ask: ask.distinct("v", epsilon=1)).outcome.bounding.parameter
        assert chosen == limit


def test_under_values_a_public_column_is_counted_exactly() -> None:
    table = _opened({1: {3, 4}, 2: {4, 15}}, protects="values", public=["v", "g"])
    draft = Drafts(table).distinct("v", epsilon=1, by="g", keys=[0, 1, 7])
    assert draft.cost is None
    assert watch(table, lambda ask: ask.distinct("v", epsilon=1)).outcome.value == 3


def test_what_does_not_fit_is_refused_before_the_debit() -> None:
    ask = Drafts(_opened({1: {3, 4}}))
    with pytest.raises(eh.UsageError, match="values_per_user=0"):
        ask.distinct("v", values_per_user=0, epsilon=1)
    with pytest.raises(eh.UsageError, match="leave bounding out"):
        ask.distinct("v", epsilon=1, bounding=eh.TotalCap(3))
    with pytest.raises(eh.UsageError, match="needs public keys"):
        ask.distinct("v", epsilon=1, by="g", delta=1e-6)
    with pytest.raises(eh.DataError, match="no column 'w'"):
        ask.distinct("w", epsilon=1)


def _words(users: int, seed: int) -> pa.Table:
    """Users with very different numbers of words, most of which are nobody else's."""
    source = np.random.default_rng(seed)
    sizes = np.minimum(np.ceil(source.lognormal(1.5, 1.3, users)), 3000).astype(np.int64)
    user = np.repeat(np.arange(users), sizes)
    own = 10**6 + np.arange(len(user))
    return pa.table(
        {"u": user, "v": np.where(source.random(len(user)) < 0.4, own, source.zipf(1.5, len(user)).clip(max=10**5))}
    )


def test_the_interval_is_for_the_number_of_values(tmp_path: Any) -> None:
    """Without noise: what the bound misses is a hundred times the step that noise would have, and inside the interval."""
    for seed in range(4):
        rows = _words(4000, seed)
        true = len(set(rows["v"].to_pylist()))
        session = eh.Session(eh.read(rows, user="u"), eh.Ledger(str(tmp_path / f"{seed}.db"), epsilon=10))
        with seam.replaced(seam.silent):
            release = session.distinct("v", epsilon=0.5)
        low, high = release.interval(0.95)
        assert release.noise_interval(0.95)[1] < true
        assert low <= true <= high, (seed, true, release)
        assert low <= release.value <= high


def test_of_a_given_bound_nobody_knows_what_it_misses(tmp_path: Any) -> None:
    session = eh.Session(eh.read(_words(500, 1), user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=10))
    release = session.distinct("v", values_per_user=3, epsilon=1)
    assert release.interval(0.95)[1] == float("inf")
    assert release.interval(0.95)[0] == release.noise_interval(0.95)[0]
    assert "nobody knows how many" in release.covers


def test_one_row_each_needs_no_bound(tmp_path: Any) -> None:
    rows = eh.read(_words(500, 2), user="u").per_user(v=eh._.v.max())
    session = eh.Session(rows, eh.Ledger(str(tmp_path / "b.db"), epsilon=10))
    release = session.distinct("v", epsilon=1)
    assert (release.bounding.parameter, release.bounding.epsilon, release.error.bias) == (1.0, None, 0.0)
    assert release.error.noise == pytest.approx(2**0.5, rel=0.1)
