"""What a fit does is an output too: value or error, words, warnings and debit are the same on neighbouring data.

One user's rows take every value that has broken a conversion before, in arrays of objects and of doubles, frames, lists and
engines, for every estimator under every relation that it knows. NumPy is asked to raise on every floating-point event, as a
program may.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array

import evenhand as eh
from evenhand.guarantee import UsageError
from evenhand.learning import Ball, BoundedERM, HypothesisSelection, LabelPrivateRegression, Loss, WeightedERM

DOUBLES = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 1e-200, 7.0]
OBJECTS: list[Any] = [
    *DOUBLES, None, pd.NA, pd.NaT, "SECRET", "", "1e999", "7", 10**400, -(10**400), Fraction(10**400, 3), Decimal("sNaN"),
    Decimal("-Infinity"), Decimal("1e9999"), 1 + 2j, True, b"bytes", [1, 2], (1, [2]), {"a": 1}, object(), np.float32(3),
    np.longdouble("1e4000"), np.array([1, 2]), np.datetime64("NaT"), np.array(5),
]  # fmt: skip


@dataclass(frozen=True)
class Data:
    """Rows of objects; the last two belong to the user in question."""

    X: list[list[Any]]
    y: list[Any]
    users: list[Any]

    def without(self) -> Data:
        return Data(self.X[:-2], self.y[:-2], self.users[:-2])


ROWS = 24
CROWD = Data(
    [[(7 * row % 13) / 13, (5 * row % 11) / 11] for row in range(ROWS)],
    [row % 3 % 2 for row in range(ROWS)],
    [f"user {row // 2}" for row in range(ROWS)],
)


def changed(data: Data, feature: Any = 0.5, label: Any = 1, user: Any = None) -> Data:
    X = [list(row) for row in data.X]
    X[-1][0] = feature
    ids = data.users if user is None else [*data.users[:-1], user]
    return Data(X, [*data.y[:-1], label], ids)


def column(values: list[Any]) -> np.ndarray:
    result = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        result[place] = value
    return result


def of_objects(data: Data) -> dict[str, Any]:
    X = np.empty((len(data.X), 2), dtype=object)
    for place, row in enumerate(data.X):
        X[place, 0], X[place, 1] = row
    return {"X": X, "y": column(data.y), "users": column(data.users)}


def of_lists(data: Data) -> dict[str, Any]:
    return of_objects(data) | {"y": data.y, "users": data.users}


def of_frame(data: Data) -> dict[str, Any]:
    given = of_objects(data)
    frame = pd.DataFrame({"a": pd.Series(given["X"][:, 0], dtype=object), "b": given["X"][:, 1].astype(float)})
    frame["label"], frame["who"] = pd.Series(given["y"], dtype=object), pd.Series(given["users"], dtype=object)
    return {"X": frame, "y": "label", "users": "who"}


def of_doubles(data: Data) -> dict[str, Any]:
    return of_objects(data) | {
        "X": np.array(data.X, dtype=np.float64).reshape(-1, 2),
        "y": np.array(data.y, dtype=np.float64),
    }


def of_nullable(data: Data) -> dict[str, Any]:
    """Typed columns that can hold nulls: whether one does must not change anything."""
    given = of_doubles(data)
    gaps = pd.array([None if value != value else value for value in given["X"][:, 0]], dtype="Float64")
    labels = pd.array([int(v) if np.isfinite(v) and abs(v) < 9 else None for v in given["y"]], dtype="Int64")
    frame = pd.DataFrame({"a": gaps, "b": given["X"][:, 1], "label": labels})
    return {"X": frame.assign(who=pd.array(data.users, dtype="string")), "y": "label", "users": "who"}


def of_polars(data: Data) -> dict[str, Any]:
    given = of_nullable(data)["X"]
    frame = pl.DataFrame({name: pl.Series([None if v is pd.NA else v for v in given[name]], dtype=kind)
                          for name, kind in (("a", pl.Float64), ("b", pl.Float64), ("label", pl.Int64), ("who", pl.String))})  # fmt: skip
    return {"X": frame, "y": "label", "users": "who"}


def outcome(estimator: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    """Everything that a caller sees except for the released numbers themselves."""
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="raise"):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what earlier tests left to the garbage collector
        warnings.simplefilter("ignore", ResourceWarning)  # whatever the garbage collector happens to find now
        try:
            fitted = estimator.fit(**given)
            shown: Any = sorted((name, np.shape(value)) for name, value in vars(fitted).items() if name.endswith("_"))
        except Exception as error:
            shown = (type(error), str(error))
    return shown, sorted({(one.category.__name__, str(one.message)) for one in seen})


def stubborn(X: Any) -> Any:
    if X[0, 0] > 0.6:
        raise RuntimeError(f"can't take {X}")
    return [None, X, X.mean() > X[0, 0], "word"][int(10 * abs(X[0, 1])) % 4]


def hypotheses() -> list[Any]:
    X, y = np.array(CROWD.X), np.array(CROWD.y)
    own = BoundedERM(1, rows_per_user=1, regularisation=1.0, feature_norm=1.0).fit(X, y, users=range(len(y)))
    return [
        LogisticRegression().fit(X, y),
        DecisionTreeClassifier().fit(X, y),
        LinearRegression().fit(X, y),
        own,
        stubborn,
    ]


class Step(Loss):
    """Neither smooth nor convex."""

    def slope(self, score: np.ndarray, label: np.ndarray) -> np.ndarray:
        return np.where(np.round(20 * score) % 3 > label, 1.0, -2.0)


MODELS = hypotheses()
SMALL: dict[str, Any] = {"rows_per_user": 1, "regularisation": 3e-6}
LOSSES: list[dict[str, Any]] = [{}, {"loss": "huber-svm"}, {"loss": "squared", "label_bounds": (0, 1)}]
PRIVATE: dict[str, Callable[..., Any]] = {
    "bounded": lambda **o: BoundedERM(1, rows_per_user=2, regularisation=20.0, method="objective", **o, feature_norm=1.0),
    "bounded, output": lambda **o: BoundedERM(1, rows_per_user=2, regularisation=1.0, method="output", feature_norm=1.0,
                                               class_weight={0: 1, 1: 9}, **o),
    "bounded, hardly regularised": lambda **o: BoundedERM(1, **SMALL, **LOSSES[1], **o, feature_norm=1.0),
    "bounded, tiny features": lambda **o: BoundedERM(1e-3, **LOSSES[2], rows_per_user=2, feature_bounds=(0, 1e-140), **o),
    "bounded, auto": lambda **o: BoundedERM(0.01, **LOSSES[2], **o, feature_norm=1.0),
    "weighted": lambda **o: WeightedERM(1, steps=3, weight_bound=1, feature_norm=1.0, **LOSSES[1], **o),
    "weighted, tiny features": lambda **o: WeightedERM(0.01, steps=2, feature_norm=1e-100, classes=(0, 1, 7), **o),
    "weighted, a loss of one's own": lambda **o: WeightedERM(1, steps=2, feature_norm=1.0, loss=Step(), label_bounds=(0, 1),
                                                             constraint=Ball(0.1), **o),
    "weighted, as published": lambda **o: WeightedERM(1, steps=2, clip="lipschitz", feature_norm=1.0, **LOSSES[2], **o),
    "selection": lambda **o: HypothesisSelection(MODELS, 1, rows_per_user=1, **o),
    "selection, auto": lambda **o: HypothesisSelection(MODELS, 0.01, loss="squared", label_bounds=(0, 1), **o),
}  # fmt: skip
LABELS: dict[str, Callable[..., Any]] = {
    "regression": lambda: LabelPrivateRegression(1, label_bounds=(0, 1), weighting="all"),
    "regression, private σ": lambda: LabelPrivateRegression(
        1, label_bounds=(0, 1), noise_sd="private", weighting="all", fit_intercept=False
    ),
}


def neighbours(relation: str, values: list[Any], ids: bool = False) -> Iterator[Data]:
    """The crowd with one user's rows changed; under presence that user's id too if asked for, or the user gone."""
    for value in values:
        if relation != "labels":
            yield changed(CROWD, feature=value)
        yield changed(CROWD, label=value)
        if relation == "presence" and ids:
            yield changed(CROWD, feature=value, label=value, user=value)
    if relation == "presence":
        yield CROWD.without()


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("name", PRIVATE)
def test_private_rows(name: str, relation: str) -> None:
    for hold, values in ((of_objects, OBJECTS), (of_lists, OBJECTS[9:14]), (of_frame, OBJECTS[9:14]),
                         (of_doubles, DOUBLES), (of_nullable, DOUBLES[:2]), (of_polars, DOUBLES[:2])):  # fmt: skip
        usual = outcome(PRIVATE[name](protects=relation), hold(CROWD))
        assert isinstance(usual[0], list), usual
        assert not usual[1], usual
        for other in neighbours(relation, values, ids=hold in (of_objects, of_lists, of_frame)):
            assert outcome(PRIVATE[name](protects=relation), hold(other)) == usual, other


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_private_categories(relation: str) -> None:
    levels = {0: [0.0, "SECRET", True], 1: [7, "7", "1e999"]}
    made = partial(
        BoundedERM, 1, rows_per_user=2, regularisation=1.0, feature_norm=1.0, categories=levels, protects=relation
    )
    usual = outcome(made(), of_objects(CROWD))
    assert isinstance(usual[0], list), usual
    for other in neighbours(relation, OBJECTS, ids=False):
        assert outcome(made(), of_objects(other)) == usual, other


@pytest.mark.parametrize("name", PRIVATE)
def test_nobody_is_a_neighbour_of_one_user(name: str) -> None:
    alone = Data(CROWD.X[-2:], CROWD.y[-2:], CROWD.users[-2:])
    for hold in (of_objects, of_doubles, of_frame):
        assert outcome(PRIVATE[name](), hold(alone)) == outcome(PRIVATE[name](), hold(alone.without()))


@pytest.mark.parametrize("name", LABELS)
def test_private_labels(name: str) -> None:
    for hold, values in ((of_objects, OBJECTS), (of_lists, OBJECTS), (of_doubles, DOUBLES), (of_nullable, DOUBLES[:2])):
        usual = outcome(LABELS[name](), hold(CROWD))
        assert isinstance(usual[0], list), usual
        for other in neighbours("labels", values):
            assert outcome(LABELS[name](), hold(other)) == usual, other


@pytest.mark.parametrize("wrong", ["one dimension", "complex", "text", "lists", "arrow", "short", "no users"])
def test_errors_about_types_and_shapes_are_the_same_whatever_the_values(wrong: str) -> None:
    """Some of scikit-learn's own messages print the array; numbers of rows are secret too."""

    def given(data: Data) -> dict[str, Any]:
        whole = of_doubles(data)
        X = whole["X"]
        bad: dict[str, dict[str, Any]] = {
            "one dimension": {"X": X[:, 0]},
            "complex": {"X": X.astype(complex)},
            "text": {"X": X.astype(str)},
            "lists": {"X": data.X},
            "arrow": {
                "X": pa.table({"a": X[:, 0], "label": whole["y"], "who": data.users}),
                "y": "label",
                "users": "who",
            },
            "short": {"y": whole["y"][:5]},
            "no users": {"users": whole["users"][:5]},
        }
        return whole | bad[wrong]

    for make in (PRIVATE["bounded"], PRIVATE["weighted"], PRIVATE["selection"]):
        usual = outcome(make(), given(CROWD))
        assert isinstance(usual[0], tuple), usual
        assert "user 11" not in usual[0][1]
        assert {outcome(make(), given(other)) == usual for other in neighbours("presence", [0.123, 7.0])} == {True}


