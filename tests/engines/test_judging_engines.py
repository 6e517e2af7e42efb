"""Searches and losses of models on tables: as in memory, and nobody both trains and judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.guarantee import UsageError
from evenhand.learning import BoundedERM, PrivateSearchCV, WeightedERM, model_loss
from evenhand.learning.data.row_sources import open_rows
from evenhand.learning.data.targets import Classes
from evenhand.learning.selection.train_test_split import train_test_split
from evenhand.noise import seam
from evenhand.tables import Secret

ENGINES = ["frame", "csv", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")])]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    users = np.repeat(np.arange(400), rng.integers(1, 4, size=400)).astype(float)
    X = rng.uniform(-1, 1, size=(len(users), 2))
    rows = pd.DataFrame(X, columns=["a", "b"]).assign(who=users, label=(X[:, 0] > 0).astype(float))
    rows.loc[::41, "who"], rows.loc[::37, "b"], rows.loc[::43, "label"] = np.nan, np.nan, np.nan
    return rows


@pytest.fixture(params=ENGINES)
def table(request: pytest.FixtureRequest, frame: pd.DataFrame, tmp_path: Path) -> eh.Table:
    if request.param == "frame":
        return eh.read(frame, user="who")
    path = tmp_path / ("rows.csv" if request.param == "csv" else "rows.parquet")
    if request.param == "csv":
        frame[["who", "a", "b", "label"]].to_csv(path, index=False)
        return eh.read(path, user="who")
    request.getfixturevalue("spark")
    frame.to_parquet(path)
    return eh.read(path, user="who", engine="spark")


def people(table: eh.Table) -> tuple[set[int], int]:
    """Who is in a part, by the values of their rows, and how many rows there are."""
    rows, _, _ = open_rows(table, "label", None, features=["a", "b"], targets=Classes((0, 1)), protects="presence")
    found = Secret.reveal(rows.fetched())
    return {hash(tuple(row)) for row in found.X}, len(found.targets)


def test_a_user_is_in_one_part_only(table: eh.Table, frame: pd.DataFrame) -> None:
    whole = frame.dropna()
    owner = {hash(tuple(row)): who for row, who in zip(whole[["a", "b"]].to_numpy(), whole["who"], strict=True)}
    with train_test_split(table, "label", None, ["a", "b"], None) as ((training, _, _), (judges, _, _)):
        (one, rows), (other, more) = people(training), people(judges)
    assert rows + more == len(whole)
    assert not {owner[row] for row in one} & {owner[row] for row in other}
    assert 20 < len({owner[row] for row in other}) < 200  # of 400, a fifth: 80, give or take 8


def test_a_search_on_a_table(table: eh.Table, frame: pd.DataFrame, tmp_path: Path) -> None:
    """At ε = 40 the candidate that predicts nothing but 1/2 is chosen with probability below e^−100."""
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=40, delta=1e-5)
    base = WeightedERM(steps=20, ledger=ledger, feature_bounds=(-1, 1))
    search = PrivateSearchCV(base, {"regularisation": [1e6, 1e-3]}, 40, 1e-5).fit(table, "label")
    assert search.best_params_ == {"regularisation": 1e-3}
    assert list(search.best_estimator_.feature_names_in_) == ["a", "b"]
    assert (search.predict(frame.dropna()) == frame.dropna()["label"]).mean() > 0.9
    assert len(ledger.events) == 1
    assert ledger.spent.epsilon == 40


def test_a_loss_on_a_table_is_that_in_memory(table: eh.Table, frame: pd.DataFrame) -> None:
    model: Any = BoundedERM(5.0, rows_per_user=1, regularisation=3.0, feature_bounds=(-1, 1), features=["a", "b"])
    with seam.replaced(seam.silent):
        model.fit(table, "label")
        there = model_loss(model, table, "label", epsilon=1)
        here = model_loss(model, frame, "label", users="who", epsilon=1)
    assert (there.value, there.gain.value, there.constant) == (here.value, here.gain.value, here.constant)
    assert there.guarantee is not None
    assert there.guarantee.epsilon == 1
    with pytest.raises(UsageError, match="rows in memory"):
        model_loss(model, table, "label", public=True)
