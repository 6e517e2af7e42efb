"""Intervals that hold the truth: noise and believed amounts together, and what passes through."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from evenhand.noise import Laplace
from evenhand.release import Additive, Believed, Exact, Scaled, Unknown
from evenhand.release.intervals import covers, judged, noise_only, why_not
from evenhand.statistics.frames import ListedInterval

NOISE = Additive(1000.0, Laplace(Fraction(100)), 1.0)


def test_one_amount_moves_the_noise_interval() -> None:
    low, high = NOISE.at(0.9)
    assert Believed(NOISE, [50.0], [3.0], "").at(0.9) == (low + 50, high + 50)
    assert Believed(NOISE, [], [], "").at(0.9) == (low, high)
    assert Believed(Exact(7.0), [0, 10.0], [0.5, 0.5], "").at(0.9) == (7, 17)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_ends_are_quantiles_of_noise_and_amounts_together(confidence: float) -> None:
    """Against two million draws: the tails beyond the ends are right within 3% and 5e-5."""
    rng = np.random.default_rng(1)
    amounts, weights = np.array([0.0, 200.0, 900.0]), np.array([0.6, 0.3, 0.1])
    truth = 1000 + rng.laplace(0, 100, 2_000_000) + rng.choice(amounts, 2_000_000, p=weights)
    tail = (1 - confidence) / 2
    for interval in (NOISE, Scaled(NOISE, 1.0), Additive(1000.0, NOISE.noise, 1.0, (-1e9, 1e9))):
        low, high = Believed(interval, amounts, weights, "").at(confidence)
        assert abs((truth < low).mean() - tail) < 0.03 * tail + 5e-5
        assert abs((truth > high).mean() - tail) < 0.03 * tail + 5e-5


def test_more_confidence_than_the_tails_reach_is_still_covered() -> None:
    confidence = 1 - 1e-9
    low, high = NOISE.at(confidence)
    assert Believed(NOISE, [10.0, 500.0], [1, 1], "").at(confidence) == (low + 10, high + 500)


def test_what_is_unknown_leaves_an_end_open_and_the_verdict_to_the_noise() -> None:
    open_above = Unknown(NOISE, "at least", most=math.inf)
    assert open_above.at(0.95) == (NOISE.at(0.95)[0], math.inf)
    assert judged(open_above) is NOISE
    assert Unknown(NOISE, "", least=0.0, most=1100.0).at(0.5)[0] == 0.0


def test_noise_words_and_reasons_pass_through_scaling_and_lists() -> None:
    believed = Believed(NOISE, [5.0, 6.0], [1, 1], "a model", "too few people")
    scaled = Scaled(believed, 2.0)
    assert noise_only(scaled).at(0.9) == tuple(2 * end for end in NOISE.at(0.9))
    assert (covers(scaled), why_not(scaled)) == ("a model", "too few people")
    listed = ListedInterval([believed, NOISE])
    assert listed.noise_only.at(0.9) == [NOISE.at(0.9)] * 2
    assert listed.whys == ["too few people", ""]
    assert not believed.tells
