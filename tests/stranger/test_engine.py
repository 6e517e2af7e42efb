"""A stranger adds an engine from outside the package, by `register` and what `Engine` documents: SQLite once more, for tables of another kind."""

from __future__ import annotations

import ast
import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.tables.engines import Engine, register
from watch import Ask, integers, watch

# Ibis takes SQLite's results through pandas.
pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated:DeprecationWarning")


@ibis.udf.agg.builtin(name="stranger_sum", signature=((dt.int64,), dt.int64))  # type: ignore[untyped-decorator]
def _stranger_sum(integers: int) -> int:
    raise NotImplementedError  # SQLite runs its own


class _Sum:
    """SQLite's own sum raises beyond 64 bits; this one saturates far above all that is released."""

    def __init__(self) -> None:
        self.total = 0

    def step(self, value: int | None) -> None:
        self.total += value or 0

    def finalize(self) -> int:
        return max(-(2**62), min(2**62, self.total))


@dataclass(frozen=True)
class Wrapped:
    """What the engine takes; Ibis tables of SQLite are taken by the package's own."""

    rows: Any


@register
class StrangersEngine(Engine):
    """SQLite: a statement is one transaction; NaN is stored as null."""

    name = "strangers"

    @classmethod
    def takes(cls, source: object) -> bool:
        return isinstance(source, Wrapped)

    @classmethod
    def open(cls, source: Any) -> Engine:
        return super().open(source.rows)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.backend.con.create_aggregate("stranger_sum", 1, _Sum)

    def check_source(self) -> None:
        super().check_source()
        for table in self.rows.op().find(ops.DatabaseTable):
            found = self.backend.con.execute("SELECT type FROM sqlite_master WHERE name = ?", (table.name,)).fetchall()
            if found != [("table",)]:
                raise eh.UsageError(f"{table.name!r} is not a table of this database; expected one, not a view.")

    def is_number(self, value: Any) -> Any:
        return value.notnull()

    def exact_sum(self, integers: Any) -> Any:
        return _stranger_sum(integers)

    def publish(self, name: str, public: pa.Table) -> Callable[[], object]:
        kinds = {field.name: "BLOB" if pa.types.is_binary(field.type) else "BIGINT" for field in public.schema}
        self.run(f"CREATE TEMPORARY TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in kinds.items())})")
        places = ", ".join("?" * public.num_columns)
        rows = zip(*public.to_pydict().values(), strict=True)
        self.backend.con.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        return partial(self.run, f"DROP TABLE {name}")

    def stored(self, name: str, like: Any) -> Any:
        # With the types that were asked for: Ibis tells those of a temporary table from its rows, and there may be none.
        schema = like.schema() if callable(like.schema) else ibis.memtable(like).schema()
        return ops.DatabaseTable(name, schema, self.backend, ops.Namespace(database="temp")).to_expr()

    def run(self, sql: str) -> None:
        self.backend.con.execute(sql)


_BOUNDS = (-2.5, 7.0)
_VALUES = [1 / 3, None, math.inf, -math.inf, -0.0, 5e-324, 1e300, 7.0, -2.5, 0.1]
_USERS = [f"user {user}" for user in range(9) for _ in range(2**user)] + [None] * 20
_COLUMNS = {
    "u": pa.array(_USERS),
    "g": pa.array([("a", "B", "b", "é", None)[index % 5] for index in range(len(_USERS))]),
    "v": pa.array([_VALUES[index % len(_VALUES)] for index in range(len(_USERS))], pa.float64()),
}


@pytest.fixture(scope="module")
def here() -> eh.Table:
    """The rows on DuckDB."""
    return eh.read(pa.table(_COLUMNS), user="u")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> eh.Table:
    """The rows on SQLite."""
    return eh.read(Wrapped(ibis.sqlite.connect(_database(tmp_path_factory.mktemp("stranger"))).table("t")), user="u")


def _database(folder: Path) -> Path:
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("CREATE TABLE t (u TEXT, g TEXT, v DOUBLE)")
        connection.execute("CREATE VIEW v AS SELECT u, random() AS v FROM t")
        rows = zip(*(column.to_pylist() for column in _COLUMNS.values()), strict=True)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    return folder / "rows.db"


