"""PrivateSearchCV: what it finds, what it costs, what it refuses; and what GridSearchCV does to a ledger."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import evenhand as eh
from evenhand.guarantee import BudgetExceeded, EvenhandError, UsageError
from evenhand.learning import BoundedERM, PrivateSearchCV, WeightedERM
from evenhand.learning.selection.budget import price
from evenhand.ledger import Cost

BOX: dict[str, Any] = {"feature_bounds": (-1, 1)}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(1500), rng.integers(1, 4, size=1500))
    X = rng.uniform(-1, 1, size=(len(users), 2))
    return X, (rng.random(len(users)) < 1 / (1 + np.exp(-X @ [6.0, -4.0]))).astype(int), users


@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_finds_what_learns_and_pays_once(data: Any, tmp_path: Path, classes: int) -> None:
    """At ε = 20 the other candidate, which predicts nothing but 1/2, is chosen with probability below e^−100."""
    X, y, users = data
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=20, delta=1e-5)
    base = WeightedERM(steps=20, ledger=ledger, **BOX, classes=range(classes))
    search = PrivateSearchCV(base, {"regularisation": [1e6, 1e-3]}, 20, 1e-5).fit(X, y, users=users)
    assert search.best_params_ == {"regularisation": 1e-3}
    assert search.score(X, y) > 0.8
    assert search.predict_proba(X).shape == (len(X), classes)
    assert list(search.classes_) == list(range(classes))
    (event,) = ledger.events
    assert ledger.spent.epsilon == 20
    assert event.query["statistic"] == "search among 2 settings of WeightedERM"
    assert search.guarantee_.epsilon == 20
    with pytest.raises(BudgetExceeded):
        search.fit(X, y, users=users)


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_a_pure_search_on_a_frame(data: Any, protects: str) -> None:
    X, y, users = data
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(label=y, id=users)[:900]
    base = BoundedERM(protects=protects, rows_per_user=2, features=["a", "b"], **BOX)
    search = PrivateSearchCV(base, {"regularisation": [5.0, 1e5]}, 40, 0).fit(frame, "label", users="id")
    assert search.best_params_ == {"regularisation": 5.0}
    assert search.candidate_epsilon_ == [5.0, 5.0]
    assert Decimal(search.best_estimator_.epsilon) == 30
    assert list(search.best_estimator_.feature_names_in_) == ["a", "b"]


def test_without_refit_there_is_no_model(data: Any) -> None:
    X, y, users = data
    search = PrivateSearchCV(BoundedERM(rows_per_user=1, **BOX), {"regularisation": [1.0, 9.0]}, 1, 0, refit=False)
    search.fit(X[:50], y[:50], users=users[:50])
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    with pytest.raises(NotFittedError, match="refit=True"):
        search.predict(X)


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (PrivateSearchCV(LogisticRegression(), {"C": [1]}), "expected BoundedERM or WeightedERM"),
        (PrivateSearchCV(WeightedERM(**BOX), {"epsilon": [1, 2]}), "the search divides the budget"),
        (PrivateSearchCV(WeightedERM(**BOX), {"steps": [5]}, delta=0), "expected delta > 0"),
        (PrivateSearchCV(BoundedERM(**BOX), {"rows_per_user": [1]}), "purely private; give delta=0"),
        (PrivateSearchCV(WeightedERM(**BOX), {"steps": [5]}, scoring="roc_auc"), "area under a curve"),
        (PrivateSearchCV(WeightedERM(**BOX), {"steps": list(range(1, 2000))}), "at most 1000"),
        (PrivateSearchCV(WeightedERM(**BOX), {"steps": [0]}), "steps=0"),
    ],
)
def test_what_is_refused_is_refused_before_the_debit(
    search: PrivateSearchCV, words: str, data: Any, tmp_path: Path
) -> None:
    X, y, users = data
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=2, delta=1e-5)
    if "ledger" in search.estimator.get_params():
        search.estimator.set_params(ledger=ledger)
    with pytest.raises((UsageError, EvenhandError), match=words):
        search.fit(X, y, users=users)
    assert not ledger.events


def test_a_cost_of_another_kind_can_not_be_divided() -> None:
    with pytest.raises(UsageError, match="only costs with a ρ"):
        price(Cost.approximate(1, "1e-6"), pure=False)


def test_grid_search_of_scikit_learn_pays_for_every_fit(data: Any, tmp_path: Path) -> None:
    """Two settings, two parts of the rows and the last fit: five debits; with less, fits fail and nothing is released."""
    X, y, users = (part[:400] for part in data)
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=0.5)
    base = BoundedERM(0.1, rows_per_user=1, ledger=ledger, **BOX)
    assert clone(base).ledger is ledger
    with sklearn.config_context(enable_metadata_routing=True):
        base.set_fit_request(users=True)
        GridSearchCV(base, {"regularisation": [1, 2]}, cv=2).fit(X, y, users=users)
        assert len(ledger.events) == 5
        assert ledger.spent.epsilon == Decimal("0.5")
        with pytest.raises(ValueError, match="fits failed"):
            GridSearchCV(base, {"regularisation": [1]}, cv=2).fit(X, y, users=users)
    assert len(ledger.events) == 5
