"""How good the recommendations are: leave one liked item out, and see whether it comes back near the top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, plain
from evenhand.recommender.at_home import recommend
from evenhand.recommender.at_server.sketches import Bits, Ints, Opinions
from evenhand.recommender.messages import PublishedModel
from evenhand.recommender.tastes import Tastes

TOP = 10
POPULARITY = "popularity (not private)"
FACTORISATION = "factorisation (not private)"

Scores = NDArray[np.float64]
"""For every person and item; larger is recommended earlier."""


@dataclass(frozen=True)
class Quality:
    """How often the left-out item is among the first ten of all that the person has not rated, and how near the top.

    Args:
        method: what recommends.
        hits: for each person, the chance that their item is among the first ten; equal scores are in random order.
        gains: for each person, the average of 1/log2(1 + rank), counting 0 beyond rank ten.
        users: how many people answered; None for methods that see the table.
        epsilon: with which ε; None for methods without privacy.
    """

    method: str
    hits: Scores = field(repr=False, compare=False)
    gains: Scores = field(repr=False, compare=False)
    users: int | None = None
    epsilon: str | None = None

    @property
    def hit_rate(self) -> float:
        """The share of people whose item is among the first ten."""
        return float(self.hits.mean())

    @property
    def ndcg(self) -> float:
        """NDCG at ten: with one item left out per person, the average gain."""
        return float(self.gains.mean())

    @property
    def hit_rate_error(self) -> float:
        """The standard error of the hit rate, from the draw of people."""
        return float(self.hits.std() / np.sqrt(len(self.hits)))

    def lead_over(self, other: Quality) -> tuple[float, float]:
        """By how much the NDCG is larger for the same people, and the standard error of that."""
        lead = self.gains - other.gains
        return float(lead.mean()), float(lead.std() / np.sqrt(len(lead)))

    def to_dict(self) -> dict[str, Any]:
        names = ("method", "users", "epsilon", "hit_rate", "hit_rate_error", "ndcg")
        return {name: getattr(self, name) for name in names}


class HeldOut:
    """People with one like each left out, drawn at random; those with fewer than two ratings are no test.

    Args:
        tests: must not be among those that anything was learnt from.
    """

    def __init__(self, tests: Opinions, seed: int = 0) -> None:
        able = tests[((tests == 1).sum(axis=1) >= 1) & ((tests != 0).sum(axis=1) >= 2)]
        if not len(able):
            raise DataError("Nobody has a like to leave out: the comparison needs people with two or more ratings.")
        keys = np.where(able == 1, np.random.default_rng(seed).random(able.shape), -1)
        self.left_out: Ints = keys.argmax(axis=1)
        self.known: Opinions = able.copy()
        self.known[np.arange(len(able)), self.left_out] = 0

    def judge(self, method: str, scores: Scores, users: int | None = None, epsilon: str | None = None) -> Quality:
        """The quality of scores, given for all items; what a person has rated is not recommended to them."""
        scores = np.broadcast_to(scores, self.known.shape)
        mine = scores[np.arange(len(scores)), self.left_out][:, None]
        candidates = self.known == 0
        ahead = (candidates & (scores > mine)).sum(axis=1)
        level = (candidates & (scores == mine)).sum(axis=1)  # with the item itself
        gains = np.concatenate(([0.0], np.cumsum(1 / np.log2(2 + np.arange(TOP)))))
        first, last = np.minimum(ahead, TOP), np.minimum(ahead + level, TOP)
        return Quality(method, (last - first) / level, (gains[last] - gains[first]) / level, users, epsilon)

    def judge_model(self, method: str, model: PublishedModel, epsilon: str | None = None) -> Quality:
        """The quality of what each person would compute at home from a published model."""
        numbers = {item: number for number, item in enumerate(model.items)}
        scores = np.zeros(self.known.shape)
        for person, opinions in enumerate(self.known):
            liked = {int(item): bool(opinions[item] > 0) for item in np.flatnonzero(opinions)}
            for place, found in enumerate(recommend(model, liked, top=len(numbers))):
                scores[person, numbers[found.item]] = -place
        return self.judge(method, scores, model.reports, epsilon)

    def without_privacy(self, training: Opinions, dimensions: int, seed: int = 0) -> list[Quality]:
        """What popularity and a factorisation recommend that see all training ratings."""
        likes = training == 1
        factors = factorise(likes, min(dimensions, *likes.shape), seed=seed)
        return [
            self.judge(POPULARITY, likes.sum(axis=0).astype(np.float64)),
            self.judge(FACTORISATION, factors.scores(self.known == 1)),
        ]


def draw_opinions(tastes: Tastes, items: int, rated: int, people: int, seed: int = 0) -> Opinions:
    """People of the block model with their opinions on ``rated`` random items."""
    random = np.random.default_rng(seed)
    return opinions_of(random.choice(len(tastes.people), people, p=tastes.people), tastes, items, rated, random)


def opinions_of(classes: Ints, tastes: Tastes, items: int, rated: int, random: np.random.Generator) -> Opinions:
    """The same for people of given classes."""
    shape = len(classes), items
    likes = random.random(shape) < np.array(tastes.like)[classes][:, tastes.labels(items)]
    keys = random.random(shape)
    chosen = keys <= np.partition(keys, rated - 1, axis=1)[:, rated - 1, None]
    return np.asarray(np.where(chosen, np.where(likes, 1, -1), 0), np.int8)


def compare(
    models: Mapping[str, PublishedModel], training: Opinions, tests: Opinions, dimensions: int, seed: int = 0
) -> list[Quality]:
    """The models' recommendations against popularity and a factorisation that both see all training ratings.

    Args:
        models: private models by name.
        training: what the two methods without privacy learn from.
        tests: people to recommend to; one like each is left out.
        dimensions: of the factorisation.
    """
    people = HeldOut(tests, seed)
    private = [people.judge_model(name, model, plain(model.epsilon)) for name, model in models.items()]
    return [*private, *people.without_privacy(training, dimensions, seed)]


_AT_ONCE = 4096  # people whose equations are solved together


@dataclass(frozen=True)
class Factorisation:
    """A vector for each item, by alternating least squares without privacy: what a recommender that sees everything does.

    Minimises, over a vector per person and per item, the sum over all pairs of (1 + weight · liked) (liked - x·y)², plus
    ``penalty`` times the squared lengths of all vectors.

    Reference: Hu, Koren and Volinsky, Collaborative Filtering for Implicit Feedback Datasets (2008).
    """

    items: Scores
    weight: float
    penalty: float

    def people(self, likes: Bits) -> Scores:
        """The best vector for each of these people, who need not be among those it was learnt from."""
        return _solve(likes, self.items, self.weight, self.penalty)

    def scores(self, likes: Bits) -> Scores:
        """How well each item fits each person; larger is better."""
        return np.asarray(self.people(likes) @ self.items.T)


def factorise(
    likes: Bits, dimensions: int, weight: float = 1.0, penalty: float = 10.0, rounds: int = 12, seed: int = 0
) -> Factorisation:
    """Learn from people x items, a like being true. The defaults are the best of a grid on MovieLens-100k."""
    found = np.random.default_rng(seed).normal(0, 0.1, (likes.shape[1], dimensions))
    for _ in range(rounds):
        people = _solve(likes, found, weight, penalty)
        found = _solve(likes.T, people, weight, penalty)
    return Factorisation(found, weight, penalty)


def _solve(likes: Bits, others: Scores, weight: float, penalty: float) -> Scores:
    """For each row of ``likes`` its best vector, the other side's vectors being fixed: one ridge regression each."""
    size = others.shape[1]
    products = (others[:, :, None] * others[:, None, :]).reshape(len(others), size * size)
    common = others.T @ others + penalty * np.eye(size)
    found = np.empty((len(likes), size))
    for at in range(0, len(likes), _AT_ONCE):
        some = likes[at : at + _AT_ONCE].astype(np.float64)
        left = common + weight * (some @ products).reshape(-1, size, size)
        right = (1 + weight) * (some @ others)
        found[at : at + _AT_ONCE] = np.linalg.solve(left, right[:, :, None])[:, :, 0]
    return found
