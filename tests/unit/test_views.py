"""Views do what their docstrings say, and refuse in words that help."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from ibis import _

import evenhand as eh

DAYS = [datetime.date(2024, 2, day) for day in (26, 27, 28, 29, 26)]
SALES = pa.table(
    {
        "home": [1, 1, 1, 2, 2],
        "day": DAYS,
        "product": [10, 20, 10, None, 30],
        "amount": [1.5, None, 0.25, -2.0, 0.1],
        "note": ["A b", "", None, "b%", "c"],
    }
)
PRODUCTS = pa.table({"product": [10, 20], "price": [3, None], "kind": ["x", "y"]})


def sales(**given: Any) -> eh.Table:
    return eh.read(SALES, user="home", **given)


def column(view: eh.Table, name: str) -> list[Any]:
    """The values of a column, in the order of day and amount."""
    with view.engine.kept(view.expression) as kept:
        rows = view.engine.evaluate(kept).to_pylist()
    return [
        row[name] for row in sorted(rows, key=lambda row: (row["home"], str(row.get("day")), str(row.get("amount"))))
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (_.amount * 2 - 1, [2.0, None, -0.5, -0.8, -5.0]),
        (1 / (_.amount - 1.5), [None, None, -0.8, 1 / (0.1 - 1.5), -2 / 7]),
        ("CASE WHEN amount > 1 THEN 'large' WHEN amount IS NULL THEN 'none' ELSE 'small' END", ["large", "none", "small", "small", "small"]),
        ("date_trunc('month', day)", [datetime.date(2024, 2, 1)] * 5),
        (_.day.day_of_week.index(), [0, 1, 2, 0, 3]),
        ("lower(left(note, 1)) || '!'", ["a!", "!", None, "c!", "b!"]),
        (_.note.like("b%"), [False, False, None, False, True]),
        ("coalesce(product, 0) % 20", [10, 0, 10, 10, 0]),
        ((_.amount * 3).round().cast("string"), ["5", None, "1", "0", "-6"]),
        (_.amount.sqrt().isnull(), [False, True, False, False, True]),
        ("day + INTERVAL '3' DAY > DATE '2024-03-01'", [False, False, True, False, True]),
    ],
)  # fmt: skip
def test_expressions_mean_what_they_say(expression: object, expected: list[Any]) -> None:
    assert column(sales().derive(r=expression), "r") == expected


def test_filters_and_columns() -> None:
    view = sales().where(_.amount > 0, "note <> 'c'").derive(amount=_.amount * 2).select("amount", "day")
    assert view.columns == ("home", "day", "amount")
    assert column(view, "amount") == [3.0]


def test_totals_per_user_are_exact_in_any_order() -> None:
    rows = pa.table({"home": [1, 1, 1, 1], "amount": [1e15, 0.1, -1e15, 0.2]})
    for order in ([0, 1, 2, 3], [1, 3, 0, 2]):
        total = column(eh.read(rows.take(order), user="home").per_user(t=_.amount.sum()), "t")
        assert total == pytest.approx([0.3], abs=1e-15)
        assert total == column(eh.read(rows, user="home").per_user(t=_.amount.sum()), "t")


def test_windows() -> None:
    view = sales().window(
        order_by="day",
        place=_.count(),
        before=_.amount.lag(),
        so_far=_.product.sum(),
        gap=_.day.delta(_.day.lag(), unit="day"),
    )
    assert column(view, "place") == [1, 2, 3, 1, 2]
    assert column(view, "before") == [None, 1.5, None, None, 0.1]
    assert column(view, "so_far") == [10, 30, 40, 30, 30]
    assert column(view, "gap") == [None, 1, 1, None, 3]


def test_joins() -> None:
    products = eh.read_public(PRODUCTS)
    assert column(sales().join(products, on="product"), "kind") == ["x", "y", "x"]
    assert column(sales().join(products, on="product", how="left"), "price") == [3, None, 3, None, None]
    homes = eh.read(
        pa.table({"id": pa.array([2, 1, 1, None], pa.int32()), "size": [4, 3, 2, 9]}), user="id", population="homes"
    )
    view = sales(population="homes").join(homes)
    assert column(view, "size") == [2, 2, 2, 4, 4], "of each user, the first row in the order of all columns"
    assert len(column(sales(population="homes").join(homes, fan_out=2), "size")) == 8
    both = sales().where(_.amount > 0).union(sales().where(_.amount < 0))
    assert len(column(both, "amount")) == 4


def test_text_columns_are_cast_by_the_rule_of_the_house(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("home,amount\n1,  5 \n1,0x10\n2,1e400\n2,-7.5\n")
    table = eh.read(path, user="home")
    assert column(table.derive(r=_.amount.cast("float64")), "r") == [5.0, None, -7.5, float("inf")]
    with pytest.raises(eh.UsageError, match=r"read as text: write _.name.cast\('float64'\)"):
        table.where(_.amount > 0)


REFUSED: dict[str, tuple[Callable[[eh.Table], object], str]] = {
    "a column that is not there": (lambda table: table.where(_.amont > 0), "Did you mean 'amount'"),
    "in SQL": (lambda table: table.where("1 = 1 AND amont > 0"), r"no column 'amont' \(line 1, column 15\).*Did you mean"),
    "a user column": (lambda table: table.derive(home=_.product), "user column 'home' can't be redefined"),
    "a user column in another case": (lambda table: table.derive(Home=_.product), "'home' and 'Home' differ only in case"),
    "one more user column": (lambda table: table.per_user(HOME=_.count()), "'home' and 'HOME' differ only in case"),
    "a joined user column": (
        lambda table: table.join(eh.read_public(pa.table({"product": [1], "HoMe": [1]})), on="product"),
        "'home' and 'HoMe' differ only in case",
    ),
    "twins": (lambda table: table.derive(new=_.product, New=_.product), "'new' and 'New' differ only in case"),
    "a reserved name": (lambda table: table.derive(evenhand_x=1), "kept for queries"),
    "no condition": (lambda table: table.where(_.amount), "expected a condition"),
    "an aggregate": (lambda table: table.where(_.amount > _.amount.mean()), "rows of all users together.*per user"),
    "chance": (lambda table: table.derive(r=ibis.random()), "gives another value each time"),
    "a subquery": (lambda table: table.where("product IN (SELECT 1)"), "Join the other table"),
    "several statements": (lambda table: table.where("1 = 1; DROP TABLE x"), "not one SQL expression"),
    "broken SQL": (lambda table: table.where("amount >"), "can't be read as SQL near line 1"),
    "another table's column": (lambda table: table.derive(r=sales().expression.amount), "belongs to other rows"),
    "a function": (lambda table: table.derive(r=lambda rows: rows.amount), "expected an expression"),
    "a row's value per user": (lambda table: table.per_user(r=_.amount + _.amount.sum()), r"Aggregate it: _.amount.max\(\)"),
    "a variance per user": (lambda table: table.per_user(r=_.amount.var()), "expected one of .*'Sum'"),
    "no order": (lambda table: table.window(r=_.amount.lag()), "needs an order"),
    "a window of its own": (lambda table: table.window(r=_.amount.cumsum()), "WindowFunction can't be part"),
    "too many public rows": (lambda table: table.join(eh.read_public(SALES), on="home"), "give fan_out=3"),
    "joins that multiply": (lambda table: table.join(other("a"), fan_out=100).join(other("b"), fan_out=11), "1,100; expected at most 1,000"),
    "joins before a join": (lambda table: table.join(other("a"), fan_out=1000).join(other("b"), fan_out=2), "1,000 by earlier joins"),
    "unions that multiply": (lambda table: functools.reduce(lambda rows, _: rows.union(rows), range(10), table), "512 in the other"),
    "a union of joins": (lambda table: table.join(other("a"), fan_out=600).union(table.join(other("a"), fan_out=600)), "1,200 together"),
    "no key": (lambda table: table.join(eh.read_public(PRODUCTS)), "needs on="),
    "a cross join": (lambda table: table.join(eh.read_public(PRODUCTS), on="product", how="outer"), "expected one of"),
    "keys of two types": (lambda table: table.join(eh.read_public(pa.table({"product": ["10"]})), on="product"), "expected one type"),
    "other people": (lambda table: table.join(eh.read(PRODUCTS, user="product")), "needs the same people.*population="),
    "other protection": (lambda table: table.join(eh.read(SALES, user="home", protects="values")), "expected the same in both"),
    "ids of another type": (lambda table: table.join(eh.read(pa.table({"home": ["1"]}), user="home")), "expected one type in both"),
    "the same columns": (lambda table: table.join(table), "both tables have the columns"),
    "other columns": (lambda table: table.union(table.select("day")), "same columns in both"),
    "a very deep one": (lambda table: table.derive(r=sum([_.amount] * 200)), "operations within each other"),
}  # fmt: skip


def other(name: str) -> eh.Table:
    """One more table of the same people."""
    return eh.read(pa.table({"home": [1, 1, 2], name: [1, 2, 3]}), user="home")


def test_what_has_few_rows_per_user_multiplies_few() -> None:
    """Joins are counted by what is declared, and by what a view or a public table leaves open, however large fan_out= is."""
    totals = [sales().per_user(**{f"t{place}": _.amount.sum()}) for place in range(3)]
    table = functools.reduce(lambda rows, each: rows.join(each, fan_out=1000), totals, sales())
    assert (table.growth, table.per_person) == (1, None)
    products = eh.read_public(pa.table({"product": [10, 10, 20], "place": [1, 2, 3]}))
    twice = table.join(products, on="product", fan_out=1000)
    assert twice.growth == 2
    assert (twice.per_user(n=_.count()).growth, twice.per_user(n=_.count()).per_person) == (1, 1)
    pairs = totals[0].join(other("a"), fan_out=20)
    assert pairs.per_person == 20
    assert sales().join(pairs, fan_out=1000).growth == 20


def test_a_column_with_the_name_of_a_method() -> None:
    rows = sales().derive(count=_.amount)
    with pytest.raises(eh.UsageError, match=r"write _\['count'\]"):
        rows.where(_.count > 1)
    assert column(rows.where(_["count"] > 1), "count") == [1.5]


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(name: str) -> None:
    ask, words = REFUSED[name]
    with pytest.raises((eh.UsageError, eh.DataError), match=words):
        ask(sales())


def test_what_is_private_may_not_decide_which_rows_there_are() -> None:
    table = sales(protects="values", public=["day", "product"])
    asks: list[Callable[[], object]] = [
        lambda: table.where(_.amount > 0),
        lambda: table.derive(day=_.note).where(_.day == "c"),
        lambda: table.window(order_by="amount", place=_.count()),
        lambda: table.derive(product=_.amount.floor()).join(eh.read_public(PRODUCTS), on="product"),
    ]
    for ask in asks:
        with pytest.raises(eh.UsageError, match="private columns"):
            ask()
    with pytest.raises(eh.UsageError, match="private columns"):
        sales(protects="labels").derive(feature=_.amount * 2)


def test_a_question_computes_only_the_columns_that_it_uses() -> None:
    view = sales().per_user(total=_.amount.sum(), kinds=_.product.nunique(), days=_.day.nunique()).where(_.days > 1)
    rows = view.expression
    asked = rows.filter(rows.total.notnull()).drop("kinds", "home").aggregate(n=_.count())
    with view.engine._scanned_once(asked) as statement:
        sql = view.engine.sql(statement)
        assert view.engine.evaluate(statement).to_pylist() == view.engine.evaluate(asked).to_pylist() == [{"n": 2}]
    assert "product" not in sql
    assert '"day"' in sql, "a filter uses it"
