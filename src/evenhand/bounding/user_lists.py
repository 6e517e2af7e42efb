"""Plausible lists of users by number of rows, for what a bound did to a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.profiles import Array, Posterior, Support, evenly

_CURVES = 6  # of users by rows, that stand for all
_LARGEST = np.array([0.03, 0.15, 0.5, 0.85, 0.97])  # quantiles of the largest user's place
_LARGEST_WEIGHTS = np.array([0.07, 0.2, 0.46, 0.2, 0.07])
_SHARED = np.array([0.4, 1.0, 1.8])
"""By which all users above the last bucket that stands out may be fewer or more than a curve says."""
_FILLED = np.array([0.1, 0.5, 0.5])
"""The part of that bucket's users in its upper half: in the first case the table ends within it."""
_SHARED_WEIGHTS = np.array([0.35, 0.4, 0.25])
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
    @np.errstate(all="ignore")  # a warning would show what was released
    def of(cls, posterior: Posterior) -> Sizes:
        """Of a noisy histogram: a few curves for all, each with several places of its largest user."""
        tail = posterior.users @ (posterior.sizes**1.5)
        curves = posterior.users[evenly(tail, posterior.weights, _CURVES)]
        above = np.cumsum(curves[:, ::-1], axis=1)[:, ::-1]
        kept = above[:, None, :] > -np.log(_LARGEST)[:, None]
        hidden = np.where(np.arange(curves.shape[1]) > posterior.last, _SHARED[:, None], 1.0)
        users = (hidden[:, None, None, :] * curves[:, None, :] * kept).reshape(-1, curves.shape[1])
        weights = np.multiply.outer(_SHARED_WEIGHTS, np.tile(_LARGEST_WEIGHTS / _CURVES, _CURVES))
        # At the middle alone a bound there would seem to cut nobody.
        upper = np.full((len(_SHARED), curves.shape[1]), 0.5)
        upper[:, posterior.last] = _FILLED
        upper = np.repeat(upper, _CURVES * len(_LARGEST), axis=0)
        some = users.any(axis=0)
        quarter = (posterior.highs - posterior.lows)[some] / 4
        sizes = (posterior.sizes[some][:, None] + quarter[:, None] * [-1, 1]).ravel()
        halves = np.stack([users * (1 - upper), users * upper], axis=2)[:, some].reshape(len(users), -1)
        there = halves @ sizes >= 0.5
        if not there.any():  # nobody, as far as one can see: any list will do
            return cls(np.ones(1), np.ones((1, 1)), np.ones(1), False)
        return cls(sizes, halves[there], weights.ravel()[there] / weights.ravel()[there].sum(), posterior.visible)

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
