"""A variance without groups: about the mean, of the rows that count, with an interval that holds the truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.release import Exact
from evenhand.statistics.variance import VarianceInterval

EPSILON = 50  # so much that chance fails a test less than once in a million runs


def ask(folder: Path, rows: pd.DataFrame, protects: str = "presence") -> eh.Session:
    return eh.Session(eh.read(rows, user="u", protects=protects), eh.Ledger(folder / "b.db", epsilon=10 * EPSILON))


def table(seed: int = 1, users: int = 2000) -> pd.DataFrame:
    """Values far from the middle of their bounds."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), rng.geometric(0.2, users))
    return pd.DataFrame({"u": user, "x": np.minimum(rng.gamma(4, 10, len(user)), 1000)})


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_it_is_about_the_rows_that_count(tmp_path: Path, protects: str) -> None:
    rows = table()
    rows.loc[::5, "x"] = np.nan
    counted = rows.x.dropna() if protects == "presence" else rows.x.fillna(500)
    session = ask(tmp_path, rows, protects)
    variance, std = (getattr(session, name)("x", bounds=(0, 1000), epsilon=EPSILON) for name in ("variance", "std"))
    assert variance.value == pytest.approx(counted.var(ddof=0), rel=0.1)
    assert std.value == pytest.approx(counted.std(ddof=0), rel=0.05)
    low, high = std.interval(0.9999999)
    assert low <= counted.std(ddof=0) <= high
    assert math.sqrt(variance.noise_interval()[0]) <= math.sqrt(variance.value + 1)


@pytest.mark.parametrize("bounds", [(0, 1e120), (0, 1e-120), (1e15, 1e15 + 4)])
def test_bounds_at_the_end_of_doubles_raise_nothing(tmp_path: Path, bounds: tuple[float, float]) -> None:
    found: Any = ask(tmp_path, table(users=200)).variance("x", bounds=bounds, epsilon=1)
    low, high = found.interval()
    assert 0 <= low <= high <= ((bounds[1] - bounds[0]) / 2) ** 2


def test_a_given_bound_is_about_the_middle_as_before(tmp_path: Path) -> None:
    session = ask(tmp_path, table())
    given = session.variance("x", bounds=(0, 1000), epsilon=EPSILON, bounding=eh.SmoothWeights(3))
    assert given.interval() == (0.0, 500.0**2)  # what it took is not known


def test_an_interval_lies_between_nothing_and_the_largest_variance() -> None:
    """Noise may put the squares above what bounds allow."""
    mean, far = Exact(2.0), Exact(60.0)
    assert VarianceInterval(mean, far, centre=2.0, most=6.25).at(0.95) == (6.25, 6.25)
    assert VarianceInterval(Exact(9.0), Exact(1.0), centre=2.0, most=6.25).at(0.95) == (0.0, 0.0)


def test_squares_that_fill_their_range_are_one_mean_and_skewed_ones_a_capped_total(tmp_path: Path) -> None:
    rows = table()
    skewed = ask(tmp_path, rows).variance("x", bounds=(0, 1000), epsilon=EPSILON)
    assert "squares: each user's total is capped at" in skewed.bounding.words
    assert "rows: " in skewed.bounding.words
    rows["x"] = 1000.0 * (rows.index % 2)
    (tmp_path / "votes").mkdir()
    votes = ask(tmp_path / "votes", rows).variance("x", bounds=(0, 1000), epsilon=EPSILON)
    assert "squares: all rows of a user are used" in votes.bounding.words
    assert "rows: " not in votes.bounding.words
    assert votes.value == pytest.approx(rows.x.var(ddof=0), rel=0.01)


def test_a_profile_that_a_mean_bought_serves_the_variance_once(tmp_path: Path) -> None:
    rows = table()
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path)
    session = eh.Session(eh.read(path, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=10 * EPSILON))
    session.mean("x", bounds=(0, 1000), epsilon=EPSILON)
    first, again = (session.variance("x", bounds=(0, 1000), epsilon=EPSILON) for _ in range(2))
    assert first.guarantee.earlier
    assert not again.guarantee.earlier


def test_few_people_are_named_once(tmp_path: Path) -> None:
    for name in ("variance", "std"):
        (tmp_path / name).mkdir()
        found: Any = getattr(ask(tmp_path / name, table(users=30)), name)("x", bounds=(0, 1000), epsilon=0.01)
        assert not found.usable
        assert found.why.count("too few people") <= 1
