"""The bound for a mean when the number of rows of each user is known: smooth weights, row limit, centred interval.

Users come as a support: ``users[k]`` users have ``sizes[k]`` rows each. Notation: ``n`` rows in all, ``w = min(h, s)``,
``n_h = Σ w``, values in an interval of length ``B``, row variance σ², and ρτ the part of the between-user standard
deviation that goes along with activity. The error of a weighted mean with weights q' = w/n_h against the row mean
(weights r = s/n) is bounded by ρτ·χ with χ² = Σ q'²/r − 1 (`docs/proofs/chi-square-bias.md`). Both terms
have the same shape: v(h) + (ρτ)²χ²(h) is v(h) with σ² + n(ρτ)² in place of σ², less a constant, so one exact
minimiser serves both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HETEROGENEITY = 1 / 50
"""Default ρτ as a part of the length of the value range: within 1.5 times the best ``h`` on three real tables."""

ROW_SD = 1 / 4
"""Default row standard deviation as a part of the length of the range: between uniform (0.29) and bell-shaped values."""


@dataclass(frozen=True)
class Support:
    """How many users have how many rows: ``users[k]`` of them ``sizes[k]`` each, sizes increasing and positive.

    Read from a histogram, a size stands for a bucket, and ``lowest`` says where the bucket begins.
    """

    sizes: Array
    users: Array
    lowest: Array | None = None

    @property
    def people(self) -> float:
        """The number of users."""
        return float(self.users.sum())

    @property
    def rows(self) -> float:
        """The number of rows."""
        return float(self.users @ self.sizes)

    def spread_out(self) -> Support:
        """Each bucket's users at a quarter and three quarters of it: at its middle alone a bound there would seem to cut nobody."""
        if self.lowest is None:
            return self
        quarter = (self.sizes - self.lowest) / 2
        sizes, place = np.unique(np.concatenate([self.sizes - quarter, self.sizes + quarter]), return_inverse=True)
        return Support(sizes, np.bincount(place, weights=np.tile(self.users / 2, 2)).astype(np.float64))

    def largest(self, rank: float) -> float:
        """The size of the user at this rank from the top (1 is the largest); 0 if there are fewer users."""
        k = self._place(rank)
        return float(self.sizes[k]) if k >= 0 else 0.0

    def heaviest(self, users: float) -> tuple[int, float]:
        """The least number of rows of the ``users`` users with most rows, and how many users have that many."""
        k = max(self._place(users), 0)
        least = self.sizes if self.lowest is None else self.lowest
        return max(1, math.floor(least[k])), float(self.users[k:].sum())

    def _place(self, rank: float) -> int:
        from_top = np.cumsum(self.users[::-1])
        return len(self.sizes) - 1 - int(np.searchsorted(from_top, rank - 1e-9))


@dataclass(frozen=True)
class Sums:
    """Prefix sums over a support, so that every bound costs O(log) instead of a pass over the users."""

    support: Support
    below: Array
    above: Array
    inverse_above: Array

    @classmethod
    def of(cls, support: Support) -> Sums:
        """Sum once, from the bottom and from the top."""
        s, u = support.sizes, support.users
        below = np.concatenate([[0.0], np.cumsum(u * s)])
        above = np.concatenate([np.cumsum(u[::-1])[::-1], [0.0]])
        inverse = np.concatenate([np.cumsum((u / s)[::-1])[::-1], [0.0]])
        return cls(support, below, above, inverse)

    def at(self, h: Array) -> tuple[Array, Array, Array]:
        """For each ``h``: rows of users at or below it, number of users above, Σ 1/s over those."""
        k = np.searchsorted(self.support.sizes, h, side="right")
        return self.below[k], self.above[k], self.inverse_above[k]

    def kept(self, h: Array) -> Array:
        """n_h = Σ min(h, s)."""
        below, above, _ = self.at(h)
        return below + above * h

    def chi_square(self, h: Array) -> Array:
        """χ²(h) = n·Σ min(h,s)²/s / n_h² − 1, zero when nothing is cut."""
        below, above, inverse = self.at(h)
        kept = below + above * h
        return np.maximum(self.support.rows * (below + inverse * h * h) / kept**2 - 1, 0.0)

    def total_variation(self, h: Array) -> Array:
        """TV(h) = Σ max(0, s/n − w/n_h): the weight that the bound moves from busy users to the others.

        A user loses weight where s/w > n/n_h, that is above the size h·n/n_h.
        """
        kept, rows = self.kept(h), self.support.rows
        below, above, _ = self.at(h * rows / kept)
        return np.maximum((rows - below) / rows - above * h / kept, 0.0)


