"""Busy users whom the noise of a profile hides: what their number, measured once more, says about how much a bound leaves out.

The weight of users far above the bound is released by the way (docs/proofs/quantiles.md), more precisely than a bucket of the profile. It speaks for
some members of the family and against others; and where it is more than any of them lets expect, for a crowd that is in none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.profiles import Array

_CROWD = 0.1
"""Prior: that there is a crowd of busy users whom no curve through the profile knows."""
_PEOPLE = np.geomspace(0.5, 16.0, 11)  # of the crowd, in standard deviations of the noise: fewer can't be seen
_FEWEST = 10.0  # people: fewer are no crowd but giants, whom no interval holds
_ROWS, _ROWS_WEIGHTS = np.array([2.0, 8.0, 32.0]), np.array([0.5, 0.3, 0.2])
"""Rows of each, as multiples of those from which a user is far above the bound; prior."""
_TOLERANCE = 0.35  # by which the users far above the bound may be more or fewer than a member says

_FARTHEST = 0.15
"""How far a rank moves for each standard deviation that is lost, at most: r of 0.3 at the median. A crowd moves no rank by more than its part of all rows."""


@dataclass(frozen=True)
class FarUsers:
    """Users far above a bound, by member of a family; and how busy rows are, in logarithms of their user's number of rows.

    Args:
        bound: rows that a user counts for.
        least: rows from which a user is far above it.
        users: far above the bound.
        weights: of the members.
        rows: of all users together.
        busy: the sum of the logarithms over all rows.
        kept: weighted rows.
        kept_busy: the sum over these.
        activity: how many users there are, and the mean and standard deviation of their logarithms.
        measured: whether users can be compared by how busy they are, so that the unit is that standard deviation.
    """

    bound: float
    least: float
    users: Array
    weights: Array
    rows: Array
    busy: Array
    kept: Array
    kept_busy: Array
    activity: tuple[float, float, float]
    measured: bool

    def lost(self, people: Array | float = 0.0, rows: Array | float = 1.0) -> Array:
        """How much busier all rows are than the weighted ones, with so many people more, of so many rows each."""
        activity = np.log(rows)
        every = (self.busy + people * rows * activity) / (self.rows + people * rows)
        weighted = (self.kept_busy + people * self.bound * activity) / (self.kept + people * self.bound)
        return np.asarray(every - weighted)

    def _unit(self, people: Array, rows: Array) -> Array:
        """The standard deviation of the logarithms; with the crowd, unless r is measured without it: where all others are alike, it would be next to nothing."""
        users, middle, spread = self.activity
        part = 0.0 * people if self.measured else people / (users + people)
        return np.asarray(np.sqrt((1 - part) * (spread**2 + part * (np.log(rows) - middle) ** 2)))

    def given(self, measured: float, deviation: float) -> tuple[Array, Array]:
        """The same in standard deviations, with weights, by member and crowd, once the number of users far above the bound was measured.

        Args:
            measured: with noise.
            deviation: the standard deviation of the noise.
        """
        people = np.concatenate([[0.0], np.repeat(_PEOPLE * deviation, len(_ROWS))])[:, None]
        rows = np.concatenate([[1.0], np.tile(_ROWS * self.least, len(_PEOPLE))])[:, None]
        prior = np.concatenate([[1 - _CROWD], np.tile(_CROWD / len(_PEOPLE) * _ROWS_WEIGHTS, len(_PEOPLE))])[:, None]
        prior = np.where((people > 0) & (people < _FEWEST), 0.0, prior)
        variance = deviation**2 + people + self.users + (_TOLERANCE * self.users) ** 2
        # Near the middle as a normal variable, far out as a Laplace variable.
        logs = -np.sqrt(1 + 2 * (measured - self.users - people) ** 2 / variance) - np.log(variance) / 2
        beforehand = prior * self.weights
        logs = np.where(beforehand > 0, logs + np.log(np.maximum(beforehand, 1e-300)), -np.inf)
        weights = np.exp(logs - logs.max())
        lost = self.lost(people, rows) / np.maximum(self._unit(people, rows), 1e-12)
        theirs = people * rows / (self.rows + people * rows)
        without = self.lost() / max(self.activity[2], 1e-12)
        return np.minimum(lost, without + theirs / _FARTHEST).ravel(), (weights / weights.sum()).ravel()
