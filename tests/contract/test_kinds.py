"""Ids, keys and values of every type: one user never shows, whatever the engine or Python can't hold, compare or print.

On DuckDB as a table, a relation and an Arrow table; a few types on Postgres and Spark.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.session import Drafts
from kinds import DUCKDB, SOURCES, SPELLINGS, Line, as_table
from neighbouring import compare as compare_integers
from visible import Questions, Seen, Tape, assert_alike, compare, look
from watch import Ask, watch

SECRET: dict[str, Any] = {"by": "k", "epsilon": 60, "delta": "0.01", "groups_per_user": 10}
SELECTED: Questions = {"count by selected keys": lambda ask: ask.count(**SECRET, bounding=eh.NormClip(1))}
CROWD = 8

KINDS = [
    pytest.param(kind, source, id=f"{kind}-{source}")
    for number, kind in enumerate(DUCKDB)
    for place, source in enumerate(SOURCES)
    if (number + place) % 3 == 0 or kind in ("date", "double", "timetz")
]
"""Each type on one kind of source, a few on all."""


def opened(source: Callable[[Any], Any], lines: Any) -> eh.Table:
    return eh.read(source(lines), user="u")


def crowd(key: str, value: str = "1.0::double", name: str = "u") -> list[Line]:
    return [Line(f"'{name}{user}'", key, value) for user in range(CROWD)]


@pytest.mark.parametrize(("kind", "source"), KINDS)
def test_a_key_that_is_not_shown_changes_nothing(kind: str, source: str) -> None:
    """One user has every odd key of the type; nobody shares them."""
    first, *odd = DUCKDB[kind]
    common, victim = crowd(first), [Line("'victim'", key) for key in odd]
    compare(partial(opened, SOURCES[source], common), partial(opened, SOURCES[source], [*common, *victim]), SELECTED)


@pytest.mark.parametrize("kind", DUCKDB)
def test_keys_that_are_shown_can_be_anything(kind: str) -> None:
    """What every user shares leaves by right; it must not fail after the debit because Python or pandas can't hold it."""
    lines = [line for number, key in enumerate(DUCKDB[kind]) for line in crowd(key, name=f"u{number}_")]
    seen = look(partial(opened, as_table, lines), SELECTED, Tape())
    assert not seen.failures(), [seen.entries[name]["raised"] for name in seen.failures()]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_equal_keys_have_one_spelling_that_no_user_decides(spelling: str, source: str) -> None:
    """A crowd writes a key one way; one user more, who writes it the other way, changes no label."""
    for one, other in itertools.permutations(SPELLINGS[spelling]):
        # The first rows are nobody's: they give both tables the same type.
        common = [Line("NULL::varchar", one), Line("NULL::varchar", other), *crowd(one)]
        without = look(partial(opened, SOURCES[source], common), SELECTED, Tape())
        # Which of equal keys is kept may depend on the user's place: first one way round, last the other way round.
        victim = "'a victim'" if one == SPELLINGS[spelling][0] else "'z victim'"
        table = partial(opened, SOURCES[source], [*common, Line(victim, other)])
        assert_alike(without, look(table, SELECTED, Tape(played=without.tape)))


def outcome(seen: Seen, name: str) -> tuple[Any, Any]:
    """What was shown or raised; neither if the table was refused."""
    entry = seen.entries.get(name, seen.entries["open"])
    return entry.get("shown"), entry.get("raised")


ASKS: dict[str, Ask] = {
    "count by": lambda ask: ask.count(by="k", keys=["a"], epsilon=1, bounding=eh.SmoothWeights(1)),
    "sum": lambda ask: ask.sum("v", bounds=(-1, 2), epsilon=1, bounding=eh.TotalCap(2)),
    "mean": lambda ask: ask.mean("v", bounds=(-1, 2), epsilon=1),
}


@pytest.mark.parametrize(("kind", "source"), KINDS)
def test_users_of_any_type_are_one_user_each(kind: str, source: str) -> None:
    """A light user and a heavy one whose ids look alike: each is bounded by itself."""
    first, other = DUCKDB[kind][:2]
    light, heavy = [Line(first, "'a'")], [Line(other, "'a'", copies=300)]
    name = "mean" if source == "relation" else "sum"
    try:
        both, one = (opened(SOURCES[source], lines) for lines in (light + heavy, light))
        Drafts(both).users(epsilon=1)
    except (eh.UsageError, eh.DataError):
        return  # a type that can't name users is refused by its schema
    for ask in (ASKS["count by"], ASKS[name]):
        compare_integers(ask, both, one)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_user_with_several_spellings_is_bounded(spelling: str, source: str) -> None:
    """Whether two ways to write an id are one user or two: the 300 rows of either are bounded."""
    one, other = SPELLINGS[spelling]
    try:
        table = opened(SOURCES[source], [Line(one, "'a'"), Line(other, "'a'", copies=300)])
        Drafts(table).users(epsilon=1)
    except (eh.UsageError, eh.DataError):
        return
    (step,) = watch(table, ASKS["count by"]).steps
    assert step.l1 is not None
    assert sum(step.integers) <= 2 * step.l1


