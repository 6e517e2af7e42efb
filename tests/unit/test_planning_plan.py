"""Plans: best bounds, inverse questions, words, pages and errors."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import numpy as np
import pytest

from evenhand.bounding import smooth_bound
from evenhand.guarantee import UsageError
from evenhand.learning import HypothesisSelection, WeightedERM
from evenhand.pages.numbers import three_digits
from evenhand.pages.plan import small_curve
from evenhand.planning import Plan, plan
from evenhand.planning.excess_risk import Capped, best_cap, theorem_1
from evenhand.profiles import Profile

PROFILE = Profile.pareto(1.5, users=10_000, rows=200_000)


def test_the_best_cap_of_a_count_is_where_noise_and_bias_balance() -> None:
    made = plan("count", PROFILE, epsilon=0.2)
    caps = np.arange(1, 6000)
    support = PROFILE.support
    bias = np.array([support.users @ np.maximum(support.sizes - cap, 0) for cap in caps])
    error = np.sqrt(2 * (caps / 0.2) ** 2 + bias**2)
    assert made.best.error == pytest.approx(error.min(), rel=1e-3)
    assert made.best.users_cut == (support.users * (support.sizes > made.best.bound)).sum()


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_a_mean_compares_all_strategies_of_its_relation(protects: str) -> None:
    made = plan("mean", PROFILE, epsilon=0.5, bounds=(0.5, 5), protects=protects)
    names = {curve.strategy for curve in made.curves}
    assert names == {"SmoothWeights", "RowLimit", "LocatedMean"} | (
        {"CentredInterval"} if protects == "values" else set()
    )
    assert made.best.error == min(made.best_of(name).error for name in names)
    assert made.best_of("SmoothWeights").error <= made.best_of("RowLimit").error * 1.001


def test_smooth_weights_take_the_exact_minimiser() -> None:
    made = plan("mean", PROFILE, epsilon=0.5, bounds=(0, 1), protects="values")
    assert made.best_of("SmoothWeights").bound == smooth_bound(PROFILE.support, 1 / 16, 1.0, 0.5, 1 / 50)


def test_every_error_lies_below_its_bound() -> None:
    for statistic in ("sum", "mean"):
        alike: dict[str, Any] = {"heterogeneity": 0.0, "row_sd": 0.0} if statistic == "mean" else {}
        made = plan(statistic, PROFILE, epsilon=0.5, bounds=(-1, 5), protects="values", **alike)
        for curve in made.curves:
            if curve.kind != "assumed":
                assert (curve.error <= curve.error_bound * (1 + 1e-9)).all()


def test_more_privacy_means_a_lower_bound_and_a_larger_error() -> None:
    made = plan("count", PROFILE, epsilon=1)
    moves = made.over_epsilon([0.05, 0.2, 1, 5])
    assert [f.bound for _, f in moves] == sorted(f.bound for _, f in moves)
    assert [f.error for _, f in moves] == sorted((f.error for _, f in moves), reverse=True)


def test_inverse_questions_hit_the_error_they_aim_at() -> None:
    made = plan("mean", PROFILE, epsilon=0.2, bounds=(0.5, 5))
    epsilon = made.epsilon_for(0.02)
    assert made.at(epsilon).best.error == pytest.approx(0.02, rel=0.01)
    users = made.users_for(0.02)
    scaled = PROFILE.scaled(users / PROFILE.users)
    assert plan("mean", scaled, epsilon=0.2, bounds=(0.5, 5)).best.error == pytest.approx(0.02, rel=0.02)
    count = plan("count", PROFILE, epsilon=0.2)
    assert count.at(count.epsilon_for(0.01, relative=True)).best.error == pytest.approx(0.01 * 200_000, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"statistic": "median"}, "can't be planned"),
        ({"statistic": "maen"}, "Did you mean 'mean'"),
        ({"statistic": "mean"}, "needs bounds"),
        ({"statistic": "sum"}, "needs bounds"),
        ({"statistic": "mean", "bounds": (5, 0)}, "not a range"),
        ({"statistic": "mean", "bounds": (0, float("nan"))}, "not a range"),
        ({"statistic": "mean", "bounds": "ab"}, "two numbers"),
        ({"statistic": "count", "protects": "values"}, "public"),
        ({"statistic": "count", "protects": "value"}, "Did you mean 'values'"),
        ({"statistic": "count", "epsilon": 0}, "epsilon"),
        ({"statistic": "mean", "bounds": (0, 1), "heterogeneity": 2}, "heterogeneity=2"),
        ({"statistic": "count", "points": 1}, "points=1"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan(**{"profile": PROFILE, "epsilon": 0.5, **arguments})  # type: ignore[call-overload]


def test_impossible_goals_are_refused() -> None:
    made = plan("mean", PROFILE, epsilon=0.2, bounds=(0.5, 5))
    with pytest.raises(UsageError, match="positive"):
        made.epsilon_for(0)
    with pytest.raises(UsageError, match="relative"):
        made.users_for(0.1, relative=True)
    with pytest.raises(UsageError, match="larger error"):
        plan("count", PROFILE, epsilon=0.2).users_for(1.0)
    with pytest.raises(UsageError, match="Did you mean 'RowLimit'"):
        made.curve("row limits")


@pytest.mark.parametrize("counts", [[7], [7] * 50, [1, 1_000_000]])
def test_odd_profiles_can_be_planned_and_drawn(counts: list[int]) -> None:
    for statistic, bounds in (("count", None), ("sum", (0, 5)), ("mean", (0, 5))):
        made = plan(statistic, Profile.counts(counts), epsilon=0.5, bounds=bounds)
        assert made.best.error > 0
        assert "<svg" in made.to_html()
        assert small_curve(made.curve(made.best.strategy))


def test_words_say_what_the_bound_does_and_costs() -> None:
    text = plan("count", PROFILE, epsilon=0.2).explain()
    assert "each user counts up to 909" in text
    assert "noise" in text
    assert "cut more off the busiest users" in text


def test_a_page_needs_no_network_and_no_script() -> None:
    page = plan("mean", PROFILE, epsilon=0.2, bounds=(0.5, 5)).to_html()
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=[\"']?http", page)
    assert 'name="viewport"' in page
    assert page.count("<svg") == 3


def test_tables_print_and_become_data() -> None:
    table = plan("sum", PROFILE, epsilon=0.2, bounds=(0, 5)).table()
    assert "≤" in str(table)
    assert len(table) == len(table.to_dicts())
    assert {row["strategy"] for row in table.to_dicts()} == {"TotalCap", "SmoothWeights", "RowLimit"}


def test_a_million_users_and_two_hundred_bounds_take_no_second() -> None:
    profile = Profile.counts(np.random.default_rng(1).zipf(1.8, 1_000_000))
    start = time.process_time()
    made = plan("mean", profile, epsilon=0.2, bounds=(0.5, 5), protects="values", points=200)
    assert time.process_time() - start < 1.0
    assert all(len(curve.bounds) >= 150 for curve in made.curves)  # 200, less those that round to the same integer


GIVEN = {
    "bounds": (0, 7), "row_sd": 0.1, "heterogeneity": 0.7, "spread": 0.01, "points": 7, "groups": 40, "delta": 1e-5, "hidden": True, "groups_per_user": 3,
    "dimension": 9, "hypotheses": 9, "loss": "squared", "classes": (0.9, 0.1), "learnable": 0.3, "objective": "worst case",
}  # fmt: skip
KINDS = [
    ("count", {}, {"points", "objective"}),
    ("sum", {"bounds": (0, 5)}, {"bounds", "points", "objective"}),
    ("mean", {"bounds": (0, 5)}, {"bounds", "row_sd", "heterogeneity", "spread", "points", "objective"}),
    ("users", {"groups": 30}, {"groups", "delta"}),
    ("sum", {"groups": 30, "bounds": (0, 5)}, {"groups", "delta", "bounds"}),
    ("count", {"groups": 30, "hidden": True, "delta": 1e-6}, {"groups", "delta", "groups_per_user"}),
    ("erm", {"dimension": 3}, {"dimension", "heterogeneity", "loss", "classes", "learnable", "delta", "objective"}),
    (
        "erm",
        {"dimension": 3, "delta": 1e-6},
        {"dimension", "heterogeneity", "loss", "classes", "learnable", "delta", "objective"},
    ),
    ("selection", {"hypotheses": 3}, {"hypotheses", "heterogeneity", "loss", "classes", "learnable", "objective"}),
]


@pytest.mark.parametrize(("statistic", "needed", "used"), KINDS)
def test_every_parameter_of_a_plan_acts_or_is_refused(statistic: str, needed: dict[str, Any], used: set[str]) -> None:
    """With what is needed given, each other parameter changes the plan, or is refused by its name."""
    profile = Profile.pareto(1.5, users=2000, rows=40_000)

    def shown(**more: object) -> object:
        made = plan(statistic, profile, 1, **needed | more)
        numbers = made.to_dict()
        curves = [(c.bounds.tolist(), c.error.tolist()) for c in (made.curves if isinstance(made, Plan) else ())]
        return {key: numbers[key] for key in numbers if key not in ("words", *more)}, curves

    before = shown()
    for name, value in GIVEN.items():
        if name in used:
            assert shown(**{name: value}) != before, name
        elif name not in ("groups", "hidden") or statistic in (
            "erm",
            "selection",
        ):  # those make another kind of plan of a count
            with pytest.raises(UsageError, match=f"{name}="):
                shown(**{name: value})


def test_users_who_are_alike_need_no_mix() -> None:
    """Nothing is assumed to be lost with busy users' rows, so fewer rows per user are kept than where they differ."""
    profile = Profile.pareto(1.3, users=5000, rows=100_000)
    for loss in ("logistic", "squared"):
        alike, apart = (plan("erm", profile, 1, dimension=5, loss=loss, heterogeneity=size) for size in (0, 0.5))
        assert alike.best.tau < apart.best.tau
        assert alike.excess < plan("erm", profile, 1, dimension=5, loss=loss).excess < apart.excess