def smooth_variance(sums: Sums, h: Array, sigma2: float, length: float, epsilon: float) -> Array:
    """epasto2020's v(h) = σ² Σ w²/s / n_h² + 2(B·h/(ε·n_h))²."""
    below, above, inverse = sums.at(h)
    kept = below + above * h
    return (sigma2 * (below + inverse * h * h) + 2 * (length * h / epsilon) ** 2) / kept**2


def row_limit_variance(sums: Sums, h: Array, sigma2: float, length: float, epsilon: float) -> Array:
    """epasto2020's v'(h) = σ²/n_h + 2(B·h/(ε·n_h))²."""
    kept = sums.kept(h)
    return sigma2 / kept + 2 * (length * h / (epsilon * kept)) ** 2


def smooth_bound(support: Support, sigma2: float, length: float, epsilon: float, heterogeneity: float = 0.0) -> float:
    """The exact minimiser of v(h) + (ρτ)²χ²(h) over real h in [min s, max s].

    Between two consecutive sizes, with R users above, Q = Σ_above 1/s and A = σ² + n(ρτ)², the only stationary point
    is h = A·R/(A·Q + 2B²/ε²); it and the end points are compared.

    Reference: epasto2020 Lemma 3; method.md §3.
    """
    sums, sizes = Sums.of(support), support.sizes
    weight = sigma2 + support.rows * heterogeneity**2
    above, inverse = sums.above[1:-1], sums.inverse_above[1:-1]
    price = weight * inverse + 2 * (length / epsilon) ** 2
    inside = np.clip(weight * above / np.maximum(price, 1e-300), sizes[:-1], sizes[1:])
    candidates = np.concatenate([sizes, inside])
    values = smooth_variance(sums, candidates, weight, length, epsilon)
    return float(candidates[values.argmin()])


def row_limit_bound(support: Support, sigma2: float, length: float, epsilon: float, heterogeneity: float = 0.0) -> int:
    """The integer minimiser of v'(h) + (ρτ)²χ²(h): stationary points rounded both ways, and every size.

    With L rows below and R, Q as for smooth weights, E = 2B²/ε² + n(ρτ)²Q and c = n(ρτ)²L, a stationary point solves
    h·(2EL − σ²R²) = σ²RL + 2Rc.
    """
    sums, sizes = Sums.of(support), support.sizes
    below, above, inverse = sums.below[1:-1], sums.above[1:-1], sums.inverse_above[1:-1]
    spread = support.rows * heterogeneity**2
    price = 2 * (length / epsilon) ** 2 + spread * inverse
    top = sigma2 * above * below + 2 * above * spread * below
    bottom = 2 * price * below - sigma2 * above**2
    inside = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), sizes[1:])
    inside = np.clip(inside, sizes[:-1], sizes[1:])
    candidates = np.unique(np.concatenate([np.ceil(sizes), np.floor(inside), np.ceil(inside)]))
    candidates = candidates[candidates >= 1]
    values = row_limit_variance(sums, candidates, sigma2, length, epsilon)
    values = values + heterogeneity**2 * sums.chi_square(candidates)
    return int(candidates[values.argmin()])


def centred_bound(support: Support, length: float, epsilon: float) -> float:
    """The width T of the centred interval: the ⌈2/ε⌉-th largest of {B·s}, 0 if there are fewer users.

    Reference: rameshwar2024 Theorem III.1.
    """
    return length * support.largest(math.ceil(2 / epsilon - 1e-12))


def centred_worst_case(support: Support, length: float, epsilon: float) -> float:
    """rameshwar2024's E_OPT = (Σ max((B·s − T)/2, 0) + T/ε)/n: the smallest worst-case error of its class."""
    T = centred_bound(support, length, epsilon)
    cut = np.maximum(length * support.sizes - T, 0.0) / 2
    return float((support.users @ cut + T / epsilon) / support.rows)


def quantile_bound(support: Support, q: float, epsilon: float) -> Fraction:
    """The weight bound ``h`` for a quantile by the weighted exponential mechanism.

    On the scale of ranks a quantile is the mean of the indicators 1{x <= v}: row variance q(1−q), busy users differ by
    about twice as much as in a mean. One user moves the score by h·max(q, 1−q), and the mechanism's rank error
    has the size of a Laplace variable with twice that scale.
    """
    h = smooth_bound(support, q * (1 - q), 2 * max(q, 1 - q), epsilon, 2 * HETEROGENEITY)
    return Fraction(h).limit_denominator(1000)
