"""Recommendations from the published model and one's own ratings: nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.guarantee import UsageError
from evenhand.recommender.at_home.ratings import usable
from evenhand.recommender.messages import PublishedModel

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