def test_the_worst_case_of_a_count_is_least_at_the_rank_that_amin2019_names() -> None:
    counts = [1] * 900 + list(range(2, 102))
    for epsilon in (0.07, 0.3, 2):
        made = plan("count", Profile.counts(counts), epsilon, objective="worst case")
        assert made.best.bound == sorted(counts)[-math.ceil(1 / epsilon)]
        cut = sum(max(0, count - made.best.bound) for count in counts)
        assert made.best.worst_case == pytest.approx(
            made.best.bound / epsilon + cut, rel=0.05
        )  # discrete noise is smaller than Laplace's
        assert f"at most {three_digits(made.best.worst_case)}" in made.explain()
        assert made.epsilon_for(made.best.worst_case) == pytest.approx(epsilon, rel=0.01)


def test_no_values_make_a_mean_worse_than_its_worst_case() -> None:
    """The most adverse values there are: of users above and below the bound, all low or all high. The bound of every strategy holds, and one is nearly reached."""
    counts = np.array([1] * 50 + [5] * 10 + [40] * 3)
    made = plan("mean", Profile.counts(counts), 1, (0, 1), "values", objective="worst case")
    interval = made.best_of("CentredInterval")
    rng = np.random.default_rng(1)
    reached = 0.0
    for values in (np.zeros(63), np.ones(63), (counts > 4).astype(float), (counts > 30).astype(float)):
        low, high = np.maximum((counts - interval.bound) / 2, 0), np.minimum((counts + interval.bound) / 2, counts)
        total = np.clip(values * counts, low, high).sum() + rng.laplace(0, interval.bound, 20_000)
        reached = max(reached, float(np.abs(total / counts.sum() - values @ counts / counts.sum()).mean()))
    assert 0.8 * interval.worst_case < reached <= interval.worst_case * 1.02


