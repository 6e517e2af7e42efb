"""Where the means of users lie, by number of rows: what is possible, and how well each possibility explains what was released.

A user's mean lies κ·τ further up with each standard deviation of the logarithm of the number of rows, τ being the standard deviation of
user means, and by a bend more among the busiest. Sums of distances by class of rows (`profiles/tilt.py`) tell which κ and bends are
likely, where they were bought.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.bounding.forecasts import USUAL_TILT
from evenhand.bounding.user_lists import Sizes
from evenhand.profiles import Array, MeanShapes
from evenhand.profiles.tilt import STEPS, TiltRequest

TILTS = np.array([-0.8, -0.45, -0.2, 0.0, 0.2, 0.45, 0.8])
"""Possible κ, correlations of a user's mean with the logarithm of their rows; `USUAL_TILT` is their usual size. The tails are those of a t law, so
that a large one that was seen is believed."""
BENDS = {-0.4: 0.15, 0.0: 0.7, 0.4: 0.15}
"""Possible changes of κ above `KNEE`, and how likely each is: the busiest users may be of another kind, such as machines or shops."""
KNEE = 1.5
"""Standard deviations above the usual logarithm of rows: about one user in fifteen."""

JUMPS = (-6.0, -3.0, -1.5, 1.5, 3.0, 6.0)
"""Possible distances in τ of the busiest users from all others, who lie alike: machines among people."""
JUMP_FROM = (1.2, 2.0)
"""Standard deviations above the usual logarithm of rows from which on users are such."""
JUMP = 0.004
"""How likely each of them is beforehand."""

_OFF_LINE = 0.15  # by which the users of one class may miss the line, in τ
_FREEDOM = 4.0  # of the t law by which predictions may miss what was released


@dataclass(frozen=True)
class Tilt:
    """Noisy sums of how far users lie from the centre, by class of rows.

    Args:
        request: what was bought.
        sums: in parts of its reach.
        noise: standard deviation of the noise on each.
    """

    request: TiltRequest
    sums: Array
    noise: float

    @classmethod
    def of(cls, request: TiltRequest, noisy: Sequence[int], moves: int) -> Tilt:
        """Read what was released."""
        return cls(request, np.asarray(noisy) / STEPS, math.sqrt(2) * moves / float(request.epsilon))

    def compared(self, users: Users, shrunk: Array) -> Compared:
        """How possibilities explain the sums, the users of a class taken together.

        Args:
            users: what is known about them.
            shrunk: by size, the standard deviation of user means, in τ.
        """
        reach, starts, people = self.request.reach, self.request.starts, users.people
        place = np.searchsorted(starts, users.sizes.sizes, side="right") - 1
        classes = people[:, None] * (place[:, None] == np.arange(len(starts)))  # one column for each class
        total = classes.sum(axis=0)
        average = classes / np.maximum(total, 1e-9)
        spread = (shrunk @ average)[:, None] * users.around[:, None, :]
        clipped = np.clip((users.mean[:, None, None] + spread + (users.shift @ average)[..., None]) / reach, -1, 1)
        weights = users.shapes.weights[:, None, :]
        first, second = (weights * clipped).sum(axis=-1) * total, (weights * clipped**2).sum(axis=-1) * total
        slope = (weights * (np.abs(clipped) < 1)).sum(axis=-1) * total / reach
        variance = self.noise**2 + second + (_OFF_LINE * users.tau[:, None] * slope) ** 2
        return Compared.of(self.sums - first, slope, variance)


@dataclass(frozen=True)
class Users:
    """Users by number of rows and where their means lie, put together.

    Args:
        sizes: by number of rows.
        shapes: curves of where the means of those lie who were asked.
        asked: rows from which on a user was.
    """

    sizes: Sizes
    shapes: MeanShapes
    asked: int

    @functools.cached_property
    def people(self) -> Array:
        """Expected users of each size."""
        return self.sizes.weights @ self.sizes.users

    @functools.cached_property
    def mean(self) -> Array:
        """Of each curve."""
        mean: Array = (self.shapes.weights * self.shapes.offsets).sum(axis=1)
        return mean

    @functools.cached_property
    def around(self) -> Array:
        """The points of each curve, seen from its mean."""
        return self.shapes.offsets - self.mean[:, None]

    @functools.cached_property
    def tau(self) -> Array:
        """The standard deviation of each curve."""
        tau: Array = np.sqrt((self.shapes.weights * self.around**2).sum(axis=1))
        return tau

    @functools.cached_property
    def _heavy(self) -> Array:
        """Expected users of each size who were asked."""
        sizes = self.sizes.sizes
        return np.where(sizes >= min(self.asked, sizes[-1]), self.people, 0.0) + 1e-12

    @functools.cached_property
    def shift(self) -> Array:
        """By possibility, curve and size: how far means of users lie from those of the users asked."""
        activity = self.sizes.activity()
        usual = float(self._heavy @ activity / self._heavy.sum())
        return shifts(activity, usual)[:, None, :] * self.tau[:, None]

    def shrunk(self, own: float) -> Array:
        """By size, the standard deviation of user means in τ, if a part ``own`` of its square does not shrink with more rows; above 1 it grows."""
        usual = self._heavy.sum() / (self._heavy / self.sizes.sizes).sum()
        found: Array = np.sqrt(np.clip(own + (1 - own) * usual / self.sizes.sizes, 0.25, 4.0))
        return found


@dataclass(frozen=True)
class Compared:
    """What was released against what possibilities predict, up to one unknown offset that all predictions share."""

    squares: Array
    cross: Array
    slopes: Array
    logs: Array

    @classmethod
    def of(cls, missed: Array, slope: Array, variance: Array) -> Compared:
        """Sums over the last axis: of misses that grow by ``slope`` with the offset, with these variances."""
        parts = missed**2 / variance, missed * slope / variance, slope**2 / variance, np.log(variance)
        return cls(*(np.asarray(part).sum(axis=-1) for part in parts))

    def likelihood(self, doubt: float) -> Array:
        """By a t law, the offset having standard deviation ``doubt``; up to a factor."""
        slopes = 1 + doubt**2 * self.slopes
        squares = np.maximum(self.squares - doubt**2 * self.cross**2 / slopes, 0.0)
        logs = -_FREEDOM * np.log1p(squares / _FREEDOM) - (self.logs + np.log(slopes)) / 2
        likelihood: Array = np.exp(logs - logs.max())
        return likelihood


def shifts(activity: Array, usual: float = 0.0) -> Array:
    """By possibility and size, how far means of users lie from those of users with the ``usual`` activity, in τ."""
    above = np.maximum(activity - KNEE, 0.0) - max(usual - KNEE, 0.0)
    line = np.multiply.outer(TILTS, activity - usual)[:, None, :] + np.multiply.outer([*BENDS], above)
    steps = np.multiply.outer(
        JUMPS, np.greater.outer(activity, JUMP_FROM).T * 1.0 - np.greater(usual, JUMP_FROM)[:, None]
    )
    found: Array = np.concatenate([part.reshape(-1, len(activity)) for part in (line, steps)])
    return found


def prior() -> Array:
    """How likely each possibility is beforehand: κ by a t law of three degrees of freedom."""
    lines = np.multiply.outer((1 + (TILTS / USUAL_TILT) ** 2) ** -2.0, [*BENDS.values()]).ravel()
    jumps = np.full(len(JUMPS) * len(JUMP_FROM), JUMP)
    found: Array = np.concatenate([lines / lines.sum() * (1 - jumps.sum()), jumps])
    return found
