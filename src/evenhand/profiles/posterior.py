"""What a noisy histogram says about how much users contribute, those too few to be seen included: a weighted family of curves.

Each curve of a fixed grid (`curves.py`) is weighted by how well it explains the noisy counts around the last clearly occupied bucket J and above
it; under each, the users of a bucket are Poisson, and its noisy count says how many there are in proportion to its precision. How far
down from J a curve has to explain the counts is not known: below a break, anywhere, users follow a law of their own.

Everything that depends on contributions reads the same posterior: the bound, what it cuts off, the correction, the interval, the forecast.
Once a bounded total is measured, it speaks too (`measured.py`).
It is a model: one user far above all others can hide from any of it. No random numbers, and nothing but released numbers, so it costs
nothing (post-processing).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.profiles.buckets import Buckets
from evenhand.profiles.crowds import AT_MOST, HIDES, crowds
from evenhand.profiles.curves import filled_by_counts, humps, tails, usual
from evenhand.profiles.cut import SURE, Cut
from evenhand.profiles.evidence import evidence
from evenhand.profiles.largest import LARGEST_WEIGHTS, Largest
from evenhand.profiles.occupied import last_occupied
from evenhand.profiles.support import Array, Support

# Priors: tables are not curves.
_TOLERANCE = 0.08  # by which a curve may miss a count, besides noise and chance
_SMALL = 0.5  # the same for a user with one row: small whole numbers follow no smooth curve
_GROWTH = 0.9  # by how much that grows with the distance from J
_INSIDE = 0.1  # by which the mean of a bucket's users may lie off where a curve says, in widths of the bucket
SHARED = 0.35  # by which all users above J together may be more or fewer than a curve says

_MOST = 200  # curves that are kept, the most likely
_NEGLIGIBLE = 1e-3  # curves less believed in than this, against the most believed, are left out
UNLIKELY = 1e-3  # odds below which a crowd is left out, until a total has been measured
_AROUND, _AROUND_WEIGHTS = (
    np.array([-math.sqrt(3), 0.0, math.sqrt(3)]),
    np.array([1 / 6, 2 / 3, 1 / 6]),
)  # Gauss–Hermite
_LOWER, _HIGHER = 8, 14  # how many buckets below and above J a bound may lie
_NOBODY = 0.3  # expected users in a bucket, below which a typical list has none
_FEW = 0.05  # added before logarithms are averaged: no curve's zero decides alone
TRIMMED = 0.9  # the part of all outcomes whose squared error counts: no bound guards against a single giant


@dataclass(frozen=True)
class Posterior:
    """A weighted family of plausible histograms of users by contribution.

    Args:
        sizes: the middle of each bucket.
        lows: where each bucket begins (it holds the integers from here on).
        highs: where it ends.
        users: expected users by curve and bucket, given the curve and the noisy counts.
        spread: the variance of that.
        filled: the part of each bucket, from its low end, over which its users are spread evenly; by curve.
        weights: of the curves; they add up to 1.
        last: the last bucket that stands out, or 0.
        visible: whether any bucket stood out.
        hidden: about how many users far above all others would not have shown.
        crowd: the weight of a crowd apart.
        apart: expected users by crowd apart and bucket, on top of the curves; those included that are too unlikely to be among them.
        odds: of each crowd against none.
    """

    sizes: Array
    lows: Array
    highs: Array
    users: Array
    spread: Array
    filled: Array
    weights: Array
    last: int
    visible: bool
    hidden: float
    crowd: float
    apart: Array
    odds: Array

    def cut(self, bound: float) -> Cut:
        """What a bound cuts off from all users together."""
        values, weights, variance, hidden = self._outcomes(bound)
        factors = np.exp(SHARED * _AROUND) - 1
        amounts = values[..., None] + np.sqrt(variance)[..., None] * _AROUND
        amounts = amounts[..., None] + hidden[..., None, None] * factors
        both = _AROUND_WEIGHTS[:, None] * _AROUND_WEIGHTS
        return Cut.of(
            np.maximum(amounts, 0.0).ravel(), (weights[..., None, None] * both).ravel(), self.hidden, self.crowd
        )

    def _outcomes(self, bound: float) -> tuple[Array, Array, Array, Array]:
        """By curve and by place of the largest user: what is cut off, its weight, its variance, and the part that lies above J."""
        first = int(np.searchsorted(self.highs, bound, side="right"))
        users = self.users[:, first:]
        if users.shape[1] == 0:
            nothing = np.zeros((1, 1))
            return nothing, nothing + 1, nothing, nothing
        low, high, inside = self.lows[first:] - 0.5, self.ends[:, first:], self._inside[:, first:]
        over, under = np.maximum(high - bound, 0.0), np.maximum(low - bound, 0.0)
        excess = (over**2 - under**2) / 2 / (high - low)
        largest = self._largest.above(first)
        own = np.maximum(self._largest_place - bound, 0.0) * largest.someone
        terms = users * excess
        values = largest.sum(terms) + own
        variance = largest.sum(self.spread[:, first:] * excess**2 + inside)
        seen = terms[:, : max(self.last + 1 - first, 0)].sum(axis=1, keepdims=True)
        hidden = np.maximum(values - seen, 0.0)
        return values, self.weights[:, None] * LARGEST_WEIGHTS, variance, hidden

    @functools.cached_property
    def ends(self) -> Array:
        """Up to where users are spread, by curve and bucket."""
        ends: Array = self.lows + (self.highs - self.lows) * self.filled + 0.5
        return ends

    @functools.cached_property
    def _inside(self) -> Array:
        """The variance of a bucket's total that comes from where in it users are."""
        inside: Array = (self.users * _INSIDE * (self.ends - self.lows - 0.5)) ** 2
        return inside

    @functools.cached_property
    def _largest(self) -> Largest:
        return Largest.of(self.users)

    @functools.cached_property
    def _largest_place(self) -> Array:
        return self._largest.place(self.lows - 0.5, self.ends)

    def best(self, noise: float) -> int:
        """The bound, an upper edge, with the least expected squared error, once what it probably cuts off is added back.

        Args:
            noise: standard deviation of the noise for a bound of 1.
        """
        low, high = (max(self.last - _LOWER, 0), self.last + _HIGHER) if self.visible else (0, len(self.highs))
        best, least = self.highs[low], math.inf
        for bound in self.highs[low:high]:
            if (noise * bound) ** 2 >= least:
                break
            error = (noise * bound) ** 2 + self.squared(bound)
            if error < least:
                best, least = bound, error
        return int(best)

    def squared(self, bound: float) -> float:
        """Expected squared distance of what is cut off from what is added back, the largest outcomes left out."""
        values, weights, variance, hidden = self._outcomes(bound)
        variance = variance + (SHARED * hidden) ** 2
        order = np.argsort(values, axis=None)
        value, weight = values.ravel()[order], weights.ravel()[order]
        reached = np.cumsum(weight)
        added = value[np.searchsorted(reached, SURE)]
        kept = np.clip(TRIMMED - (reached - weight), 0.0, weight)
        return float(kept @ ((value - added) ** 2 + variance.ravel()[order]) / kept.sum())

    @property
    def typical(self) -> Support:
        """One plausible list of users: above J the geometric mean of the curves, so that a heavy one among many does not decide."""
        few = _FEW if self.visible else _FEW * max(float(self.users.sum(axis=1).max()), 1.0)
        hidden = np.where(self.users < _NOBODY, 0.0, self.users) if self.visible else self.users
        users = np.exp(self.weights @ np.log(hidden + few)) - few
        if self.visible:
            users[: self.last + 1] = self.weights @ self.users[:, : self.last + 1]
        some = users > _NEGLIGIBLE * min(float(users.max()), 1.0)
        if not some.any():
            return Support(self.sizes[:1], np.ones(1), self.lows[:1])
        return Support(self.sizes[some], users[some], self.lows[some])


