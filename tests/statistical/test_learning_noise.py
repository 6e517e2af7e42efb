"""The three samplers of real-valued noise on a lattice, and the estimate of the noise level.

Each test has a false-alarm rate of at most 1e-6 (stated by its p-value), and a broken twin, a scale off by 30 % or 50 %, which
the same test must reject.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from evenhand.learning.perturbation.output_perturbation import spherical_radius
from evenhand.learning.regression import noise_level
from evenhand.learning.regression.label_private_regression import ErrorLaw
from evenhand.noise.vectors import add_blockwise, add_normal, add_spherical

ALARM = 1e-6
SCALE = Fraction(2**30)
DIMENSION = 4
DRAWS = 1500


@pytest.fixture(scope="module")
def spherical() -> np.ndarray:
    return np.array([add_spherical([0] * DIMENSION, SCALE) for _ in range(DRAWS)], dtype=float) / float(SCALE)


def test_the_radius_of_spherical_noise_is_gamma(spherical: np.ndarray) -> None:
    radius = np.linalg.norm(spherical, axis=1)
    law = stats.gamma(DIMENSION)
    assert stats.kstest(radius, law.cdf).pvalue > ALARM
    assert stats.kstest(radius * 1.3, law.cdf).pvalue < ALARM


def test_its_direction_is_uniform(spherical: np.ndarray) -> None:
    directions = spherical / np.linalg.norm(spherical, axis=1)[:, None]
    law = stats.beta(0.5, (DIMENSION - 1) / 2)
    for coordinate in directions.T:
        assert stats.kstest(coordinate**2, law.cdf).pvalue > ALARM
        assert stats.binomtest(int((coordinate > 0).sum()), DRAWS).pvalue > ALARM
    skewed = directions * [1, 1, 1, 2]
    skewed /= np.linalg.norm(skewed, axis=1)[:, None]
    assert stats.kstest(skewed[:, 3] ** 2, law.cdf).pvalue < ALARM


BLOCKS = [(1, 1.0), (3, 0.25), (1, 4.0)]


def gauges(draws: np.ndarray, blocks: list[tuple[int, float]]) -> np.ndarray:
    """‖b_B‖/scale_B, one column per block."""
    ends = np.cumsum([size for size, _ in blocks])[:-1]
    parts = zip(np.split(draws, ends, axis=1), blocks, strict=True)
    return np.stack([np.linalg.norm(part, axis=1) / scale for part, (_, scale) in parts], axis=1)


def test_blockwise_noise_has_its_density() -> None:
    """The largest gauge is Gamma(d); divided by it, the place on the surface is uniform in volume: P(block is largest) = size/d."""
    exact = [(size, Fraction(scale) * SCALE) for size, scale in BLOCKS]
    draws = np.array([add_blockwise([0] * 5, exact) for _ in range(DRAWS)], dtype=float) / float(SCALE)
    found = gauges(draws, BLOCKS)
    law, largest = stats.gamma(5), found.max(axis=1)
    assert stats.kstest(largest, law.cdf).pvalue > ALARM
    assert stats.kstest(largest * 1.3, law.cdf).pvalue < ALARM
    for place, (size, _) in enumerate(BLOCKS):
        first = found[:, place] == largest
        assert stats.binomtest(int(first.sum()), DRAWS, size / 5).pvalue > ALARM
        inner = (found[:, place] / largest)[~first] ** size  # uniform in its ball, so the volume within is uniform
        assert stats.kstest(inner, stats.uniform.cdf).pvalue > ALARM
    skewed = gauges(draws * [1, 1, 1, 1, 2], BLOCKS)
    assert stats.kstest(skewed.max(axis=1), law.cdf).pvalue < ALARM
    for coordinate in draws.T:
        assert stats.binomtest(int((coordinate > 0).sum()), DRAWS).pvalue > ALARM


def test_normal_noise_is_normal() -> None:
    draws = np.array(add_normal([0] * 4000, SCALE), dtype=float) / float(SCALE)
    assert stats.kstest(draws, stats.norm.cdf).pvalue > ALARM
    assert stats.kstest(draws * 1.3, stats.norm.cdf).pvalue < ALARM


def test_noise_at_a_small_scale_is_the_rounded_one() -> None:
    """Scale 1: rounding is visible, and P(0) is that of the interval (−½, ½)."""
    zeros = sum(value == 0 for value in add_normal([0] * 4000, Fraction(1)))
    chance = float(stats.norm.cdf(0.5) - stats.norm.cdf(-0.5))
    assert stats.binomtest(zeros, 4000, chance).pvalue > ALARM
    assert stats.binomtest(zeros, 4000, chance * 1.3).pvalue < ALARM


def test_ranges_of_spherical_noise(spherical: np.ndarray) -> None:
    radius = spherical_radius(0.9, DIMENSION, 1.0)
    inside = int((np.abs(spherical[:, 0]) <= radius).sum())
    assert stats.binomtest(inside, DRAWS, 0.9).pvalue > ALARM
    wide = int((np.abs(spherical[:, 0]) <= radius * 1.5).sum())
    assert stats.binomtest(wide, DRAWS, 0.9).pvalue < ALARM


@pytest.mark.parametrize("law", [ErrorLaw(1.0, (0.5,)), ErrorLaw(0.0, (1.0, 2.0, 0.1)), ErrorLaw(0.3, (1.0,) * 12)])
def test_tails_of_normal_plus_laplace(law: ErrorLaw) -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(scale=law.normal_sd, size=200_000)
    for scale in law.laplace_scales:
        draws += rng.laplace(scale=scale, size=len(draws))
    for distance in (0.5 * law.sd, law.sd, 3 * law.sd):
        above = int((np.abs(draws) > distance).sum())
        assert stats.binomtest(above, len(draws), law.tail(distance)).pvalue > ALARM
    assert law.tail(law.radius(0.95)) == pytest.approx(0.05, abs=1e-6)


def test_one_laplace_is_exact_and_one_normal_too() -> None:
    assert ErrorLaw(0.0, (2.0,)).radius(0.95) == pytest.approx(-2 * np.log(0.05))
    assert ErrorLaw(3.0, ()).radius(0.95) == pytest.approx(3 * 1.959964, rel=1e-5)


def test_contrasts_see_the_noise_and_not_the_coefficients() -> None:
    rng = np.random.default_rng(2)
    users = np.sort(rng.integers(0, 400, size=4000))
    X = np.column_stack([np.ones(4000), rng.normal(size=(4000, 2)), rng.random(4000) < 0.05])
    blocks = noise_level.contrasts(X, users)
    y = X @ [100.0, -50.0, 7.0, 30.0] + rng.normal(scale=2, size=4000)
    z = np.array([float(w @ y[rows]) for rows, w in blocks])
    assert stats.kstest(z / 2, stats.norm.cdf).pvalue > ALARM
    assert stats.kstest(z / 2 * 2, stats.norm.cdf).pvalue < ALARM
    owners = [set(users[rows]) for rows, _ in blocks]
    assert sum(map(len, owners)) == len(set.union(*owners))  # no user is in two blocks
    grid = noise_level.candidates(64.0)
    best = grid[int(np.argmax(noise_level.scores(blocks, y, grid)))]
    assert 1.6 < best < 2.5
