"""Learning where the data is: DuckDB and Spark hand the same integers to the noise as NumPy does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.guarantee import UsageError
from evenhand.learning import BoundedERM, WeightedERM
from evenhand.noise import seam
from evenhand.tables import Secret


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    users = rng.integers(0, 150, size=900) ** 2 // 150
    X = rng.normal(size=(900, 2))
    X[::40, 0], X[::41, 1], X[::42, 1], X[::43, 0] = np.nan, np.inf, -1e300, 5e-324
    label = (rng.random(900) < 0.5).astype(float)
    label[::37] = np.nan
    return pd.DataFrame(X, columns=["a", "b"]).assign(who=users, label=label)


ENGINES = [
    "frame",
    "csv",
    "postgres",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
]


@pytest.fixture(params=ENGINES)
def source(request: pytest.FixtureRequest, frame: pd.DataFrame, tmp_path: Path) -> tuple[Any, str | None]:
    if request.param == "frame":
        return frame, None
    if request.param == "postgres":
        backend = ibis.connect(request.getfixturevalue("postgres_url"))
        return backend.create_table("learning_rows", pa.Table.from_pandas(frame)), None
    path = tmp_path / ("rows.csv" if request.param == "csv" else "rows.parquet")
    if request.param == "csv":
        frame[["who", "a", "b", "label"]].to_csv(path, index=False)  # under values, who comes first
        return path, None
    request.getfixturevalue("spark")
    frame.to_parquet(path)
    return path, "spark"


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_engines_and_memory_agree_to_the_last_bit(source: Any, frame: pd.DataFrame, protects: str) -> None:
    table = eh.read(source[0], user="who", protects=protects, engine=source[1])
    for make in (
        lambda **options: WeightedERM(1.0, weight_bound=2.5, steps=2, feature_norm=2.0, **options),
        lambda **options: WeightedERM(1.0, clip="lipschitz", steps=2, feature_bounds=(-2, 2), **options),
        lambda **options: BoundedERM(1.0, rows_per_user=10**6, regularisation=5.0, feature_bounds=(-2, 2), **options),
    ):
        with seam.replaced(seam.silent):
            there = make().fit(table, "label")
            here = make(protects=protects).fit(frame[["a", "b"]], frame["label"], users=frame["who"])
        np.testing.assert_array_equal(there.coef_, here.coef_)
        assert there.intercept_ == here.intercept_
        assert there.guarantee_.relation.value == protects


def test_the_row_limit_holds_in_the_engine(frame: pd.DataFrame) -> None:
    from evenhand.learning.data.engine_rows import EngineRows
    from evenhand.learning.data.features import feature_map
    from evenhand.learning.data.targets import Classes

    rows = EngineRows(eh.read(frame, user="who"), "label", ["a", "b"], Classes((0, 1)))
    complete = frame[frame[["a", "b", "label"]].notna().all(axis=1)]
    for tau in (1, 3):
        with rows.limited(feature_map(2, 1.0, None, True), tau, Secret.reveal) as kept:
            assert kept.rows == np.minimum(complete.groupby("who").size(), tau).sum()


def test_labels_may_be_text_and_other_losses_work(frame: pd.DataFrame) -> None:
    words = frame.assign(label=np.where(frame["label"] == 1, "yes", "no"))
    with seam.replaced(seam.silent):
        there = BoundedERM(
            1.0, loss="huber-svm", classes=("no", "yes"), rows_per_user=1000, regularisation=5.0, feature_norm=1.0
        ).fit(eh.read(words, user="who"), "label")
        here = BoundedERM(
            1.0, loss="huber-svm", classes=("no", "yes"), rows_per_user=1000, regularisation=5.0, feature_norm=1.0
        ).fit(words[["a", "b"]], words["label"], users=words["who"])
        squared = BoundedERM(1.0, loss="squared", label_bounds=(0, 1), feature_norm=1.0).fit(
            eh.read(frame, user="who"), "label"
        )
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert np.isfinite(squared.coef_).all()


def test_an_empty_table_and_wrong_names(frame: pd.DataFrame) -> None:
    empty = eh.read(frame.iloc[:0], user="who")
    assert np.isfinite(BoundedERM(1.0, feature_norm=1.0).fit(empty, "label").coef_).all()
    assert np.isfinite(WeightedERM(1.0, feature_norm=1.0, steps=2).fit(empty, "label").coef_).all()
    table = eh.read(frame, user="who")
    with pytest.raises(eh.DataError, match="Did you mean 'label'"):
        BoundedERM(1.0, feature_norm=1.0).fit(table, "lable")
    with pytest.raises(UsageError, match="name of the label column"):
        BoundedERM(1.0, feature_norm=1.0).fit(table, frame["label"])
