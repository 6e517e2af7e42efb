"""What a noisy histogram of contributions does not show: the few users above the last bucket that stands out.

From a little below the last clearly occupied bucket J on, the density of users over d, the logarithm of how much they contribute, seen
from J, is modelled as log f = a − βd − γd² − c·[above J]: a power law for γ = 0, a log-normal tail for γ > 0, and an end at J
for large c (nobody is in more groups than there are; a shop sells at most ten to a customer). All of a grid of such curves are
weighted by how well they explain the noisy counts there; the estimate of a bucket is their geometric mean, so that one heavy curve
among many does not decide. Where users are visible the noisy counts count too, in proportion to their precision. It is a
model: it serves to choose a bound, never a guarantee.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenhand.profiles.buckets import Buckets
from evenhand.profiles.occupied import STRICT, highest_occupied
from evenhand.profiles.support import Array, Support

_BELOW = 2.8  # how far below J, in logarithms, the curves have to explain the counts: six buckets
_BEYOND = 14.0  # how far above J: a million times what is seen
_TOLERANCE = 0.15  # by which a curve may miss a count, besides noise and chance
_NOBODY = 0.3  # expected users in a bucket, below which it is taken to be empty
_FEW = 0.05  # added before logarithms are averaged: no curve's zero decides alone

_POWERS = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0)
_RISING = (-1.3, -0.4, 0.2, 0.65)  # J may lie before the fullest bucket; only with a curve that bends down
_BENDS = (0.0, 0.025, 0.05, 0.12, 0.2, 0.4, 0.65, 1.2, 2.1, 3.7)
_LEAST_BEND = 0.09  # of a rising curve
_LEVELS = tuple(np.linspace(-0.75, 0.75, 7))
_ENDS = {0.0: 0.7, 1.0: 0.1, 3.0: 0.1, 99.0: 0.1}  # c, and how likely it is beforehand

_TOO_WIDE = 0.3
"""Below one row's largest value there are buckets down to a millionth of it: what is usual for a user is taken to lie this far down."""
_HIGHEST_HUMP = 12.0  # above the logarithm of what is usual: beyond, somebody stands out or nothing can be said
_BETWEEN_HUMPS = 0.4
_HUMP_WIDTHS = (0.6, 1.1, 1.8)
_HUMP_PEOPLE = np.geomspace(1, 60, 8)  # in scales of the noise


def smoothed_support(buckets: Buckets, counts: npt.ArrayLike, scale: float) -> Support:
    """A plausible list of users behind a noisy histogram, those too few to be seen included.

    Guarantee: reads the noisy counts only.

    Args:
        buckets: of the histogram.
        counts: noisy.
        scale: of the Laplace noise on each.
    """
    noisy = np.asarray(counts, dtype=np.float64)[1:-1]
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    # Bounds of values may be set far too wide: believing in users up there takes more evidence than far below one row's largest.
    usual = buckets.unit * (buckets.edges[1] / buckets.unit) ** _TOO_WIDE
    top, found = highest_occupied(noisy[None, :], edges, scale, usual, STRICT)
    below = np.append(0.0, edges[:-1])
    sizes = (below + 1 + edges) / 2
    if not found[0]:
        return _hidden(noisy, sizes, below, usual, scale)
    last = int(top[0])
    distance = np.log(sizes / sizes[last])
    first, end = np.searchsorted(distance, [-_BELOW, _BEYOND])
    widths = (edges - below) / sizes  # buckets of small integers are not equally wide
    seen = _curve(noisy[first:end], distance[first:end], (widths / widths[last])[first:end], scale)
    users = np.concatenate([_without_noise(noisy[:first]), seen])
    some = users > 0
    return Support(sizes[:end][some], users[some], (below + 1)[:end][some])


def _hidden(noisy: Array, sizes: Array, below: Array, usual: float, scale: float) -> Support:
    """Where no bucket stands out: log-normal humps anywhere, weighted by the counts; without evidence, people contribute little.

    A bound far too large adds noise without limit, one far too small loses no more than all there is: so a hump is the
    less likely beforehand the further it lies above what is usual.
    """
    position = np.log(sizes / usual)
    end = int(np.searchsorted(position, _HIGHEST_HUMP + 3))
    position, sizes, below = position[:end], sizes[:end], below[:end]
    humps = np.arange(position[0], max(_HIGHEST_HUMP, position[0] + 0.1), _BETWEEN_HUMPS)
    middle, width, people = (
        grid.reshape(-1, 1) for grid in np.meshgrid(humps, _HUMP_WIDTHS, _HUMP_PEOPLE * scale, indexing="ij")
    )
    users = np.exp(-(((position - middle) / width) ** 2) / 2) * (2 * (sizes - below) - 1) / sizes
    users *= people / users.sum(axis=1, keepdims=True)
    spread = np.sqrt(scale**2 + users / 2)
    evidence = -(np.abs(noisy[:end] - users) / spread + np.log(spread)).sum(axis=1) - np.maximum(middle.ravel(), 0.0)
    weights = np.exp(evidence - evidence.max())
    few = _FEW * scale
    typical = np.exp(weights @ np.log(users + few) / weights.sum()) - few
    some = typical > 1e-3 * typical.max()
    return Support(sizes[some], typical[some], (below + 1)[some])


def _without_noise(noisy: Array) -> Array:
    """Counts without negative ones; what remains is scaled back to their total, since cutting off would invent users."""
    positive = np.maximum(noisy, 0.0)
    return positive * min(max(float(noisy.sum()), 0.0) / max(float(positive.sum()), 1e-9), 1.0)


def _curve(noisy: Array, distance: Array, widths: Array, scale: float) -> Array:
    """Users per bucket around and above J, where ``distance`` is 0."""
    above = distance > 0
    level = math.log(max(float(noisy[distance == 0][0]), 2 * scale))
    slope, bend, offset = (
        grid.reshape(-1, 1) for grid in np.meshgrid((*_RISING, *_POWERS), _BENDS, _LEVELS, indexing="ij")
    )
    allowed = ((slope >= _POWERS[0]) | (bend >= _LEAST_BEND)).ravel()
    smooth = (level + offset - slope * distance - bend * distance**2)[allowed]
    users = np.concatenate([np.exp(np.minimum(smooth - end * above, 40.0)) * widths for end in _ENDS])
    users = np.where(above & (users < _NOBODY * widths), 0.0, users)
    spread = np.sqrt(scale**2 + (_TOLERANCE * users) ** 2 / 2 + users / 2)
    evidence = np.repeat(np.log([*_ENDS.values()]), len(smooth))
    evidence -= (np.abs(noisy - users) / spread + np.log(spread)).sum(axis=1)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    typical = np.exp(weights @ np.log(users + _FEW)) - _FEW
    uncertain = weights @ (users - typical) ** 2 + (_TOLERANCE * typical) ** 2 + typical
    seen = (noisy * uncertain + typical * 2 * scale**2) / (uncertain + 2 * scale**2)
    result: Array = np.maximum(np.where(above, typical, seen), 0.0)
    return result
