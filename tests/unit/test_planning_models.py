"""plan("erm"): a forecast that moves as it should, close to what was measured, and words that say what it would take."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand as eh
from evenhand.guarantee import UsageError
from evenhand.planning import ModelPlan

ONES = eh.Profile.counts([1] * 3000)


def planned(users: float = 1.0, epsilon: float = 1.0, dimension: int = 10, **more: object) -> ModelPlan:
    return eh.plan("erm", ONES.scaled(users), epsilon, dimension=dimension, delta=1e-6, **more)  # type: ignore[call-overload]


def test_noise_falls_with_people_and_with_epsilon() -> None:
    plan = planned()
    assert planned(users=2).excess == pytest.approx(plan.excess / 4)
    assert planned(epsilon=0.5).excess == pytest.approx(plan.excess * 4, rel=0.1)
    assert plan.at(0.5).excess == planned(epsilon=0.5).excess
    assert planned(protects="values").excess == pytest.approx(plan.excess * 4)
    assert planned(dimension=40).excess == pytest.approx(plan.excess * 16, rel=0.6)
    assert plan.epsilon_for(plan.excess) == pytest.approx(1.0)


def test_weights_of_busy_users_help() -> None:
    assert eh.plan("erm", eh.Profile.counts([10] * 3000), 1.0, dimension=10, delta=1e-6).excess < planned().excess / 5


@pytest.mark.parametrize(
    ("counts", "dimension", "epsilon", "measured"),
    [
        # Clipped gradient descent on generated tables (16 November 2026): users by rows, and the excess loss.
        ({1: 1320, 2: 340, 4: 200, 8: 90, 20: 50}, 5, 1.0, 0.0013),
        ({1: 1320, 2: 340, 4: 200, 8: 90, 20: 50}, 20, 1.0, 0.0088),
        ({1: 1320, 2: 340, 4: 200, 8: 90, 20: 50}, 50, 1.0, 0.10),
        ({1: 5280, 2: 1360, 4: 800, 8: 360, 20: 200}, 50, 1.0, 0.0045),
    ],
)
def test_the_forecast_is_near_what_was_measured(
    counts: dict[int, int], dimension: int, epsilon: float, measured: float
) -> None:
    profile = eh.Profile.counts([rows for rows, users in counts.items() for _ in range(users)])
    assert measured / 3 < eh.plan("erm", profile, epsilon, dimension=dimension, delta=1e-6).excess < measured * 3


def test_the_verdict_says_what_it_would_take() -> None:
    good, bad = planned(users=10), planned(users=0.1)
    assert (good.beats_constant, good.usable, good.why) == ("yes", True, "")
    assert good.gain > 0
    assert (bad.beats_constant, bad.usable) == ("no", False)
    assert bad.gain < 0
    assert "too few people for this ε: about" in bad.why
    assert "times as many people, or ε =" in bad.why
    assert planned(users=0.1 * (bad.excess / (bad.learnable * bad.constant / 2)) ** 0.5 * 1.001).usable
    enough = bad.epsilon_for(bad.learnable * bad.constant / 2)
    assert bad.at(repr(enough)).usable
    assert "is forecast not to beat a constant one" in str(bad)
    assert bad.to_dict()["beats_constant"] == "no"


@pytest.mark.parametrize(
    ("users", "rows", "dimension", "epsilon", "classes", "measured"),
    [
        # WeightedERM on generated tables of users with Pareto(2) rows (benchmarks/accuracy/multinomial.py, 16 November 2026).
        (2000, 4000, 5, 0.5, (1, 1, 1, 1), 0.0090),
        (8000, 16000, 20, 1.0, (1, 1, 1, 1, 1), 0.0044),
        (1500, 3000, 10, 1.0, 8, 0.074),
    ],
)
def test_the_forecast_for_several_classes_is_near_what_was_measured(
    users: int, rows: int, dimension: int, epsilon: float, classes: Any, measured: float
) -> None:
    profile = eh.Profile.pareto(2.0, users=users, rows=rows)
    plan = eh.plan("erm", profile, epsilon, dimension=dimension, delta=1e-6, classes=classes)
    assert measured / 3 < plan.excess < measured * 3


def test_rare_positives_need_more_people() -> None:
    common, rare = planned(), planned(classes=(99, 1))
    assert rare.constant < common.constant / 5
    assert rare.excess / rare.constant > 5 * common.excess / common.constant


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"dimension": None}, "needs the number of features"),
        ({"dimension": 0}, "needs the number of features"),
        ({"delta": 0}, "expected delta > 0"),
        ({"loss": "hinge"}, "expected one of"),
        ({"classes": 1}, "classes=1; expected how many classes"),
        ({"classes": (1.0, 0.0)}, "expected how many classes"),
        ({"delta": None, "classes": 3}, "expected two of them for BoundedERM"),
        ({"learnable": 0.0}, "learnable=0.0 is out of range"),
        ({"delta": None, "loss": "hinge"}, "expected one of"),
        ({"delta": None, "dimension": 0}, "needs the number of features"),
    ],
)
def test_what_is_refused(wrong: dict[str, object], words: str) -> None:
    given: dict[str, object] = {"dimension": 5, "delta": 1e-6, **wrong}
    with pytest.raises(UsageError, match=words):
        eh.plan("erm", ONES, 1.0, **given)  # type: ignore[call-overload]
