"""Plausible lists of users by number of rows, for what a bound did to a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.population import Array, Population, Support

_TABLES = 60  # that stand for all
_SIZES = 64


@dataclass(frozen=True)
class Sizes:
    """Plausible lists of users by number of rows: ``users[c]`` of each size under possibility c, with its weight.

    ``visible`` says whether anybody stood out from the noise.
    """

    sizes: Array
    users: Array
    weights: Array
    visible: bool = True

    @classmethod
    def exact(cls, support: Support) -> Sizes:
        """Of public counts: at most a few dozen sizes, enough for a forecast."""
        if len(support.sizes) <= _SIZES:
            return cls(support.sizes, support.users[None, :], np.ones(1))
        edges = np.geomspace(support.sizes[0], support.sizes[-1] * 1.0001, _SIZES)
        place = np.searchsorted(edges, support.sizes, side="right")
        users = np.bincount(place, weights=support.users).astype(np.float64)
        rows = np.bincount(place, weights=support.users * support.sizes)
        some = users > 0
        return cls(rows[some] / users[some], users[some][None, :], np.ones(1))

    @classmethod
    def of(cls, people: Population) -> Sizes:
        """A few tables for all."""
        some = people.few(_TABLES, people.users @ people.sizes**1.5)
        sizes, users = some.listed()
        there = users @ sizes >= 0.5
        if not there.any():  # nobody, as far as one can see: any list will do
            return cls(np.ones(1), np.ones((1, 1)), np.ones(1), False)
        return cls(sizes, users[there], some.weights[there] / some.weights[there].sum(), people.visible)

    @property
    def rows(self) -> Array:
        """Of each possibility."""
        return self.users @ self.sizes

    def activity(self) -> Array:
        """Logarithm of the rows of a user of each size, in standard deviations from the mean over users."""
        people, logs = self.weights @ self.users, np.log(self.sizes)
        logs = logs - people @ logs / people.sum()
        deviation = math.sqrt(float(people @ logs**2 / people.sum()))
        return logs / deviation if deviation > 0.05 else np.zeros_like(logs)