def posterior(buckets: Buckets, counts: npt.ArrayLike, scale: float) -> Posterior:
    """The posterior behind a noisy histogram.

    Guarantee: reads the noisy counts only.

    Args:
        buckets: of the histogram.
        counts: noisy.
        scale: of the Laplace noise on each.
    """
    noisy = np.asarray(counts, dtype=np.float64)[1:-1]
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    lows = np.append(0.0, edges[:-1]) + 1
    sizes = (lows + edges) / 2
    # Believing in users far above what is usual takes more evidence.
    top, found = last_occupied(noisy[None, :], edges, scale, usual(buckets))
    visible, last = bool(found[0]), int(top[0]) if found[0] else 0
    curves = tails(buckets, last, float(noisy[last]), scale) if visible else humps(buckets, scale)
    first, end = curves.first, curves.first + curves.shapes.shape[1]
    inner = noisy[first:end]
    distance = np.abs(np.log(sizes[first:end] / sizes[last])) if visible else np.zeros(end - first)
    tolerance = _TOLERANCE * (1 + _GROWTH * distance) + _SMALL / sizes[first:end]
    logs = evidence(curves, inner, tolerance, scale, last - first if visible else None)
    least = logs.max() + math.log(_NEGLIGIBLE)
    likely = np.flatnonzero(logs >= least)
    likely = likely[np.argsort(logs[likely], kind="stable")[-_MOST:]]
    weights = np.exp(logs[likely] - logs.max())
    shape, level = np.divmod(likely, len(curves.levels))
    users, filled = curves.shapes[shape] * curves.levels[level][:, None], curves.filled[shape]
    chance = (tolerance * users) ** 2 + users
    # A curve that breaks off says nothing about users below: where it misses, the counts are believed.
    chance[:, : max(last - first, 0)] += (inner - users)[:, : max(last - first, 0)] ** 2
    told = chance / (chance + 2 * scale**2)
    curve = 2 * scale**2 / (chance + 2 * scale**2) * users
    users, spread = np.maximum(told * inner + curve, 0.0), told * 2 * scale**2
    below = np.maximum(noisy[:first], 0.0)
    below *= min(max(float(noisy[:first].sum()), 0.0) / max(float(below.sum()), 1e-9), 1.0)
    repeated = np.broadcast_to(below, (len(users), first))
    users = np.concatenate([repeated, users], axis=1)
    spread = np.concatenate([np.full_like(repeated, 2 * scale**2), spread], axis=1)
    weights /= weights.sum()
    filled = np.concatenate([np.ones_like(repeated), filled], axis=1)
    filled[:, :last] = filled_by_counts(weights @ users, lows[:end], edges[:end], scale)[:last]
    apart, odds = np.zeros((0, end)), np.zeros(0)
    if visible:
        apart, odds = crowds(noisy[:end], weights @ users, np.log(sizes[:end] / sizes[last]), scale)
    some = odds > UNLIKELY
    choosing = odds[some] * min(AT_MOST / max(float(odds[some].sum()), 1e-9), 1.0)
    curves_alone = len(users)
    users, spread, filled, weights = with_crowds(users, spread, filled, weights, apart[some], choosing)
    return Posterior(
        sizes[:end],
        lows[:end],
        edges[:end],
        users,
        spread,
        filled,
        weights,
        last=last,
        visible=visible,
        hidden=max(HIDES * scale, 1.0),
        crowd=float(weights[curves_alone:].sum()),
        apart=apart,
        odds=odds,
    )


def with_crowds(
    users: Array, spread: Array, filled: Array, weights: Array, apart: Array, odds: Array
) -> tuple[Array, Array, Array, Array]:
    """The same four of curves, and of crowds on top of their mean."""
    weights = weights / weights.sum()
    every = np.concatenate([weights, odds])
    return (
        np.concatenate([users, weights @ users + apart]),
        np.concatenate([spread, weights @ spread + apart]),
        np.concatenate([filled, np.broadcast_to(weights @ filled, apart.shape)]),
        every / every.sum(),
    )
