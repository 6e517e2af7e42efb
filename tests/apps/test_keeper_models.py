"""Models over a keeper's server: the fit that a table would give, paid once, as released numbers; nothing that runs is sent."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.learning import Ball, BoundedERM, Box, LabelPrivateRegression, Loss, PrivateSearchCV, WeightedERM
from evenhand.learning.model_card import card_text, model_card
from evenhand.noise import seam
from evenhand.service.accounts import Accounts, Role
from evenhand.service.client import Remote
from evenhand.service.fits import Fitted
from evenhand.service.stored import answer_text, shown
from keeper_process import Server

pytestmark = pytest.mark.xdist_group("keeper")

FILE = """
deadline = 1
model_deadline = 600

[populations.people]
ledger = "budget.db"
epsilon = 100
delta = 1e-2

[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
rows = 2000

[analysts.ann]
epsilon = 90
delta = 9e-3
per_question = 4
immediate = true

[analysts.bob]
epsilon = 90
delta = 9e-3
"""
# Noise that is none, in every thread: so that the fit of the server can be compared with one that is made here.
SILENT = (
    "from evenhand.noise import seam; seam.current = lambda: seam.silent; from evenhand.apps.cli import main; main()"
)
CLASSES = WeightedERM(
    epsilon="0.5", delta="1e-5", steps=5, classes=("no", "yes"), class_weight={"no": 1, "yes": 3}, features=["age", "hall"],
    feature_bounds=[(0, 90)], categories={"hall": ["art", "space"]}, constraint=Box(low=-3),
)  # fmt: skip
GIVEN: Any = {"label_bounds": np.array([0.0, 90.0]), "feature_bounds": (np.int64(0), 1)}  # as NumPy has them
NUMBERS = BoundedERM(
    epsilon=2, loss="squared", features=("x",), rows_per_user=3, regularisation=50.0, method="output", **GIVEN
)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(1)
    who = np.repeat(np.arange(300), 3)
    age, x = random.uniform(0, 90, len(who)).round(), random.uniform(0, 1, len(who))
    likes = np.where(random.uniform(0, 90, len(who)) < age, "yes", "no")
    hall = random.choice(["art", "space", "minerals"], len(who))
    return pd.DataFrame(
        {"u": [f"canary-7f3a-{user}" for user in who], "age": age, "x": x, "hall": hall, "likes": likes}
    )


@pytest.fixture(scope="module")
def place(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Accounts, str]]:
    """A server that was killed once, after the debit of a model that nobody had seen; and the number of that question."""
    folder = tmp_path_factory.mktemp("models")
    frame.to_parquet(folder / "visits.parquet")
    (folder / "keeper.toml").write_text(FILE)
    accounts, server = Accounts(folder / "accounts.db"), Server(folder, SILENT)
    bob = Remote(server.url, accounts.issue("bob", Role.ANALYST), None)
    asked = bob._pay(_written(CLASSES, "likes"))
    assert "answer" not in asked
    server.stop(signal.SIGKILL)
    (folder / "keeper.toml").write_text(FILE + "immediate = true\n")  # so that nobody has to wait
    server = Server(folder, SILENT)
    yield server, accounts, asked["id"]
    server.stop()
    for file in folder.iterdir():  # the ledger with questions and models, accounts, logs
        assert file.suffix == ".parquet" or b"canary-7f3a" not in file.read_bytes()


def remote(place: tuple[Server, Accounts, str], name: str) -> Remote:
    return eh.connect(place[0].url, token=place[1].issue(name, Role.ANALYST))


def _written(estimator: Any, label: str) -> dict[str, Any]:
    from evenhand.service import questions

    return questions.write("fit", (estimator, label), {})


def local(estimator: Any, frame: pd.DataFrame, label: str) -> Any:
    with seam.replaced(seam.silent):
        return estimator.fit(eh.read(frame, user="u", population="people"), label)


def same(one: Any, two: Any) -> None:
    """Whether two fitted estimators say the same, whatever they are asked."""
    fitted = {name for name in vars(one) if name.endswith("_")} - {"event_"}
    assert fitted == {name for name in vars(two) if name.endswith("_")}
    for name in fitted:
        left, right = getattr(one, name), getattr(two, name)
        if name in ("feature_map_", "forecast_", "spread_"):
            left, right = ({key: repr(part) for key, part in vars(each).items()} for each in (left, right))
        assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, name


def test_what_a_killed_server_left_is_fitted_once(place: tuple[Server, Accounts, str], frame: pd.DataFrame) -> None:
    """Debited once, answered by the server that came after it, with the model of the table and not of an empty one."""
    bob = remote(place, "bob")
    model = bob.answer(place[2])
    same(model, local(CLASSES, frame, "likes"))
    assert list(model.predict(frame)) == list(CLASSES.predict(frame))
    assert np.array_equal(model.predict_proba(frame), CLASSES.predict_proba(frame))
    assert [bob.answer(place[2]).event_, bob.budget()["yours"]["spent"]] == [
        model.event_, [{"epsilon": "0.5", "delta": "9e-6"}],
    ]  # fmt: skip
    assert model.event_ in card_text(model_card(model, "likes"))


def test_numbers_as_labels(place: tuple[Server, Accounts, str], frame: pd.DataFrame) -> None:
    ann = remote(place, "ann")
    assert ann.preview.fit(NUMBERS, "age").affordable
    assert not ann.preview.fit(BoundedERM(epsilon=5, feature_norm=1, features=["x"]), "age").affordable  # per question
    model = ann.fit(NUMBERS, "age")
    assert not hasattr(NUMBERS, "coef_")
    same(model, local(NUMBERS, frame, "age"))
    assert np.array_equal(model.predict(frame), NUMBERS.predict(frame))
    assert np.array_equal(model.interval(), NUMBERS.interval())
    assert model.guarantee_.epsilon == 2


def test_a_profile_that_was_bought_chooses(place: tuple[Server, Accounts, str]) -> None:
    ann = remote(place, "ann")
    asked = BoundedERM(epsilon=1, loss="squared", label_bounds=(0, 90), features=["x"], feature_bounds=(0, 1))
    assert ann.fit(asked, "age").guarantee_.earlier == ()
    profile = ann.profile(epsilon=1)
    assert [one.event for one in ann.fit(asked, "age").guarantee_.earlier] == [profile.event]


def test_a_search_over_a_server(place: tuple[Server, Accounts, str], frame: pd.DataFrame) -> None:
    """Without noise and at a large ε the choice is that of the table; coins are drawn by the engine, so models of candidates differ."""
    ann = remote(place, "ann")
    base = WeightedERM(steps=5, features=["age"], feature_bounds=(0, 90), classes=("no", "yes"))
    search = PrivateSearchCV(base, {"regularisation": [1e6, 1e-3]}, epsilon=4, delta=1e-4)
    assert ann.preview.fit(search, "likes").affordable
    before = ann.budget()["yours"]["spent"]
    found = ann.fit(search, "likes")
    assert found.best_params_ == {"regularisation": 1e-3}
    assert found.cv_results_ == {"params": [{"regularisation": 1e6}, {"regularisation": 1e-3}]}
    here = local(search, frame, "likes")
    same(found.best_estimator_, here.best_estimator_)
    assert list(found.predict(frame)) == list(here.predict(frame))
    assert (found.guarantee_.epsilon, found.guarantee_.delta) == (here.guarantee_.epsilon, here.guarantee_.delta)
    assert ann.budget()["yours"]["spent"] != before
    page: Any = shown(json.loads(answer_text(Fitted(_written(search, "likes"), here, "e"))))
    assert "chosen" in page.html()
    alone = PrivateSearchCV(base, {"regularisation": [1e6, 1e-3]}, epsilon=1, delta=1e-4, refit=False)
    assert not hasattr(ann.fit(alone, "likes"), "best_estimator_")


class Mine(Loss):
    """A loss of somebody's own."""

    classifies = True

    def slope(self, score: Any, label: Any) -> Any:
        return -label


REFUSED: list[tuple[Any, str]] = [
    (WeightedERM(loss=Mine(), feature_norm=1), "no code of an analyst's"),
    (WeightedERM(profile=eh.Profile.pareto(1.5, 10, 20), feature_norm=1), "profile= is the keeper's"),
    (WeightedERM(population="others", feature_norm=1), "population= is the keeper's"),
    (LabelPrivateRegression(label_bounds=(0, 1)), "LabelPrivateRegression can't be fitted by a server"),
    (type("WeightedERM", (WeightedERM,), {})(feature_norm=1), "can't be fitted by a server"),
    (PrivateSearchCV(WeightedERM(feature_norm=1), {"steps": list(range(1, 40))}), "at most 32 over a server"),
    (PrivateSearchCV(WeightedERM(feature_norm=1), {"population": ["x"]}), "that can be sent"),
    (PrivateSearchCV(WeightedERM(loss=Mine(), feature_norm=1), {"steps": [5]}), "no code of an analyst's"),
    (WeightedERM(features=["x"], classes=("no", "yes")), "neither feature_bounds= nor feature_norm="),
    (WeightedERM(features=["x"], feature_norm=1), "expected labels of the type of the classes"),
    (WeightedERM(feature_norm=1, features=["nothing"]), "nothing"),
]
FORGED: list[dict[str, Any]] = [
    {"estimator": "LinearModel"}, {"estimator": "WeightedERM", "loss": {"statistic": "count"}},
    {"estimator": "WeightedERM", "ledger": "x.db"}, {"estimator": "WeightedERM", "profile": {}},
    {"estimator": "WeightedERM", "constraint": {"Loss": {}}}, {"estimator": "WeightedERM", "constraint": {"Ball": {"radius": "x"}}},
    {"estimator": "WeightedERM", "classes": 3}, {"estimator": "WeightedERM", "class_weight": {"pairs": [[[], 1]]}},
    {"estimator": "PrivateSearchCV", "of": {"estimator": "WeightedERM"}},
    {"estimator": "WeightedERM", "steps": [5]}, {"estimator": ["WeightedERM"]}, {"estimator": "WeightedERM", "label": {"x": 1}},
]  # fmt: skip


def test_nothing_that_runs_is_sent(place: tuple[Server, Accounts, str]) -> None:
    ann = remote(place, "ann")
    before = ann.budget()
    for estimator, why in REFUSED:
        with pytest.raises(eh.EvenhandError, match=why):
            ann.fit(estimator, "likes")
    for forged in FORGED:
        asked = {"ask": "fit", "label": "likes", "epsilon": "1", "features": ["x"], "feature_norm": 1, **forged}
        with pytest.raises(eh.UsageError):
            ann._pay(asked)
    assert ann.budget() == before
    ball = WeightedERM(feature_norm=1, constraint=Ball(2.0), classes=(np.int64(0), 1), class_weight={0: 1.0, 1: 2.0})
    assert json.loads(json.dumps(_written(ball, "y"))) == {
        "ask": "fit", "estimator": "WeightedERM", "label": "y", "epsilon": 1.0, "feature_norm": 1,
        "constraint": {"Ball": {"radius": 2.0}}, "class_weight": {"pairs": [[0, 1.0], [1, 2.0]]},
    }  # fmt: skip


def test_the_file_says_when_models_appear(tmp_path: Path) -> None:
    from evenhand.service.config import load

    pd.DataFrame({"u": [1]}).to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "keeper.toml").write_text(FILE.replace("model_deadline = 600", "model_deadline = 0"))
    with pytest.raises(eh.UsageError, match="line 3: model_deadline = 0"):
        load(tmp_path / "keeper.toml")
