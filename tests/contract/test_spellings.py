"""Ids and keys that engines take for equal though they are spelled differently: no operation mixes users by them.

Each operation on each treacherous type on each engine: tables that differ in one user move the integers by what is declared, whichever spelling
comes first. An id is a person by its spelling; −0.0 and 0.0, or 1.0 and 1.00, have one spelling. Ids that could be one person by the engine's
equality and two by their spelling are refused when the table is opened. As that refusal would hide what lies behind it, the matrix runs without it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import ibis
import pytest

import evenhand as eh
from evenhand.tables import reading
from evenhand.tables.engines import Engine
from neighbouring import compare
from view_expressions import Build
from watch import Ask, integers

_ = eh._
CAP = 3
"""Rows of a user, and what is declared of one."""


@dataclass(frozen=True)
class Kind:
    """A type of ids or keys.

    Args:
        declared: the column's type, as the engine's SQL has it.
        one, other: literals of two values that the engine takes for equal, or that look alike.
        same: whether they have one spelling, and so are one person.
        refused: whether such ids are refused.
    """

    declared: str
    one: str
    other: str
    same: bool = False
    refused: bool = False


DUCKDB = {
    "letter case": Kind("varchar COLLATE nocase", "'ann'", "'ANN'", refused=True),
    "accents": Kind("varchar COLLATE noaccent", "'rene'", "'rené'", refused=True),
    "composed letters": Kind("varchar COLLATE de", "'\u00e9'", "'e\u0301'", refused=True),
    "zeros": Kind("double", "0.0", "-0.0::double", same=True),
    "narrow zeros": Kind("float", "0.0", "-0.0::float", same=True),
    "decimals": Kind("decimal(9, 2)", "1.0", "1.00", same=True),
    "times in zones": Kind("timetz", "'12:00:00+01'", "'11:00:00+00'"),
    "intervals": Kind("interval", "'1 month'", "'30 days'", refused=True),
    "lists": Kind("double[]", "[0.0]", "[-0.0::double]", refused=True),
    "structs": Kind("struct(a double)", "{'a': 0.0}", "{'a': -0.0::double}", refused=True),
    "enumerations": Kind("enum('ann', 'ANN')", "'ann'", "'ANN'"),
    "bits": Kind("bit", "'0101'", "'101'"),
}
POSTGRES = {
    "a type of its own": Kind("folded", "'ann'", "'ANN'", refused=True),
    "a domain over it": Kind("folded_name", "'ann'", "'ANN'", refused=True),
    "padded text": Kind("char(5)", "'ann'", "'ann  '", same=True),
    "enumerations": Kind("spelled", "'ann'", "'ANN'"),
    "decimals of any scale": Kind("numeric", "1.0", "1.00", same=True),
    "zeros": Kind("float8", "0.0", "'-0'", same=True),
    "times in zones": Kind("timetz", "'12:00:00+01'", "'11:00:00+00'"),
    "intervals": Kind("interval", "'1 month'", "'30 days'", refused=True),
    "lists": Kind("numeric[]", "'{1.0}'", "'{1.00}'", refused=True),
}
ICU = {
    "letter case": Kind("text COLLATE nocase", "'ann'", "'ANN'", refused=True),
    "composed letters": Kind("text COLLATE nocase", "'\u00e9'", "'e\u0301'", refused=True),
    "citext": Kind("citext", "'ann'", "'ANN'", refused=True),
}
SPARK = {
    "letter case": Kind("string COLLATE UTF8_LCASE", "'ann'", "'ANN'", refused=True),
    "spaces at the end": Kind("string COLLATE UTF8_BINARY_RTRIM", "'ann'", "'ann '", refused=True),
    "zeros": Kind("double", "0.0D", "-0.0D", same=True),
}
KINDS = {"duckdb": DUCKDB, "postgres": POSTGRES, "icu": ICU, "spark": SPARK}

OWN_TYPE = """
CREATE TYPE folded;
CREATE FUNCTION folded_in(cstring) RETURNS folded AS 'textin' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION folded_out(folded) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE folded (INPUT = folded_in, OUTPUT = folded_out, LIKE = text, CATEGORY = 'S', COLLATABLE = true);
CREATE CAST (folded AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION folded_same(folded, folded) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT lower($1::text) = lower($2::text)';
CREATE FUNCTION folded_hash(folded) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hashtext(lower($1::text))';
CREATE OPERATOR = (LEFTARG = folded, RIGHTARG = folded, FUNCTION = folded_same, COMMUTATOR = =, HASHES);
CREATE OPERATOR CLASS folded_ops DEFAULT FOR TYPE folded USING hash AS OPERATOR 1 = (folded, folded), FUNCTION 1 folded_hash(folded);
CREATE DOMAIN folded_name AS folded;
CREATE TYPE spelled AS ENUM ('ann', 'ANN');
"""
"""A type whose equality ignores case, as citext has it: every Postgres has the means."""

Rows = list[tuple[str, str, str, float]]
"""For each row a value of the treacherous type, a plain id, a plain key (all as literals), and a number."""
Make = Callable[..., eh.Table]
"""From a kind, rows, and which column names users."""


def _values(rows: Rows, cast: str = "{}") -> str:
    return ", ".join(f"({cast.format(odd)}, {plain}, {key}, {value})" for odd, plain, key, value in rows)


def _on_duckdb(kind: Kind, rows: Rows, user: str = "u") -> eh.Table:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(f"CREATE TABLE t (u {kind.declared}, p varchar, k varchar, v double)")
    connection.execute(f"INSERT INTO t VALUES {_values(rows)}")
    return eh.read(ibis.duckdb.from_connection(connection).table("t"), user=user)


class _OnPostgres:
    """Tables of one database, through one connection of Ibis."""

    def __init__(self, url: str, before: str = "") -> None:
        self.backend: Any = ibis.connect(url)
        if before:
            self.backend.raw_sql(before).close()

    def __call__(self, kind: Kind, rows: Rows, user: str = "u") -> eh.Table:
        name = f"t_{uuid.uuid4().hex}"
        self.backend.raw_sql(f"CREATE TABLE {name} (u {kind.declared}, p text, k text, v float8)").close()
        self.backend.raw_sql(f"INSERT INTO {name} VALUES {_values(rows)}").close()
        self.backend.con.commit()
        return eh.read(self.backend.table(name), user=user)


def _on_spark(kind: Kind, rows: Rows, user: str = "u") -> eh.Table:
    from evenhand.tables.engines.spark_session import spark_backend

    session = spark_backend()._session
    typed, _collate, collation = kind.declared.partition(" COLLATE ")
    cast = f"{{}} COLLATE {collation}" if collation else f"CAST({{}} AS {typed})"
    frame = session.sql(f"SELECT * FROM VALUES {_values(rows, cast)} AS t(u, p, k, v)").coalesce(1)
    return eh.read(frame.select("u", "p", "k", frame.v.cast("double").alias("v")), user=user)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Make]]:
    """Each engine that has types which take different spellings for equal, and how a table is made there."""
    name = request.param
    if name == "duckdb":
        yield name, _on_duckdb
    elif name == "spark":
        request.getfixturevalue("spark")
        yield name, _on_spark
    else:
        fixture = "postgres_url" if name == "postgres" else "postgres_with_icu"
        made = _OnPostgres(request.getfixturevalue(fixture), OWN_TYPE if name == "postgres" else "")
        yield name, made
        made.backend.disconnect()


@pytest.fixture
def unrefused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies behind the refusal of ids: tables are opened as if it were not there."""

    def look_only(engine: Engine, _users: object) -> None:
        engine.folded()

    monkeypatch.setattr(reading, "_require_one_spelling", look_only)


def total(column: str = "v") -> Ask:
    return lambda ask: ask.sum(column, bounds=(-1, 1), epsilon=1, bounding=eh.TotalCap(CAP))


def from_query(text: str) -> Build:
    def build(table: eh.Table, other: eh.Table) -> eh.Table:
        from evenhand.tables.queries.reading import read_query

        return read_query(text, {"t": table, "other": other}.__getitem__)

    return build


def as_it_is(table: eh.Table, _other: eh.Table) -> eh.Table:
    return table


VIEWS: dict[str, tuple[Build, Ask]] = {
    "the rows": (as_it_is, total()),
    "a mean": (as_it_is, lambda ask: ask.mean("v", bounds=(-1, 1), epsilon=1)),
    "a few rows of each": (as_it_is, lambda ask: ask.sum("v", bounds=(-1, 1), epsilon=1, bounding=eh.RowLimit(CAP))),
    "groups": (as_it_is, lambda ask: ask.sum("v", bounds=(-1, 1), by="k", keys=["x", "y"], epsilon=1, bounding=eh.SmoothWeights(CAP))),
    "norms over groups": (as_it_is, lambda ask: ask.count(by="k", keys=["x", "y"], epsilon=1, bounding=eh.NormClip(CAP))),
    "users by group": (as_it_is, lambda ask: ask.users(by="k", keys=["x", "y"], epsilon=1)),
    "distinct values": (as_it_is, lambda ask: ask.distinct("k", epsilon=1)),
    "the largest group": (as_it_is, lambda ask: ask.top("k", 1, keys=["x", "y", "z"], epsilon=1)),
    "users": (as_it_is, lambda ask: ask.users(epsilon=1)),
    "per user": (lambda table, _other: table.per_user(v=_.v.min()), total()),
    "its own totals": (lambda table, _other: table.join(table.per_user(n=_.count())), total()),
    "its own totals, or none": (lambda table, _other: table.join(table.per_user(n=_.v.min()), how="left").derive(v=_.n.fill_null(1.0)), total()),
    "totals, then rows": (lambda table, other: table.per_user(n=_.count()).join(other, fan_out=CAP), total()),
    "another table": (lambda table, other: table.join(other.select("k").derive(w=_.k), on="k", fan_out=CAP), total()),
    "totals of totals": (
        lambda table, other: table.per_user(a=_.v.max()).per_user(n=_.count()).join(other.where(_.v < 2), fan_out=CAP),
        total(),
    ),
    "a window": (lambda table, _other: table.window(order_by="k", v=_.v.sum(), place=_.count()).where(_.place <= 2), total()),
    "earlier rows": (lambda table, _other: table.window(order_by="v", before=_.v.lag()).derive(v=_.before.fill_null(_.v)), total()),
    "a union": (lambda table, other: table.select("v").union(other.select("v")).per_user(v=_.v.max()), total()),
    "a query": (from_query("WITH n AS (SELECT COUNT(*) AS n FROM t GROUP BY u) SELECT v, n.n FROM t JOIN n USING (u)"), total()),
    "a query in a query": (from_query("SELECT a.v FROM other a JOIN (SELECT MIN(v) AS w FROM t GROUP BY u) b USING (u)"), total()),
}  # fmt: skip
ON_SPARK = ("the rows", "per user", "its own totals", "totals, then rows")
"""Each takes Spark seconds."""


def opposite(kind: Kind) -> Rows:
    """Two ids that the engine may take for one: all of the one's values are 1, all of the other's −1."""
    people = ((kind.one, "'one'", 1.0), (kind.other, "'other'", -1.0))
    return [(odd, plain, key, value) for odd, plain, value in people for key in ("'x'", "'y'", "'x'")]


THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
QUICK = {
    "duckdb": ("letter case", "zeros"),
    "postgres": ("a type of its own", "enumerations"),
    "icu": ("letter case",),
    "spark": ("letter case",),
}


MARKS: dict[str, Any] = {
    "icu": pytest.mark.xdist_group("icu"),
    "spark": [pytest.mark.spark, pytest.mark.xdist_group("spark")],
}


def on(name: str, *more: str) -> Any:
    """A parameter that names an engine."""
    return pytest.param(name, *more, marks=MARKS.get(name, ()))


def cases(kinds: Iterable[str] = KINDS) -> list[Any]:
    """Each engine with its kinds; in the quick run a few of them."""
    return [on(name, kind) for name in kinds for kind in (KINDS[name] if THOROUGH else QUICK[name])]


@pytest.mark.parametrize(("engine", "kind"), cases(), indirect=["engine"])
def test_no_operation_mixes_users_whose_ids_look_equal(engine: tuple[str, Make], kind: str, unrefused: None) -> None:
    """With and without the id whose rows come first, of which an engine that groups by its own equality shows the spelling."""
    name, make = engine
    found = KINDS[name][kind]
    rows = opposite(found)
    both, fewer = make(found, rows), make(found, [("NULL", "NULL", "'x'", 1.0)] if found.same else rows[CAP:])
    assert not moved(VIEWS if name != "spark" else {title: VIEWS[title] for title in ON_SPARK}, both, fewer)


def moved(views: dict[str, tuple[Build, Ask]], one: eh.Table, other: eh.Table) -> dict[str, str]:
    """The views whose integers neighbours move by more than is declared, or that depend on more than these, or fail; and how."""
    wrong: dict[str, str] = {}
    for title, (build, ask) in views.items():
        try:
            views_of_both = build(one, one), build(other, other)
        except eh.UsageError:
            continue  # refused by its types
        try:
            compare(ask, *views_of_both)
        except (AssertionError, eh.EvenhandError) as error:
            wrong[title] = str(error)
    return wrong


@pytest.mark.parametrize("engine", [on(name) for name in KINDS], indirect=True)
def test_ids_that_may_be_one_person_or_two_are_refused(engine: tuple[str, Make]) -> None:
    name, make = engine
    for found in KINDS[name].values():
        if not found.refused:
            make(found, opposite(found))
            continue
        _assert_refused(make, found)


def _assert_refused(make: Make, found: Kind) -> None:
    with pytest.raises(eh.DataError, match=r"user column 'u' .*[eE]xpected ids") as refusal:
        make(found, opposite(found))
    assert "ann" not in str(refusal.value).replace("'ann' and 'Ann'", "")


KEYED: dict[str, tuple[Build, Ask]] = {
    "different keys of a user": (lambda table, _other: table.per_user(v=_.u.nunique().cast("float64")), total()),
    "different keys": (as_it_is, lambda ask: ask.distinct("u", epsilon=1)),
    "a window by key": (lambda table, _other: table.window(order_by="u", v=_.v.lag()).derive(v=_.v.fill_null(0.5)), total()),
    "first rows of a user": (lambda table, other: table.select("k").join(other.select("u", "v")), total()),
}  # fmt: skip
JOINED: tuple[Build, Ask] = (lambda table, other: table.select("u", "k").join(other.select("u", "v"), on="u"), total())
"""For types that may be joined by."""


@pytest.mark.parametrize(("engine", "kind"), cases(("duckdb", "postgres", "icu")), indirect=["engine"])
def test_no_operation_mixes_users_by_keys_that_look_equal(engine: tuple[str, Make], kind: str) -> None:
    """One user writes a key the one way, another one the other way, and a third one both."""
    name, make = engine
    found = KINDS[name][kind]
    rows = [*opposite(found), *((odd, "'both'", "'x'", 1.0) for odd in (found.other, found.one))]
    views = KEYED | ({"a join by key": JOINED} if make(found, rows, "p").expression.u.type().is_string() else {})
    for person in ("'one'", "'other'", "'both'"):
        fewer = [row for row in rows if row[1] != person]
        assert not moved(views, make(found, rows, "p"), make(found, fewer, "p"))


def rows_of_both(ask: Any) -> Any:
    return ask.count(epsilon=1, bounding=eh.TotalCap(CAP))


CONDITIONS = {
    "u = 'ann'": 3,
    "u <> 'ann'": 3,
    "u IN ('ann', 'bob')": 3,
    "u LIKE 'a%'": 3,
    "starts_with(u, 'a')": 3,
    "u BETWEEN 'a' AND 'z'": 3,
    "CASE u WHEN 'ann' THEN true ELSE false END": 3,
    "NULLIF(u, 'ann') IS NULL": 3,
    "replace(u, 'a', '') = 'nn'": 3,
    "u = 'no such value'": 0,
}


@pytest.mark.parametrize("engine", [on("duckdb"), on("postgres"), on("icu")], indirect=True)
def test_views_compare_text_by_its_bytes(engine: tuple[str, Make]) -> None:
    """Whatever the collation of its column, and where the engine's own functions would raise under it."""
    name, make = engine
    for title, found in KINDS[name].items():
        table = make(found, opposite(found), "p")
        if found.one == "'ann'" and not found.same and table.expression.u.type().is_string():
            counted = {condition: integers(table.where(condition), rows_of_both)[0] for condition in CONDITIONS}
            assert counted == {condition: [many] for condition, many in CONDITIONS.items()}, title


def test_a_collation_that_is_set_after_the_table_was_opened_changes_nothing() -> None:
    """DuckDB compares all text of a connection by the collation that is set when a statement runs."""
    tables = []
    for kept in (opposite(DUCKDB["letter case"]), opposite(DUCKDB["letter case"])[CAP:]):
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {_values(kept)}) AS t(u, p, k, v)")
        connection.execute("ALTER TABLE t ALTER v TYPE double")
        tables.append(eh.read(ibis.duckdb.from_connection(connection).table("t"), user="u"))
        connection.execute("SET default_collation = 'nocase'")
    assert not moved(VIEWS, *tables)
    assert integers(tables[0].where("u = 'ann'"), rows_of_both)[0] == [CAP]
    with pytest.raises(eh.DataError, match="collation"):
        eh.read(tables[0].expression, user="u")


