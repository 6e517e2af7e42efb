"""What a noisy histogram says about how much users contribute, those too few to be seen included: a weighted family of curves.

From a little below the last clearly occupied bucket J on, the density of users over d, the logarithm of how much they contribute, seen
from J, is modelled as log f = a − βd − γd² − c·[above J]: a power law for γ = 0, a log-normal tail for γ > 0, and an end at J
for large c (nobody is in more groups than there are; a shop sells at most ten to a customer). Where no bucket stands out, the curves
are log-normal humps anywhere. Each curve of a fixed grid is weighted by how well it explains the noisy counts; under each, the users
of a bucket are Poisson, and its noisy count says how many there are in proportion to its precision.

Everything that depends on contributions reads the same posterior: the bound, what it cuts off, the correction, the interval, the forecast.
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
from evenhand.profiles.cut import Cut
from evenhand.profiles.occupied import last_occupied
from evenhand.profiles.support import Array

_BELOW = 2.8  # how far below J, in logarithms, the curves have to explain the counts: six buckets
_BEYOND = 14.0  # how far above J: a million times what is seen
_TOLERANCE = 0.08  # by which a curve may miss a count, besides noise and chance
_SMALL = 0.5  # the same for a user with one row: small whole numbers follow no smooth curve
_GROWTH = 0.9  # by how much that grows with the distance from J
_DIP = 0.7  # of a top, where another crowd begins
_ROUND = 0.6  # of a top, in the bucket before it: users do not begin there
_INSIDE = 0.1  # by which the mean of a bucket's users may lie off its middle, in widths of the bucket

_POWERS = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0)
_RISING = (-1.3, -0.4, 0.2, 0.65)  # J may lie before the fullest bucket; only with a curve that bends down
_BENDS = (0.0, 0.025, 0.05, 0.12, 0.2, 0.4, 0.65, 1.2, 2.1, 3.7)
_STRAIGHT = 0.3  # how likely a power law is beforehand, against all that bend down
_SHARED = 0.5  # by which all users above J together may be more or fewer than a curve says
_LEAST_BEND = 0.09  # of a rising curve
_LEVELS = tuple(np.linspace(-1.4, 0.4, 7))  # J is the last to stand out, so its count is rather too high than too low
_BEYONDS = {(1.0, 0.0): 0.55, (0.7, 0.0): 0.17, (1.4, 0.0): 0.17, (1.0, 2.0): 0.05, (1.0, 99.0): 0.06}
"""Above J: by what the slope is multiplied, and c; how likely it is beforehand. Tables are not curves: a slope may change."""
_LIGHT = 1.8  # the least slope beyond an end, unless the curve bends: who goes beyond it is an exception

_TOO_WIDE = 0.3
"""Below one row's largest value there are buckets down to a millionth of it: what is usual for a user is taken to lie this far down."""
_HIGHEST_HUMP = 12.0  # above the logarithm of what is usual: beyond, somebody stands out or nothing can be said
_BETWEEN_HUMPS = 0.4
_HUMP_WIDTHS = (0.6, 1.1, 1.8)
_MODESTY = 1.2  # how fast the logarithm of a hump's prior falls with its place above what is usual
_HUMP_PEOPLE = np.geomspace(1, 60, 8)  # in scales of the noise

_MOST = 300  # curves
_NEGLIGIBLE = 1e-3  # curves less believed in than this, against the most believed, are left out
_LARGEST = np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.998])
"""Quantiles of the largest user's place: a sum with a heavy tail depends on it more than on anything else."""
_LARGEST_WEIGHTS = np.diff(np.concatenate([[0.0], (_LARGEST[1:] + _LARGEST[:-1]) / 2, [1.0]]))
_AROUND, _AROUND_WEIGHTS = (
    np.array([-math.sqrt(3), 0.0, math.sqrt(3)]),
    np.array([1 / 6, 2 / 3, 1 / 6]),
)  # Gauss–Hermite
_LOWER, _HIGHER = 8, 14  # how many buckets below and above J a bound may lie
TRIMMED = 0.95  # the part of all outcomes whose squared error counts: no bound guards against a single giant


