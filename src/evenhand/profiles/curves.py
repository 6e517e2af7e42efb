"""The family of curves behind a posterior over contributions, with how likely each is beforehand.

Around the last clearly occupied bucket J and above it, the density of users over d, the logarithm of how much they contribute, seen from
J, is log f = a − βd − γd²: a power law for γ = 0, a log-normal tail for γ > 0. Above J a curve may go on in other ways too:

- its slope may change: counts rounded up flatten, tables with an end steepen;
- it may end at J or within it (nobody is in more groups than there are; a shop sells at most ten to a customer);
- a power law may lie beneath, too thin to be seen up to J: most people are alike and a few are of another kind.

Where no bucket stands out, the curves are log-normal humps anywhere.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from evenhand.profiles.buckets import Buckets
from evenhand.profiles.support import Array

_BELOW = 2.8  # how far below J, in logarithms, the curves may have to explain the counts: six buckets
_BEYOND = 14.0  # how far above J: a million times what is seen
_SHOWN = 5.0  # how far above J counts tell curves apart: they stand out from noise nowhere above it, and all fall off

_POWERS = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0)
_RISING = (-1.3, -0.4, 0.2, 0.65)  # J may lie before the fullest bucket; only with a curve that bends down
_BENDS = (0.0, 0.025, 0.05, 0.12, 0.2, 0.4, 0.65, 1.2, 2.1, 3.7)
_STRAIGHT, _STRAIGHT_APART = 0.1, 0.5
"""How likely a power law is beforehand, against all that bend down: as likely as each bend where one curve explains all counts. Above a break
users are of another kind than those below: what lies on top of a crowd who are alike is rarely one more such crowd, so a power law is as
likely as all bends together."""
_MODERATE, _UNUSUAL = 2.0, 1.0
"""Below this slope, far above J, a curve is the less likely beforehand the nearer it comes to 1, a law without a mean; and how fast."""
_LEAST_BEND = 0.09  # of a rising curve
_LEVELS = tuple(np.linspace(-1.3, 0.35, 6))  # J is the last to stand out, so its count is rather too high than too low
_SLOPES = {1.0: 0.40, 0.7: 0.12, 1.4: 0.12}
"""By what the slope is multiplied above J, and how likely that is beforehand. Tables are not curves."""
_ENDS = {1.0: 0.03, 0.6: 0.03, 0.25: 0.03}
"""The part of J that is filled, where nobody lies above."""
_DROP = (
    2.0,
    0.04,
)  # the logarithm of how much fewer users there are above J than a curve says, where going beyond is an exception
_BENEATH = {(0.05, 1.3): 0.05, (0.05, 2.2): 0.05, (0.25, 1.3): 0.05, (0.25, 2.2): 0.05}
"""A power law beneath: its users just above J, as a part of those in J, and its slope."""
_LIGHT = 1.8  # the least slope beyond an end, unless the curve bends: who goes beyond it is an exception

USUAL_PART = 0.3
"""Below one row's largest value there are buckets down to a millionth of it: what is usual for a user is taken to lie this far down."""
_HIGHEST_HUMP = 12.0  # above the logarithm of what is usual: beyond, somebody stands out or nothing can be said
_BETWEEN_HUMPS = 0.4
_HUMP_WIDTHS = (0.6, 1.1, 1.8)
_MODESTY = 1.2  # how fast the logarithm of a hump's prior falls with its place above what is usual
_HUMP_PEOPLE = np.geomspace(1, 60, 8)  # in scales of the noise


@dataclass(frozen=True)
class Curves:
    """Expected users by curve and bucket: a shape, times a level.

    Args:
        first: the first bucket that they explain.
        shapes: by shape and bucket, from there on.
        filled: the part of each bucket, from its low end, over which its users are spread evenly.
        priors: logarithms of how likely each shape is beforehand.
        apart: the same, if the users whom it explains are of another kind than those below.
        levels: each as likely.
        shown: up to which bucket, counted from the first, counts tell curves apart.
    """

    first: int
    shapes: Array
    filled: Array
    priors: Array
    apart: Array
    levels: Array
    shown: int


def usual(buckets: Buckets) -> float:
    """What is usual for a user: bounds of values may be set far too wide."""
    return float(buckets.unit * (buckets.edges[1] / buckets.unit) ** USUAL_PART)


def tails(buckets: Buckets, last: int, count: float, scale: float) -> Curves:
    """Curves around and above J.

    Args:
        buckets: of the histogram.
        last: J.
        count: its noisy count.
        scale: of the noise.
    """
    first, shapes, filled, priors, apart, shown = _shapes(buckets, last)
    return Curves(first, shapes, filled, priors, apart, max(count, 2 * scale) * np.exp(_LEVELS), shown)


