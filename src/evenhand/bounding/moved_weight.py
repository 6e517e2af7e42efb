"""What a bound does to an average by group: weight moves from busy users to others, who may differ.

An average over rows gives a user with s rows of a group the weight s; a bounded one gives less to those above the bound. With weights r and
q' that add up to 1 the average moves by Σ(q' − r)·(mean of the user). If users' means differ by τ, independently of how busy they are,
that has the variance τ²·Σ(q' − r)², which is the larger the fewer users a group has. If busy users differ on average, it is at most
ρτ·χ, χ² = Σ q'²/r − 1 (docs/proofs/chi-square-bias.md), the same in every group. τ and ρτ are priors, in parts of the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.profiles import Array, Support

USERS_DIFFER = 0.1
"""τ, a prior: the standard deviation of users' means. Ratings from ½ to 5 have 0.45, a tenth of their range."""

BUSY_DIFFER = 1 / 40
"""ρτ, a prior: how far busy users differ from others. Ratings, purchases and book ratings show up to a fortieth of the range."""

GROUPS = 2.0
"""A prior: the harmonic mean of a user's number of groups. In more groups a user has fewer rows in each."""


@dataclass(frozen=True)
class MovedWeight:
    """What a bound on the rows of users does to averages by group.

    Args:
        among_few: Σ(q' − r)² over all users.
        chi: χ.
    """

    among_few: float
    chi: float

    @classmethod
    def of(cls, support: Support, bound: float) -> MovedWeight:
        """If a user's rows of all groups together may count as ``bound``."""
        sizes, users = support.sizes, support.users
        weights = np.minimum(sizes, bound)
        real, bounded = sizes / max(float(users @ sizes), 1e-9), weights / max(float(users @ weights), 1e-9)
        chi = math.sqrt(max(float(users @ (bounded**2 / real)) - 1, 0.0))
        return cls(float(users @ (bounded - real) ** 2), chi)

    def deviation(self, shares: Array) -> Array:
        """For groups with these shares of all rows: how far the bound moves their average, as a part of the range."""
        few = USERS_DIFFER**2 * self.among_few / (GROUPS * np.maximum(shares, 1e-9))
        result: Array = np.minimum(np.sqrt(few + (BUSY_DIFFER * self.chi) ** 2), 0.5)
        return result
