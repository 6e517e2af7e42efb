"""A mean from distances around two centres: what it estimates, and what its interval covers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from evenhand.guarantee import EvenhandError
from evenhand.noise import Gaussian, IntegerNoise, Laplace
from evenhand.release import Measurement, Receipt, ResidualMean
from evenhand.tables import Secret


def _mean(
    first: float, second: float, rows: float, noises: tuple[IntegerNoise, IntegerNoise, IntegerNoise | None]
) -> ResidualMean:
    """Around the centres 30 and 48 of a range of 100 steps."""
    return ResidualMean(first, second, 18.0, rows, (1.0, 1.0, 1.0), noises, (-48.0, 52.0), 48.0, 1.0)


def test_without_noise_to_speak_of_it_is_the_mean() -> None:
    small = Laplace(Fraction(1, 1000))
    assert math.isclose(_mean(20_000.0, 2_000.0, 1_000.0, (small, small, small)).value, 50.0)


def test_the_two_centres_correct_wrong_rows() -> None:
    """Rows that are off by half matter little: the two distances say how many there are."""
    sharp, blurred = Laplace(Fraction(10)), Laplace(Fraction(500))
    assert abs(_mean(20_000.0, 2_000.0, 1_500.0, (sharp, sharp, blurred)).value - 50.0) < 0.01


def test_rows_lost_in_noise_leave_the_centre_and_the_whole_range() -> None:
    noise = Laplace(Fraction(100))
    lost = _mean(5.0, 30.0, 20.0, (noise, noise, noise))
    assert lost.value == 48.0
    assert lost.spread == 50.0
    assert lost.at(0.95) == (0.0, 100.0)


@pytest.mark.parametrize("public", [False, True], ids=["rows hidden", "rows public"])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_intervals_cover(kind: type[Laplace] | type[Gaussian], public: bool) -> None:
    """Of 300 intervals of 95% at least 262 hold the truth (the noise has a fixed seed), and not all: they are not needlessly wide."""
    rng, rows, mean = np.random.default_rng(3), 1_000, 51.3
    noises = (kind(Fraction(900)), kind(Fraction(150)), kind(Fraction(60)))

    def drawn(noise: IntegerNoise) -> float:
        scale = float(noise.scale)
        return float(rng.laplace(0, scale) if isinstance(noise, Laplace) else rng.normal(0, scale))

    hits = 0
    for _ in range(300):
        first, second = (rows * (mean - centre) + drawn(noise) for centre, noise in zip((30, 48), noises, strict=False))
        counted = rows if public else rows + drawn(noises[2])
        low, high = _mean(first, second, counted, (noises[0], noises[1], None if public else noises[2])).at(0.95)
        hits += low <= mean <= high
    assert 262 <= hits < 300


def test_shares_of_a_receipt_end() -> None:
    measurement = Measurement(lambda: Secret([0]), 1, 1)
    for delta in (Decimal(0), Decimal("1e-6")):
        draw = Receipt(Decimal(1), Decimal("1e-6"), "test").numbers_by_share(Decimal(1), delta)
        draw(measurement, Fraction(3, 4))
        with pytest.raises(EvenhandError, match="more privacy budget"):
            draw(measurement, Fraction(1, 2))
        draw(measurement, Fraction(1, 4))