@pytest.mark.parametrize("relation", ["presence", "values", "labels"])
def test_engines(relation: str, tmp_path: Path) -> None:
    """Also what was debited, and that labels are read after the debit."""
    gc.collect()  # what other tests left behind, such as connections, is not about this one
    made: dict[str, Callable[..., Any]] = {name: PRIVATE[name] for name in ("bounded, tiny features", "weighted")}
    if relation == "labels":
        made = {
            "regression": lambda ledger: LabelPrivateRegression(1, label_bounds=(0, 1), weighting="all", ledger=ledger)
        }
    for name, make in made.items():
        seen = set()
        odd = [(np.nan, 1e308), (-np.inf, np.nan), (5e-324, 5e-324)]
        options = [changed(CROWD, 0.5 if relation == "labels" else feature, label) for feature, label in odd]
        for place, data in enumerate([CROWD, *options, *([CROWD.without()] if relation == "presence" else [])]):
            given = of_doubles(data)
            frame = pd.DataFrame(given["X"], columns=["a", "b"]).assign(label=given["y"], who=data.users)
            ledger = eh.Ledger(tmp_path / f"{name} {place}.db", epsilon=5, delta=1e-3)
            table = eh.read(frame, user="who", protects=relation)
            shown = outcome(make(ledger=ledger), {"X": table, "y": "label"})
            seen.add((str(shown), ledger.spent, len(ledger.events)))
        assert len(seen) == 1, (name, seen)
        assert "Error" not in str(seen), seen


