"""How good the recommendations are: leave one liked item out, and see whether it comes back near the top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError
from evenhand.recommender.at_home import recommend
from evenhand.recommender.at_server.sketches import Ints, Opinions
from evenhand.recommender.messages import PublishedModel
from evenhand.recommender.tastes import Tastes

TOP = 10

Scores = NDArray[np.float64]
"""For every person and item; larger is recommended earlier."""


@dataclass(frozen=True)
class Quality:
    """How often the left-out item is among the first ten, and how near the top.

    Args:
        hit_rate: the share of people whose item is among the first ten.
        ndcg: the average of 1/log2(1 + rank) over people, counting 0 beyond rank ten.
    """

    method: str
    hit_rate: float
    ndcg: float


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
    random = np.random.default_rng(seed)
    able = tests[((tests == 1).sum(axis=1) >= 1) & ((tests != 0).sum(axis=1) >= 2)]
    if not len(able):
        raise DataError("Nobody has a like to leave out: the comparison needs people with two or more ratings.")
    keys = np.where(able == 1, random.random(able.shape), -1)
    left_out = keys.argmax(axis=1)
    known = able.copy()
    known[np.arange(len(known)), left_out] = 0
    likes = (training == 1).sum(axis=0).astype(np.float64)
    scores = {
        **{name: _scores_at_home(model, known) for name, model in models.items()},
        "popularity (not private)": np.broadcast_to(likes, known.shape),
        "factorisation (not private)": _factor_scores(training, dimensions, known),
    }
    return [_evaluate(name, found, known, left_out) for name, found in scores.items()]


def _scores_at_home(model: PublishedModel, known: Opinions) -> Scores:
    """What each person would compute."""
    numbers = {item: number for number, item in enumerate(model.items)}
    scores = np.zeros(known.shape)
    for person, opinions in enumerate(known):
        liked = {int(item): bool(opinions[item] > 0) for item in np.flatnonzero(opinions)}
        for place, found in enumerate(recommend(model, liked, top=len(numbers))):
            scores[person, numbers[found.item]] = -place
    return scores


def _factor_scores(training: Opinions, dimensions: int, known: Opinions) -> Scores:
    """By the leading right singular vectors of the ratings, as an embedding of the items."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    rank = max(1, min(dimensions, min(training.shape) - 1))
    _, values, vectors = svds(csr_array(training.astype(np.float64)), rank)
    weighted = vectors.T * np.sqrt(values)
    return np.asarray((known @ weighted) @ weighted.T)


def _evaluate(name: str, scores: Scores, known: Opinions, left_out: Ints) -> Quality:
    people = np.arange(len(known))
    mine = scores[people, left_out][:, None]
    rivals = (known == 0) & (np.arange(known.shape[1]) != left_out[:, None])
    # An item is placed in the middle of those that tie with it.
    ahead = (rivals & (scores > mine)).sum(axis=1) + (rivals & (scores == mine)).sum(axis=1) / 2
    hit = ahead < TOP
    return Quality(name, float(hit.mean()), float(np.where(hit, 1 / np.log2(2 + ahead), 0).mean()))
