"""k-means in one dimension is optimal, offsets do not matter, and the number of clusters is chosen by the noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Batch, Fold
from evenhand.recommender.at_server.clustering import cluster, kmeans, kmeans_1d
from evenhand.recommender.at_server.reading import Reading, read_spectrum
from evenhand.recommender.messages import SKETCHES


def spread(values: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    return sum(((values[labels == label] - values[labels == label].mean()) ** 2).sum() for label in set(labels))


def best_spread(values: NDArray[np.float64], clusters: int) -> float:
    ordered = np.sort(values)
    return min(
        sum(((part - part.mean()) ** 2).sum() for part in np.split(ordered, cuts))
        for cuts in itertools.combinations(range(1, len(values)), clusters - 1)
    )


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=11), st.integers(1, 4), st.sampled_from([0, 10**9, -(10**12)])
)
@settings(max_examples=300, deadline=None)
def test_no_clustering_is_better(numbers: list[int], clusters: int, offset: int) -> None:
    values = np.array(numbers, float)
    clusters = min(clusters, len(set(numbers)))
    labels = kmeans_1d(values + offset, clusters)  # the offset is exact in floating point
    assert len(set(labels.tolist())) == clusters
    assert spread(values, labels) <= best_spread(values, clusters) + 1e-9


def test_large_inputs_agree_with_a_plain_dynamic_programme() -> None:
    values = np.random.default_rng(5).normal(size=400)
    ordered = np.sort(values)
    sums, squares = (np.concatenate(([0], np.cumsum(part))) for part in (ordered, ordered**2))
    stops = np.arange(1, 401)
    cost = squares[stops] - sums[stops] ** 2 / stops
    for _ in range(6):
        padded = np.concatenate(([np.inf], cost))
        cost = np.array([
            min(
                padded[start] + squares[stop] - squares[start] - (sums[stop] - sums[start]) ** 2 / (stop - start)
                for start in range(stop)
            )
            for stop in range(1, 401)
        ])  # fmt: skip
    assert spread(values, kmeans_1d(values, 7)) == pytest.approx(cost[-1])


def reading_of(profile: NDArray[np.float64], noise: float) -> Reading:
    return Reading(profile, noise, None, None, 1)


@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("clusters", [1, 2, 4])
def test_the_number_of_clusters_is_chosen_by_the_noise(dimensions: int, clusters: int) -> None:
    """Chosen wrongly with probability 0.0013 (three standard deviations); the generator is seeded."""
    random = np.random.default_rng(clusters)
    labels = np.arange(400) % clusters
    centres = np.outer(np.arange(clusters), 8 * np.ones(dimensions))
    found = cluster(reading_of(centres[labels] + random.normal(size=(400, dimensions)), 1.0), None)
    assert len(set(zip(labels.tolist(), found.tolist(), strict=True))) == clusters


def test_more_clusters_than_different_scores_are_refused() -> None:
    profile = np.array([[1.0], [2.0], [1.0], [2.0]])
    with pytest.raises(UsageError, match="take 2 different values"):
        cluster(reading_of(profile, 0.1), 3)
    for wrong in (0, -1):
        with pytest.raises(UsageError, match="out of range"):
            cluster(reading_of(profile, 0.1), wrong)
    assert cluster(reading_of(profile, 0.1), 2).tolist() == [1, 0, 1, 0]


def test_lloyd_finds_separate_clouds() -> None:
    random = np.random.default_rng(0)
    labels = np.arange(300) % 3
    profile = 20 * np.eye(3)[labels] + random.normal(size=(300, 3))
    assert kmeans(profile, 3)[0].tolist() == labels.tolist()


@pytest.mark.parametrize("size", [2, 40, 300])
def test_spectrum_counts_what_stands_out(size: int) -> None:
    random = np.random.default_rng(3)
    noise = random.normal(size=(size, size))
    noise = (noise + noise.T) / np.sqrt(2)
    edge = 2 * np.sqrt(size)
    assert read_spectrum(1e-9 * noise, 1.0, edge, None).signals == 0
    if size > 2:
        signs = np.where(np.arange(size) % 2, 1.0, -1.0)
        found = read_spectrum(noise + 6 / np.sqrt(size) * np.outer(signs, signs), 1.0, edge, None)
        assert found.signals == 1
        assert abs(np.sign(found.profile[:, 0]) @ signs) > 0.95 * size


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize(("items", "users"), [(100, 300), (100, 3000), (400, 2000), (100, 30_000), (2, 50)])
def test_noise_alone_is_said_to_be_noise(sketch: str, items: int, users: int) -> None:
    """Coin tosses for answers, from far too few to many: nothing may stand out. The generator is seeded."""
    campaign = Campaign((f"item {n}" for n in range(items)), sketch, 1, min(10, items), users=users)
    campaign.open("beacon")
    fold = Fold(campaign.task)
    serials = np.arange(users, dtype=np.uint32)
    fold.add(Batch(serials, np.random.default_rng(users).integers(0, 2, users, np.uint32), None))
    model = campaign.publish(fold)
    assert "Nothing stood out" in model.notes[0]