@dataclass(frozen=True)
class Posterior:
    """A weighted family of plausible histograms of users by contribution.

    Args:
        sizes: the middle of each bucket.
        lows: where each bucket begins (it holds the integers from here on).
        highs: where it ends.
        users: expected users by curve and bucket, given the curve and the noisy counts.
        spread: the variance of that.
        weights: of the curves; they add up to 1.
        last: the last bucket that stands out, or 0.
        visible: whether any bucket stood out.
    """

    sizes: Array
    lows: Array
    highs: Array
    users: Array
    spread: Array
    weights: Array
    last: int
    visible: bool

    def cut(self, bound: float) -> Cut:
        """What a bound cuts off from all users together."""
        values, weights, variance, hidden = self._outcomes(bound)
        factors = np.exp(_SHARED * _AROUND) - 1
        amounts = values[..., None] + np.sqrt(variance)[..., None] * _AROUND
        amounts = amounts[..., None] + hidden[..., None, None] * factors
        both = _AROUND_WEIGHTS[:, None] * _AROUND_WEIGHTS
        return Cut.of(np.maximum(amounts, 0.0).ravel(), (weights[..., None, None] * both).ravel())

    def _outcomes(self, bound: float) -> tuple[Array, Array, Array, Array]:
        """By curve and by place of the largest user: what is cut off, its weight, and its variance."""
        # Users of a bucket are spread evenly over it.
        low, high = np.maximum(self.lows - 0.5, bound), np.maximum(self.highs + 0.5, bound)
        width = self.highs + 1 - self.lows
        excess = ((high - bound) ** 2 - (low - bound) ** 2) / 2 / width
        inside = np.where(self.highs > bound, _INSIDE * (self.highs - self.lows), 0.0)
        first = int(np.searchsorted(self.highs, bound, side="right"))
        users, spread = self.users[:, first:], self.spread[:, first:]
        excess, inside = excess[first:], inside[first:]
        if users.shape[1] == 0:
            nothing = np.zeros((1, 1))
            return nothing, nothing + 1, nothing, nothing
        above = np.cumsum(users[:, ::-1], axis=1)[:, ::-1]  # users in this bucket or a higher one
        cut = np.concatenate([np.zeros((len(users), 1)), np.cumsum(users * excess, axis=1)], axis=1)
        each = spread * excess**2 + (users * inside) ** 2
        variance = np.concatenate([np.zeros((len(users), 1)), np.cumsum(each, axis=1)], axis=1)
        place = (above[:, None, :] > -np.log(_LARGEST)[None, :, None]).sum(axis=2)  # buckets up to the largest user's
        values = np.take_along_axis(cut, place, axis=1)
        seen = cut[:, [min(max(self.last + 1 - first, 0), users.shape[1])]]
        hidden = np.maximum(values - seen, 0.0)
        return values, self.weights[:, None] * _LARGEST_WEIGHTS, np.take_along_axis(variance, place, axis=1), hidden

    def best(self, noise: float) -> int:
        """The bound, an upper edge, with the least expected squared error, once what it probably cuts off is added back.

        Args:
            noise: standard deviation of the noise for a bound of 1.
        """
        low, high = (max(self.last - _LOWER, 0), self.last + _HIGHER) if self.visible else (0, len(self.highs))
        bounds = self.highs[low:high]
        return int(bounds[int(np.argmin([(noise * bound) ** 2 + self.squared(bound) for bound in bounds]))])

    def squared(self, bound: float) -> float:
        """Expected squared distance of what is cut off from its median, the largest outcomes left out."""
        values, weights, variance, hidden = self._outcomes(bound)
        variance = variance + (_SHARED * hidden) ** 2
        order = np.argsort(values, axis=None)
        value, weight = values.ravel()[order], weights.ravel()[order]
        reached = np.cumsum(weight)
        median = value[np.searchsorted(reached, 0.5)]
        kept = np.clip(TRIMMED - (reached - weight), 0.0, weight)
        return float(kept @ ((value - median) ** 2 + variance.ravel()[order]) / kept.sum())


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
    # Bounds of values may be set far too wide: believing in users up there takes more evidence than far below one row's largest.
    usual = buckets.unit * (buckets.edges[1] / buckets.unit) ** _TOO_WIDE
    top, found = last_occupied(noisy[None, :], edges, scale, usual)
    if found[0]:
        first, end, curves, priors = _tails(buckets, int(top[0]), float(noisy[top[0]]), scale)
    else:
        first, end, curves, priors = _humps(sizes, lows, usual, scale)
    start = 0
    if found[0]:
        per_width = (sizes / (edges - lows + 1))[first : top[0] + 1]
        begin, start = _window(noisy[first : top[0] + 1] * per_width, scale * per_width)
        first, start, curves = first + begin, start - begin, curves[:, begin:]
    inner = noisy[first:end]
    distance = np.abs(np.log(sizes[first:end] / sizes[top[0]])) if found[0] else np.zeros(end - first)
    chance = ((_TOLERANCE * (1 + _GROWTH * distance) + _SMALL / sizes[first:end]) * curves) ** 2 + curves
    scales = np.sqrt(scale**2 + chance / 2)
    missed = inner - curves
    missed[:, :start] = np.maximum(missed[:, :start], 0.0)
    evidence = priors - (np.abs(missed) / scales + np.log(scales)).sum(axis=1)
    least = np.partition(evidence, -_MOST)[-_MOST] if len(evidence) > _MOST else -math.inf
    likely = evidence > max(least, evidence.max() + math.log(_NEGLIGIBLE))
    weights = np.exp(evidence[likely] - evidence.max())
    users, chance = curves[likely], chance[likely]
    told = chance / (chance + 2 * scale**2)
    users = np.maximum(users + told * (inner - users), 0.0)
    below = np.maximum(noisy[:first], 0.0)
    below *= min(max(float(noisy[:first].sum()), 0.0) / max(float(below.sum()), 1e-9), 1.0)
    repeated = np.broadcast_to(below, (len(users), first))
    users = np.concatenate([repeated, users], axis=1)
    spread = np.concatenate([np.full_like(repeated, 2 * scale**2), told * 2 * scale**2], axis=1)
    return Posterior(
        sizes[:end],
        lows[:end],
        edges[:end],
        users,
        spread,
        weights / weights.sum(),
        int(top[0]) if found[0] else 0,
        bool(found[0]),
    )