def test_what_the_estimators_choose_in_the_worst_case_is_what_the_plan_says() -> None:
    rng = np.random.default_rng(4)
    counts = np.minimum(rng.zipf(1.6, 400), 60)
    users, profile = np.repeat(np.arange(400), counts), Profile.counts(counts)
    X, y = rng.uniform(-1, 1, (len(users), 2)), rng.integers(0, 2, len(users))
    worst: dict[str, Any] = {"objective": "worst case", "protects": "values"}
    model = WeightedERM(
        1, 1e-6, feature_bounds=(-1, 1), clip="lipschitz", weight_bound="worst case", protects="values", steps=2
    )
    made = plan("erm", profile, 1, dimension=2, delta=1e-6, **worst)
    assert model.fit(X, y, users=users).weight_bound_ == made.weight_bound
    assert made.risk_bound < plan("erm", profile, 1, dimension=2, delta=1e-6, protects="values").risk_bound
    choice = HypothesisSelection([lambda rows: rows[:, 0] > 0] * 30, 0.5, rows_per_user="worst case", protects="values")
    chosen = plan("selection", profile, 0.5, hypotheses=30, **worst).best
    assert choice.fit(X, y, users=users).rows_per_user_ == chosen.tau
    assert chosen.excess_bound == min(
        one.excess_bound for one in plan("selection", profile, 0.5, hypotheses=30, **worst).forecasts
    )
    rows = plan("erm", profile, 1, dimension=2, **worst)
    assert rows.best.tau == best_cap(profile.support, 1, 3)
    assert rows.best.risk.total == min(one.risk.total for one in rows.forecasts)
    counted = Capped(counts, rows.best.tau)
    assert rows.best.risk.total == pytest.approx(theorem_1(counted, 1, 0.05, 3).total)
