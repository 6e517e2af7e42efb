"""Intervals that hold the truth: noise and believed amounts together, and what passes through."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from evenhand.noise import Gaussian, IntegerNoise, Laplace
from evenhand.release import Additive, Believed, Exact, Scaled, Unknown
from evenhand.release.believed import noise_law
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


@pytest.mark.parametrize("heaviest", [1e3, 1e5, 1e9])
def test_the_ends_are_found_wherever_amounts_lie(heaviest: float) -> None:
    """Against plain bisection between the farthest points, with a tail of amounts far beyond the noise."""
    amounts, weights = np.concatenate([[0.0], np.geomspace(1, heaviest, 80)]), np.linspace(2, 1, 81)
    believed = Believed(NOISE, amounts, weights, "")
    points, odds = noise_law(NOISE.noise, NOISE.unit)

    def below(x: float) -> float:
        return float(weights / weights.sum() @ (1 / (1 + np.exp(-np.interp(x - amounts, NOISE.value + points, odds)))))

    for confidence in (0.05, 0.5, 0.95, 0.9999, 1 - 3e-7):
        for end, goal in zip(believed.at(confidence), ((1 - confidence) / 2, (1 + confidence) / 2), strict=True):
            first, last = NOISE.value + points[0], NOISE.value + points[-1] + heaviest
            for _ in range(70):
                middle = (first + last) / 2
                first, last = (middle, last) if below(middle) < goal else (first, middle)
            assert end == pytest.approx(first, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("noise", [Laplace, Gaussian])
def test_a_radius_is_the_smallest_that_holds_so_much(noise: type[IntegerNoise]) -> None:
    for scale in (Fraction(1, 9), Fraction(3, 2), Fraction(77), Fraction(10**9 + 7, 3), Fraction(2**55)):
        for confidence in (1e-9, 0.3, 0.5, 0.95, 1 - 2e-7):
            law = noise(scale)
            radius = law.radius(confidence)
            assert law.tail(radius) <= 1 - confidence
            assert radius == 0 or law.tail(radius - 1) > 1 - confidence
