"""Wrong input ends in an error that says what was given, what was expected and what to do; nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh

ROWS = pa.table(
    {"user": ["a", "a", "b"], "rating": [1.0, 2.0, None], "genre": ["x", "y", "x"], "title": ["p", "q", "r"]}
)


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    return eh.Session(eh.read(ROWS, user="user"), eh.Ledger(tmp_path / "budget.db", epsilon=1))


def _refused(session: eh.Session, error: type[Exception], words: str, ask: Callable[[Any], Any]) -> None:
    """The release and its preview both refuse, and nothing is spent."""
    for front in (session, session.preview):
        with pytest.raises(error, match=words):
            ask(front)
    assert session.ledger.events == ()
    assert session.ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "epsilon", [0, -1, 1e-12, 1e9, math.nan, math.inf, "abc", "", None, True, [], Decimal("NaN")], ids=repr
)
def test_epsilon_out_of_range(session: eh.Session, epsilon: Any) -> None:
    _refused(session, eh.UsageError, "epsilon", lambda ask: ask.count(epsilon=epsilon))


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, "abc", None, True], ids=repr)
def test_delta_out_of_range(session: eh.Session, delta: Any) -> None:
    _refused(session, eh.UsageError, "delta", lambda ask: ask.count(epsilon=1, delta=delta))


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((None, math.inf), "between"),
        ((None, "a"), "not a pair of numbers"),
        ((1e16, None), "between"),
        ((5, 1), "reversed"),
        ((1, 1), "reversed or empty"),
        ((0, math.inf), "not finite"),
        ((math.nan, 1), "not finite"),
        ((0, 10**400), "not a pair of numbers"),
        ((0, 1e200), "too extreme"),
        ((0, 5e-324), "too extreme"),
        ((1,), "not a pair"),
        ((1, 2, 3), "not a pair"),
        ("15", "not a pair"),
        (5, "not a pair"),
        (("a", "b"), "not a pair"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("question", ["sum", "mean", "variance", "std", "per_user_mean", "quantiles"])
def test_wrong_bounds(session: eh.Session, question: str, bounds: Any, words: str) -> None:
    _refused(session, eh.UsageError, words, lambda ask: getattr(ask, question)("rating", bounds=bounds, epsilon=1))


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        ("ratings", eh.DataError, r"no value column 'ratings'.*'genre'.*Did you mean 'rating'\?"),
        ("title", eh.DataError, r"'title' holds string, not numbers.*\['rating'\]"),
        (5, eh.UsageError, "not a column name"),
        (None, eh.UsageError, "not a column name"),
    ],
    ids=repr,
)
def test_wrong_value_columns(session: eh.Session, column: Any, error: type[Exception], words: str) -> None:
    _refused(session, error, words, lambda ask: ask.mean(column, bounds=(0, 5), epsilon=1))


@pytest.mark.parametrize(
    ("bounding", "words"),
    [
        ("smooth", "is not a strategy"),
        (5, "is not a strategy"),
        (eh.TotalCap(5), "does not apply to a mean"),
        (eh.CentredInterval(5), "does not bound anything under protects='presence'"),
    ],
    ids=repr,
)
def test_wrong_bounding(session: eh.Session, bounding: Any, words: str) -> None:
    _refused(session, eh.UsageError, words, lambda ask: ask.mean("rating", bounds=(0, 5), epsilon=1, bounding=bounding))


@pytest.mark.parametrize("strategy", [eh.TotalCap, eh.SmoothWeights, eh.RowLimit, eh.CentredInterval, eh.NormClip])
@pytest.mark.parametrize("bound", [0, -1, math.nan, math.inf, "abc", "1/0", [], 10**200], ids=repr)
def test_wrong_strategy_bounds(strategy: Any, bound: Any) -> None:
    with pytest.raises(eh.UsageError, match=strategy.__name__):
        strategy(bound)


def test_a_row_limit_keeps_whole_rows() -> None:
    with pytest.raises(eh.UsageError, match="whole"):
        eh.RowLimit("2.5")


@pytest.mark.parametrize("share", [0, 1, -0.1, math.nan, "half"], ids=repr)
def test_wrong_share(share: Any) -> None:
    with pytest.raises(eh.UsageError, match="share"):
        eh.Auto(share=share)


def test_a_bound_that_does_not_fit_is_refused_before_anything_is_spent(session: eh.Session) -> None:
    huge = eh.TotalCap(2**60)
    _refused(
        session, eh.UsageError, "integer range", lambda ask: ask.sum("rating", bounds=(0, 5), epsilon=1, bounding=huge)
    )
    _refused(
        session,
        eh.UsageError,
        "64-bit",
        lambda ask: ask.sum("rating", bounds=(0, 5), epsilon="1e-9", bounding=eh.TotalCap(2**49)),
    )


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"by": "kind", "keys": ["x"]}, eh.DataError, r"no group column 'kind'.*\['user', 'rating', 'genre', 'title'\]"),
        ({"by": ["genre", "genre"], "keys": ["x"]}, eh.UsageError, "twice"),
        ({"by": "genre", "keys": []}, eh.UsageError, "empty"),
        ({"by": "genre", "keys": ["x", "x"]}, eh.UsageError, "more than once"),
        ({"by": "genre", "keys": "x"}, eh.UsageError, "can't be read"),
        ({"by": "genre", "keys": [None]}, eh.UsageError, "missing value"),
        ({"by": "genre", "keys": [("x", "y")]}, eh.UsageError, "one value for each"),
        ({"by": "rating", "keys": ["good"]}, eh.UsageError, "which is no float64"),
        ({"by": "genre", "keys": {"title": ["p"]}}, eh.UsageError, "mapping"),
        ({"keys": ["x"]}, eh.UsageError, "keys= without by="),
        ({"by": "genre"}, eh.UsageError, "needs delta"),
    ],
    ids=repr,
)  # fmt: skip
def test_wrong_groups(session: eh.Session, options: dict[str, Any], error: type[Exception], words: str) -> None:
    _refused(session, error, words, lambda ask: ask.mean("rating", bounds=(0, 5), epsilon=1, **options))


@pytest.mark.parametrize("quantiles", [[], [0], [1], [-0.5], ["half"], [math.nan], None, [0.12345]], ids=repr)
def test_wrong_quantiles(session: eh.Session, quantiles: Any) -> None:
    _refused(
        session, eh.UsageError, "quantiles", lambda ask: ask.quantiles("rating", quantiles, bounds=(0, 5), epsilon=1)
    )


@pytest.mark.parametrize("edges", [[], [1], [2, 1], [1, 1], [0, math.inf], "ab", [0, math.nan]], ids=repr)
def test_wrong_edges(session: eh.Session, edges: Any) -> None:
    _refused(session, eh.UsageError, "edges", lambda ask: ask.histogram("rating", edges, epsilon=1))


@pytest.mark.parametrize("confidence", [0, 1, -1, 95, math.nan, "0.95", None], ids=repr)
def test_wrong_confidence(session: eh.Session, confidence: Any) -> None:
    release = session.users(epsilon=1)
    with pytest.raises(eh.UsageError, match="between 0 and 1"):
        release.interval(confidence)


@pytest.mark.parametrize(
    ("user", "options", "error", "words"),
    [
        (None, {}, eh.UsageError, "no user column was given"),
        ("", {}, eh.UsageError, "not a column name"),
        ([], {}, eh.UsageError, "no user column was given"),
        (["user", "user"], {}, eh.UsageError, "twice"),
        ([1], {}, eh.UsageError, "not a column name"),
        ("usr", {}, eh.DataError, r"no user column 'usr'.*Did you mean 'user'\?"),
        ("user", {"protects": "rows"}, eh.UsageError, "not a neighbour relation"),
        ("user", {"public": ["nothing"], "protects": "values"}, eh.DataError, "no public column 'nothing'"),
        ("user", {"engine": "sparkle"}, eh.UsageError, "engine='sparkle'"),
        ("user", {"engine": "spark"}, eh.UsageError, "runs paths and Spark DataFrames"),
    ],
    ids=repr,
)
def test_wrong_reading(user: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eh.read(ROWS, user=user, **options)


def _write(path: Path, body: bytes) -> Path:
    path.write_bytes(body)
    return path


@pytest.mark.parametrize(
    ("name", "body", "error", "words"),
    [
        ("nowhere.parquet", None, eh.DataError, "no file .*nowhere.parquet"),
        ("no*.csv", None, eh.DataError, r"no file .*no\*.csv"),
        ("junk.parquet", b"PAR1nonsense", eh.DataError, "can't be read as parquet"),
        ("empty.parquet", b"", eh.DataError, "can't be read as parquet"),
        ("empty.csv", b"", eh.DataError, "empty|header"),
        ("twice.csv", b"user,v,v\n", eh.DataError, "more than once"),
        ("junk.json", b"[1, 2", eh.UsageError, "columns= is missing"),
        ("junk.csv.gz", b"not gzip", eh.DataError, "can't be read"),
        ("table.xlsx", b"", eh.UsageError, "format of .*not known"),
        ("table", b"", eh.UsageError, "format of .*not known"),
    ],
)
def test_unreadable_files(name: str, body: bytes | None, error: type[Exception], words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if body is not None:
        _write(path, body)
    with pytest.raises(error, match=words):
        eh.read(path, user="user")


def test_a_folder_without_parquet(tmp_path: Path) -> None:
    with pytest.raises(eh.DataError, match=r"holds no \.parquet files"):
        eh.read(tmp_path, user="user")


def test_labels_are_for_learning(tmp_path: Path) -> None:
    session = eh.Session(eh.read(ROWS, user="user", protects="labels"), eh.Ledger(tmp_path / "b.db", epsilon=1))
    _refused(session, eh.UsageError, "for learning", lambda ask: ask.count(epsilon=1))


@pytest.mark.parametrize("given", [(ROWS, None), (None, None), ("t.parquet", "b.db")], ids=["arrow", "none", "paths"])
def test_a_session_wants_a_table_and_a_ledger(given: tuple[Any, Any]) -> None:
    with pytest.raises(eh.UsageError, match=r"expected a (table|ledger) from eh\."):
        eh.Session(*given)
    with pytest.raises(eh.UsageError, match=r"expected a ledger from eh\.Ledger"):
        eh.Session(eh.read(ROWS, user="user"), "budget.db")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "epsilon", [0.5, "0.5", Decimal("0.5"), np.float64(0.5), np.float32(0.5), np.int64(1), 1], ids=repr
)
def test_numbers_of_every_kind_are_read(session: eh.Session, epsilon: Any) -> None:
    assert session.users(epsilon=epsilon).guarantee.epsilon == Decimal(str(float(epsilon))).normalize()


# Odd tables are tables: a release like any other.

_MILLION = 10**6
ODD: dict[str, pa.Table] = {
    "empty": ROWS.slice(0, 0),
    "one user": ROWS.slice(0, 1),
    "nothing but nulls": pa.table({"user": ["a", "b"], "rating": pa.array([None, None], pa.float64())}),
    "nulls without a type": pa.table({"user": ["a", "b"], "rating": pa.nulls(2)}),
    "nobody": pa.table({"user": pa.nulls(2, pa.string()), "rating": [1.0, 2.0]}),
    "a million rows of one user": pa.table({"user": np.zeros(_MILLION, dtype=int), "rating": np.ones(_MILLION)}),
}


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("kind", ODD)
def test_odd_tables_are_released_like_any_other(kind: str, relation: str, tmp_path: Path) -> None:
    pq.write_table(ODD[kind], tmp_path / "t.parquet")
    table = eh.read(tmp_path / "t.parquet", user="user", protects=relation)
    session = eh.Session(table, eh.Ledger(tmp_path / "b.db", epsilon=6))
    for release in (
        session.count(epsilon=1),
        session.users(epsilon=1),
        session.sum("rating", bounds=(0, 5), epsilon=1),
        session.mean("rating", bounds=(0, 5), epsilon=1),
        session.variance("rating", bounds=(0, 5), epsilon=1),
    ):
        low, high = release.interval(0.9)
        assert math.isfinite(release.value)
        assert low <= release.value <= high
        assert release.to_dict()["value"] == release.value
        assert release.headline() in str(release)
    (median,) = session.quantiles("rating", bounds=(0, 5), epsilon=1).value
    assert 0 <= median <= 5


def test_an_l2_bound_that_would_be_read_off_private_cells_is_refused(tmp_path: Path) -> None:
    table = eh.read(pa.table({"user": [1, 2], "v": [0.5, 0.6]}), user="user", protects="values")
    ledger = eh.Ledger(tmp_path / "l.db", epsilon=1, delta=1e-6)
    with pytest.raises(eh.UsageError, match="without a bound can't be chosen"):
        eh.Session(table, ledger).histogram("v", edges=[0, 0.5, 1], epsilon=1, delta=1e-6, bounding=eh.NormClip(norm=2))
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("bounding", [eh.NormClip(3, norm=2), eh.NormClip(norm=2)], ids=str)
@pytest.mark.parametrize("grouped", [{}, {"by": "rating", "keys": [1.0, 2.0]}], ids=["alone", "by group"])
def test_quantiles_rest_on_a_total_weight_so_an_l2_bound_is_refused(
    session: eh.Session, grouped: dict[str, Any], bounding: eh.NormClip
) -> None:
    """Under an L2 norm a user with rows at many points has more weight than the choice of a point is private for."""
    for ask in (session.median, session.quantiles):
        with pytest.raises(eh.UsageError, match="rests on a user's total weight"):
            ask("rating", bounds=(0, 5), epsilon=1, delta=1e-6, bounding=bounding, **grouped)
    assert session.ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "weights", [{"other": 1}, {"n": 0}, {"n": -1}, {"n": math.nan}, {"n": "much"}, {"n": 1e9}, [1, 2], 3], ids=repr
)
def test_weights_of_an_aggregate(session: eh.Session, weights: Any) -> None:
    parts: dict[str, Any] = {"n": eh.count(), "m": eh.mean("rating", bounds=(0, 5))}
    _refused(
        session,
        eh.UsageError,
        "expected a positive number for each of",
        lambda ask: ask.aggregate(by="genre", keys=["x", "y"], epsilon=1, weights=weights, **parts),
    )