def test_columns_of_two_collations_are_united_on_postgres(postgres_url: str) -> None:
    """What they make has no collation, and Postgres compares it in no statement."""
    make = _OnPostgres(postgres_url)
    one, other = (
        make(Kind(f'text COLLATE "{name}"', "'ann'", "'ANN'"), opposite(DUCKDB["letter case"]))
        for name in ("C", "ucs_basic")
    )
    both = one.union(other)
    assert integers(both, lambda ask: ask.users(epsilon=1)) == [[2]]
    assert integers(both.per_user(n=_.count()).where("u = 'ann'").join(one), rows_of_both) == [[1]]
    make.backend.disconnect()


def test_text_of_two_types_is_united_as_it_is_spelled_on_postgres(postgres_url: str) -> None:
    """'ann' and 'ann ' are two people in a table of text; beside one of CHAR(n), which has no spaces at the end, they stay two."""
    make = _OnPostgres(postgres_url)
    padded = make(Kind("char(5)", "", ""), [("'bob'", "'p'", "'x'", 0.0)])
    free = make(Kind("varchar(5)", "", ""), [("'ann'", "'p'", "'x'", 1.0), ("'ann '", "'p'", "'x'", -1.0)])
    for both in (padded.union(free), free.union(padded)):
        assert integers(both, lambda ask: ask.users(epsilon=1)) == [[3]]
    make.backend.disconnect()


