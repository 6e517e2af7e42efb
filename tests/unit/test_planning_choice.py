"""The choices: what they read, what they do at the edges, and how the occupied buckets are told from noise."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from evenhand.bounding import LocatedMean, SmoothWeights, believed_cap, best_mean
from evenhand.bounding.smooth_weights import smooth_weights_for_mean
from evenhand.guarantee import Relation
from evenhand.population.occupied import surprise
from evenhand.profiles import (
    Buckets,
    CutTotal,
    Histogram,
    locate,
    location_request,
    row_buckets,
    support_of_counts,
    support_of_histogram,
    total_buckets,
)
from evenhand.profiles.location import Location, LocationRequest
from evenhand.tables import Grid

PRESENCE, VALUES = Relation.PRESENCE, Relation.VALUES


def cap_from(buckets: Buckets, counts: Any, epsilon_profile: float, epsilon: float) -> CutTotal:
    return believed_cap(Histogram(buckets, counts, epsilon_profile, "a test"), epsilon)


@pytest.mark.parametrize("run", [1, 2, 3, 4])
def test_surprise_is_the_tail_of_a_sum_of_laplace_variables(run: int) -> None:
    # 400,000 draws: five standard errors of the tail probability, so a false alarm once in a million runs.
    sums = np.random.default_rng(3).laplace(size=(400_000, run)).sum(axis=1)
    for total in (0.5, 2.0, 5.0):
        expected = math.exp(-float(surprise(np.array(total), run)))
        assert abs((sums > total).mean() - expected) < 5 * math.sqrt(expected / 400_000)


def test_a_cap_sits_at_the_edge_above_equal_users() -> None:
    buckets = row_buckets()
    choice = cap_from(buckets, buckets.histogram(np.full(5000, 16)), 0.35, 0.65)
    assert choice.bound == 16
    assert choice.expected.median == 0
    assert choice.believed.visible


def test_no_users_means_one_row_per_user() -> None:
    buckets = total_buckets(400)
    choice = cap_from(buckets, [0] * buckets.size, 0.35, 0.65)
    assert choice.bound <= 400
    assert not choice.believed.visible


def test_a_lone_far_bucket_of_noise_is_not_believed() -> None:
    buckets = row_buckets()
    noisy = buckets.histogram(np.full(5000, 16))
    noisy[45] = 20  # at ε = 0.5 that is ten times the noise's scale, but a million times too far away
    assert cap_from(buckets, noisy, 0.5, 0.5).bound == 16


def test_many_heavy_users_are_believed() -> None:
    buckets = row_buckets()
    noisy = buckets.histogram(np.concatenate([np.full(5000, 16), np.full(400, 1000)]))
    assert cap_from(buckets, noisy, 0.5, 0.5).bound == 1024


def test_the_support_behind_a_histogram_has_about_its_users_and_rows() -> None:
    buckets, rng = row_buckets(), np.random.default_rng(4)
    rows = np.maximum(np.rint(20 * np.exp(rng.standard_normal(20_000))), 1).astype(np.int64)
    noisy = buckets.histogram(rows) + np.rint(rng.laplace(0, 20, buckets.size)).astype(int)
    support = support_of_histogram(buckets, noisy, 20.0)
    assert support.people == pytest.approx(20_000, rel=0.05)
    assert support.rows == pytest.approx(rows.sum(), rel=0.1)


def test_too_few_users_are_not_located() -> None:
    assert location_request(support_of_counts([5] * 100), Decimal("0.1"), VALUES) is None


def test_location_asks_busy_users_and_stays_within_its_share() -> None:
    support = support_of_counts(np.random.default_rng(5).zipf(1.8, 50_000))
    request = location_request(support, Decimal(1), PRESENCE)
    assert request is not None
    assert request.rows > 1
    assert Decimal(0) < request.epsilon <= Decimal("0.25")
    assert request.bins in (8, 16, 32, 64, 128, 256)


def test_locating_finds_the_centre_and_ignores_a_false_bin() -> None:
    request = LocationRequest(Decimal(1), 1, 32, 1000.0)
    counts = np.zeros(32)
    counts[20:24] = 250
    counts[2] = 5  # noise
    location = locate(request, counts, PRESENCE)
    assert location is not None
    assert location.centre == pytest.approx(22 / 32, abs=1 / 64)
    assert location.spread < 0.12


def test_locating_an_empty_histogram_gives_up() -> None:
    assert locate(LocationRequest(Decimal(1), 1, 8, 1000.0), [-5] * 8, VALUES) is None


def test_a_located_mean_needs_a_denominator_of_its_own_where_counts_are_hidden() -> None:
    support = support_of_counts([10] * 20_000)
    request = LocationRequest(Decimal("0.05"), 1, 32, 20_000.0)
    location = locate(request, [0] * 15 + [20_000] + [0] * 16, PRESENCE)
    choice = best_mean(support, Grid(0.0, 1000.0, 0.0, 0), Decimal("0.95"), PRESENCE, location)
    assert isinstance(choice.strategy, LocatedMean)
    assert abs(choice.strategy.centre - 484) <= 1
    assert choice.strategy.rows_cap is not None
    values = best_mean(support, Grid(0.0, 1000.0, 0.0, 0), Decimal("0.95"), VALUES, location)
    assert isinstance(values.strategy, LocatedMean)
    assert values.strategy.rows_cap is None


def test_public_counts_allow_a_narrower_cap_on_the_side_where_users_are_close() -> None:
    support = support_of_counts([30] * 3000)
    offsets = np.concatenate([np.full(20, -0.02), np.linspace(0, 0.2, 20)])
    location = Location(0.1, offsets, np.full(40, 1 / 40), 0.1)
    values = best_mean(support, Grid(0.0, 1000.0, 0.0, 0), Decimal(1), VALUES, location)
    presence = best_mean(support, Grid(0.0, 1000.0, 0.0, 0), Decimal(1), PRESENCE, location)
    assert isinstance(values.strategy, LocatedMean)
    assert isinstance(presence.strategy, LocatedMean)
    assert values.strategy.below < values.strategy.above / 3
    assert (
        presence.strategy.below == presence.strategy.above
    )  # the larger cap is what one user moves: a smaller one saves nothing


def test_without_a_location_smooth_weights_are_chosen() -> None:
    choice = best_mean(support_of_counts([1] * 50 + [40]), Grid(0.0, 100.0, 0.0, 0), Decimal(1), VALUES)
    assert isinstance(choice.strategy, SmoothWeights)
    assert 1 <= choice.strategy.bound <= 40
    assert choice.bounding.strategy == "SmoothWeights"


def test_user_means_in_one_of_two_bins_are_closer_together_than_the_two_bins() -> None:
    request = LocationRequest(Decimal(1), 1, 16, 1000.0)
    uneven, even = ([0] * 4 + [most, 1000 - most] + [0] * 10 for most in (790, 500))
    narrow, wide = (locate(request, counts, PRESENCE) for counts in (uneven, even))
    assert narrow is not None
    assert wide is not None
    assert narrow.spread < wide.spread


def test_a_bucket_is_not_taken_for_its_middle() -> None:
    """Users anywhere in (64, 101]: a weight bound at the middle of the bucket cuts half of them, and at a large ε that matters."""
    counts = np.zeros(row_buckets().size)
    counts[row_buckets().index(np.array([80]))[0]] = 2000
    support = support_of_histogram(row_buckets(), counts, 0.1)
    assert smooth_weights_for_mean(support, 4.0, PRESENCE) > support.sizes[-1]
    assert support.spread_out().rows == pytest.approx(support.rows)
    exact = support_of_counts([80] * 2000)
    assert exact.spread_out() is exact


def test_wide_user_means_with_secret_counts_are_not_located() -> None:
    """Where user means fill the range nothing is gained by locating them, and the number of rows would cost extra."""
    support = support_of_counts([30] * 3000)
    location = Location(0.4, np.linspace(-0.4, 0.6, 30), np.full(30, 1 / 30), 0.5)
    assert (
        best_mean(support, Grid(0.0, 1000.0, 0.0, 0), Decimal(1), PRESENCE, location).strategy.title == "SmoothWeights"
    )
    close = Location(0.4, location.offsets / 10, location.weights, 0.05)
    assert best_mean(support, Grid(0.0, 1000.0, 0.0, 0), Decimal(1), PRESENCE, close).strategy.title == "LocatedMean"
