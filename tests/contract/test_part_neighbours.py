"""Parts keep users apart: what a join with a part makes of a user's rows is the same whoever else is in the tables.

Neighbours differ in one user with all of their rows, and in every row of a part that no row of those who remain reaches, down the levels. The databases
hold what real ones do: an order of two customers, an order without a customer, items without an order, null keys, crowded keys, duplicates.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibis import _

import evenhand as eh
from evenhand.tables.views import joins, reached
from neighbouring import compare
from visible import Questions
from visible import compare as compare_sessions
from watch import Ask

USERS = [f"user {place}" for place in range(5)]
KEYS = [None, *range(9)]
CROWDED = 4
"""A key that many rows have, of owners and of parts."""

OWNERS = pa.schema([("u", pa.string()), ("k", pa.int64()), ("v", pa.float64())])
ITEMS = pa.schema([("k", pa.int64()), ("i", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
LINES = pa.schema([("i", pa.int64()), ("y", pa.float64())])


@dataclass(frozen=True)
class Database:
    """Owners, items that belong to them by ``k``, and lines that belong to items by ``i``."""

    owners: list[dict[str, Any]]
    items: list[dict[str, Any]]
    lines: list[dict[str, Any]]

    def without(self, user: str) -> Database:
        """The neighbour that this user left."""
        owners = [row for row in self.owners if row["u"] != user]
        orders = {row["k"] for row in owners} - {None}
        items = [row for row in self.items if row["k"] in orders]
        reached = {row["i"] for row in items} - {None}
        return Database(owners, items, [row for row in self.lines if row["i"] in reached])

    def turned(self) -> Database:
        """The same rows in another order."""
        return Database(self.owners[::-1], self.items[::-1], self.lines[::-1])

    def opened(self) -> tuple[eh.Table, Any, Any]:
        tables = (
            pa.Table.from_pylist(rows, schema)
            for rows, schema in ((self.owners, OWNERS), (self.items, ITEMS), (self.lines, LINES))
        )
        owners, items, lines = tables
        return eh.read(owners, user="u"), eh.read_part(items, name="items"), eh.read_part(lines, name="lines")


def database(seed: int, owners: int = 25, items: int = 50, lines: int = 40) -> Database:
    """A random one; a third of keys are crowded, so that fan-outs are reached, and orders are shared."""
    chance = random.Random(seed)

    def key() -> int | None:
        return CROWDED if chance.random() < 0.3 else chance.choice(KEYS)

    return Database(
        [{"u": chance.choice(USERS), "k": key(), "v": chance.choice([None, 0.5, -2.0, 3.0])} for _row in range(owners)],
        [
            {"k": key(), "i": chance.choice([None, *range(30)]), "x": chance.choice([None, 0.0, -0.0, 1.5, 4.0, -3.0]), "s": chance.choice(["a", "b", ""])}
            for _row in range(items)
        ],
        [{"i": chance.choice([None, *range(35)]), "y": chance.choice([None, 0.25, 2.0])} for _row in range(lines)],
    )  # fmt: skip


Build = Callable[[eh.Table, Any, Any], eh.Table]
PUBLIC = eh.read_public(pa.table({"s": ["a", "b"], "w": [1.0, 2.0]}))
VIEWS: dict[str, Build] = {
    "inner": lambda table, items, lines: table.join(items, on="k"),
    "left": lambda table, items, lines: table.join(items, on="k", how="left"),
    "few of each": lambda table, items, lines: table.join(items, on="k", fan_out=2),
    "one of each, left": lambda table, items, lines: table.join(items, on="k", how="left", fan_out=1),
    "two levels": lambda table, items, lines: table.join(items, on="k", fan_out=3).join(lines, on="i", fan_out=2),
    "two levels, left": lambda table, items, lines: table.join(items.join(lines, on="i", how="left"), on="k", how="left"),
    "filtered before": lambda table, items, lines: table.where(_.v > 0).join(items.where(_.x >= 0), on="k", fan_out=2),
    "some columns": lambda table, items, lines: table.join(items.select("k", "x"), on="k", fan_out=2).derive(z=_.x * _.v),
    "with public rows": lambda table, items, lines: table.join(items.join(PUBLIC, on="s", how="left"), on="k"),
    "by another name": lambda table, items, lines: table.join(items.derive(key=_.k).select("key", "x"), on={"k": "key"}),
    "units": lambda table, items, lines: table.join(items, on="k").per(["u", "k"], n=_.count(), total=_.x.sum(), kinds=_.s.nunique()),
    "totals": lambda table, items, lines: table.join(table.join(items, on="k").per_user(n=_.count(), most=_.x.max())),
    "united": lambda table, items, lines: table.where(_.v > 0).join(items, on="k").union(table.where(_.v <= 0).join(items, on="k", fan_out=1)),
    "in a window": lambda table, items, lines: table.join(items, on="k", fan_out=3).window(order_by="i", before=_.x.lag()),
}  # fmt: skip


def result(build: Build, rows: Database) -> dict[str, Counter[str]]:
    """What each user's rows became, as text; -0.0 is 0.0, which no operation tells apart."""
    view = build(*rows.opened())
    found: dict[str, Counter[str]] = defaultdict(Counter)
    with view.engine.kept(view.expression) as kept:
        for row in view.engine.evaluate(kept).to_pylist():
            told = [value + 0.0 if isinstance(value, float) else value for value in row.values()]
            found[row["u"]][repr(told)] += 1
    return found


