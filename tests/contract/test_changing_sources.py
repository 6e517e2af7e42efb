"""A release is about one reading of its source, whatever other clients do meanwhile; or the source is refused before the debit.

All states of a source differ in one user only, the victim. So the integers of any one reading are within the declared bound of
those of the table without the victim (under values: with other values of the victim), exactly. Integers that mix two readings are not.
The change happens before the first statement of the engine, or before the second, ...: before each there is. What these tests
know about engines are the methods of client libraries through which statements go (`restless`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest

import evenhand as eh
from evenhand.ledger import Cost
from evenhand.release import Measurement, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft, Outcome
from evenhand.tables import Secret
from live import (
    CHANGES,
    PRESENCE,
    VALUES,
    DuckExpression,
    DuckRelation,
    DuckTable,
    Frame,
    ParquetFile,
    ParquetView,
    PostgresTable,
    Source,
)
from restless import between_statements, while_running
from watch import Ask, watch

BOUNDS = (-1.0, 3.0)
PLACES = (*range(1, 9), 13, 23, 43, 83)
"""Before which statements the source changes. It stays changed, so a change just after the copy was made shows any later statement that reads the
source; copies are made by the first few."""


def asks(question: str, *arguments: Any, **options: Any) -> Ask:
    return lambda drafts: getattr(drafts, question)(*arguments, **options)


BY: dict[str, Any] = {"by": "g", "keys": ["a", "b"]}
SECRET: dict[str, Any] = {"by": "g", "delta": "0.01", "epsilon": 20}
ASKS: dict[str, Ask] = {
    "count": asks("count", epsilon=1),
    "count, given": asks("count", epsilon=1, bounding=eh.TotalCap(2)),
    "users": asks("users", epsilon=1),
    "sum": asks("sum", "v", bounds=BOUNDS, epsilon=1),
    "sum, given": asks("sum", "v", bounds=BOUNDS, epsilon=1, bounding=eh.TotalCap(5)),
    "sum, row limit": asks("sum", "v", bounds=BOUNDS, epsilon=1, bounding=eh.RowLimit(1)),
    "mean": asks("mean", "v", bounds=BOUNDS, epsilon=1),
    "mean, given": asks("mean", "v", bounds=BOUNDS, epsilon=1, bounding=eh.SmoothWeights(1)),
    "variance": asks("variance", "v", bounds=BOUNDS, epsilon=1),
    "variance, given": asks("variance", "v", bounds=BOUNDS, epsilon=1, bounding=eh.NormClip(1)),
    "per_user_mean": asks("per_user_mean", "v", bounds=BOUNDS, of="total", epsilon=1),
    "ratio": asks("ratio", eh.sum("v", bounds=BOUNDS), eh.users(), epsilon=1),
    "ratio by": asks("ratio", eh.sum("v", bounds=BOUNDS), eh.users(), **BY, epsilon=1),
    "quantiles": asks("quantiles", "v", [0.5], bounds=BOUNDS, epsilon=1),
    "quantiles, given": asks("quantiles", "v", [0.5], bounds=BOUNDS, epsilon=1, bounding=eh.SmoothWeights(1)),
    "histogram": asks("histogram", "v", [-1, 0, 1, 3], epsilon=1),
    "histogram, given": asks("histogram", "v", [-1, 0, 1, 3], epsilon=1, bounding=eh.NormClip(1)),
    "histogram, Gaussian": asks("histogram", "v", [-1, 0, 1, 3], epsilon=1, delta=1e-6, bounding=eh.NormClip(1, norm=2)),
    "count by": asks("count", **BY, epsilon=1),
    "count by, given": asks("count", **BY, epsilon=1, bounding=eh.SmoothWeights(1)),
    "users by": asks("users", **BY, epsilon=1),
    "sum by": asks("sum", "v", bounds=BOUNDS, **BY, epsilon=1),
    "sum by, given": asks("sum", "v", bounds=BOUNDS, **BY, epsilon=1, bounding=eh.NormClip(3)),
    "mean by": asks("mean", "v", bounds=BOUNDS, **BY, epsilon=1),
    "mean by, others": asks("mean", "v", bounds=BOUNDS, **BY, other="rest", epsilon=1, bounding=eh.SmoothWeights(1)),
    "mean by, Gaussian": asks(
        "mean", "v", bounds=BOUNDS, **BY, epsilon=1, delta=1e-6, bounding=eh.NormClip(1, norm=2)
    ),
    "aggregate": asks("aggregate", n=eh.count(), m=eh.mean("v", bounds=BOUNDS), **BY, epsilon=1, bounding=eh.SmoothWeights(1)),
    "in SQL": asks(
        "sql", "SELECT g, SUM(v + 1, contribution_bounds_per_row => (0, 4)) FROM table WHERE v < 3 OR v > 3 GROUP BY g",
        keys=["a", "b"], epsilon=1, bounding=eh.NormClip(3),
    ),
    "several in SQL": asks(
        "sql", "SELECT COUNT(DISTINCT CASE WHEN v > 1 THEN u END) AS m, COUNT(*) AS n FROM table WHERE v < 3 OR v > 3",
        epsilon=1, bounding=eh.SmoothWeights(1),
    ),
    # With so much ε the histogram is legible and the choice falls on weights: no group of anybody is drawn at random.
    "count by secret keys": asks("count", **{**SECRET, "epsilon": 10_000}),
    "mean by secret keys": asks("mean", "v", bounds=BOUNDS, **SECRET, groups_per_user=2, bounding=eh.SmoothWeights(1)),
}  # fmt: skip
WITH_VALUES = ("sum", "mean", "mean by", "histogram, Gaussian")
FEW = ("sum", "quantiles", "count by, given", "mean by", "count by secret keys")
"""For slow engines."""


class Once:
    """A change that happens before one statement only.

    Args:
        place: which statement, from 1.
        act: the change.
    """

    def __init__(self, place: int, act: Callable[[], None]) -> None:
        self.left, self.act = place, act

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.act()


def check_one_reading(source: Source, ask: Ask, relation: str, changes: int = 1) -> None:
    """Let the source change once, before each statement in turn; the victim must never show."""
    states = PRESENCE if relation == "presence" else VALUES
    for before, after in CHANGES[relation][:changes]:
        source.put(states["gone" if relation == "presence" else "low"])
        calm = watch(source.read(relation), ask).steps
        for place in PLACES:
            source.put(states[before])
            table = source.read(relation)
            with between_statements(Once(place, partial(source.put, states[after])), source.library) as statements:
                seen = None
                with suppress(eh.UsageError, eh.DataError):  # refused: as good as one reading
                    seen = watch(table, ask, replay=calm)
            if seen is not None:
                assert statements.count, "no statement was noticed: what runs them is missing in restless.STATEMENTS"
                check(calm, seen.steps, f"{before} → {after} before statement {place}")
            if statements.count < place:
                break
        else:
            pytest.fail("a release sends more statements than this test looks at")


def check(calm: Any, steps: Any, when: str) -> None:
    """Each step is within its declared bound of the calm one."""
    assert len(calm) == len(steps), when
    for one, other in zip(calm, steps, strict=True):
        l1, l2_squared = one.change(other)
        assert other.l1 is None or l1 <= other.l1, f"moved by {l1}, declared {other.l1}: {when}"
        assert other.l2_squared is None or l2_squared <= other.l2_squared, f"moved by √{l2_squared}: {when}"


CASES = [
    pytest.param(name, relation, id=f"{name}-{relation}")
    for name in ASKS
    for relation in ("presence", "values")
    if relation == "presence" or name in WITH_VALUES
]


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_one_reading_of_a_table(name: str, relation: str, tmp_path: Path) -> None:
    check_one_reading(DuckTable(tmp_path), ASKS[name], relation)


# A question that selects keys takes longest. What it does after its one reading is the same for all sources of an engine
# class, so it is asked of each class (`DuckTable` above, `DuckRelation`, Postgres below) and of a file.
OTHER_SOURCES = [
    pytest.param(name, kind, id=f"{name}-{kind.__name__}")
    for name in FEW
    for kind in (DuckRelation, ParquetFile, DuckExpression, ParquetView)
    if name != "count by secret keys" or kind in (DuckRelation, ParquetFile)
]


@pytest.mark.parametrize(("name", "kind"), OTHER_SOURCES)
def test_one_reading_of_other_sources(name: str, kind: type[Source], tmp_path: Path) -> None:
    check_one_reading(kind(tmp_path), ASKS[name], "presence", changes=2 if name == "count by, given" else 1)


@pytest.mark.parametrize("name", ["count", "mean"])
def test_one_reading_of_a_frame_that_is_written_to(name: str, tmp_path: Path) -> None:
    columns = ["v"] if name == "mean" else []
    bounds = {"bounds": BOUNDS} if columns else {}
    ask = asks(name, *columns, **bounds, by="g", keys=[97.0, 98.0], epsilon=1, bounding=eh.SmoothWeights(1))
    check_one_reading(Frame(tmp_path), ask, "presence")


@pytest.mark.parametrize("name", FEW)
def test_one_reading_of_a_live_postgres_table(name: str, postgres_url: str) -> None:
    check_one_reading(PostgresTable(postgres_url), ASKS[name], "presence")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("forgets", [False, True])
def test_one_reading_of_a_file_on_spark(forgets: bool, spark: None, tmp_path: Path) -> None:
    """The bound is chosen by one job and used by another. Spark may drop what it was asked to persist whenever it likes."""
    from pyspark.sql import SparkSession

    source, ask = ParquetFile(tmp_path), ASKS["mean by"]
    calm = watch(source.read("presence"), ask).steps  # on DuckDB, which computes the same integers
    source.put(PRESENCE["small"])
    table = eh.read(source.path, user="u", engine="spark")
    states = itertools.cycle([PRESENCE["small"], PRESENCE["giant"]])

    def change() -> None:
        source.put(next(states))
        session = SparkSession.getActiveSession()
        assert session is not None
        if forgets:
            session.catalog.clearCache()

    with suppress(eh.UsageError, eh.DataError), between_statements(change, "pyspark") as jobs:
        check(calm, watch(table, ask, replay=calm).steps, "with a change before each job")
        assert jobs.count, "no job was noticed: what starts them is missing in restless.STATEMENTS"


@pytest.mark.parametrize("kind", [DuckTable, DuckRelation, ParquetFile])
def test_one_reading_while_another_thread_writes(kind: type[Source], tmp_path: Path) -> None:
    """Without hooks, so that a change may fall inside a statement. No false alarm: any one reading is within the bound."""
    source, ask = kind(tmp_path), ASKS["count by, given"]
    source.put(PRESENCE["gone"])
    calm = watch(source.read("presence"), ask).steps
    states = itertools.cycle([PRESENCE["small"], PRESENCE["giant"]])
    source.put(PRESENCE["small"])
    table = source.read("presence")
    with while_running(lambda: source.put(next(states))):
        for _ in range(25):
            with suppress(eh.UsageError, eh.DataError):
                check(calm, watch(table, ask, replay=calm).steps, "while another thread writes")


def _numbers() -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 'u' || (i // 20) AS u, 'a' AS g, i / 100.0 AS v FROM range(200) r(i)")
    connection.execute("CREATE SEQUENCE s")
    return connection


def _ibis(make: Callable[[Any], Any]) -> Any:
    return make(ibis.duckdb.from_connection(_numbers()).table("t"))


RANDOM = "SELECT * FROM t WHERE random() < 0.5"
VOLATILE: dict[str, Callable[[], Any]] = {
    "relation, sample": lambda: _numbers().sql("SELECT * FROM t USING SAMPLE 50 PERCENT (bernoulli)"),
    "relation, random": lambda: _numbers().sql(RANDOM),
    "relation, nested": lambda: _numbers().sql(f"WITH odd AS ({RANDOM}) SELECT u, g, v FROM odd"),
    "ibis, sample": lambda: _ibis(lambda t: t.sample(0.5, method="row")),
    "ibis, random": lambda: _ibis(lambda t: t.filter(ibis.random() < 0.5)),
    "ibis, uuid": lambda: _ibis(lambda t: t.filter(ibis.uuid().cast("string") < "8")),
    "ibis, now": lambda: _ibis(lambda t: t.filter(ibis.now().microsecond() % 2 == 0)),
    "ibis, row number": lambda: _ibis(lambda t: t.mutate(n=ibis.row_number()).filter(lambda t: t.n < 100)),
}
"""Sources that are no functions of a table: asked twice they give two answers, or one user's rows decide about another's."""


@pytest.mark.parametrize("name", VOLATILE)
def test_what_is_no_function_of_a_table_is_refused_before_the_debit(name: str, tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10)
    for question in ("count", "count by, given"):
        ask: Any = ASKS[question]  # drafts and sessions are asked alike
        with pytest.raises((eh.UsageError, eh.DataError)):
            ask(eh.Session(eh.read(VOLATILE[name](), user="u"), ledger))
        assert not ledger.spent.epsilon


VIEWS = {
    "sample": "SELECT * FROM one USING SAMPLE 5 PERCENT (bernoulli)",
    "random": "SELECT * FROM one WHERE random() < 0.05",
}


@pytest.mark.parametrize("view", VIEWS)
def test_one_reading_of_a_view_that_never_says_the_same(view: str) -> None:
    """Only the victim is there, so every integer is the victim's. Read twice, about one run in ten breaks the bound."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE one AS SELECT 'victim' AS u, 'a' AS g FROM range(60)")
    connection.execute(f"CREATE VIEW odd AS {VIEWS[view]}")
    for source in (ibis.duckdb.from_connection(connection).table("odd"), connection.sql("SELECT * FROM odd")):
        with suppress(eh.UsageError, eh.DataError):
            for _ in range(60):
                (step,) = watch(eh.read(source, user="u"), ASKS["count by, given"]).steps
                assert step.l1 is not None
                assert sum(step.integers) <= step.l1