@functools.lru_cache(maxsize=16)
def _shapes(buckets: Buckets, last: int) -> tuple[int, Array, Array, Array, Array, int]:
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    lows = np.append(0.0, edges[:-1]) + 1
    sizes = (lows + edges) / 2
    distance = np.log(sizes / sizes[last])
    first, stop = (int(place) for place in np.searchsorted(distance, [-_BELOW, _BEYOND]))
    widths = (edges + 1 - lows) / sizes  # buckets of small integers are not equally wide
    widths, distance = (widths / widths[last])[first:stop], distance[first:stop]
    ratio = ((edges + 0.5) / (lows - 0.5))[first:stop]
    at, above, beyond = distance == 0, distance > 0, np.maximum(distance, 0.0)
    slope, bend = (grid.reshape(-1, 1) for grid in np.meshgrid((*_RISING, *_POWERS), _BENDS, indexing="ij"))
    straight, alone = (
        np.where(bend == 0, part, (1 - part) / (len(_BENDS) - 1)).ravel() for part in (_STRAIGHT, _STRAIGHT_APART)
    )
    smooth, steep = -slope * distance - bend * distance**2, slope + 2 * bend * distance
    falls, bends = slope.ravel(), bend.ravel() >= _LEAST_BEND
    shapes, filled, priors, apart = [], [], [], []
    shown = int(np.searchsorted(distance, _SHOWN))

    def add(
        logs: Array, slopes: Array, least: float, prior: float, end: float = 1.0, beneath: float | Array = 0.0
    ) -> None:
        allowed = (falls >= least) | bends
        density = np.exp(np.minimum(logs[allowed], 40.0)) + beneath
        shapes.append(density * widths * np.where(at, end, 1.0))
        filled.append(_filled(slopes[allowed], ratio) * np.where(at, end, 1.0))
        heavy = np.maximum(_MODERATE - slopes[:, shown - 1], 0.0)
        priors.append((np.log(prior * straight) - _UNUSUAL * heavy)[allowed])
        apart.append((np.log(prior * alone) - _UNUSUAL * heavy)[allowed])

    for factor, prior in _SLOPES.items():
        more = (factor - 1) * slope
        add(smooth - more * beyond, steep + more * above, _POWERS[0] / min(factor, 1.0), prior)
    for end, prior in _ENDS.items():
        add(np.where(above, -np.inf, smooth), steep, _LIGHT, prior, end)
    add(smooth - _DROP[0] * above, steep, _LIGHT, _DROP[1])
    for (part, power), prior in _BENEATH.items():
        thin = np.where(above, part * np.exp(-power * distance), 0.0)
        add(smooth, np.where(above, np.minimum(steep, power), steep), power, prior, 1.0, thin)
    return first, np.concatenate(shapes), np.concatenate(filled), np.concatenate(priors), np.concatenate(apart), shown


def _filled(slope: Array, ratio: Array) -> Array:
    """For a density that falls with this slope: twice the mean place of a bucket's users in it, as a part of its width.

    The mean of x^(-1-s) between 1 and the ratio of a bucket's ends, but not at the poles 0 and 1.
    """
    s = np.clip(slope, -2.0, 60.0) + 1e-6
    mean = s / (s - 1) * (1 - ratio ** (1 - s)) / (1 - ratio**-s)
    result: Array = np.minimum(2 * (mean - 1) / (ratio - 1), 1.0)
    return result


def filled_by_counts(users: Array, lows: Array, highs: Array, scale: float) -> Array:
    """The same where counts are believed more than any curve: by the slope between each bucket's neighbours, as far as it stands out from noise.

    Args:
        users: by bucket.
        lows: the least integer of each.
        highs: its largest.
        scale: of the noise in the counts.
    """
    middle = np.log((lows + highs) / 2)
    logs = np.log(np.maximum(users, scale) / (highs - lows + 1)) + middle  # users by logarithm of the size
    noise = 2 * (scale / np.maximum(users, scale)) ** 2
    slope, doubt = np.zeros_like(logs), np.ones_like(logs)
    slope[1:-1] = (logs[:-2] - logs[2:]) / (middle[2:] - middle[:-2])
    doubt[1:-1] = (noise[:-2] + noise[2:]) / (middle[2:] - middle[:-2]) ** 2
    return _filled(slope / (1 + doubt), (highs + 0.5) / (lows - 0.5))


def humps(buckets: Buckets, scale: float) -> Curves:
    """Where no bucket stands out: log-normal humps anywhere; without evidence, people contribute little.

    A bound far too large adds noise without limit, one far too small loses no more than all there is: so a hump is the
    less likely beforehand the further it lies above what is usual.
    """
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    lows = np.append(0.0, edges[:-1]) + 1
    sizes = (lows + edges) / 2
    position = np.log(sizes / usual(buckets))
    end = int(np.searchsorted(position, _HIGHEST_HUMP + 3))
    position, sizes, lows = position[:end], sizes[:end], lows[:end]
    middles = np.arange(position[0], max(_HIGHEST_HUMP, position[0] + 0.1), _BETWEEN_HUMPS)
    middle, width = (grid.reshape(-1, 1) for grid in np.meshgrid(middles, _HUMP_WIDTHS, indexing="ij"))
    shapes = np.exp(-(((position - middle) / width) ** 2) / 2) * (2 * (sizes - lows) + 1) / sizes
    shapes /= shapes.sum(axis=1, keepdims=True)
    priors = -_MODESTY * np.maximum(middle.ravel(), 0.0)
    return Curves(0, shapes, np.ones_like(shapes), priors, priors, _HUMP_PEOPLE * scale, end)
