"""Views do what their docstrings say, and refuse in words that help."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from ibis import _

import evenhand as eh
from evenhand.ledger import handout, registry

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


VISITS = pa.table({"home": [1, 1, 2, 3], "order": [10, 11, 11, None], "day": DAYS[:4]})
ITEMS = pa.table({"order": [10, 10, 11, None, 12], "item": [1, 2, 3, 4, 5], "price": [1.0, 2.0, 4.0, 8.0, 16.0]})
RETURNS = pa.table({"item": [1, 3, 3, 9], "reason": ["late", "torn", "late", "torn"]})


def visits(**given: Any) -> eh.Table:
    return eh.read(VISITS, user="home", **given)


def part(rows: pa.Table = ITEMS, name: str = "items", **given: Any) -> Any:
    return eh.read_part(rows, name=name, **given)


def prices(view: eh.Table) -> list[Any]:
    with view.engine.kept(view.expression) as kept:
        return sorted(((row["home"], row["price"]) for row in view.engine.evaluate(kept).to_pylist()), key=str)


def test_parts_are_reached_through_their_keys() -> None:
    assert prices(visits().join(part(), on="order")) == [(1, 1.0), (1, 2.0), (1, 4.0), (2, 4.0)]
    assert prices(visits().join(part(), on="order", how="left"))[-1] == (3, None)
    assert prices(visits().join(part(), on="order", fan_out=1)) == [(1, 1.0), (1, 4.0), (2, 4.0)]
    assert prices(visits().join(part().where(_.price > 1), on="order")) == [(1, 2.0), (1, 4.0), (2, 4.0)]
    renamed = part(ITEMS.rename_columns(["id", "item", "price"]))
    assert prices(visits().join(renamed, on={"order": "id"})) == prices(visits().join(part(), on="order"))
    assert visits().join(renamed, on={"order": "id"}).columns == ("home", "order", "day", "id", "item", "price")


def test_parts_of_parts() -> None:
    whole = part().join(part(RETURNS, "returns"), on="item")
    assert prices(visits().join(whole, on="order")) == [(1, 1.0), (1, 4.0), (1, 4.0), (2, 4.0), (2, 4.0)]
    assert prices(visits().join(part(), on="order").join(part(RETURNS, "returns"), on="item")) == prices(
        visits().join(whole, on="order")
    )
    left = visits().join(part().join(part(RETURNS, "returns"), on="item", how="left"), on="order", how="left")
    assert len(prices(left)) == 7
    kinds = eh.read_public(pa.table({"why": ["late", "torn"], "cost": [1, 2]}))
    view = visits().join(whole.join(kinds, on={"reason": "why"}), on="order")
    assert view.columns[-2:] == ("why", "cost")


def test_what_is_protected_is_said_in_words() -> None:
    view = visits(population="homes").join(part().join(part(RETURNS, "returns"), on="item"), on="order")
    words = view.guarantee(Decimal(1), Decimal(0)).words()
    assert "with every row of items (by order) and returns (by item of items) that only they reach" in words
    assert "only once no row of those who remain reaches it, and so on down the levels" in words
    assert "reach" not in visits().guarantee(Decimal(1), Decimal(0)).words()
    renamed = visits().join(part(ITEMS.rename_columns(["id", "item", "price"])), on={"order": "id"})
    assert "items (by id = order)" in renamed.guarantee(Decimal(1), Decimal(0)).words()


def test_a_ledger_lets_a_part_be_reached_in_one_way(tmp_path: Path) -> None:
    """Where everybody reaches every row, nobody's would be protected, which was promised before."""
    ledger = eh.Ledger(tmp_path / "ledger.db", epsilon=9)
    rows = pa.table({"home": [1, 2], "order": [10, 11], "shop": [1, 1]})
    items = ITEMS.append_column("shop", pa.array([1] * 5))
    table = eh.read(rows, user="home")
    by_order = table.select("order").join(part(items), on="order")
    release = eh.Session(by_order, ledger).count(epsilon=1)
    by_shop = eh.Session(table.select("shop").join(part(items), on="shop"), ledger)
    before = ledger.spent
    for ask in (by_shop.count, by_shop.preview.count):
        with pytest.raises(eh.UsageError, match=r"items \(by shop\), and earlier ones .* items \(by order\)"):
            ask(epsilon=1)
    assert ledger.spent == before
    eh.Session(by_order, ledger).count(epsilon=1)
    eh.Session(table, ledger).count(epsilon=1)
    ledger.verify()
    promised = handout.promise(ledger)
    assert promised is not None
    assert promised.parts == by_order.reached
    assert "no other user reaches" in registry.entry(ledger)["deployment"]["privacy_loss"]["privacy_unit_details"]
    event = ledger.events[0].guarantee
    assert event.parts == release.guarantee.parts == by_order.reached
    release.save(tmp_path / "release.json")
    assert eh.load(tmp_path / "release.json").guarantee == release.guarantee