def test_encodings_with_bytes_that_are_no_characters_are_refused_on_postgres(postgres_server: Any) -> None:
    """One id with such a byte would make a release fail once it is paid for."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'WIN1252' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    backend: Any = ibis.connect(postgres_server.get_uri(database=name))
    backend.raw_sql("CREATE TABLE t (u text, v float8)").close()
    backend.con.commit()
    with pytest.raises(eh.UsageError, match=r"stores text as WIN1252.*UTF8"):
        eh.read(backend.table("t"), user="u")
    backend.disconnect()


def test_windows_order_numbers_of_any_scale_by_value_on_postgres(postgres_url: str) -> None:
    make = _OnPostgres(postgres_url)
    rows = [(number, "'one'", "'x'", 0.0) for number in ("9", "10.0", "9.50", "'NaN'")]
    table = make(Kind("numeric", "9", "10"), rows, "p").window(order_by="u", place=_.count(), before=_.u.lag())
    befores = {2: "before = 9", 3: "before = 9.5", 4: "before = 10"}
    for place, before in befores.items():
        assert integers(table.where(f"place = {place}").where(before), rows_of_both) == [[1]], before
    make.backend.disconnect()


def test_users_that_an_engine_tells_apart_are_noticed(unrefused: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix, on code that leaves to the engine which ids are equal."""
    monkeypatch.setattr("evenhand.tables.table.user_key", lambda _engine, value: value)
    found = DUCKDB["letter case"]
    rows = opposite(found)
    views = {title: VIEWS[title] for title in ("its own totals", "a query")}
    assert set(moved(views, _on_duckdb(found, rows), _on_duckdb(found, rows[CAP:]))) == set(views)