ASKS: dict[str, Ask] = {
    "count": lambda ask: ask.count(epsilon=1),
    "users": lambda ask: ask.users(epsilon=1),
    "sum": lambda ask: ask.sum("v", bounds=_BOUNDS, epsilon=1),
    "sum, total cap": lambda ask: ask.sum("v", bounds=_BOUNDS, epsilon=1, bounding=eh.TotalCap("99.9")),
    "mean": lambda ask: ask.mean("v", bounds=_BOUNDS, epsilon=1),
    "mean, smooth weights": lambda ask: ask.mean("v", bounds=_BOUNDS, epsilon=1, bounding=eh.SmoothWeights("7/3")),
    "count by public keys": lambda ask: ask.count(by="g", keys=["a", "b", "é", "z"], epsilon=1),
    "mean by public keys": lambda ask: ask.mean("v", bounds=_BOUNDS, by="g", keys=["a", "B"], epsilon=1),
    "quantiles": lambda ask: ask.quantiles("v", [0.5], bounds=_BOUNDS, epsilon=1),
}


@pytest.mark.parametrize("name", ASKS)
def test_it_hands_over_the_integers_that_duckdb_does(name: str, here: eh.Table, there: eh.Table) -> None:
    assert there.engine.name == "strangers"
    on_duckdb, on_sqlite = watch(here, ASKS[name]), watch(there, ASKS[name])
    assert any(any(step.integers) for step in on_duckdb.steps), "all integers are zero: this compares nothing"
    assert [step.integers for step in on_sqlite.steps] == [step.integers for step in on_duckdb.steps]
    assert on_sqlite.seen == on_duckdb.seen


def test_hidden_keys_and_row_limits_work(here: eh.Table, there: eh.Table) -> None:
    """Which rows and groups a user keeps is chance; how many is not."""

    def limited(ask: Any) -> Any:
        return ask.mean("v", bounds=_BOUNDS, epsilon=1, bounding=eh.RowLimit(5))

    def hidden(ask: Any) -> Any:
        return ask.count(by="g", epsilon=1, delta=1e-3, groups_per_user=4)

    assert sum(integers(here, limited)[0]) == sum(integers(there, limited)[0]) > 0
    assert [sorted(step) for step in integers(here, hidden)] == [sorted(step) for step in integers(there, hidden)]


def test_plans_from_its_rows_are_those_from_duckdb(here: eh.Table, there: eh.Table) -> None:
    plans = [eh.plan("mean", eh.Profile.exact(table), bounds=_BOUNDS, epsilon=1) for table in (here, there)]
    assert plans[0].to_dict() == plans[1].to_dict()


def test_a_session_releases_from_it(there: eh.Table, tmp_path: Path) -> None:
    session = eh.Session(there, eh.Ledger(tmp_path / "budget.db", epsilon=100))
    assert session.users(epsilon=50).value == 9  # at this ε noise is not 0 once in e^49 runs
    assert session.ledger.spent.epsilon == 50


def test_its_sources_and_names_are_checked(tmp_path: Path) -> None:
    database = ibis.sqlite.connect(_database(tmp_path))
    with pytest.raises(eh.UsageError, match="not a table"):
        eh.read(Wrapped(database.table("v")), user="u")
    with pytest.raises(eh.UsageError, match="limited number of rows"):
        eh.read(Wrapped(database.table("t").limit(3)), user="u")
    with pytest.raises(eh.UsageError, match="called 'strangers' already"):
        register(StrangersEngine)
    with pytest.raises(eh.UsageError, match=r"engine='strangers' is not known; expected one of \['duckdb', 'spark'\]"):
        eh.read(tmp_path / "rows.csv", user="u", engine="strangers")


class Unable(StrangersEngine):
    """Knows too little for one kind of statement; what it can't do depends on what a question asks for in its second step."""

    name = "unable"

    def exact_sum(self, integers: Any) -> Any:
        return _no_such_sum(integers)


