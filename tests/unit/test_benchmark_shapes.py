"""Generated shapes carry the published figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from benchmarks import shapes
from benchmarks.accuracy import own_table

import evenhand as eh


def test_movielens_20m() -> None:
    rows = shapes.movielens_20m()
    assert (len(rows), rows.sum(), rows.min(), rows.max()) == (138_493, 20_000_263, 20, 9254)
    assert tuple(np.sort(rows)[::-1][:10]) == shapes.MOVIELENS_TOP
    assert np.quantile(rows, [0.25, 0.5, 0.75]) == pytest.approx([35, 68, 155])
    assert (rows > 2000).sum() == 255
    assert rows.std() == pytest.approx(230.27, rel=0.03)


@pytest.mark.parametrize(
    ("make", "users", "median", "mean", "largest"),
    [
        (shapes.book_crossing, 105_283, 1, 10.9, 13_602),
        (shapes.shop, 23_570, 1, 3.0, 217),
        (shapes.course, 2_972, 22, 24, 92),
    ],
)
def test_other_published_shapes(make: object, users: int, median: float, mean: float, largest: int) -> None:
    rows = make()  # type: ignore[operator]
    assert len(rows) == users
    assert np.median(rows) == median
    assert rows.mean() == pytest.approx(mean, rel=0.03)
    assert rows.max() == largest


def test_rameshwar2024_counts() -> None:
    assert np.bincount(shapes.geometric())[[1, 2, 4, 8, 16, 32, 64]].tolist() == [64, 32, 16, 8, 4, 2, 1]
    assert shapes.extreme().tolist() == [1] * 100 + [10]


def test_user_means_tilt_with_activity() -> None:
    rng = np.random.default_rng(2)
    rows = shapes.lognormal(20_000, 50, 1.0, rng)
    means = shapes.user_means(rows, rng, tilt=0.4, noise=0.0)
    assert np.corrcoef(np.log(rows), means)[0, 1] == pytest.approx(0.4, abs=0.03)
    assert means.min() >= 0
    assert means.max() <= 1


def test_a_table_of_ones_own_is_compared_with_its_truth() -> None:
    """At ε = 1,000 nothing is noisy: wrong truths, or groups in another order, would show."""
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"user": rng.integers(0, 400, 3_000), "value": rng.gamma(4, 10, 3_000).clip(0, 200)})
    rows["group"] = np.minimum(rng.geometric(0.4, 3_000), 5)
    asked = dict(own_table.questions(rows, (0.0, 200.0)))
    for name in ("count", "quantiles", "count by group"):
        found = own_table.measure(asked[name], eh.read(rows, user="user"), 1000.0, 1)
        assert found["error"] < 0.02, name
        assert found["usable"] == 1, name
    assert asked["count"].best is not None
    assert asked["count"].best(1.0) == pytest.approx(2**0.5 * rows.user.value_counts().max(), rel=0.2)
