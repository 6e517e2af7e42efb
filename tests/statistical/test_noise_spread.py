"""The noise has the distribution it claims, from tiny to huge scales; ±30% and 32-bit saturation are caught.

Each test raises a false alarm with probability 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from alarms import Cdf, fits, happens_at_least

from evenhand.noise import Gaussian, IntegerNoise, Laplace, NoisyMax

SAMPLES = 12_000
SCALES = [
    Fraction(1, 2),
    Fraction(3, 2),
    Fraction(40),
    Fraction(2**20),
    Fraction(2**33),
    Fraction(2**40),
    Fraction(2**55),
]


def laplace_cdf(scale: Fraction) -> Cdf:
    def cdf(k: int) -> float:
        s, q = float(scale), math.exp(-1 / float(scale))
        return math.exp(k / s) / (1 + q) if k < 0 else 1 - math.exp(-(k + 1) / s) / (1 + q)

    return cdf


def gaussian_cdf(scale: Fraction) -> Cdf:
    sigma = float(scale)
    if sigma > 30:  # the midpoint rule is exact to far below what the samples can tell
        return lambda k: math.erfc(-(k + 0.5) / (sigma * math.sqrt(2))) / 2
    weights = [math.exp(-(k**2) / (2 * sigma**2)) for k in range(-400, 401)]
    running = [partial / sum(weights) for partial in itertools.accumulate(weights)]
    return lambda k: 0.0 if k < -400 else running[min(k, 400) + 400]


NOISES: list[tuple[type[IntegerNoise], Callable[[Fraction], Cdf]]] = [(Laplace, laplace_cdf), (Gaussian, gaussian_cdf)]


@pytest.mark.parametrize("scale", SCALES, ids=float)
@pytest.mark.parametrize(("kind", "cdf"), NOISES, ids=["laplace", "gaussian"])
def test_the_spread_is_right(kind: type[IntegerNoise], cdf: Callable[[Fraction], Cdf], scale: Fraction) -> None:
    samples = kind(scale).add_to([0] * SAMPLES)
    assert fits(samples, cdf(scale))


@pytest.mark.parametrize("off", [Fraction(7, 10), Fraction(13, 10)], ids=["-30%", "+30%"])
@pytest.mark.parametrize("scale", [SCALES[1], SCALES[3], SCALES[-1]], ids=float)
@pytest.mark.parametrize(("kind", "cdf"), NOISES, ids=["laplace", "gaussian"])
def test_a_wrong_scale_is_noticed(
    kind: type[IntegerNoise], cdf: Callable[[Fraction], Cdf], scale: Fraction, off: Fraction
) -> None:
    samples = kind(scale * off).add_to([0] * SAMPLES)
    assert not fits(samples, cdf(scale))


@pytest.mark.parametrize("scale", [SCALES[4], SCALES[5]], ids=float)
def test_saturation_at_32_bits_is_noticed(scale: Fraction) -> None:
    """What OpenDP does when a domain says ``int``."""
    samples = [max(-(2**31), min(2**31 - 1, value)) for value in Laplace(scale).add_to([0] * SAMPLES)]
    assert not fits(samples, laplace_cdf(scale))


def test_noise_is_added_to_the_value_and_independently() -> None:
    noisy = Laplace(Fraction(1000)).add_to([10**12, -(10**12)] * (SAMPLES // 2))
    up, down = [value - 10**12 for value in noisy[::2]], [value + 10**12 for value in noisy[1::2]]
    assert fits(up, laplace_cdf(Fraction(1000)))
    # A sum of two independent ones is at most 0 with probability just above 1/2; of equal or opposite ones likewise, so
    # look at products, whose sign would be fixed.
    same_sign = sum((a > 0) == (b > 0) for a, b in zip(up, down, strict=True))
    assert happens_at_least(same_sign, len(up), 0.499)
    assert happens_at_least(len(up) - same_sign, len(up), 0.499)


@pytest.mark.parametrize("off", [None, 0.7, 1.3])
def test_the_chooser_prefers_by_its_scale(off: float | None) -> None:
    """Permute-and-flip between scores 0 and −d takes the worse one with probability e^(−d/scale)/2."""
    scale, distance, trials = 1000.0, 1000, 8000
    chooser = NoisyMax(Fraction(scale * (off or 1)))
    worse = sum(chooser.choose([0, -distance]) for _ in range(trials))
    claimed = math.exp(-distance / scale) / 2
    right = happens_at_least(worse, trials, claimed) and happens_at_least(trials - worse, trials, 1 - claimed)
    assert right == (off is None)
