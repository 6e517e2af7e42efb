"""What a bound does to an average by group: weight moves from busy users to others, who may differ.

An average over rows gives a user with s rows of a group the weight s; a bounded one gives less to those above the bound. With weights r and
q' that add up to 1 the average moves by Σ(q' − r)·(mean of the user). If users' means differ by τ, independently of how busy they are,
that has the variance τ²·Σ(q' − r)², which is the larger the fewer users a group has. If busy users differ on average, it is at most
ρτ·χ, χ² = Σ q'²/r − 1 (docs/proofs/chi-square-bias.md), the same in every group. τ and ρτ are priors, in parts of the range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.population import Array, Population

USERS_DIFFER = 0.1
"""τ, a prior: the standard deviation of users' means. Ratings from ½ to 5 have 0.45, a tenth of their range."""

BUSY_DIFFER = 1 / 40
"""ρτ, a prior: how far busy users differ from others. Ratings, purchases and book ratings show up to a fortieth of the range."""

_LIKELY = 0.9
"""The quantile at which the largest outcomes count: as for totals (`TRIMMED`), nothing guards against a single giant."""

FARTHEST = 0.5
"""Of the range, by which a bound may move an average at most: further, the interval is as wide as the range."""

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
    def of(cls, rows: Population, bound: float) -> MovedWeight:
        """If a user's rows of all groups together may count as ``bound``; rows as they are public, or as plausible."""
        sizes, weights = rows.sizes, np.minimum(rows.sizes, bound)
        terms = (sizes, weights, sizes**2, weights**2, sizes * weights, weights**2 / sizes)
        sums, beliefs = [rows.users @ term for term in terms], rows.weights
        real, bounded = np.maximum(sums[0], 1e-9), np.maximum(sums[1], 1e-9)
        few = sums[3] / bounded**2 - 2 * sums[4] / (bounded * real) + sums[2] / real**2
        chi = np.sqrt(np.maximum(real * sums[5] / bounded**2 - 1, 0.0))
        among_few = likely_root_mean_square(np.sqrt(np.maximum(few, 0.0)), beliefs) ** 2
        return cls(among_few, likely_root_mean_square(chi, beliefs))

    def deviation(self, shares: Array) -> Array:
        """For groups with these shares of all rows: how far the bound moves their average, as a part of the range."""
        few = USERS_DIFFER**2 * self.among_few / (GROUPS * np.maximum(shares, 1e-9))
        result: Array = np.minimum(np.sqrt(few + (BUSY_DIFFER * self.chi) ** 2), FARTHEST)
        return result


def likely_root_mean_square(values: Array, weights: Array) -> float:
    """Over plausible outcomes; the largest count as if they were at a quantile, so that one giant does not decide."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    limit = values[order][min(int(np.searchsorted(reached, _LIKELY * reached[-1])), len(values) - 1)]
    return float(np.sqrt(weights @ np.minimum(values, limit) ** 2 / weights.sum()))
