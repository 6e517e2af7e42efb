"""The planner's numbers, against ones computed independently, and its honest sentences."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from evenhand.guarantee import UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.bounds import Bound, largest, sufficient_users, telling
from evenhand.recommender.planning import forecast, plan, users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import PRESETS, Tastes, preset
from evenhand.recommender.tuning import Setting, best_questions, best_theta, pool_size


def test_best_number_of_questions() -> None:
    """One question up to ε = 3.06, then about ε/2.18, and never more than fit."""
    chosen = {
        epsilon: best_questions(Decimal(epsilon), 1000, 20, Decimal(1)) for epsilon in ("1", "3.05", "3.07", "10", "30")
    }
    assert chosen["1"] == chosen["3.05"] == 1
    assert chosen["3.07"] == 2
    assert chosen["10"] == round(10 / 2.18)
    assert chosen["30"] == round(30 / 2.18)
    assert best_questions(Decimal(30), 1000, 4, Decimal(1)) == 4
    for epsilon, questions in chosen.items():
        value = [q * math.tanh(float(epsilon) / (2 * q)) ** 2 for q in range(1, 21)]
        assert questions == 1 + int(np.argmax(value))


def test_best_theta() -> None:
    assert best_theta() == 1
    assert best_theta(0.25) == 2
    settings = [Setting("maxsense", 1000, 20, Decimal(1), theta) for theta in (0.5, 0.9, 1.0, 1.1, 2.0)]
    needed = [users_needed(setting, preset("popular"), 0.01) or 0 for setting in settings]
    assert min(needed[1:4]) < min(needed[0], needed[4])


def test_forecast_falls_with_users_and_ends_at_guessing() -> None:
    setting = Setting("maxsense", 200, 40, Decimal(1))
    wrong = [forecast(setting, preset("popular"), users) for users in (10, 10**4, 10**5, 10**6)]
    assert wrong == sorted(wrong, reverse=True)
    assert wrong[0] == pytest.approx(0.5, abs=0.01)
    assert wrong[-1] < 1e-6


def test_exact_from_half_a_million_users() -> None:
    """The method page's figure: N=200, w=40, ε=1, like rates .8/.2 are exact from 5e5 users."""
    expected_items = 200 * forecast(Setting("maxsense", 200, 40, Decimal(1)), preset("popular"), 5e5)
    assert expected_items < 0.01


def test_plans_choose_the_sketch_that_can_see() -> None:
    popular, mirrored = plan(200, 40, 1, preset("popular")), plan(200, 40, 1, preset("mirrored"), users=10**6)
    assert popular.best is not None
    assert popular.best.setting.sketch == "maxsense"
    assert mirrored.best is not None
    assert mirrored.best.setting.sketch == "projection"
    assert "maxsense can't see these tastes at all" in mirrored.words()
    rich = plan(200, 200, 1, preset("mirrored"))
    assert rich.best is not None
    assert rich.best.setting.sketch == "pairwise"


def test_plans_say_honestly_what_is_missing() -> None:
    words = plan(1000, 20, 1, preset("popular"), users=6000).words()
    assert "You have 6,000 users; this needs 9.3 million." in words
    assert "guessing gets 50% wrong" in words
    assert "enough" in plan(200, 40, 1, preset("popular"), users=10**6).words()
    alike = plan(50, 10, 1, Tastes(((0.5, 0.5),)))
    assert alike.best is None
    assert alike.necessary is None
    assert "No sketch can tell" in alike.words()


def test_a_sketch_is_called_blind_only_where_it_is() -> None:
    """Classes that lie apart by little, or in part, are told from those at one place."""
    three = plan(200, 40, 1, preset("three")).words()
    assert "maxsense can't tell item classes 1 and 2 apart, however many people answer." in three
    assert "tastes at all" not in three
    scarce = plan(10_000, 10, "0.5", preset("popular")).words()
    assert "pairwise would need more than 1000 trillion people." in scarce
    assert "can't see" not in scarce
    faint = plan(1000, 2, "0.001", Tastes(((0.5, 0.500001),)))
    assert faint.best is None
    assert "No sketch would do with 1000 trillion people." in faint.words()


def test_plans_print_the_largest_bound_with_its_conditions() -> None:
    words = plan(10_000, 10, "0.5", preset("popular")).words()
    assert (
        "Below 480 million people no method at all expects as few items wrong, if nobody's question depends on others'"
        in words
    )
    assert "Below 93 million people no method gets all items right half the time, if nobody's" in words
    assert "Below 28,000 people no method gets all items right half the time, even if questions depend" in words
    assert "4.10" not in words  # 3.0 million: less than the proof's own bound, which has fewer conditions
    assert "in the limit of many items" in words
    assert "(Theorem 6.1, corrected; 2 equally likely classes" in plan(1000, 1, "0.5", preset("popular")).words()


def test_a_bound_for_three_classes_is_that_of_three_classes() -> None:
    """N = 200, ε = 1: Theorem A.5 has 223 people for 1% wrong, where Theorem 3.3, for two classes and all items right, has 149."""
    made = plan(200, 40, 1, preset("three"))
    assert "Below 223 people no method has as few items wrong half the time" in made.words()
    assert "149 people" not in made.words()
    assert {bound.theorem for bound in made.proven if bound.adaptive} == {
        "Theorem A.5, corrected",
        "proof, from privacy alone",
    }


