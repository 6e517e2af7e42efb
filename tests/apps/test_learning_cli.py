"""``evenhand learn`` as a person and as a program would call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand.apps.learn_cli import app
from evenhand.guarantee import EvenhandError
from evenhand.ledger import Ledger

runner = CliRunner()


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    users = rng.integers(0, 200, size=1000)
    frame = pd.DataFrame({"id": users, "age": rng.uniform(18, 90, 1000), "price": rng.uniform(0, 50, 1000)})
    frame["kind"] = rng.choice(["book", "film"], size=1000)
    frame["rating"] = np.clip(3 + 0.05 * frame["age"] + rng.normal(size=1000), 1, 10)
    frame["bought"] = (frame["age"] > 50).astype(int)
    path = tmp_path_factory.mktemp("learn") / "reviews.csv"
    frame.to_csv(path, index=False)
    return path


def learn(*words: Any) -> Any:
    return runner.invoke(app, [str(word) for word in words])


def regression(reviews: Path, *more: Any) -> Any:
    return learn("regression", reviews, "--user", "id", "--label", "rating", "--features", "age,price",
                 "--label-bounds", "1:10", "--epsilon", "1", *more)  # fmt: skip


def test_a_regression_prints_its_card(reviews: Path) -> None:
    result = regression(reviews, "--noise-sd", "1.5")
    assert result.exit_code == 0, result.output
    for words in ("intercept", "age", "range covers", "Protects all labels"):
        assert words in result.output


def test_json_is_one_object_and_the_card_is_written(reviews: Path, tmp_path: Path) -> None:
    card = tmp_path / "model"
    ledger = tmp_path / "budget.db"
    result = regression(reviews, "--json", "--card", card, "--ledger", ledger, "--budget", 3, "--categories", "kind",
                        "--features", "age,kind")  # fmt: skip
    data = json.loads(result.stdout)
    assert [row["name"] for row in data["coefficients"]] == ["intercept", "age", "kind=film"]
    assert all(row["low"] < row["value"] < row["high"] for row in data["coefficients"])
    assert data["guarantee"]["protects"] == "labels"
    assert data["ledger"]["spent"]["epsilon"] == 1
    assert json.loads(card.with_suffix(".json").read_text()) == data
    page = card.with_suffix(".html").read_text()
    assert "kind=film" in page
    assert "Forecast" in page
    assert Ledger(ledger).events[0].query["statistic"] == "label-private regression"


@pytest.mark.parametrize("extra", [(), ("--delta", "1e-6", "--steps", "3"), ("--protects", "values")])
def test_a_logistic_model(reviews: Path, extra: tuple[str, ...]) -> None:
    result = learn("logistic", reviews, "--user", "id", "--label", "bought", "--features", "age,price",
                   "--feature-bounds", "age=18:90,price=0:50", "--epsilon", "2", "--json", *extra)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["coefficients"]) == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--label", "ratting"), 4, "Did you mean 'rating'"),
        (("--label-bounds", "10"), 2, "LOW:HIGH"),
        (("--label-bounds", "10:1"), 2, "reversed"),
        (("--epsilon", "zero"), 2, "epsilon"),
        (("--noise-sd", "much"), 2, "noise-sd"),
        (("--features", "age,kind"), 4, "kind"),
        (("--budget", "1"), 2, "--ledger"),
        (("--weighting", "best"), 2, "weighting"),
        (("--card", "no/such/place"), 2, "can't be written"),
    ],
)
def test_mistakes_are_explained(reviews: Path, words: tuple[str, ...], code: int, message: str) -> None:
    result = regression(reviews, *words)
    assert isinstance(result.exception, EvenhandError), result.output
    assert result.exception.exit_code == code
    assert message in str(result.exception)


def test_a_budget_is_refused_before_anything_is_learned(reviews: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "budget.db"
    assert regression(reviews, "--ledger", ledger).exit_code == 0
    assert regression(reviews, "--ledger", ledger).exception.exit_code == 3


def test_in_a_csv_no_label_may_move_a_feature(reviews: Path) -> None:
    """A delimiter in a label would move the columns after it, and features are taken for public."""
    frame = pd.read_csv(reviews)[["id", "rating", "age", "price"]]
    path = reviews.with_name("moved.csv")
    frame.to_csv(path, index=False)
    result = regression(path)
    assert isinstance(result.exception, EvenhandError)
    assert "stand after 'rating'" in str(result.exception)
    frame.to_parquet(path.with_suffix(".parquet"))
    assert regression(path.with_suffix(".parquet"), "--noise-sd", "1.5").exit_code == 0