VALUES = {
    kind: DUCKDB[kind]
    for kind in ("tinyint", "ubigint", "hugeint", "uhugeint", "bignum", "float", "double", "decimal", "boolean")
}
MEANS: Questions = {
    "mean": lambda ask: ask.mean("v", bounds=(-1, 2), epsilon=1),
    "sum by": lambda ask: ask.sum("v", bounds=(-1, 2), by="k", keys=["a"], epsilon=1),
    "histogram": lambda ask: ask.histogram("v", [-1, 0, 2], epsilon=1),
    "quantiles": lambda ask: ask.quantiles("v", [0.5], bounds=(-1, 2), epsilon=1, bounding=eh.SmoothWeights(1)),
}


@pytest.mark.parametrize("source", ["table", "arrow"])
@pytest.mark.parametrize("kind", VALUES)
def test_values_of_any_type(kind: str, source: str) -> None:
    """Nulls too; under presence the user is gone, so the integers are compared as well."""
    first, *odd = VALUES[kind]
    common = crowd("'a'", first)
    victim = [Line("'victim'", "'a'", value) for value in [*odd, "NULL"]]
    tables = partial(opened, SOURCES[source], common), partial(opened, SOURCES[source], [*common, *victim])
    asked = ("mean", "sum by") if source == "arrow" else ("histogram", "quantiles")
    if not outcome(compare(*tables, {name: MEANS[name] for name in asked}), asked[0])[1]:
        compare_integers(
            lambda ask: ask.sum("v", bounds=(-1, 2), epsilon=1, bounding=eh.TotalCap(3)), tables[0](), tables[1]()
        )


def _bad_text(bad: bool) -> pa.Table:
    keys = [b"ok"] * CROWD + ([b"secret\xff\xfe"] if bad else [])
    users = [f"u{user}" for user in range(CROWD)] + (["victim"] if bad else [])
    return pa.table({"u": users, "k": pa.array(keys, pa.binary()).view(pa.string()), "v": [1.0] * len(users)})


@pytest.mark.parametrize("file", [False, True])
def test_text_that_is_not_utf8(file: bool, tmp_path: Path) -> None:
    """Other programs write such Parquet files."""

    def table(bad: bool) -> eh.Table:
        if not file:
            return eh.read(_bad_text(bad), user="u")
        pq.write_table(_bad_text(bad), tmp_path / f"{bad}.parquet")
        return eh.read(tmp_path / f"{bad}.parquet", user="u")

    by_name: Questions = {
        "count by public keys": lambda ask: ask.count(by="k", keys=["ok"], epsilon=1),
        "mean": MEANS["mean"],
    }
    compare(partial(table, False), partial(table, True), SELECTED | by_name)


POSTGRES = {
    "date": ["'2024-01-01'::date", "'infinity'::date", "'0044-03-15 BC'::date", "'5874897-12-31'::date"],
    "timestamptz": ["'2024-01-01'::timestamptz", "'-infinity'::timestamptz", "'294276-12-31'::timestamptz"],
    "numeric": ["1::numeric", "'NaN'::numeric", "1e300::numeric"],
    "double precision": ["0::float8", "'NaN'::float8", "'Infinity'::float8"],
    "timetz": ["'12:00+01'::timetz", "'12:00+00'::timetz"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'::uuid", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"],
    "interval": ["interval '1 day'", "interval '170000000 years'"],
    "bytea": ["'a'::bytea", "'\\xff00'::bytea"],
}


@pytest.mark.parametrize("kind", POSTGRES)
def test_a_key_that_is_not_shown_changes_nothing_on_postgres(kind: str, postgres_url: str) -> None:
    import ibis
    import psycopg

    first, *odd = POSTGRES[kind]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name, victim in (("one", []), ("other", odd)):
            connection.execute(f"CREATE TABLE {name} (u text, k {kind}, v float8)")
            rows = [f"('u{user}', {first}, 1)" for user in range(CROWD)] + [f"('victim', {key}, 1)" for key in victim]
            connection.execute(f"INSERT INTO {name} VALUES {', '.join(rows)}")
    backend = ibis.connect(postgres_url)
    one, other = (partial(eh.read, backend.table(name), user="u") for name in ("one", "other"))
    compare(one, other, SELECTED)


def test_equal_keys_have_one_spelling_on_postgres(postgres_url: str) -> None:
    import ibis
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name, victim in (("one", ""), ("other", "INSERT INTO other VALUES ('', '-0', 1.00)")):
            connection.execute(f"CREATE TABLE {name} (u text, z float8, n numeric)")
            connection.execute(f"INSERT INTO {name} SELECT 'u' || i, 0, 1.0 FROM generate_series(1, 9) i")
            connection.execute(victim or "SELECT 1")
    backend = ibis.connect(postgres_url)
    asked: Questions = {
        by: partial(lambda ask, by: ask.count(**{**SECRET, "by": by}, bounding=eh.NormClip(1)), by=by) for by in "zn"
    }
    one, other = (partial(eh.read, backend.table(name), user="u") for name in ("one", "other"))
    compare(one, other, asked)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_keys_on_spark(spark: None, tmp_path: Path) -> None:
    """All users have −0.0, which is shown as 0.0; one has an odd key besides, which is not shown."""
    users, ways = [*(f"u{user}" for user in range(CROWD)), "victim"], [-0.0] * CROWD
    pq.write_table(pa.table({"u": users, "k": [*ways, math.inf]}), tmp_path / "t.parquet")
    seen = look(lambda: eh.read(tmp_path / "t.parquet", user="u", engine="spark"), SELECTED, Tape())
    shown, raised = outcome(seen, "count by selected keys")
    assert raised is None
    assert "float 0.0" in shown
    assert "-0.0" not in shown