def test_every_theorem_has_a_way_in_and_a_vacuous_one_is_not_printed() -> None:
    made = plan(1000, 1, "0.5", preset("popular"))
    listed = {bound["theorem"]: bound for bound in made.to_dict()["bounds"]}
    for name in ("3.3", "4.3", "4.8", "4.10", "6.1", "A.5"):
        (bound,) = [bound for theorem, bound in listed.items() if f" {name}" in theorem]
        assert bound["people"] > 1
        assert bound["says_something"] or f" {name}" not in made.words()
    assert listed["Theorem 4.10 with its proof's constants"]["says_something"] is False
    # As the issue had it: 3 people by Theorem 4.10.
    small = plan(20, 20, "0.5", preset("popular"))
    assert min(bound.people for bound in small.proven) < 5
    assert all(bound.people > 10 for bound in telling(small.proven))


def test_a_bound_says_nothing_beside_one_with_fewer_conditions() -> None:
    weak = Bound("weak", 10, "share wrong", False, ("a", "b"))
    strong = Bound("strong", 20, "share wrong", True, ("a",))
    other = Bound("other question", 5, "all right half the time", False, ("a", "b"))
    narrow = Bound("narrow", 30, "share wrong", False, ("c",))
    assert telling((weak, strong, other, narrow)) == (strong, other, narrow)
    assert largest((weak, strong, narrow), "share wrong", True) == strong
    assert largest((weak, strong, narrow), "share wrong", False) == narrow
    assert largest((weak, strong), "all right half the time", False) is None


def test_public_rated_items_are_forecast_and_simulated() -> None:
    """N = 200, ε = 1, 10% wrong: about 9,400 people whatever they rated, and the simulation agrees."""
    needs = [
        users_needed(Setting("pairwise", items, rated, Decimal(1), public_rated=True), preset("mirrored"), 0.1) or 0
        for items, rated in ((200, 3), (200, 90), (400, 10))
    ]
    assert needs[0] == needs[1] == pytest.approx(9400, rel=0.3)
    assert 1.9 < needs[2] / needs[0] < 2.4
    points = study(preset("mirrored"), 200, 10, 1, [needs[0]], ["pairwise"], public_rated=True)
    assert 0.02 < points[0].wrong < 0.25
    made = plan(1000, 10, "0.5", preset("mirrored"), users=10**6, public_rated=True)
    assert made.best is not None
    assert made.best.needed is not None
    assert made.best.needed < 10**6
    assert "only likes are protected" in made.words()
    assert {bound.adaptive for bound in made.proven} == {
        True
    }  # the others need it to be private which items were rated
    with pytest.raises(UsageError, match="rated=1 is out of range"):
        plan(1000, 1, 1, preset("mirrored"), public_rated=True)


def test_sufficient_users_of_several_questions() -> None:
    """Theorem 5.3 by hand: Q times as many bits of ε/Q each; for Q = 1 Theorem 5.1."""
    one, four = (sufficient_users(200, 40, Decimal(8), preset("popular"), 1.0, count) or 0 for count in (1, 4))
    assert four / one == pytest.approx(math.tanh(4) ** 2 / (4 * math.tanh(1) ** 2), rel=1e-4)
    assert sufficient_users(200, 3, Decimal(8), preset("popular"), 1.0, 4) is None  # Q > w/θ
    assert plan(200, 40, 8, preset("popular")).sufficient == sufficient_users(
        200, 40, Decimal(8), preset("popular"), 1.0, 4
    )


@pytest.mark.parametrize("arguments", [(1, 1), (10, 11), (10, 0), (70_000, 5)])
def test_impossible_plans_are_explained(arguments: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="out of range"):
        plan(*arguments, 1, preset("popular"))


def test_tastes() -> None:
    for tastes in PRESETS.values():
        labels = tastes.labels(120)
        assert np.bincount(labels).tolist() == [round(120 * share) for share in tastes.items]
    assert np.allclose(preset("mirrored").second_moment, [[0.36, -0.36], [-0.36, 0.36]])
    with pytest.raises(UsageError, match="mirrored"):
        preset("mirorred")
    for wrong in (((1.5,),), ((0.1, 0.2), (0.3,)), ()):
        with pytest.raises(UsageError, match="like="):
            Tastes(wrong)
    with pytest.raises(UsageError, match="add up to 1"):
        Tastes(((0.1, 0.2),), items=(0.5, 0.6))


def test_campaigns_choose_what_is_left_out() -> None:
    names = [f"item {n}" for n in range(100)]
    assert Campaign(names, "maxsense", 1, 20).task.theta == 1
    assert Campaign(names, "multi-maxsense", 10, 20).task.questions == 5
    assert Campaign(names, "projection", 1, 20, users=10**6, pool="auto").task.pool == pool_size(100, 20, 10**6)
    with pytest.raises(UsageError, match="pool='some'"):
        Campaign(names, pool="some", rated=5)
    with pytest.raises(UsageError, match="theta=2"):
        Campaign(names, "pairwise", theta=2, rated=5)
    with pytest.raises(UsageError, match="rated=101"):
        Campaign(names, rated=101)