def test_labels_wait_for_the_debit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": np.arange(20.0), "label": np.arange(20) % 2, "who": np.arange(20)})
    table = eh.read(frame, user="who", protects="labels")
    fetched: list[Any] = []
    real = type(table.engine).fetch

    def fetch(engine: Any, expression: Any) -> Any:
        fetched.append(tuple(expression.columns))
        return real(engine, expression)

    monkeypatch.setattr(type(table.engine), "fetch", fetch)
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=1)
    model = LabelPrivateRegression(1, label_bounds=(0, 1), ledger=ledger)
    model.fit(table, "label")
    assert any("label_value" in columns for columns in fetched)
    fetched.clear()
    with pytest.raises(eh.BudgetExceeded):
        model.fit(table, "label")
    assert fetched
    assert not any("label_value" in columns for columns in fetched)


def test_labels_of_another_reading_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source whose users change between the readings: weights would meet the labels of somebody else."""
    frame = pd.DataFrame({"a": np.arange(20.0), "label": np.arange(20) % 2, "who": np.arange(20)})
    table = eh.read(frame, user="who", protects="labels")
    other = eh.read(frame.assign(who=frame["who"] // 2), user="who", protects="labels")
    real, tables = type(table.engine).fetch, iter([table, other])

    def fetch(self: Any, expression: Any) -> Any:
        source = next(tables)
        return real(self, expression.op().replace({table.expression.op(): source.expression.op()}).to_expr())

    monkeypatch.setattr(type(table.engine), "fetch", fetch)
    with pytest.raises(eh.DataError, match="changed while"):
        LabelPrivateRegression(1, label_bounds=(0, 1)).fit(table, "label")


class Strict(BoundedERM):
    """Broken: checks its features as scikit-learn does."""

    def fit(self, X: Any, y: Any = None, users: Any = None) -> Any:
        check_array(X, dtype=np.float64)
        return super().fit(X, y, users=users)


class Loud(BoundedERM):
    """Broken: warns where a feature is not finite."""

    def fit(self, X: Any, y: Any = None, users: Any = None) -> Any:
        if not np.isfinite(X.astype(float)).all():
            warnings.warn("odd", stacklevel=1)
        return super().fit(X, y, users=users)


@pytest.mark.parametrize("broken", [Strict, Loud])
def test_the_suite_is_not_blind(broken: type[BoundedERM]) -> None:
    model = broken(1, rows_per_user=2, regularisation=1.0)
    assert outcome(model, of_doubles(CROWD)) != outcome(model, of_doubles(changed(CROWD, feature=np.inf)))


@pytest.mark.parametrize("regularisation", [1e-9, 1e-20, 1e20])
def test_regularisation_that_no_table_allows_is_refused_for_every_table(regularisation: float, tmp_path: Path) -> None:
    on_a_line = replace(CROWD, X=[[0.5, 0.5]] * ROWS)
    for data in (on_a_line, changed(on_a_line, feature=-0.5), CROWD.without()):
        ledger = eh.Ledger(tmp_path / f"{id(data)}.db", epsilon=1)
        model = BoundedERM(
            1, rows_per_user=1, regularisation=regularisation, fit_intercept=False, ledger=ledger, feature_norm=1.0
        )
        with pytest.raises(UsageError, match="too extreme"):
            model.fit(**of_doubles(data))
        assert ledger.spent.epsilon == 0
