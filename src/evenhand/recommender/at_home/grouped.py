"""Tasks about groups of items: opinions of groups from ratings of items, and items from a model of groups."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from evenhand.guarantee import UsageError
from evenhand.recommender.at_home.ratings import usable
from evenhand.recommender.at_home.recommending import PRIOR_WEIGHT, Recommendation, tastes
from evenhand.recommender.messages import PublishedModel
from evenhand.recommender.messages.groups import Groups


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
