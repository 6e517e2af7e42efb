"""plan("erm") without δ: the forecast that BoundedERM itself chooses by, a best τ in between, and the proven bias beside it."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.learning import BoundedERM
from evenhand.learning.data.row_sources import FINE_BITS
from evenhand.learning.losses import HuberHinge, Logistic, Squared
from evenhand.learning.perturbation.objective_perturbation import MOST_ROWS, OUTPUT_SHARE
from evenhand.noise import seam
from evenhand.planning.excess_risk import Capped, bias
from evenhand.planning.row_choice import INEXACT
from evenhand.planning.rows_plan import LOSSES

COUNTS = [1] * 3000 + [5] * 300 + [60] * 30 + [2000] * 3
PROFILE = eh.Profile.counts(COUNTS)
PLAN = eh.plan("erm", PROFILE, 5.0, dimension=3)


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_the_plan_is_what_bounded_erm_chooses_by(protects: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (40, 3))
    model = BoundedERM(1.0, feature_bounds=(0, 1), profile=PROFILE, protects=protects)
    with seam.replaced(seam.silent):  # both classes are found to be equally large, as the plan takes them to be
        chosen = model.fit(X, np.arange(40) % 2, users=np.arange(40)).forecast_
    plan = eh.plan("erm", PROFILE, 1.0, dimension=3, protects=protects)
    best = plan.best
    assert plan.usable
    assert model.plan_ is not None
    assert model.plan_.excess == plan.excess
    assert (best.tau, best.method) == (chosen.tau, chosen.method)
    # The fit has found how far features vary, and a first model.
    assert best.excess == pytest.approx(chosen.excess, rel=0.3)
    assert best.regularisation == pytest.approx(chosen.regularisation, rel=0.5)


def test_the_facts_are_those_of_the_losses() -> None:
    assert {"logistic": Logistic().facts, "huber-svm": HuberHinge().facts, "squared": Squared(1.0).facts} == LOSSES
    assert pytest.approx(2 * 8 * 2 * MOST_ROWS / 2.0**FINE_BITS / float(OUTPUT_SHARE)) == INEXACT


def test_a_plan_says_whether_it_beats_a_constant_model() -> None:
    rare = eh.plan("erm", PROFILE, 5.0, dimension=3, classes=(99999, 1))
    assert (PLAN.usable, PLAN.why, rare.usable) == (True, "", False)
    assert rare.excess != PLAN.excess
    assert rare.constant < PLAN.constant / 1000
    assert "Not usable" in str(rare)
    seldom = eh.plan("erm", PROFILE, 0.3, dimension=3, classes=(9, 1))
    assert f"or ε = {(enough := seldom.epsilon_for(seldom.learnable * seldom.constant / 2)):.2g}" in str(seldom)
    assert seldom.at(repr(enough)).usable
    hopeless = eh.plan("erm", eh.Profile.counts([1] * 50), 0.1, dimension=30, loss="huber-svm")
    assert (hopeless.constant, hopeless.beats_constant) == (1.0, "no")


def test_the_best_is_in_between_and_grows_with_epsilon() -> None:
    assert 1 < PLAN.best.tau < 2000
    assert PLAN.at(0.5).best.tau < PLAN.best.tau < PLAN.at(100).best.tau
    excess = np.array([forecast.excess for forecast in PLAN.forecasts])
    assert excess[0] > PLAN.best.excess < excess[-1]
    assert PLAN.best in PLAN.rows()


@pytest.mark.parametrize("place", [0, 5, 15, -1])
def test_the_bound_on_the_bias_is_the_tightened_proposition_1(place: int) -> None:
    forecast = PLAN.forecasts[place]
    capped = Capped(COUNTS, forecast.tau)
    assert forecast.bias_bound == pytest.approx(bias(capped), abs=1e-9)
    assert forecast.users_cut == capped.users_capped
    assert forecast.part_kept == pytest.approx(capped.n_tau / capped.n)


def test_it_shows_itself() -> None:
    assert f"at most {PLAN.best.tau} rows per user" in str(PLAN)
    assert "bias at most" in PLAN._repr_html_()
    assert PLAN.to_dict()["best"]["tau"] == PLAN.best.tau
    assert len(PLAN.plot().to_dict()["vconcat"]) == 2
    assert "<svg" in PLAN.to_html()