def _reads_twice(ask: Drafts) -> Draft:
    """The broken twin: the difference of two readings, which is 0 if they are one."""
    draft = ask.count(epsilon=1, bounding=eh.TotalCap(1))

    def rows() -> int:
        return int(ask.table.engine.fetch(ask.table.expression.count().as_table()).reveal()[0][0].as_py())

    def run(receipt: Receipt) -> Outcome:
        first, second = (
            Context().run(rows),
            Context().run(rows),
        )  # in contexts of their own, where nothing counts readings
        receipt.numbers(Measurement(lambda: Secret([second - first]), 1, 1), Decimal("0.1"))
        return draft.run(receipt)

    return replace(draft, cost=Cost.pure(2), run=run)


def test_a_second_reading_is_stopped(tmp_path: Path) -> None:
    """Whatever a release does: its table is read by one statement."""
    table = DuckTable(tmp_path).read("presence")
    draft = Drafts(table).count(epsilon=1, bounding=eh.TotalCap(1))
    twice = replace(draft, cost=Cost.pure(2), run=lambda receipt: (draft.run(receipt), draft.run(receipt))[1])
    with pytest.raises(eh.EvenhandError, match="a second time"):
        watch(table, lambda _: twice)


@pytest.mark.parametrize("kind", [DuckTable, DuckRelation, ParquetView])
def test_a_twin_that_reads_twice_is_noticed(kind: type[Source], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="moved by 1499, declared 1"):
        check_one_reading(kind(tmp_path), _reads_twice, "presence")
