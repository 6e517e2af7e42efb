"""Views keep users apart: what a view makes of a user's rows is the same whoever else is in the table, and in whatever order rows are stored.

The judge evaluates a view on the whole table, on the same rows in another order, and on the rows of each user alone.
"""

from __future__ import annotations

import datetime
import os
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibis import _

import evenhand as eh
from nasty import HIGH, LOW, Pair, pairs
from neighbouring import compare
from view_expressions import EXPRESSIONS, PRODUCTS, USER_BY_USER, Build, nasty_rows
from watch import Ask

USERS = 4
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
ROW_BY_ROW = {name: some[-1] for name, some in EXPRESSIONS.items()}
VIEWS: dict[str, Build] = {
    "every operation": lambda table, _other: table.derive(**ROW_BY_ROW),
    "filters": lambda table, _other: table.where((_.x > 0) | (_.i.isnull()), "s <> 'a' or s is null").select("x", "w"),
    **USER_BY_USER,
    "unions": lambda table, other: table.select("x").union(other.select("x")).where(_.x < 1).per_user(n=_.count()),
    "itself again": lambda table, _other: table.select("x").join(table.where(_.i > 0).per_user(n=_.count(), most=_.x.max())).where(_.x == _.most),
}  # fmt: skip


def mixed(window: Any = None) -> Build:
    """A broken view: a column over the rows of all users."""
    return lambda table, _other: replace(table, expression=table.expression.mutate(r=window(table.expression)))


BROKEN: dict[str, Build] = {
    "a rank over all users": mixed(lambda rows: ibis.row_number().over(order_by=[rows.d, rows.x])),
    "a mean over all users": lambda table, _other: replace(
        table, expression=table.expression.filter(table.expression.a > table.expression.a.mean())
    ),
    "the order of rows": mixed(lambda rows: ibis.row_number().over(group_by=rows.u)),
    "a limit": lambda table, _other: replace(table, expression=table.expression.order_by("d").limit(7)),
    "distinct over all users": lambda table, _other: replace(
        table, expression=table.expression.distinct(on="a", keep="first")
    ),
}


def sample(seed: int = 3, users: int = USERS, many: int = 48) -> pa.Table:
    """Some nasty rows of a few users, in random order."""
    rows = nasty_rows()
    order = random.Random(seed).sample(range(rows.num_rows), many)
    return rows.take(order).set_column(0, "u", pa.array([f"user {place % users}" for place in range(many)]))


def opened(rows: pa.Table, folder: Path, protects: str = "presence", public: tuple[str, ...] = ()) -> eh.Table:
    """From a file with small row groups: engines answer what they can out of its statistics."""
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(rows, path, row_group_size=13)
    return eh.read(path, user="u", protects=protects, public=public)


def outputs(view: eh.Table, names: list[str] | None = None) -> dict[str, Counter[str]]:
    """What each user's rows became, as text."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    with view.engine.kept(view.expression) as kept:
        for row in view.engine.evaluate(kept).to_pylist():
            found[row["u"]][repr([row[name] for name in names or list(view.columns)])] += 1
    return found


def mixed_up(build: Build, rows: pa.Table, other: pa.Table, read: Callable[[pa.Table], eh.Table]) -> set[str]:
    """The users whose rows became something else when others left, or when rows were stored in another order."""

    def result(rows: pa.Table, other: pa.Table) -> dict[str, Counter[str]]:
        return outputs(build(read(rows), read(other)))

    whole = result(rows, other)
    turned = result(*(table.take(list(reversed(range(table.num_rows)))) for table in (rows, other)))
    wrong = {user for user in {*whole, *turned} if whole.get(user) != turned.get(user)}
    for user in rows["u"].unique().to_pylist():
        own, theirs = (table.filter(pa.compute.equal(table["u"], user)) for table in (rows, other))
        alone = result(own, theirs)
        assert set(alone) <= {user}
        if alone.get(user) != whole.get(user):
            wrong.add(user)
    return wrong


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_keeps_users_apart(name: str, tmp_path: Path) -> None:
    assert not mixed_up(VIEWS[name], sample(), sample(4, many=30), partial(opened, folder=tmp_path))


@pytest.mark.parametrize("name", BROKEN)
def test_the_judge_notices_users_that_are_mixed(name: str, tmp_path: Path) -> None:
    assert mixed_up(BROKEN[name], sample(), sample(4, many=30), partial(opened, folder=tmp_path))


ELSEWHERE = ("aggregates", "windows", "private joins", "unions")
"""Views over several rows of a user; what works row by row is compared between engines by ``tests/engines/test_view_operations.py``."""
PLAIN = ["u", "i", "x", "y", "s", "d", "m", "a", "w", "c", "p", "q"]


def test_postgres_keeps_users_apart(postgres_url: str) -> None:
    backend: Any = ibis.connect(postgres_url)

    def read(rows: pa.Table) -> eh.Table:
        return eh.read(backend.create_table(uuid.uuid4().hex, rows.select(PLAIN)), user="u")

    few = sample(users=2, many=24), sample(4, users=2, many=16)
    for name in ELSEWHERE:
        assert not mixed_up(VIEWS[name], *few, read), name
    for name in ("a rank over all users", "the order of rows"):
        assert mixed_up(BROKEN[name], *few, read), name


@pytest.mark.skipif(not THOROUGH, reason="takes minutes; the same plans are compared with DuckDB's in tests/engines")
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_keeps_users_apart(tmp_path: Path, spark: None) -> None:
    def read(rows: pa.Table) -> eh.Table:
        path = tmp_path / f"{uuid.uuid4().hex}.parquet"
        pq.write_table(rows.select([name for name in PLAIN if name != "m"]), path, row_group_size=7)
        return eh.read(path, user="u", engine="spark")

    def in_text(build: Build) -> Build:
        """With whole numbers as text: Spark's way to Python makes doubles of those that may be null."""

        def built(table: eh.Table, other: eh.Table) -> eh.Table:
            view = build(table, other)
            whole = [name for name, kind in view.expression.schema().items() if kind.is_integer()]
            return view.derive(**{name: view.expression[name].cast("string") for name in whole})

        return built

    few = sample(users=2, many=24), sample(4, users=2, many=16)
    for name in ELSEWHERE[1:]:
        assert not mixed_up(in_text(VIEWS[name]), *few, read), name
    assert mixed_up(in_text(BROKEN["a rank over all users"]), *few, read)


