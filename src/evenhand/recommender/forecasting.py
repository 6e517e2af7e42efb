"""How many items a sketch is expected to misplace, in closed form, under the block model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from evenhand.recommender.messages import SENSING
from evenhand.recommender.tastes import Floats, Tastes
from evenhand.recommender.tuning import strength

_MOST_USERS = 10**15


@dataclass(frozen=True)
class Setting:
    """A campaign's public facts, as far as accuracy depends on them."""

    sketch: str
    items: int
    rated: int
    epsilon: Decimal
    theta: float = 1.0
    questions: int = 1
    public_rated: bool = False

    @property
    def set_size(self) -> int:
        """How many items a sensing query draws."""
        return max(1, math.floor(self.items * self.theta / self.rated + 0.5))

    @property
    def both_rated(self) -> float:
        """The chance that a person rated both of two items asked about."""
        pairs = self.items * (self.items - 1)
        return 1.0 if self.public_rated else self.rated * (self.rated - 1) / pairs


def forecast(setting: Setting, tastes: Tastes, users: float) -> float:
    """The expected share of items in the wrong cluster, by a normal approximation.

    Sensing scores are averages, so the central limit theorem gives the chance that an item's score is nearer to
    another class. Spectral sketches follow the eigenvector of a low-rank matrix in noise: an eigenvalue s times
    the noise level gives coordinates that stand sqrt(s² - 1) standard deviations apart, and nothing if s <= 1.
    """
    place = _sensing if setting.sketch in SENSING else _spectral
    coordinates = place(setting, tastes, users)
    distances = np.sqrt(((coordinates[:, None] - coordinates[None]) ** 2).sum(axis=2))
    shares = np.array(tastes.items)
    wrong = sum(
        shares[a] * _upper_tail(distances[a, b] / 2) for a in range(len(shares)) for b in range(len(shares)) if a != b
    )
    return min(float(wrong), chance(tastes))


def chance(tastes: Tastes) -> float:
    """The share of items that guessing gets wrong: all in the largest cluster."""
    return 1 - max(tastes.items)


def users_needed(setting: Setting, tastes: Tastes, wrong: float) -> int | None:
    """The fewest users with a forecast of at most ``wrong``; None if no number of users would do."""
    if forecast(setting, tastes, _MOST_USERS) > wrong:
        return None
    low, high = 0.0, math.log(_MOST_USERS)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if forecast(setting, tastes, math.exp(middle)) <= wrong else (middle, high)
    return math.ceil(math.exp(high))


def _sensing(setting: Setting, tastes: Tastes, users: float) -> Floats:
    """Each class's expected score in standard deviations of one item's score."""
    contrast = strength(float(setting.epsilon) / setting.questions)
    like, people = np.array(tastes.like), np.array(tastes.people)
    rates = tastes.like_rates * setting.rated / setting.items
    quiet = people @ (1 - rates) ** setting.set_size
    ones = 0.5 + contrast * (0.5 - quiet)
    means = contrast * setting.rated / setting.items * ((people * (1 - rates) ** (setting.set_size - 1)) @ like)
    sensed = users * setting.questions * setting.set_size / setting.items
    return np.asarray(means / math.sqrt(ones * (1 - ones) / sensed))[:, None]


def _spectral(setting: Setting, tastes: Tastes, users: float) -> Floats:
    """Each class's coordinates on the eigenvectors that stand out, in standard deviations."""
    size, contrast = setting.items, strength(float(setting.epsilon))
    shares, moment = np.array(tastes.items), tastes.second_moment
    if setting.sketch == "projection":
        w = setting.rated
        alignment = math.comb(w - 1, (w - 1) // 2) / 2 ** (w - 1) if w < 1000 else math.sqrt(2 / (math.pi * w))
        signal = users * contrast * alignment**2 * setting.both_rated * moment
        noise = math.sqrt(users / 2)
    else:
        asked = 2 * users / (size * (size - 1))
        average = shares @ moment @ shares
        signal = asked * contrast * setting.both_rated * (moment - average) / 2
        ones = 0.5 + contrast * (setting.both_rated * (1 + average) / 2 - 0.5)
        noise = math.sqrt(asked * ones * (1 - ones))
    root = np.sqrt(shares)
    values, vectors = np.linalg.eigh(root[:, None] * signal * root * size)
    strengths = np.maximum(values, 0) / (noise * math.sqrt(size))
    return np.asarray(vectors / root[:, None] * np.sqrt(np.maximum(strengths**2 - 1, 0)))


def _upper_tail(deviations: float) -> float:
    return 0.5 * math.erfc(deviations / math.sqrt(2))