@ibis.udf.agg.builtin(name="no_such_sum", signature=((dt.int64,), dt.int64))  # type: ignore[untyped-decorator]
def _no_such_sum(integers: int) -> int:
    raise NotImplementedError


@pytest.fixture
def unable(there: eh.Table) -> eh.Table:
    """The same rows where sums don't work."""
    engine = Unable(there.engine.rows, there.engine.backend)
    return replace(there, engine=engine)


CANNOT = {name: ask for name, ask in ASKS.items() if name != "users"} | {
    "profile, then cap": lambda ask: ask.count(epsilon=1),
    "hidden names": lambda ask: ask.count(by="g", epsilon=1, delta=1e-3),
    "sql": lambda ask: ask.sql("SELECT SUM(v) AS s FROM table", epsilon=1),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_an_engine_cannot_do_costs_nothing(name: str, unable: eh.Table, tmp_path: Path) -> None:
    """Whatever step needs it: all of them are tried before the debit, on no row. A table without rows is refused alike."""
    session = eh.Session(unable, eh.Ledger(tmp_path / "b.db", epsilon=10, delta="0.1"))
    with pytest.raises(eh.UsageError, match=r"(?i)no_such_sum\)\. Nothing was read or spent\. Give Evenhand the rows"):
        CANNOT[name](session)
    assert session.ledger.events == ()


def test_the_trial_reads_no_row_and_keeps_nothing(
    there: eh.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the debit every statement is about no row; and a profile that was made up is not kept for the next question."""
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=1000, delta="0.1")
    session, seen = eh.Session(there, ledger), list[int]()
    honest = StrangersEngine.evaluate

    def evaluate(engine: Any, expression: Any) -> Any:
        found = honest(engine, expression)
        if not ledger.events:
            seen.append(
                sum(value or 0 for row in found.to_pylist() for value in row.values() if isinstance(value, int))
            )
        return found

    monkeypatch.setattr(StrangersEngine, "evaluate", evaluate)
    release = session.count(epsilon=400)
    assert len(seen) > 4
    assert set(seen) == {0}
    assert abs(release.value - 511) < 20
    refused = eh.Session(there, eh.Ledger(tmp_path / "small.db", epsilon=1))
    with pytest.raises(eh.BudgetExceeded):
        refused.count(epsilon=2)
    assert not refused._shelf._profiles
    assert session._shelf._profiles


def test_fits_are_refused_before_their_debit(there: eh.Table, tmp_path: Path) -> None:
    from evenhand.learning import BoundedERM

    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10)
    model = BoundedERM(1, features=["v"], feature_bounds=(0, 1), ledger=ledger)
    with pytest.raises(eh.UsageError, match="can't read from the strangers engine"):
        model.fit(there, "g")
    assert ledger.events == ()


def test_other_backends_are_refused_with_what_to_do() -> None:
    rows = ibis.polars.connect({"t": pl.DataFrame({"u": [1]})}).table("t")
    with pytest.raises(eh.UsageError, match=r"is on polars; expected one on duckdb.*to_pyarrow"):
        eh.read(rows, user="u")
    assert eh.read(rows.to_pyarrow(), user="u").engine.name == "duckdb"


def test_an_engine_that_breaks_its_promise_is_noticed(
    here: eh.Table, there: eh.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison has a broken twin: an engine that rounds to the nearest integer instead of down."""
    monkeypatch.setattr(StrangersEngine, "floor", lambda self, value: value.round().cast("float64"))
    ask = ASKS["mean, smooth weights"]
    assert integers(here, ask) != integers(there, ask)


def test_no_file_outside_the_engines_knows_an_engines_name() -> None:
    package, names = Path(eh.__file__).parent, {"duckdb", "postgres", "pyspark", "spark"}
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert "tables/engines/spark.py" in found, "this looks for nothing"
    elsewhere = {name for name in found if not name.startswith("tables/engines/")}
    # The ledger's own database; a version to print; the dialect that SQL text is written in, whatever the engine.
    assert elsewhere <= {"ledger/store.py", "apps/audit_cli.py", "tables/views/sql.py"}