def random_expression(chance: random.Random, depth: int) -> Any:
    """Expressions in expressions, of any kind: many make no sense, and those must be refused."""
    leaf = getattr(_, chance.choice(list("ijxystdemnpqabwcz")))
    if depth == 0:
        return chance.choice([leaf, leaf, leaf, 0, 2, -1.5, "a", True, datetime.date(2024, 2, 29)])
    one, two = (random_expression(chance, depth - 1) for _each in range(2))
    if not isinstance(one, type(leaf)):
        one = leaf
    makers: list[Callable[[], Any]] = [
        *(lambda: one + two, lambda: one - two, lambda: one * two, lambda: one / two, lambda: one // two, lambda: one % two),
        *(lambda: one > two, lambda: one == two, lambda: one.cast(chance.choice(["int64", "float64", "string", "date", "timestamp"]))),
        *(lambda: ibis.coalesce(one, two), lambda: (one > two).ifelse(one, two), lambda: one.sqrt(), lambda: one.ln(), lambda: one.exp()),
        *(lambda: one.abs(), lambda: one.round(1), lambda: one.floor(), lambda: -one, lambda: one**2, lambda: one.nullif(two)),
        *(lambda: one.lower(), lambda: one.length(), lambda: one.substr(1, 3), lambda: one.strip() + one, lambda: one.truncate("M")),
        *(lambda: one.year(), lambda: one.date(), lambda: one + ibis.interval(days=30), lambda: one.isnull(), lambda: one.clip(0, 5)),
        *(lambda: one.sum(), lambda: one.lag(), lambda: one.max(), lambda: one + ibis.random(), lambda: one.repeat(3), lambda: one.rank()),
    ]  # fmt: skip
    return chance.choice(makers)()


@settings(max_examples=2)
@given(seed=st.integers(0, 2**32))
def test_what_is_accepted_keeps_users_apart(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """A random expression is refused before anything is read, or it is total and works row by row."""
    chance, folder = random.Random(seed), tmp_path_factory.mktemp("fuzz")
    table = opened(sample(), folder)
    accepted: dict[str, Any] = {}
    for number in range(30):
        expression = random_expression(chance, chance.randint(1, 4))
        try:
            table.derive(r=expression)
        except eh.EvenhandError:
            continue
        accepted[f"r{number}"] = expression
    if accepted:
        assert not mixed_up(
            lambda one, _other: one.derive(**accepted).select(*accepted),
            sample(),
            sample(),
            partial(opened, folder=folder),
        )


def unsafe_expressions() -> list[Any]:
    """Expressions that look at other rows, are not functions of the rows, or can't be bounded in time and size."""
    numbers = [_.i, _.x, _.a, _.w, _.c]
    texts = [_.s, _.t, _.s + _.t, _.s.lower()]
    moments = [_.d, _.m, _.z]
    found = [getattr(each, name)() for each in numbers for name in (
        "sum", "mean", "median", "std", "var", "min", "max", "nunique", "count", "first", "last", "mode", "arbitrary", "collect", "cumsum", "cummax",
        "cummin", "rank", "dense_rank", "percent_rank", "cume_dist", "lag", "lead", "approx_nunique", "approx_median", "sin", "cos", "tan", "sign",
        "log2", "log10", "hash", "typeof", "kurtosis",
    )]  # fmt: skip
    found += [getattr(each, name)() for each in texts for name in (
        "reverse", "capitalize", "lstrip", "rstrip", "ascii_str", "hash", "first", "max", "min", "nunique", "group_concat", "collect", "mode",
        "arbitrary", "hexdigest", "typeof", "rank",
    )]  # fmt: skip
    for text in texts:
        found += [
            text.repeat(3),
            text.repeat(_.i),
            text.lpad(_.i, "x"),
            text.rpad(10, "x"),
            text.contains(_.t),
            text.startswith(_.t),
        ]
        found += [
            text.like(_.t),
            text.re_search("(a+)+b"),
            text.re_extract("a", 0),
            text.re_replace("a", "b"),
            text.replace("a", "bbb"),
        ]
        found += [
            text.replace(_.t, ""),
            text.substr(_.i, 2),
            text.split(","),
            text.levenshtein(_.t),
            text.ilike("a"),
            text.like("%a%b%c%d%e"),
        ]
        found += [
            text.find(_.t),
            text.find(""),
            text.split(_.t)[0],
            text.split(",")[_.i],
            text.translate("a", "b"),
            text.convert_base(2, 10),
            text.cast("json"),
            text.cast("binary"),
            text.as_date("%Y"),
        ]
    for moment in moments:
        found += [moment.strftime("%Y"), moment.max(), moment.first(), moment.lag(), moment.nunique(), moment.rank()]
        found += [
            moment.delta(ibis.now().date(), unit="day"),
            moment == ibis.now(),
            moment.cast("string"),
            moment.day_of_week.full_name(),
        ]
    for each in (*numbers, *texts, *moments):
        found += [
            each.isin(_.i if each is not _.i else _.x),
            each.count(),
            each.nunique(),
            each.quantile(0.5),
            each.argmax(_.i),
            each.argmin(_.x),
        ]
        found += [
            (each == each) & (ibis.random() > 0.5),
            ibis.row_number() > 3,
            each.nth(2),
            each.collect().length(),
            each.approx_nunique(),
        ]
    found += [
        ibis.random(),
        ibis.now(),
        ibis.today(),
        ibis.uuid(),
        ibis.row_number(),
        _.count(),
        _.nunique(),
        _.x**_.y,
        _.x**9,
        _.x.round(_.i),
    ]
    found += [
        _.x.sum() / _.count(),
        _.x - _.x.mean(),
        _.x > _.x.max(),
        ibis.coalesce(_.x.sum(), 0),
        ibis.rank(),
        ibis.ntile(4),
        ibis.dense_rank(),
    ]
    return found


def test_unsafe_expressions_are_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(sample(), tmp_path)

    def never(*_given: object) -> None:
        raise AssertionError("something was read")

    for name in ("evaluate", "run", "store", "publish"):
        monkeypatch.setattr(type(table.engine), name, never)
    unsafe = unsafe_expressions()
    assert len(unsafe) >= 300
    accepted, said = [], []
    for expression in unsafe:
        for wrapped in (expression, ibis.coalesce(expression, expression).isnull()):
            try:
                table.derive(r=wrapped)
            except eh.EvenhandError as refusal:
                said.append(str(refusal))
            else:
                accepted.append(wrapped)
    assert not accepted
    assert min(map(len, said)) > 40, "a refusal says why, and what to write instead"


PUBLIC = ("d", "i", "s", "a")
UNDER_VALUES: dict[str, Build] = {
    "derived": lambda table, _other: table.derive(week=_.d.truncate("W"), odd=_.i % 2, y=_.x + _.i, i=_.i + 1, d=_.m.date()),
    "filtered": lambda table, _other: table.where(_.i > 0),
    "aggregated": lambda table, _other: table.per_user(n=_.count(), first=_.d.min(), total=_.x.sum(), mixed=_.x.sum() + _.i.max()),
    "windows": lambda table, _other: table.window(order_by="d", place=_.count(), before=_.i.lag(), gap=_.x.lag()),
    "joined": lambda table, other: table.select("x", "i", "d").join(PRODUCTS, on="i", fan_out=2).join(other.select("s", "y"), fan_out=2),
    "united": lambda table, other: table.select("x", "i", "d").union(other.select("x", "i", "d")),
}  # fmt: skip


def public_parts(build: Build, rows: pa.Table, folder: Path) -> tuple[tuple[str, ...], dict[str, Counter[str]]]:
    view = build(opened(rows, folder, "values", PUBLIC), opened(rows, folder, "values", PUBLIC))
    return view.public, outputs(view, ["u", *view.public])


def altered(rows: pa.Table, user: str) -> pa.Table:
    """Other values of one user's private columns."""
    chance = random.Random(11)
    for place, name in enumerate(rows.column_names):
        if name not in ("u", *PUBLIC):
            values = rows[name].to_pylist()
            others = [
                chance.choice(values) if owner == user else value
                for owner, value in zip(rows["u"].to_pylist(), values, strict=True)
            ]
            rows = rows.set_column(place, name, pa.array(others, rows.schema.field(name).type))
    return rows


@pytest.mark.parametrize("name", UNDER_VALUES)
def test_under_values_what_is_public_does_not_depend_on_values(name: str, tmp_path: Path) -> None:
    one, other = (public_parts(UNDER_VALUES[name], rows, tmp_path) for rows in (sample(), altered(sample(), "user 1")))
    assert one == other
    assert one[0]


def test_a_ledger_knows_public_columns_by_their_names_in_the_source(tmp_path: Path) -> None:
    """A view may give a public column the name of a private one: the ledger goes on protecting that."""
    table = opened(sample(), tmp_path, "values", ("d", "i"))
    view = table.derive(x=_.d.year(), d=_.y).join(PRODUCTS, on="i", fan_out=2)
    assert set(view.public) == {"i", "x", "price", "s_"}
    assert view.promised == ("d", "i")
    ledger = eh.Ledger(tmp_path / "ledger.db", epsilon=1)
    eh.Session(table, ledger).users(epsilon=0.1)
    eh.Session(view, ledger).users(epsilon=0.1)
    wider = opened(sample(), tmp_path, "values", ("d", "i", "y")).where(_.y > 0)
    with pytest.raises(eh.UsageError, match="treats y as public"):
        eh.Session(wider, ledger).users(epsilon=0.1)


def test_a_column_that_is_wrongly_public_is_noticed(tmp_path: Path) -> None:
    def broken(table: eh.Table, _other: eh.Table) -> eh.Table:
        view = table.derive(y=_.x + _.i)
        return replace(view, public=(*view.public, "y"))

    one, other = (public_parts(broken, rows, tmp_path) for rows in (sample(), altered(sample(), "user 1")))
    assert one != other


SEEN: dict[str, tuple[Build, Ask]] = {
    "a mean": (lambda table, _other: table.where(_.v > -2).derive(y=_.v * 2), lambda ask: ask.mean("y", bounds=(LOW, HIGH), epsilon=1)),
    "a grouped count": (
        lambda table, _other: table.derive(k=(_.v > 1).ifelse("a", _.g)),
        lambda ask: ask.count(by="k", keys=["a", "b"], epsilon=1),
    ),
    "a sum of totals": (lambda table, _other: table.per_user(t=_.v.sum()), lambda ask: ask.sum("t", bounds=(LOW, HIGH), epsilon=1)),
    "a share": (
        lambda table, other: table.join(other.per_user(t=_.x.sum(), n=_.count())).derive(y=_.v / _.t),
        lambda ask: ask.sum("y", bounds=(LOW, HIGH), epsilon=1, bounding=eh.TotalCap(4)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_a_release_on_a_view_moves_as_declared(name: str, tmp_path: Path) -> None:
    """The neighbour suite on views: one user never moves the integers by more than was declared, and changes nothing else."""
    build, ask = SEEN[name]

    @settings(max_examples=3)
    @given(pair=pairs("presence", steady=False), seed=st.none() | st.integers(0, 9))
    def check(pair: Pair, seed: int | None) -> None:
        one, other = (
            build(rows.read("presence", tmp_path), rows.read("presence", tmp_path))
            for rows in (pair.first, pair.second)
        )
        compare(ask, one, other, seed)

    check()


def test_a_view_scans_each_source_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(sample(), tmp_path)
    view = VIEWS["itself again"](table, table)
    sent: list[str] = []
    run = type(table.engine).run

    def noted(engine: Any, sql: str) -> None:
        sent.append(sql)
        run(engine, sql)

    monkeypatch.setattr(type(table.engine), "run", noted)
    session = eh.Session(view, eh.Ledger(tmp_path / "ledger.db", epsilon=1))
    session.count(by="x", keys=[0.5, 2.5], epsilon=1)
    name = table.expression.op().name
    assert sum(sql.count(f'"{name}"') for sql in sent) == 1, "the statements name the file more than once"
