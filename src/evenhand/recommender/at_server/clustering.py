"""Clusters of items: exact k-means in one dimension, Lloyd's with restarts in more, k given or chosen."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.reading import Floats, Reading

MOST_CLUSTERS = 20
_RESTARTS = 20

Labels = NDArray[np.int64]
Cost = Callable[[Labels, Labels], Floats]


def cluster(reading: Reading, clusters: int | None) -> Labels:
    """The cluster of each item, numbered from 0.

    Edge cases:
        ``None`` chooses the fewest clusters whose members differ by no more than the noise explains, up to 20.
        More clusters than different rows are an error.
    """
    profile = reading.profile
    distinct = len(np.unique(profile, axis=0))
    if clusters is not None and not 1 <= clusters <= distinct:
        raise UsageError(
            f"clusters={clusters} is out of range: the items' scores take {distinct} different values, "
            f"so ask for 1 to {distinct} clusters, or leave it out to have it chosen."
        )
    if clusters is not None:
        return kmeans(profile, clusters)[0]
    # Pure noise would leave this much: its mean, and three standard deviations.
    explained = reading.noise**2 * profile.size * (1 + 3 * np.sqrt(2 / profile.size))
    labels = np.zeros(len(profile), np.int64)
    for count in range(1, min(MOST_CLUSTERS, distinct) + 1):
        labels, spread = kmeans(profile, count)
        if spread <= explained:
            break
    return labels


def kmeans(profile: Floats, clusters: int) -> tuple[Labels, float]:
    """k-means: the labels, and the sum of squared distances to the clusters' means."""
    labels = kmeans_1d(profile[:, 0], clusters) if profile.shape[1] == 1 else _lloyd(profile, clusters)
    return labels, _spread(profile, labels, clusters)


def kmeans_1d(values: Floats, clusters: int) -> Labels:
    """The k-means clustering of numbers with the least possible spread; cluster 0 holds the largest.

    Guarantee:
        Optimal up to rounding, by dynamic programming over the sorted values: the best start of the last
        cluster never moves back as more values are covered, so each layer takes O(N log N).

    Edge cases:
        Values with a large common offset lose no accuracy: they are centred first.

    Args:
        values: one number per item.
        clusters: at most as many as there are different values.
    """
    order = np.argsort(-values, kind="stable")
    centred = values[order] - np.median(values)
    sums, squares = (np.concatenate(([0.0], np.cumsum(part))) for part in (centred, centred**2))

    def cost(start: Labels, stop: Labels) -> Floats:
        total = sums[stop] - sums[start]
        return np.asarray(squares[stop] - squares[start] - total * total / (stop - start))

    size = len(values)
    stops = np.arange(1, size + 1)
    best = np.concatenate(([np.inf], cost(np.zeros_like(stops), stops)))
    cuts = []
    for layer in range(2, clusters + 1):
        best, cut = _next_layer(best, cost, layer, size)
        cuts.append(cut)
    labels = np.empty(size, np.int64)
    stop = size
    for number in range(clusters - 1, -1, -1):
        start = int(cuts[number - 1][stop]) if number else 0
        labels[order[start:stop]] = number
        stop = start
    return labels


def _next_layer(before: Floats, cost: Cost, layer: int, size: int) -> tuple[Floats, Labels]:
    """One more cluster: the least cost of covering the first ``stop`` values, and where its last cluster starts.

    Divide and conquer over ``stop``, all ranges of one depth at once: the best start for a range's middle bounds
    the starts of both halves.
    """
    best, starts = np.full(size + 1, np.inf), np.zeros(size + 1, np.int64)
    low, high = np.array([layer]), np.array([size])
    left, right = np.array([layer - 1]), np.array([size - 1])
    while len(low):
        stop = (low + high) // 2
        counts = np.minimum(right, stop - 1) - left + 1
        heads = np.concatenate(([0], np.cumsum(counts)[:-1]))
        owner = np.repeat(np.arange(len(stop)), counts)
        start = np.arange(len(owner)) + (left - heads)[owner]
        value = before[start] + cost(start, stop[owner])
        least = np.minimum.reduceat(value, heads)
        ties = np.flatnonzero(value == least[owner])
        chosen = start[ties[np.unique(owner[ties], return_index=True)[1]]]
        best[stop], starts[stop] = least, chosen
        low, high = np.concatenate((low, stop + 1)), np.concatenate((stop - 1, high))
        left, right = np.concatenate((left, chosen)), np.concatenate((chosen, right))
        open_ranges = low <= high
        low, high, left, right = (part[open_ranges] for part in (low, high, left, right))
    return best, starts


def _lloyd(profile: Floats, clusters: int) -> Labels:
    """The best of many restarts; the generator is seeded since this only post-processes released sums."""
    from scipy.cluster.vq import kmeans2

    generator = np.random.default_rng(0)
    best, best_spread = np.zeros(len(profile), np.int64), np.inf
    for _ in range(_RESTARTS if clusters > 1 else 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty cluster just makes a poor restart
            _, found = kmeans2(profile, clusters, iter=50, minit="++", rng=generator)
        spread = _spread(profile, found, clusters)
        if spread < best_spread:
            best, best_spread = found.astype(np.int64), spread
    # Number clusters by first appearance, which does not depend on the restart.
    _, first, found = np.unique(best, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[found]


def _spread(profile: Floats, labels: Labels, clusters: int) -> float:
    sizes = np.maximum(1, np.bincount(labels, minlength=clusters))
    means = np.stack([np.bincount(labels, column, clusters) / sizes for column in profile.T], axis=1)
    return float(((profile - means[labels]) ** 2).sum())
