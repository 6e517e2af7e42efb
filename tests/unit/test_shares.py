"""What a view, a type or an expression says of a table is public, so nothing is spent on learning it; and shares, which rest on that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.guarantee import EvenhandError, UsageError
from evenhand.session import Drafts
from evenhand.statistics import Draft
from evenhand.tables.columns import schema_bounds
from watch import watch

USERS = 40
FRAME = pd.DataFrame(
    [
        (user, float(user % 7 + row), None if user % 5 == 0 else ("soda", "milk")[row % 2], "ab"[(user + row) % 2])
        for user in range(USERS)
        for row in range(1 + user % 4)
    ],
    columns=["u", "x", "c", "g"],
)
SODA = FRAME.c == "soda"
BY: dict[str, Any] = {"by": "g", "keys": ["a", "b"]}


def table(protects: str = "presence") -> eh.Table:
    return eh.read(
        pa.Table.from_pandas(FRAME), user="u", protects=protects, public=["g"] if protects == "values" else []
    )


def of_users(condition: pd.Series, by: bool = False) -> Any:
    keys = ["u", "g"] if by else ["u"]
    found = FRAME.assign(true=condition).groupby(keys).true.max()
    return found.groupby("g").mean() if by else found.mean()


@pytest.mark.parametrize("protects", ["presence", "values"])
@pytest.mark.parametrize("condition", [eh._.c == "soda", "c = 'soda'"], ids=["expression", "sql"])
def test_a_share_is_of_all_rows_or_users_and_null_is_false(condition: object, protects: str) -> None:
    def exact(ask: Callable[[Drafts], Draft]) -> Any:
        return watch(table(protects), ask).outcome.value

    wide: dict[str, Any] = {"epsilon": 1, "bounding": eh.SmoothWeights(1000)}
    assert exact(lambda d: d.share(condition, **wide)) == pytest.approx(SODA.mean(), abs=1e-6)
    assert exact(lambda d: d.share(condition, of="users", epsilon=1)) == pytest.approx(of_users(SODA), abs=1e-6)
    by = exact(lambda d: d.share(condition, **BY, **wide))
    assert by.share.to_list() == pytest.approx(SODA.groupby(FRAME.g).mean().to_list(), abs=1e-3)
    by = exact(lambda d: d.share(condition, of="users", **BY, epsilon=1, bounding=eh.NormClip(2)))
    assert by.share.to_list() == pytest.approx(of_users(SODA, by=True).to_list(), abs=1e-3)


def test_shares_go_with_other_statistics_and_say_what_they_are_of() -> None:
    draft = Drafts(table()).aggregate(
        epsilon=1, **BY, soda=eh.share(eh._.c == "soda"), people=eh.share("x > 3", of="users"), n=eh.count()
    )
    assert draft.query["parts"]["soda"] == {"statistic": "share", "condition": "(_.c == 'soda')", "of": "rows"}
    assert "share of users who have a row with x > 3" in draft.statistic
    told = watch(table(), lambda ask: ask.share("x > 3", epsilon=1)).outcome.details["values"]["words"]
    assert told == "a condition that is null counts as false"


@pytest.mark.parametrize(
    ("condition", "message"),
    [("x", "number; expected a condition"), ("nope > 1", "no column 'nope'"), ("x >", "can't be read as SQL")],
)
def test_what_is_no_condition_is_refused(condition: str, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        Drafts(table()).share(condition, epsilon=1)
    with pytest.raises(UsageError, match="of='rows', or of='users'"):
        eh.share("x > 3", of="people")  # type: ignore[arg-type]


KNOWN: dict[str, tuple[object, tuple[float, float] | None]] = {
    "truth": (eh._.x > 3, (0, 1)),
    "case": ("CASE WHEN x > 3 THEN 1 ELSE 0 END", (0, 1)),
    "case without else": ("CASE WHEN x > 3 THEN 5 WHEN x > 1 THEN 2 END", (2, 5)),
    "clipped": (eh._.x.clip(0, 10), (0, 10)),
    "clipped on one side": (eh._.x.clip(lower=0), None),
    "a constant": ("7", None),
    "of the table": (eh._.x, None),
    "a choice of that": ("CASE WHEN x > 3 THEN x ELSE 0 END", None),
}


@pytest.mark.parametrize("name", KNOWN)
def test_bounds_by_the_schema(name: str) -> None:
    expression, bounds = KNOWN[name]
    made = table().derive(y=expression)
    assert schema_bounds(made, "y") == bounds
    spent = Drafts(made).mean("y", epsilon=1).query
    assert ("finding" in spent) == (bounds is None)


def test_parts_of_dates_have_bounds_but_for_years() -> None:
    days = eh.read(pa.table({"u": [1, 2], "d": pd.to_datetime(["2026-01-02", "2026-12-30"])}), user="u")
    made = days.derive(m=eh._.d.month(), w=eh._.d.day_of_week.index(), y=eh._.d.year(), h=eh._.d.hour())
    assert [schema_bounds(made, name) for name in "mwyh"] == [(1, 12), (0, 6), None, (0, 23)]


def test_a_share_of_each_users_rows_lies_between_0_and_1() -> None:
    made = table().per_user(part=(eh._.x > 3).mean(), most=eh._.x.max())
    assert (schema_bounds(made, "part"), schema_bounds(made, "most")) == ((0, 1), None)


def steps(view: eh.Table, ask: Callable[[Drafts], Draft]) -> list[tuple[list[int], Any]]:
    watched = watch(view, ask)
    return [(step.integers, step.l1) for step in watched.steps]


def test_one_row_per_user_is_a_public_fact() -> None:
    """One measurement, of sensitivity 1, with all of ε."""
    view = table().per_user(high=(eh._.x > 3).any(), most=eh._.x.max())
    assert view.one_row
    high = int((FRAME.groupby("u").x.max() > 3).sum())
    assert steps(view, lambda d: d.count(epsilon=1)) == [([USERS], 1)]
    by = steps(view, lambda d: d.count(by="high", keys=[True, False], epsilon=1))
    assert [integers[0] / integers[1] for integers, _ in by] == [pytest.approx(high / (USERS - high))]
    ((integers, moved),) = steps(view, lambda d: d.mean("high", epsilon=1))
    assert [integer / moved for integer in integers] == [high, USERS - high]
    assert "will be chosen privately" not in Drafts(view).median("most", bounds=(0, 10), epsilon=1).bounding.words


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        (lambda view: view.where(eh._.high), True),
        (lambda view: view.derive(low=~eh._.high).select("low"), True),
        (lambda view: view.window(n=eh._.most.count()), True),
        (lambda view: view.join(table().per_user(n=eh._.x.count())), True),
        (lambda view: view.join(table(), fan_out=3), False),
        (lambda view: view.union(view), False),
    ],
    ids=["where", "derive", "window", "join", "join of rows", "union"],
)
def test_views_of_views_keep_one_row_or_lose_it(change: Callable[[eh.Table], eh.Table], stays: bool) -> None:
    made = change(table().per_user(high=(eh._.x > 3).any(), most=eh._.x.max()))
    assert made.one_row is stays
    bought = len(steps(made, lambda d: d.count(epsilon=1))) > 1
    assert bought is not stays


def test_a_public_table_with_several_rows_for_a_key_makes_more_rows() -> None:
    view = table().per_user(most=eh._.x.max().cast("int64"))
    one = eh.read_public(pa.table({"most": [1, 2], "name": ["x", "y"]}))
    two = eh.read_public(pa.table({"most": [1, 1], "name": ["x", "y"]}))
    assert view.join(one, on="most").one_row
    assert not view.join(two, on="most", fan_out=2).one_row


def test_the_command_line_asks_for_shares(tmp_path: Any) -> None:
    from typer.testing import CliRunner

    from evenhand.apps.cli import app

    path = tmp_path / "rows.parquet"
    FRAME.to_parquet(path)
    given = [
        "release",
        "share",
        str(path),
        "--user",
        "u",
        "--epsilon",
        "5",
        "--ledger",
        str(tmp_path / "b.db"),
        "--json",
    ]
    asked = CliRunner().invoke(app, [*given, "--condition", "c = 'soda'", "--of", "users"])
    assert asked.exit_code == 0
    assert "\"share of users who have a row with c = 'soda'\"" in asked.stdout