def _window(density: Array, scale: Array) -> tuple[int, int]:
    """Which of the buckets up to J lead down to it: where they begin, and from where on they lie below the top of that slope.

    Seen from J downwards the density rises to a top. What lies beyond it is another crowd of users, or nobody, and says nothing about the tail.
    Nor does the top itself say all: where users begin, a bucket is only partly filled.
    """
    top = first = len(density) - 1
    for place in range(len(density) - 2, -1, -1):
        if density[place] < _DIP * density[top] - (scale[place] + scale[top]):
            break
        first, top = place, place if density[place] > density[top] else top
    if top > first and density[top - 1] > _ROUND * density[top]:
        return first, top - 1  # a round top is part of the curve
    return first, min(top + 1, len(density) - 1)


def _tails(buckets: Buckets, last: int, count: float, scale: float) -> tuple[int, int, Array, Array]:
    """Curves around and above J: the first bucket they explain, the end, users by curve and bucket, logarithms of priors."""
    first, end, shapes, priors = _shapes(buckets, last)
    level = max(count, 2 * scale)
    users = shapes[:, None, :] * (level * np.exp(_LEVELS))[None, :, None]
    return first, end, users.reshape(-1, users.shape[2]), np.repeat(priors, len(_LEVELS))


@functools.lru_cache(maxsize=64)
def _shapes(buckets: Buckets, last: int) -> tuple[int, int, Array, Array]:
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    lows = np.append(0.0, edges[:-1]) + 1
    sizes = (lows + edges) / 2
    distance = np.log(sizes / sizes[last])
    first, end = (int(place) for place in np.searchsorted(distance, [-_BELOW, _BEYOND]))
    widths = (edges + 1 - lows) / sizes  # buckets of small integers are not equally wide
    widths, distance = (widths / widths[last])[first:end], distance[first:end]
    slope, bend = (grid.reshape(-1, 1) for grid in np.meshgrid((*_RISING, *_POWERS), _BENDS, indexing="ij"))
    smooth = -slope * distance - bend * distance**2
    straight = np.where(bend == 0, _STRAIGHT, (1 - _STRAIGHT) / (len(_BENDS) - 1)).ravel()
    shapes, priors = [], []
    above = np.maximum(distance, 0.0)
    for (factor, drop), prior in _BEYONDS.items():
        least = _LIGHT if drop else _POWERS[0] / min(factor, 1.0)
        allowed = ((slope >= least) | (bend >= _LEAST_BEND)).ravel()
        curve = (smooth - (factor - 1) * slope * above - drop * (distance > 0))[allowed]
        shapes.append(np.exp(np.minimum(curve, 40.0)) * widths)
        priors.append(np.log(prior * straight[allowed]))
    return first, end, np.concatenate(shapes), np.concatenate(priors)


def _humps(sizes: Array, lows: Array, usual: float, scale: float) -> tuple[int, int, Array, Array]:
    """Where no bucket stands out: log-normal humps anywhere; without evidence, people contribute little.

    A bound far too large adds noise without limit, one far too small loses no more than all there is: so a hump is the
    less likely beforehand the further it lies above what is usual.
    """
    position = np.log(sizes / usual)
    end = int(np.searchsorted(position, _HIGHEST_HUMP + 3))
    position, sizes, lows = position[:end], sizes[:end], lows[:end]
    humps = np.arange(position[0], max(_HIGHEST_HUMP, position[0] + 0.1), _BETWEEN_HUMPS)
    middle, width, people = (
        grid.reshape(-1, 1) for grid in np.meshgrid(humps, _HUMP_WIDTHS, _HUMP_PEOPLE * scale, indexing="ij")
    )
    users = np.exp(-(((position - middle) / width) ** 2) / 2) * (2 * (sizes - lows) + 1) / sizes
    users *= people / users.sum(axis=1, keepdims=True)
    return 0, end, users, -_MODESTY * np.maximum(middle.ravel(), 0.0)