BY_PART: dict[str, tuple[Callable[[], object], str]] = {
    "values": (lambda: visits(protects="values", public=["order"]).join(part(), on="order"), "protects='values'.*expected protects=\"presence\""),
    "labels": (lambda: visits(protects="labels", public=["order"]).join(part(), on="order"), "expected protects=\"presence\""),
    "the user column": (lambda: visits().join(part(VISITS, "visits"), on="order"), r"has the user column 'home'.*eh.read\(..., user='home'\)"),
    "the user column, left out": (lambda: visits().join(part(VISITS).select("order"), on="order"), "has the user column 'home'"),
    "no key": (lambda: visits().join(part()), "needs on="),
    "a key that is not there": (lambda: visits().join(part(), on="item"), "no join column 'item' in the table"),
    "a key that only the table has": (lambda: visits().join(part(), on="day"), "no join column of the part 'items' 'day'"),
    "a key twice": (lambda: visits().join(part(), on=["order", "order"]), "names a column twice"),
    "keys of two types": (lambda: visits().join(part(ITEMS.set_column(0, "order", pa.array(list("abcde")))), on="order"), "are never equal; expected one type.*Store both"),
    "a key that is no key": (lambda: visits().join(part(ITEMS.set_column(0, "order", pa.array([0.5] * 5))), on="order"), "can't be joined by"),
    "right": (lambda: visits().join(part(), on="order", how="right"), "expected one of"),
    "outer": (lambda: visits().join(part(), on="order", how="outer"), "expected one of"),
    "a part twice": (lambda: visits().join(part(), on="order").join(part(ITEMS.rename_columns(["order", "i", "p"])), on="order"), "is part of this table already"),
    "a cycle": (lambda: visits().join(part().join(part().select("item").derive(i=_.item), on="item"), on="order"), "is part of this table already"),
    "columns that clash": (lambda: visits().join(part(ITEMS.rename_columns(["order", "day", "price"])), on="order"), r"both tables have the columns \['day'\]"),
    "a fan-out": (lambda: visits().join(part(), on="order", fan_out=1001), "between 1 and 1000"),
    "a fan-out of none": (lambda: visits().join(part(), on="order", fan_out=0), "between 1 and 1000"),
    "a key that was made": (lambda: visits().derive(order=_.order % 2).join(part(), on="order"), r"\['order'\] of the table were made by a view"),
    "a key that was made in the part": (lambda: visits().join(part().derive(order=_.order % 2), on="order"), "of the part 'items' were made"),
    "a key of a public table": (
        lambda: visits().join(eh.read_public(pa.table({"order": [10], "item": [1]})), on="order").join(part(RETURNS), on="item"), "come from a public table",
    ),
    "a key of a union": (lambda: visits().union(visits()).join(part(), on="order"), "before a union"),
    "another key than declared": (lambda: visits().derive(item=_.order).join(part(keys="order"), on="item"), "may be joined by {'order': 'order'} only"),
    "another column under the key's name": (
        lambda: visits().derive(new=_.home.cast("int64")).derive(order=_.new).join(part(keys="order"), on="order"), "may be joined by",
    ),
    "an inner join inside of a left one": (lambda: visits().join(part().join(part(RETURNS, "r"), on="item"), on="order", how="left"), "expected how='left' in both"),
    "a part that is changed too late": (lambda: part().join(part(RETURNS, "r"), on="item").where(_.price > 1), "before other tables are joined to it"),
    "a table of people in a part": (lambda: part().join(visits(), on="order"), "A table of people comes first"),
    "a mapping between tables of people": (lambda: visits().join(visits().per_user(n=_.count()), on={"order": "n"}), "columns of one name"),
    "no name": (lambda: part(name=""), "printable characters"),
    "a public key that clashes": (
        lambda: visits().join(eh.read_public(pa.table({"id": [1], "order": [2]})), on={"order": "id"}), "has a column 'order' too",
    ),
    "two ways": (
        lambda: visits().join(part(), on="order").join(visits().select("day").join(part().select("order"), on={"home": "order"}).per_user(n=_.count())),
        "by different columns",
    ),
    "a union of two ways": (
        lambda: visits().select("order").join(part().select("order", "price"), on="order").union(
            visits().select().join(part().select("order", "price"), on={"home": "order"})
        ),
        "by different columns",
    ),
    "questions of a part": (lambda: eh.Session(part(), eh.Ledger("never.db", epsilon=1)), "nobody is bounded in a part by itself"),
    "keys of per": (lambda: visits().per([], n=_.count()), "got no keys"),
    "a key of per that is not there": (lambda: visits().per(["basket"], n=_.count()), "no key 'basket'"),
    "a private key of per": (lambda: visits(protects="values").per(["order"], n=_.count()), r"per\(...\) uses the private columns \['order'\]"),
    "a key of per again": (lambda: visits().per(["order"], order=_.order.max()), "are keys, which keep their names"),
    "nothing of per": (lambda: visits().per(["order"]), "got no columns"),
    "groups in a window": (lambda: visits().window(group_by="order", n=_.count()), r"group_by would be the name of a new column.*table.per"),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_PART)
def test_parts_and_units_are_refused_before_anything_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, said = BY_PART[name]
    engine = type(visits().engine)
    for method in ("evaluate", "store"):
        monkeypatch.setattr(engine, method, lambda *_given: pytest.fail("something was read"))
    with pytest.raises(eh.EvenhandError, match=said) as refusal:
        build()
    assert len(str(refusal.value)) > 40


def test_units_of_users() -> None:
    view = visits().join(part(), on="order").per(["home", "order"], total=_.price.sum(), n=_.count())
    assert view.columns == ("home", "order", "total", "n")
    with view.engine.kept(view.expression) as kept:
        rows = sorted(map(tuple, (row.values() for row in view.engine.evaluate(kept).to_pylist())))
    assert rows == [(1, 10, 3.0, 2), (1, 11, 4.0, 1), (2, 11, 4.0, 1)]
    assert view.per(["order"], total=_.total.max()).columns == view.columns[:3]
    assert view.per_person is None
    assert not view.one_row
    days = visits(protects="values", public=["day"]).per("day", n=_.count(), last=_.order.max())
    assert days.public == ("day", "n")
    assert sorted(column(sales().per("product", n=_.count()), "n")) == [1, 1, 1, 2]
