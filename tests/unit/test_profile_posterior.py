"""The posterior over contributions: which bound, what it cuts off, and that it reads nothing but noisy counts."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.profiles import Cut, posterior, row_buckets, total_buckets

BUCKETS = row_buckets()


def test_the_same_counts_give_the_same_answer() -> None:
    counts = BUCKETS.histogram(np.arange(1, 300)) + np.random.default_rng(1).laplace(0, 3, BUCKETS.size)
    one, two = (posterior(BUCKETS, counts, 3.0) for _ in range(2))
    assert one.best(2.0) == two.best(2.0)
    assert (one.cut(50).amounts == two.cut(50).amounts).all()


def test_without_noise_what_a_cap_cuts_off_is_known() -> None:
    rows = np.random.default_rng(2).integers(1, 101, 5000)
    cut = posterior(BUCKETS, BUCKETS.histogram(rows), 1e-6).cut(40)
    exact = np.maximum(rows - 40, 0).sum()
    assert abs(cut.median - exact) < 0.05 * exact
    assert cut.quantile(0.01) < exact < cut.quantile(0.99)


def test_a_higher_cap_cuts_off_less() -> None:
    rows = np.ceil(np.random.default_rng(3).lognormal(2, 1.5, 5000)).astype(np.int64)
    believed = posterior(BUCKETS, BUCKETS.histogram(rows) + np.random.default_rng(4).laplace(0, 5, BUCKETS.size), 5.0)
    medians = [believed.cut(cap).median for cap in (16, 64, 256, 4096)]
    assert medians == sorted(medians, reverse=True)
    assert believed.cut(2**39).median == 0


def test_more_noise_means_a_lower_cap() -> None:
    rows = np.ceil(np.random.default_rng(3).lognormal(2, 1.5, 5000)).astype(np.int64)
    believed = posterior(BUCKETS, BUCKETS.histogram(rows), 1.0)
    caps = [believed.best(noise) for noise in (0.1, 1.0, 10.0, 100.0)]
    assert caps == sorted(caps, reverse=True)
    assert caps[0] > caps[-1]


@pytest.mark.parametrize("unit", [80, 2**30])
def test_noise_alone_never_gives_a_cap_far_above_what_is_usual(unit: int) -> None:
    """200 people with one row each and bounds set far too wide: a false alarm would multiply the noise."""
    rng, buckets = np.random.default_rng(5), total_buckets(unit)
    counts = buckets.histogram(np.full(200, max(unit // 100, 1)))
    for _ in range(12):
        believed = posterior(buckets, counts + np.rint(rng.laplace(0, 30, buckets.size)), 30.0)
        assert believed.best(15.0) <= 20 * unit


@pytest.mark.parametrize("value", [0, -(10**6), 10**12])
def test_any_counts_give_finite_amounts(value: int) -> None:
    believed = posterior(BUCKETS, [value] * BUCKETS.size, 1.0)
    cut = believed.cut(believed.best(1.0))
    assert np.isfinite(cut.amounts).all()
    assert cut.weights.sum() == pytest.approx(1)


def test_amounts_of_either_sign_have_no_median_and_the_other_sign_turns_them() -> None:
    cut = Cut.of(np.array([1.0, 2.0, 4.0]), np.array([0.25, 0.5, 0.25]))
    assert cut.median == 2
    assert cut.times(-1).median == -2
    assert cut.times(-1).quantile(0.01) == -4
    assert cut.of_either_sign().median == 0
