"""The list of users that is read from a noisy histogram: plausible, scale-free, and never a crash, whatever the noise says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.population import Buckets, Population, norm_buckets, row_buckets, total_buckets

RASTERS = [norm_buckets(), row_buckets(), total_buckets(40_000), norm_buckets(1), norm_buckets(2), norm_buckets(12)]


def histogram(buckets: Buckets, sizes: np.ndarray) -> np.ndarray:
    return buckets.histogram(sizes.astype(np.int64)).astype(float)


def test_exact_counts_come_back_as_they_are() -> None:
    buckets, sizes = norm_buckets(), np.repeat([1, 2, 3, 8, 50], [400, 900, 700, 300, 200])
    support = Population.behind(buckets, histogram(buckets, sizes), 1e-6).typical
    assert support.people == pytest.approx(2_500, rel=1e-3)
    assert dict(zip(support.sizes, np.rint(support.users), strict=True))[3.0] == 700


def test_an_end_that_can_be_seen_is_believed() -> None:
    buckets = row_buckets()
    counts = histogram(buckets, np.random.default_rng(1).integers(1, 101, 4_000))
    support = Population.behind(buckets, counts + np.random.default_rng(2).laplace(0, 3, len(counts)), 3.0).typical
    assert support.users[support.sizes > 101].sum() < 2


def test_a_heavy_tail_goes_on_where_nobody_can_be_seen() -> None:
    buckets, rng = row_buckets(), np.random.default_rng(3)
    sizes = np.floor((1 - rng.random(20_000)) ** (-1 / 1.3))
    scale = 60.0
    support = Population.behind(buckets, histogram(buckets, sizes) + rng.laplace(0, scale, buckets.size), scale).typical
    hidden = float(np.sort(sizes)[-30])  # far fewer users than the noise in one bucket
    assert 3 < support.users[support.sizes > hidden].sum() < 300


@pytest.mark.parametrize("buckets", RASTERS, ids=lambda buckets: f"{buckets.size} buckets")
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6), scale=st.sampled_from([1e-6, 0.3, 20.0, 1e6]), people=st.sampled_from([0, 30, 10**5])
)
def test_whatever_the_noise_says_there_are_some_users(buckets: Buckets, seed: int, scale: float, people: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.laplace(0, scale, buckets.size)
    counts[rng.integers(0, buckets.size)] += people
    support = Population.behind(buckets, counts, scale).typical
    assert (support.users >= 0).all()
    assert 0 < support.people < np.inf
    assert (np.diff(support.sizes, prepend=0.0) > 0).all()


@pytest.mark.parametrize("value", [0.0, -5.0, 2.0**62, -(2.0**62)])
def test_constant_counts_do_no_harm(value: float) -> None:
    support = Population.behind(norm_buckets(), [value] * norm_buckets().size, 1.0).typical
    assert 0 < support.people < np.inf


def test_values_in_another_unit_give_the_same_users() -> None:
    rng = np.random.default_rng(4)
    noise = rng.laplace(0, 10, total_buckets(2**26).size)
    totals = rng.lognormal(2, 1, 5_000)
    found = []
    for unit in (2**26, 2**29):
        buckets = total_buckets(unit)
        counts = histogram(buckets, np.ceil(totals * unit / 5))
        support = Population.behind(buckets, counts + noise[: len(counts)], 10.0).typical
        found.append(float(support.users @ support.sizes) / unit)
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_without_evidence_people_contribute_little() -> None:
    rng = np.random.default_rng(5)
    for buckets, much in ((norm_buckets(), 300), (total_buckets(2**16), 300 * 2**16)):
        for _ in range(20):
            support = Population.behind(buckets, rng.laplace(0, 50, buckets.size), 50.0).typical
            assert support.users[support.sizes > much].sum() < 0.2 * support.people
