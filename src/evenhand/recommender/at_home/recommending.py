"""Recommendations from the published model, of items or of groups of items, and one's own ratings: nothing is sent."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.guarantee import UsageError
from evenhand.recommender.at_home.ratings import usable
from evenhand.recommender.messages import PublishedModel
from evenhand.recommender.messages.groups import Groups

PRIOR_WEIGHT = 2.0
"""A cluster's published like rate counts as much as this many of one's own ratings."""


@dataclass(frozen=True)
class Recommendation:
    """An item not rated yet, and how well it seems to fit; scores compare items of one list only."""

    item: str
    score: float


def recommend(model: PublishedModel, liked: Mapping[int, bool], top: int = 10) -> list[Recommendation]:
    """The unrated items that fit best, best first.

    Guarantee:
        Computed on the device from what is public and what only its owner knows; it costs no ε.

    Edge cases:
        Without ratings, the most popular items, or the catalogue's order where popularity is unknown. Ratings that
        can't be used are left out, as in `answer`.

    Args:
        liked: for each rated item's number, whether it was liked.
    """
    if top < 1:
        raise UsageError(f"top={top} is out of range: expected at least 1.")
    liked = usable(liked, len(model.items))
    scores = tastes(model, liked)
    popularity = model.popularity or (0.0,) * len(model.items)
    unrated = [item for item in range(len(model.items)) if item not in liked]
    unrated.sort(key=lambda item: (-scores[item], -popularity[item], item))
    return [Recommendation(model.items[item], scores[item]) for item in unrated[:top]]


def tastes(model: PublishedModel, liked: Mapping[int, bool]) -> list[float]:
    """How well every item fits, the rated ones too: like rates, or inner products where the model has an embedding."""
    return _by_embedding(model, liked) if model.embedding else _by_cluster(model, liked)


def _by_embedding(model: PublishedModel, liked: Mapping[int, bool]) -> list[float]:
    """How much each item's vector points along what was liked, and away from what was not."""
    taste = [0.0] * model.dimensions
    for item, like in liked.items():
        for axis, value in enumerate(model.embedding[item]):
            taste[axis] += value if like else -value
    return [sum(a * b for a, b in zip(taste, vector, strict=True)) for vector in model.embedding]


def _by_cluster(model: PublishedModel, liked: Mapping[int, bool]) -> list[float]:
    """One's own like rate in each item's cluster, drawn toward everybody's."""
    sizes = Counter(model.clusters)
    everybody: dict[int, float] = dict.fromkeys(sizes, 0.0)
    for cluster, rate in zip(model.clusters, model.popularity or (0.5,) * len(model.items), strict=True):
        everybody[cluster] += rate
    rated = Counter(model.clusters[item] for item in liked)
    likes = Counter(model.clusters[item] for item, like in liked.items() if like)
    rates = {
        cluster: (likes[cluster] + PRIOR_WEIGHT * min(1.0, max(0.0, total / sizes[cluster])))
        / (rated[cluster] + PRIOR_WEIGHT)
        for cluster, total in everybody.items()
    }
    return [rates[cluster] for cluster in model.clusters]


def opinions_of_groups(liked: Mapping[int, bool], groups: Groups) -> dict[int, bool]:
    """For each group with a rated item, whether more of them were liked than not.

    Guarantee:
        A fixed rule that is applied at home, before the bits are computed: whatever the ratings are, there is a result, and the
        report made from it is ε-private in the ratings of items.

    Args:
        liked: for each rated item's number in ``groups.items``, whether it was liked.
    """
    counts = _counts(liked, groups)
    return {group: 2 * likes > rated for group, (likes, rated) in counts.items()}


def recommend_from_groups(
    model: PublishedModel, groups: Groups, liked: Mapping[int, bool], top: int = 10
) -> list[Recommendation]:
    """The unrated items that fit best, best first: an item's public popularity times how much its groups are liked.

    How much is one's own share of likes in a group, drawn toward what the model says for such tastes.

    Guarantee:
        As for `recommend`: computed at home, it costs no ε.

    Edge cases:
        Without ratings, or where the model knows nothing, the most popular items. An item of several groups counts with
        their average.
    """
    if top < 1:
        raise UsageError(f"top={top} is out of range: expected at least 1.")
    groups.check(model.items)
    liked = usable(liked, len(groups.items))
    said = _between_0_and_1(tastes(model, opinions_of_groups(liked, groups)), bool(model.embedding))
    counts = _counts(liked, groups)
    fits = []
    for group, prior in enumerate(said):
        likes, rated = counts.get(group, (0, 0))
        fits.append((likes + PRIOR_WEIGHT * prior) / (rated + PRIOR_WEIGHT))
    scores = [
        popularity * sum(fits[group] for group in members) / len(members)
        for members, popularity in zip(groups.members, groups.popularity, strict=True)
    ]
    unrated = (item for item in range(len(scores)) if item not in liked)
    best = heapq.nsmallest(top, unrated, key=lambda item: (-scores[item], item))
    return [Recommendation(groups.items[item], scores[item]) for item in best]


def _counts(liked: Mapping[int, bool], groups: Groups) -> dict[int, tuple[int, int]]:
    """For each group with a rated item: how many were liked, and how many rated."""
    counts: dict[int, tuple[int, int]] = {}
    for item, likes in usable(liked, len(groups.items)).items():
        for group in groups.members[item]:
            before = counts.get(group, (0, 0))
            counts[group] = (before[0] + likes, before[1] + 1)
    return counts


def _between_0_and_1(scores: list[float], signed: bool) -> list[float]:
    """Like rates as they are; scores around 0, which have no scale, by their largest."""
    largest = max(map(abs, scores), default=0.0)
    if not signed:
        return [min(1.0, max(0.0, score)) for score in scores]
    return [0.5 + 0.5 * score / largest if largest > 0 else 0.5 for score in scores]
