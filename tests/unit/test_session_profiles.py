"""Profiles that a session has bought: used again for the same rows, never for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.profiles.wanted import Shelf, rows_with

USERS, ROWS = 3000, 40


def _write(path: Path, seed: int = 1) -> None:
    """Everybody has 40 rows; prices are near 90, quantities near 1; one row in forty has a note."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(USERS), ROWS)
    first = np.tile(np.arange(ROWS) == 0, USERS)
    table = {
        "user": user,
        "price": rng.uniform(80, 100, user.size),
        "quantity": rng.uniform(0, 2, user.size),
        "note": pa.array(np.where(first, 1.0, np.nan), from_pandas=True),
        "shop": rng.integers(0, 4, user.size),
    }
    pq.write_table(pa.table(table), path)


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    _write(tmp_path / "sales.parquet")
    return eh.Session(
        eh.read(tmp_path / "sales.parquet", user="user"), eh.Ledger(tmp_path / "budget.db", epsilon=100, delta=1e-4)
    )


def _bound(release: eh.Release) -> float:
    assert release.bounding.parameter is not None
    return release.bounding.parameter


PRICE = {"bounds": (0, 100), "epsilon": 1}
SHOPS = {"by": "shop", "keys": [0, 1, 2, 3]}
ASKS: dict[str, Callable[[Any], Any]] = {
    "count": lambda ask: ask.count(epsilon=1),
    "sum": lambda ask: ask.sum("price", **PRICE),
    "mean": lambda ask: ask.mean("price", **PRICE),
    "variance": lambda ask: ask.variance("price", **PRICE),
    "quantiles": lambda ask: ask.quantiles("price", [0.5], **PRICE),
    "histogram": lambda ask: ask.histogram("price", edges=[0, 50, 100], epsilon=1),
    "count by shop": lambda ask: ask.count(**SHOPS, epsilon=1),
    "sum by shop": lambda ask: ask.sum("price", **PRICE, **SHOPS),
    "mean by shop": lambda ask: ask.mean("price", **PRICE, **SHOPS),
    "variance by shop": lambda ask: ask.variance("price", **PRICE, **SHOPS),
    "users by shop": lambda ask: ask.users(**SHOPS, epsilon=1),
    "quantiles by shop": lambda ask: ask.quantiles("price", [0.5], **PRICE, **SHOPS),
    "Gaussian by shop": lambda ask: ask.count(by="shop", keys=list(range(400)), epsilon=1, delta=1e-6),
}


@pytest.mark.parametrize("name", ASKS)
def test_the_same_question_again_buys_anew(session: eh.Session, name: str) -> None:
    """Answers to one question share no noise: who repeats it sees how its answers really scatter."""
    bought = [ASKS[name](session).bounding.epsilon for _ in range(3)]
    assert None not in bought
    # More than locating the users of a mean takes here, and less for many groups: the profile was bought each time.
    assert min(bought) > (0.07 if " by " in name or "quantiles" in name else 0.2)
    assert "will be chosen privately" in str(ASKS[name](session.preview).bounding)


@pytest.mark.parametrize("names", [("mean", "quantiles", "histogram"), ("variance by shop", "quantiles by shop")])
def test_other_questions_about_the_same_rows_choose_for_free_once(session: eh.Session, names: tuple[str, ...]) -> None:
    first, *others = names
    assert ASKS[first](session).bounding.epsilon is not None
    for name in others:
        assert "that this session has bought" in str(ASKS[name](session.preview).bounding)
        assert ASKS[name](session).bounding.epsilon is None
        assert ASKS[name](session).bounding.epsilon is not None
    assert session.ledger.spent.epsilon == 1 + 2 * len(others)


def test_another_column_with_the_same_bounds_gets_a_cap_of_its_own(session: eh.Session) -> None:
    """One chosen bound in a hundred is far too large: the smallest of three hardly ever."""
    price = session.sum("price", bounds=(0, 100), epsilon=1)
    quantities = [session.sum("quantity", bounds=(0, 100), epsilon=1) for _ in range(3)]
    assert all(quantity.bounding.epsilon is not None for quantity in quantities)
    assert min(_bound(quantity) for quantity in quantities) < _bound(price) / 20


def test_a_mostly_empty_column_does_not_lend_its_profile_to_the_whole_table(session: eh.Session) -> None:
    session.mean("note", bounds=(0, 2), epsilon=1)  # one row a user
    assert session.count(epsilon=1).value == pytest.approx(USERS * ROWS, rel=0.1)


def test_a_profile_bought_on_purpose_serves_all_but_groups(session: eh.Session) -> None:
    session.profile(epsilon=1)
    for name in ("count", "quantiles", "histogram"):
        assert all(ASKS[name](session).bounding.epsilon is None for _ in range(2))
    for name in ("sum", "count by shop", "users by shop"):  # a profile of totals, or of rows in these groups
        assert ASKS[name](session).bounding.epsilon is not None


def test_a_profile_belongs_to_a_snapshot_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "sales.parquet"
    _write(path)
    before = eh.read(path, user="user")
    _write(path, seed=2)
    after = eh.read(path, user="user")
    shelf, profile = Shelf(), eh.Profile.counts([1, 2])
    shelf.put(before, rows_with(["price"], "mean"), profile)
    assert shelf.find(before, rows_with(["price"], "variance")) is profile
    assert shelf.find(after, rows_with(["price"], "variance")) is None
    unknown = replace(before, snapshot=None)  # nobody can know whether such a table stays the same
    shelf.put(unknown, rows_with(["price"], "mean"), profile)
    assert shelf.find(unknown, rows_with(["price"], "variance")) is None


def test_a_strategy_that_bounds_groups_is_refused_before_the_debit(session: eh.Session) -> None:
    with pytest.raises(eh.UsageError, match="NormClip does not apply"):
        session.count(epsilon=1, bounding=eh.NormClip())
    with pytest.raises(eh.UsageError, match="NormClip does not apply"):
        session.sum("price", bounds=(0, 100), epsilon=1, bounding=eh.NormClip())
    assert session.ledger.spent.epsilon == 0


@pytest.mark.parametrize("strategy", [None, eh.SmoothWeights(), eh.RowLimit()])
def test_a_profile_of_users_beyond_all_limits_still_gives_an_answer(session: eh.Session, strategy: Any) -> None:
    """A chosen bound is lowered to what a strategy accepts: an error would come after the debit, and depend on the rows."""
    huge = eh.Auto(strategy=strategy, profile=eh.Profile.counts([2**30] * 5000))
    assert _bound(session.mean("price", bounds=(0, 100), epsilon=1, bounding=huge)) > 0
    assert _bound(session.count(epsilon=1, bounding=huge)) > 0
    assert _bound(session.sum("price", bounds=(0, 100), epsilon=1, bounding=huge)) > 0


def test_a_file_that_was_replaced_is_refused_before_the_debit(session: eh.Session, tmp_path: Path) -> None:
    """Its columns may stand elsewhere now, and what was bought is about another table."""
    _write(tmp_path / "sales.parquet", seed=2)
    with pytest.raises(eh.DataError, match="since it was opened"):
        session.count(epsilon=1)
    assert session.ledger.spent.epsilon == 0
