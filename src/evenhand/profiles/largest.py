"""Sums over users whose numbers are Poisson, for several places of the largest user: a heavy tail depends on it more than on anything else.

With A(x) users expected at or above x, nobody lies above m with probability e^-A(m): the p-quantile of the largest user's place is where A is
−ln p. Given it, users below are Poisson as before, nobody is above, and the largest user counts for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.profiles.support import Array

_QUANTILES = np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.998])
LARGEST_WEIGHTS = np.diff(np.concatenate([[0.0], (_QUANTILES[1:] + _QUANTILES[:-1]) / 2, [1.0]]))
"""How likely each of the places is."""


@dataclass(frozen=True)
class Largest:
    """Where the largest user is, by curve and quantile.

    Args:
        bucket: of the largest user.
        part: of that bucket's users, who lie below the largest.
        someone: 1 if there is anybody in the buckets, or else 0.
    """

    bucket: npt.NDArray[np.intp]
    part: Array
    someone: Array

    @classmethod
    def of(cls, users: Array) -> Largest:
        """From expected users by curve and bucket."""
        above = np.cumsum(users[:, ::-1], axis=1)[:, ::-1]  # users in this bucket or a higher one
        beyond = -np.log(_QUANTILES)
        reached = (above[:, None, :] > beyond[None, :, None]).sum(axis=2)
        bucket = np.maximum(reached - 1, 0)
        inside, up = (np.take_along_axis(each, bucket, axis=1) for each in (users, above))
        part = np.clip((up - beyond) / np.maximum(inside, 1e-300), 0.0, 1.0)
        return cls(bucket, part, (reached > 0).astype(np.float64))

    def above(self, first: int) -> Largest:
        """The same for the buckets from ``first`` on alone: how many users lie above a place does not depend on those below it."""
        someone = self.someone * (self.bucket >= first)
        return Largest(np.maximum(self.bucket - first, 0), self.part, someone)

    def sum(self, terms: Array) -> Array:
        """Of terms by curve and bucket, those that belong to the largest user's bucket in part."""
        curve = np.arange(len(terms))[:, None]
        sums = np.cumsum(terms, axis=1)[curve, self.bucket]
        result: Array = (sums - (1 - self.part) * terms[curve, self.bucket]) * self.someone
        return result

    def place(self, lows: Array, highs: Array) -> Array:
        """Where the largest user is, if users are spread evenly from each bucket's low end to a high end of each curve and bucket."""
        low, high = lows[self.bucket], np.take_along_axis(highs, self.bucket, axis=1)
        result: Array = low + self.part * (high - low)
        return result


def up_to_largest(users: Array, terms: Sequence[Array], spread: Array) -> tuple[list[Array], Array]:
    """Sums of each term over users, the largest included, by curve and by place of the largest; and the variance of the first.

    Args:
        users: by curve and bucket.
        terms: what one user of a bucket adds.
        spread: the variance of users.
    """
    largest = Largest.of(users)
    sums = [largest.sum(users * term) + term[largest.bucket] * largest.someone for term in terms]
    return sums, largest.sum(spread * terms[0] ** 2)