@pytest.mark.parametrize("name", [on("duckdb"), on("icu")])
def test_what_the_refusal_of_ids_advises_works(name: str, request: pytest.FixtureRequest) -> None:
    rows = opposite(DUCKDB["letter case"])
    view = 'SELECT lower(u) COLLATE "C" AS u, v FROM {}'
    if name == "duckdb":
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (u varchar COLLATE nocase, p varchar, k varchar, v double)")
        connection.execute(f"INSERT INTO t VALUES {_values(rows)}")
        connection.execute(f"CREATE VIEW advised_view AS {view.format('t')}")
        source = ibis.duckdb.from_connection(connection).table("advised_view")
    else:
        make = _OnPostgres(request.getfixturevalue("postgres_with_icu"))
        make.backend.raw_sql(
            f"DROP TABLE IF EXISTS advised CASCADE; CREATE TABLE advised (u citext, p text, k text, v float8); "
            f"INSERT INTO advised VALUES {_values(rows)}; CREATE VIEW advised_view AS {view.format('advised')}"
        ).close()
        make.backend.con.commit()
        source = make.backend.table("advised_view")
    table = eh.read(source, user="u")
    assert integers(table, lambda ask: ask.users(epsilon=1)) == [[1]], "both ids are one person now"
    assert integers(table.join(table.per_user(n=_.count())).where("n = 6"), lambda ask: ask.users(epsilon=1)) == [[1]]
