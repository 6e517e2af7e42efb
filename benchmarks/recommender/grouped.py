"""Catalogues of 20,000 items by way of public groups: how often a liked item that was left out is among the first ten.

    python -m benchmarks.recommender.grouped [--out FOLDER]

People are generated: they rate what is popular and what they like, and like an item with a probability that depends on their class and
on the item's group, or on something else that the groups do not show. Against recommending what is most popular, and against what a
person could do without any campaign: the same formula with their own like rate in the place of the model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import keep, table
from evenhand.recommender import Campaign
from evenhand.recommender.at_home import opinions_of_groups, recommend_from_groups
from evenhand.recommender.at_server import Fold
from evenhand.recommender.messages import Groups, PublishedModel
from evenhand.recommender.simulation import ResampledPeople

ITEMS, GROUPS, RATED = 20_000, 40, 40
SHAPES = ("mirrored", "four classes", "one class", "not by group")
CAMPAIGNS = (("maxsense", 300_000), ("pairwise", 30_000), ("pairwise", 300_000))
SEEDS = 3
TESTED = 200

Liked = dict[int, bool]


@dataclass(frozen=True)
class World:
    """A catalogue in groups, and people with ratings."""

    groups: Groups
    people: list[Liked]


def world(shape: str, people: int, seed: int, items: int = ITEMS, groups: int = GROUPS, rated: int = RATED) -> World:
    """Popularity falls as 1/rank; groups differ in size; an item that a person would like is rated three times as often."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(groups, 2.0))
    group = np.concatenate([np.arange(groups), random.choice(groups, items - groups, p=shares)])
    popularity = 1 / (1 + random.permutation(items))
    tastes = _tastes(shape, groups, random)
    shown = group if shape != "not by group" else random.integers(0, groups, items)
    likes = np.where(tastes, 0.8, 0.2)[:, shown]
    found = []
    for number in range(people):
        mine = likes[number % len(likes)]
        edges = np.cumsum(popularity * (0.2 + mine))
        drawn = np.searchsorted(edges, random.random(4 * rated) * edges[-1])
        chosen = list(dict.fromkeys(drawn.tolist()))[:rated]
        found.append({item: bool(random.random() < mine[item]) for item in chosen})
    names = tuple(f"group {number}" for number in range(groups))
    members = tuple((int(one),) for one in group)
    return World(Groups(names, tuple(f"item {n}" for n in range(items)), members, tuple(popularity.tolist())), found)


def _tastes(shape: str, groups: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each class of people likes each group."""
    halves = np.array([random.permutation(np.arange(groups) % 2 == 0) for _ in range(4)])
    if shape == "four classes":
        return halves
    return halves[:1] if shape == "one class" else np.concatenate([halves[:1], ~halves[:1]])


def learn(found: World, sketch: str, users: int, seed: int) -> PublishedModel:
    """A campaign at ε = 1, answered by the people resampled."""
    groups = found.groups
    opinions = np.zeros((len(found.people), len(groups.names)), np.int8)
    for row, liked in zip(opinions, found.people, strict=True):
        for one, likes in opinions_of_groups(liked, groups).items():
            row[one] = 1 if likes else -1
    rated = int(np.median((opinions != 0).sum(axis=1)))
    campaign = Campaign(groups.names, sketch, 1, rated, users=users, pool="auto")
    fold = Fold(campaign.open(f"benchmark {seed}"))
    ResampledPeople(opinions, seed).answer(fold, 0, users)
    return campaign.publish(fold)


def hit_rate(people: list[Liked], first_ten: Callable[[Liked], list[int]], seed: int) -> float:
    """The share of people whose left-out like is among the first ten; each has at least one like."""
    random = np.random.default_rng(seed)
    hits = []
    for liked in people:
        likes = [item for item, like in liked.items() if like]
        if likes:
            left_out = likes[random.integers(len(likes))]
            hits.append(left_out in first_ten({item: like for item, like in liked.items() if item != left_out}))
    return float(np.mean(hits))


def by_model(model: PublishedModel, groups: Groups) -> Callable[[Liked], list[int]]:
    """What a person computes at home."""
    numbers = {name: number for number, name in enumerate(groups.items)}
    return lambda liked: [numbers[one.item] for one in recommend_from_groups(model, groups, liked)]


def alone(groups: Groups, personal: bool) -> Callable[[Liked], list[int]]:
    """The most popular; or, ``personal``, popularity times one's own share of likes in the group, drawn toward one's like rate."""
    group = np.array([members[0] for members in groups.members])
    popularity = np.array(groups.popularity)

    def first_ten(liked: Liked) -> list[int]:
        items, likes = np.array(list(liked), np.int64), np.array(list(liked.values()), np.float64)
        rated = np.bincount(group[items], minlength=len(groups.names))
        mine = np.bincount(group[items], likes, len(groups.names))
        fits = (mine + 2 * likes.mean()) / (rated + 2) if personal and len(items) else np.ones(len(rated))
        scores = popularity * fits[group]
        scores[items] = -1
        return [int(item) for item in np.argsort(-scores, kind="stable")[:10]]

    return first_ten


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().out
    rows, raw = [], {}
    for shape in SHAPES:
        rates: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            found = world(shape, 1500 + TESTED, 100 + seed)
            learnt, tested = World(found.groups, found.people[TESTED:]), found.people[:TESTED]
            methods = {"popular": alone(found.groups, False), "own ratings": alone(found.groups, True)}
            for sketch, users in CAMPAIGNS:
                name = f"campaign, {sketch}, {users:,} people"
                methods[name] = by_model(learn(learnt, sketch, users, seed), found.groups)
            for name, method in methods.items():
                rates.setdefault(name, []).append(hit_rate(tested, method, seed))
        raw[shape] = rates
        rows += [
            [shape, name, *(f"{value:.1%}" for value in (np.median(found), min(found)))]
            for name, found in rates.items()
        ]
    day = datetime.now(UTC).date().isoformat()
    head = (
        f"# Hit rate at ten, {ITEMS:,} items in {GROUPS} groups, {day}\n\nε = 1, about {RATED} ratings per person, {TESTED} people tested; median and "
        f"worst of {SEEDS} generated worlds.\n\n"
    )
    keep(folder, f"{day}-grouped", head + table(["tastes", "method", "median", "worst"], rows) + "\n", raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