def mixed(build: Build, rows: Database) -> set[str]:
    """The users whose rows became something else when another one left, or when rows were stored in another order."""
    whole, turned = result(build, rows), result(build, rows.turned())
    wrong = {user for user in {*whole, *turned} if whole.get(user) != turned.get(user)}
    for user in USERS:
        rest = result(build, rows.without(user))
        assert user not in rest
        wrong |= {other for other in USERS if other != user and whole.get(other) != rest.get(other)}
    return wrong


@pytest.mark.parametrize("most", [reached.MOST_REACHED, 6])
@pytest.mark.parametrize("name", VIEWS)
def test_every_join_with_a_part_keeps_users_apart(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where users reach more rows than a join makes of one."""
    monkeypatch.setattr(reached, "MOST_REACHED", most)
    for seed in range(2):
        assert not mixed(VIEWS[name], database(seed))


def test_what_a_user_reaches_is_cut_at_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {user: sum(rows.values()) for user, rows in result(VIEWS["few of each"], database(1)).items()}
    assert max(whole.values()) > 6
    monkeypatch.setattr(reached, "MOST_REACHED", 6)
    cut = {user: sum(rows.values()) for user, rows in result(VIEWS["few of each"], database(1)).items()}
    assert {user: min(size, 6) - cut[user] in (0, 1) for user, size in whole.items()} == dict.fromkeys(whole, True)


def over(rows: ibis.Table, order: list[str], group: list[str] | None = None) -> Any:
    return ibis.row_number().over(ibis.window(group_by=group or [], order_by=order))


def dropped(names: list[str], order: list[str], group: list[str] | None, most: int) -> Callable[..., Any]:
    """A limit on rows by a place among others."""

    def limited(*given: Any) -> Any:
        rows = next(each for each in given if isinstance(each, ibis.Table) and set(names) <= set(each.columns))
        ranked = rows.mutate(place_=over(rows, order, group))
        return ranked.filter(ranked.place_ < most).drop("place_")

    return limited


BROKEN: dict[str, tuple[str, Callable[..., Any], Build]] = {
    "the first rows of the whole part": (
        "_first_of_each_key", lambda part, keyed, *_rest: dropped(["i"], ["i", "x", "s", "k"], None, 12)(keyed), VIEWS["inner"],
    ),
    "in the order of storage": (
        "_first_of_each_key", lambda part, keyed, *_rest: dropped(["i"], [], ["evenhand_on_0"], 2)(keyed), VIEWS["inner"],
    ),
    "an order goes to the first of its customers": (
        "_first_of_each_user", lambda table, rows, *_rest: dropped(["u"], ["u", "v"], ["evenhand_on_0"], 1)(rows), VIEWS["inner"],
    ),
    "the most of all users together": (
        "_first_of_each_user", lambda table, rows, *_rest: dropped(["u"], ["v", "k", "u"], None, 12)(rows), VIEWS["inner"],
    ),
    "a key that everybody has": (
        "origins", lambda engine, rows, names: [(rows.op(), name) for name in names],
        lambda table, items, lines: table.derive(all=1).join(items.derive(all=1).select("all", "i"), on="all", fan_out=5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_judge_notices_joins_that_mix_users(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, twin, build = BROKEN[name]
    monkeypatch.setattr(reached, place, twin)
    assert any(mixed(build, database(seed)) for seed in range(4))


SEEN: dict[str, tuple[Build, Ask]] = {
    "a count": (VIEWS["inner"], lambda ask: ask.count(epsilon=1)),
    "a sum of few": (VIEWS["few of each"], lambda ask: ask.sum("x", bounds=(-1, 2), epsilon=1, bounding=eh.TotalCap(3))),
    "groups of lines": (VIEWS["two levels"], lambda ask: ask.count(by="s", keys=["a", "b"], epsilon=1)),
    "units": (VIEWS["units"], lambda ask: ask.median("total", bounds=(-10, 10), epsilon=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_a_release_on_a_part_moves_as_declared(name: str) -> None:
    """The neighbour suite: one user, with what only they reach, never moves the integers by more than was declared, and changes nothing else."""
    build, ask = SEEN[name]

    @settings(max_examples=3)
    @given(seed=st.integers(0, 2**32), user=st.sampled_from(USERS), rows=st.integers(1, 40))
    def check(seed: int, user: str, rows: int) -> None:
        whole = database(seed, rows, 2 * rows, rows)
        one, other = (build(*each.opened()) for each in (whole, whole.without(user)))
        compare(ask, one, other, seed % 10)

    check()


def test_a_release_that_mixes_users_moves_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: where an order goes to the first of its customers, one who leaves hands their items on to another one."""
    monkeypatch.setattr(reached, *BROKEN["an order goes to the first of its customers"][:2])
    owners = [{"u": user, "k": key, "v": 0.5} for user, most in (("user 0", 6), ("user 1", 9)) for key in range(most)]
    many = Database(owners, [{"k": key, "i": key, "x": 1.0, "s": "a"} for key in range(9)], [])
    build: Build = lambda table, items, lines: table.join(items, on="k").per_user(n=_.count())  # noqa: E731
    one, other = (build(*each.opened()) for each in (many, many.without(USERS[0])))
    with pytest.raises(AssertionError, match="one user moved"):
        compare(lambda drafts: drafts.count(by="n", keys=[3, 6, 9], epsilon=1), one, other)


SESSION: Questions = {
    "count": lambda ask: ask.count(epsilon=1),
    "users": lambda ask: ask.users(epsilon=1),
    "sum": lambda ask: ask.sum("x", bounds=(-1, 2), epsilon=1),
    "by": lambda ask: ask.count(by="s", keys=["a", "b"], epsilon=1),
    "median": lambda ask: ask.median("x", bounds=(-1, 2), epsilon=1),
    "SQL": lambda ask: ask.sql("SELECT s, SUM(y) AS total FROM table WHERE s IN ('a', 'b') GROUP BY s", epsilon=1),
    "other users": lambda ask: ask.share("x > 1", of="users", epsilon=1),
}


@pytest.mark.parametrize("name", ["two levels", "two levels, left"])
@pytest.mark.parametrize("crowd", [0, 2000])
def test_nothing_else_that_is_seen_depends_on_what_a_user_reaches(name: str, crowd: int) -> None:
    """Values, types, errors, warnings, prints, events and previews; also where one of a user's orders has more items than a row may meet."""
    whole = database(3)
    more = [{"k": 77, "i": place % 90, "x": 1.0, "s": "a"} for place in range(crowd)]
    victim = [{"u": "victim", "k": 77, "v": 1.0}, {"u": "victim", "k": CROWDED, "v": None}]
    wide = Database([*whole.owners, *victim], [*whole.items, *more], whole.lines)

    def opened(rows: Database) -> eh.Table:
        return VIEWS[name](*rows.opened())

    compare_sessions(partial(opened, wide), partial(opened, wide.without("victim")), SESSION)


def test_a_fan_out_that_refuses_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: as joins with public tables do, it says how many rows have one key."""
    found = reached.reached

    def refusing(table: Any, part: Any, owner: Any, theirs: Any, *rest: Any) -> Any:
        counted = part.expression.group_by("k").aggregate(n=part.expression.count())
        largest = part.engine.evaluate(counted.aggregate(most=counted.n.max())).to_pylist()[0]["most"] or 0
        if largest > 1000:
            raise eh.UsageError(f"{largest} rows have one key.")
        return found(table, part, owner, theirs, *rest)

    monkeypatch.setattr(joins, "reached", refusing)
    with pytest.raises(AssertionError):
        test_nothing_else_that_is_seen_depends_on_what_a_user_reaches("two levels", 2000)
