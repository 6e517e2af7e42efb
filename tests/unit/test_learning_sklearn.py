"""Estimators used as scikit-learn's are: frames, pipelines, routing, shapes; and one ledger for arrays and tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import evenhand as eh
from evenhand.guarantee import DataError, EvenhandError, UsageError
from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, PrivateSearchCV, WeightedERM
from evenhand.learning.model_card import card_text, model_card
from evenhand.noise import seam

BOUNDS: dict[str, Any] = {"feature_bounds": (0, 1)}


def people(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"id": np.arange(rows) % 90, "a": rng.random(rows), "b": rng.random(rows)})
    return frame.assign(y=(frame.a > 0.5).astype(int), kind=np.where(frame.b > 0.5, "u", "v"))


@pytest.mark.parametrize(
    "model",
    [
        BoundedERM(50, **BOUNDS, features=["a", "b"]),
        WeightedERM(50, **BOUNDS, features=["b", "a"], steps=3),
        LabelPrivateRegression(50, label_bounds=(0, 1), features=["a", "kind"], categories=["kind"]),
        LabelPrivateRegression(50, label_bounds=(0, 1), categories=["kind"]),
    ],
)
def test_a_frame_of_the_fit_is_a_frame_to_predict_from(model: Any) -> None:
    frame = people()
    model.fit(frame, "y", users="id")
    expected = model.predict(frame)
    other_order = frame[["kind", "y", "b", "a", "id"]].assign(more="text")
    np.testing.assert_array_equal(model.predict(other_order), expected)
    with pytest.raises(DataError, match=r"'a'.*are missing"):
        model.predict(frame.drop(columns="a"))


def test_shapes_and_methods_are_those_of_scikit_learn() -> None:
    frame = people()
    for make in (BoundedERM, WeightedERM):
        classifier = make(50, **BOUNDS, features=["a", "b"]).fit(frame, "y", users="id")
        assert (classifier.coef_.shape, classifier.intercept_.shape) == ((1, 2), (1,))
        assert classifier.score(frame, "y") == np.mean(classifier.predict(frame) == frame.y)
        number = make(50, **BOUNDS, loss="squared", label_bounds=(0, 1), features=["a", "b"]).fit(
            frame, "y", users="id"
        )
        assert number.coef_.shape == (2,)
        assert np.ndim(number.intercept_) == 0
        assert np.array_equal(classifier.predict_log_proba(frame), np.log(classifier.predict_proba(frame)))
        for name in ("predict_proba", "predict_log_proba"):
            assert hasattr(make(), name)
            assert not hasattr(make(loss="huber-svm"), name)
    with pytest.raises(DataError, match="no column 'z'"):
        classifier.score(frame, "z")


@pytest.mark.parametrize("slope", [0.0, 5.0])
def test_a_regression_says_whether_it_beats_a_constant(slope: float) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=2000), "id": np.arange(2000)})
    frame["y"] = slope * frame["x"] + rng.normal(size=2000)
    model = LabelPrivateRegression(1.0, label_bounds=(-20, 20), noise_sd=1.0)
    with seam.replaced(seam.silent):
        model.fit(frame, "y", users="id")
    assert model.usable_ == (slope > 0)
    assert ("not likely to beat" in card_text(model_card(model))) == (slope == 0)
    assert model.score(frame, "y") == model.score(frame[["x"]], frame["y"])


def test_users_are_routed_through_pipelines_and_cross_validation() -> None:
    """As docs/learning/scikit-learn.md says."""
    frame = people()
    X, y, users = frame[["a", "b"]].to_numpy(), frame.y.to_numpy(), frame.id.to_numpy()
    with config_context(enable_metadata_routing=True):
        model = WeightedERM(50, **BOUNDS, steps=20).set_fit_request(users=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        assert pipeline.fit(X, y, users=users).score(X, y) > 0.8
        folds = GroupKFold(3)
        scores = cross_val_score(pipeline, X, y, cv=folds, params={"users": users, "groups": users})
    assert len(scores) == 3
    assert np.isfinite(scores).all()
    with pytest.raises(UsageError, match="users= is missing"):
        pipeline.fit(X, y)


def test_arrays_and_tables_of_one_population_share_a_ledger(tmp_path: Path) -> None:
    frame = people()[["id", "a", "b", "y"]]
    X, y = frame[["a", "b"]].to_numpy(), frame.y.to_numpy()
    ledger = eh.Ledger(tmp_path / "people.db", epsilon=100, delta=1e-5)
    eh.Session(eh.read(frame, "id", population="patients"), ledger).count(epsilon=1)
    for make in (BoundedERM, WeightedERM):
        make(1, **BOUNDS, population="patients", ledger=ledger).fit(X, y, users=frame.id.to_numpy())
    choice = HypothesisSelection([lambda rows: rows[:, 0] > 0.5], 1, population="patients", ledger=ledger)
    choice.fit(X, y, users=frame.id.to_numpy())
    assert choice.guarantee_.unit == ("patients",)
    assert float(ledger.spent.epsilon) == pytest.approx(4, abs=0.2)
    with pytest.raises(EvenhandError):
        BoundedERM(1, **BOUNDS, ledger=ledger).fit(X, y, users=frame.id.to_numpy())
    with pytest.raises(UsageError, match=r"eh\.read"):
        BoundedERM(1, **BOUNDS, population="others").fit(eh.read(frame, "id"), "y")


@pytest.mark.parametrize("rows_per_user", [2, "auto"])
@pytest.mark.parametrize("protects", ["presence", "values"])
def test_hypotheses_are_chosen_from_tables_as_from_frames(rows_per_user: Any, protects: str) -> None:
    frame = people()[["id", "a", "b", "y"]]
    frame.loc[:20, "b"] = np.nan
    hypotheses = [lambda rows: rows[:, 1] > 0.5, lambda rows: rows[:, 0] > 0.5, lambda rows: rows[:, 0] < 0.5]
    table = eh.read(frame, "id", protects=protects)
    with seam.replaced(seam.silent):
        choice = HypothesisSelection(hypotheses, 50, rows_per_user=rows_per_user, protects=protects)
        assert choice.fit(frame, "y", users="id").best_index_ == 1
        assert choice.fit(table, "y").best_index_ == 1
    assert choice.score(frame, "y") == 1.0
    assert choice.classes_.tolist() == [0, 1]
    assert choice.guarantee_.user == ("id",)


def test_a_fit_without_a_ledger_says_that_nothing_is_accounted(tmp_path: Path) -> None:
    frame = people()
    ledger = eh.Ledger(tmp_path / "people.db", epsilon=1, delta=1e-5)
    model = BoundedERM("0.25", **BOUNDS, features=["a", "b"])
    assert "Nothing is accounted" in card_text(model_card(model.fit(frame, "y", users="id")))
    written = card_text(model_card(model.set_params(ledger=ledger).fit(frame, "y", users="id")))
    assert "Nothing is accounted" not in written
    assert "ε = 0.75, δ = 1e-5 left of ε = 1, δ = 1e-5" in written


@pytest.mark.parametrize("make", [partial(BoundedERM, rows_per_user=9, regularisation=30.0), WeightedERM])
@pytest.mark.parametrize("protects", ["presence", "values"])
def test_a_label_that_is_neither_class_counts_as_missing(make: Any, protects: str) -> None:
    """In arrays and in tables: under presence the row is dropped, under values the label is the first class."""
    frame = people(120)[["id", "a", "b", "y"]]
    odd = frame.assign(y=np.where(frame.index < 20, 7, frame.y))
    plain = frame.iloc[20:] if protects == "presence" else frame.assign(y=np.where(frame.index < 20, 0, frame.y))
    model = make(1, **BOUNDS, protects=protects)
    with seam.replaced(seam.silent):
        expected = model.fit(plain, "y", users="id").coef_
        np.testing.assert_allclose(model.fit(odd, "y", users="id").coef_, expected)
        np.testing.assert_allclose(model.fit(eh.read(odd, "id", protects=protects), "y").coef_, expected)


def test_labels_of_another_type_than_the_classes_are_refused() -> None:
    frame = people(120)[["id", "a", "b", "y"]]
    with pytest.raises(UsageError, match="y holds <U1"):
        BoundedERM(1, **BOUNDS).fit(frame[["a", "b"]], frame.y.to_numpy().astype("U1"), users=frame.id)
    for data in (frame, eh.read(frame, "id")):
        users = {} if isinstance(data, eh.Table) else {"users": "id"}
        with pytest.raises(UsageError, match="y holds int64, but classes="):
            BoundedERM(1, **BOUNDS, classes=("no", "yes")).fit(data, "y", **users)


def test_a_delta_that_promises_nothing_is_refused() -> None:
    frame = people(120)
    with pytest.raises(UsageError, match="everything about somebody"):
        WeightedERM(1, 0.01, **BOUNDS).fit(frame[["a"]], frame.y, users=frame.id)
    with pytest.raises(UsageError, match="everything about somebody"):
        PrivateSearchCV(WeightedERM(**BOUNDS), {"steps": [3]}, 1, 0.01).fit(frame[["a"]], frame.y, users=frame.id)


@pytest.mark.parametrize("make", [partial(BoundedERM, rows_per_user=9, regularisation=30.0), WeightedERM])
@pytest.mark.parametrize("protects", ["presence", "values"])
def test_declared_categories_are_0_and_1_in_arrays_frames_and_tables(make: Any, protects: str) -> None:
    frame = people(120)
    frame.loc[:5, "kind"] = [None, "w", "", "U", "u ", "v"]
    by_hand = frame.assign(u=(frame.kind == "u") * 1.0, v=(frame.kind == "v") * 1.0)
    levels = {"kind": ["u", "v"]}
    model = make(1, feature_bounds=[(0, 1), (0, 2)], protects=protects)
    with seam.replaced(seam.silent):
        model.set_params(feature_bounds=[(0, 1), (0, 2), (0, 1), (0, 1)])
        hand = model.fit(by_hand[["a", "b", "u", "v"]].to_numpy(), frame.y, users=frame.id)
        expected = hand.coef_
        model.set_params(feature_bounds={"b": (0, 2), "a": (0, 1)}, features=["a", "b", "kind"], categories=levels)
        np.testing.assert_allclose(model.fit(frame, "y", users="id").coef_, expected)
        predicted = model.predict(frame)
        assert list(model.feature_names_in_) == ["a", "b", "kind=u", "kind=v"]
        np.testing.assert_allclose(model.fit(eh.read(frame, "id", protects=protects), "y").coef_, expected)
        np.testing.assert_array_equal(model.predict(frame), predicted)
        model.set_params(features=None, categories={2: ["u", "v"]}, feature_bounds={0: (0, 1), 1: (0, 2)})
        array = frame[["a", "b", "kind"]].to_numpy(dtype=object)
        np.testing.assert_allclose(model.fit(array, frame.y, users=frame.id).coef_, expected)
        np.testing.assert_array_equal(model.predict(array), predicted)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"a": (0, 1)}, r"nothing about the features \['b'\]"),
        ({"a": (0, 1), "b": (0, 2), "kind": (0, 1)}, r"\['kind'\], which are categories"),
        ({"a": (0, 1), "bb": (0, 2)}, "'bb', which is not a feature.*'b'"),
    ],
)
def test_bounds_by_name_that_do_not_fit_the_columns_are_refused(bounds: Any, said: str) -> None:
    model = WeightedERM(1, feature_bounds=bounds, features=["a", "b", "kind"], categories={"kind": ["u", "v"]})
    with pytest.raises(EvenhandError, match=said):
        model.fit(people(120), "y", users="id")


@pytest.mark.parametrize("levels", [[], "red", ["red", "red"], [None, "red"], [1, 2]])
def test_levels_that_can_not_be_are_refused(levels: Any) -> None:
    frame = people(120)[["id", "a", "kind", "y"]].astype({"kind": pd.StringDtype()})
    for data in (eh.read(frame, "id"),):
        with pytest.raises(UsageError, match="levels"):
            BoundedERM(1, **BOUNDS, categories={"kind": levels}).fit(data, "y")


def test_a_sparse_matrix_is_as_good_as_a_dense_one() -> None:
    frame = people(120)
    dense = np.where(frame[["a", "b"]] > 0.5, frame[["a", "b"]], 0.0)
    model = WeightedERM(1, **BOUNDS)
    with seam.replaced(seam.silent):
        expected = model.fit(dense, frame.y, users=frame.id).coef_
        np.testing.assert_array_equal(model.fit(sparse.csr_array(dense), frame.y, users=frame.id).coef_, expected)
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(dense)), model.predict(dense))


@pytest.mark.parametrize(
    "model", [WeightedERM(1, **BOUNDS, clip=1.0), BoundedERM(1, **BOUNDS, rows_per_user=9, regularisation=30.0)]
)
def test_class_weights_move_the_line_and_not_the_clamp(model: Any) -> None:
    frame = people()
    with seam.replaced(seam.silent):
        plain = model.fit(frame[["a", "b"]], frame.y, users=frame.id)
        expected, scale = plain.coef_, plain.noise_scale_
        same = model.set_params(class_weight={0: 5, 1: 5}).fit(frame[["a", "b"]], frame.y, users=frame.id)
        np.testing.assert_array_equal(same.coef_, expected)
        before = np.mean(same.predict(frame[["a", "b"]]))
        heavy = model.set_params(class_weight={0: 1, 1: 20}).fit(frame[["a", "b"]], frame.y, users=frame.id)
    assert np.mean(heavy.predict(frame[["a", "b"]])) > before
    assert heavy.noise_scale_ == scale
    for wrong in ("balanced", {0: 1}, {0: 1, 1: -1}):
        with pytest.raises(UsageError, match="class_weight"):
            model.set_params(class_weight=wrong).fit(frame[["a", "b"]], frame.y, users=frame.id)
