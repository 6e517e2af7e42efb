"""What a noisy histogram of contributions does not show: the few users above the last bucket that stands out.

From a little below the last clearly occupied bucket J on, users are modelled as log n(J+k) = a − βk − γk²: a power law for γ = 0, a
log-normal tail for γ > 0. All of a grid of such curves are weighted by how well they explain the noisy counts there; the
estimate of a bucket is their geometric mean, so that one heavy curve among many does not decide. Where users are visible the
noisy counts count too, in proportion to their precision. It is a model: it serves to choose a bound, never a guarantee.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenhand.profiles.buckets import Buckets
from evenhand.profiles.occupied import STRICT, highest_occupied
from evenhand.profiles.support import Array, Support

_STEP = math.log(4) / 3  # from one bucket to the next
_BELOW = 6  # buckets below J that the curves have to explain
_TOLERANCE = 0.15  # by which a curve may miss a count, besides noise and chance
_NOBODY = 0.3  # expected users in a bucket, below which it is taken to be empty
_BEYOND = 30  # buckets above J: a million times what is seen

_POWERS = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0)
_RISING = (-0.6, -0.2, 0.1, 0.3)  # J may lie before the fullest bucket; only with a curve that bends down
_BENDS = (0.0, 0.005, 0.012, 0.025, 0.045, 0.08, 0.14, 0.25, 0.45, 0.8)
_LEVELS = tuple(np.linspace(-0.75, 0.75, 11))


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
    top, found = highest_occupied(noisy[None, :], edges, scale, buckets.unit, STRICT)
    if not found[0]:
        return Support(np.array([float(buckets.unit)]), np.array([max(float(noisy[0]), 1.0)]))
    last = int(top[0])
    first, end = max(last - _BELOW, 0), min(last + _BEYOND, len(edges))
    users = np.concatenate([_without_noise(noisy[:first]), _curve(noisy[first:end], last - first, scale)])
    below = np.concatenate([[0.0], edges[:-1]])[:end]
    some = users > 0
    return Support(((below + 1 + edges[:end]) / 2)[some], users[some], (below + 1)[some])


def _without_noise(noisy: Array) -> Array:
    """Counts without negative ones; what remains is scaled back to their total, since cutting off would invent users."""
    positive = np.maximum(noisy, 0.0)
    return positive * min(max(float(noisy.sum()), 0.0) / max(float(positive.sum()), 1e-9), 1.0)


def _curve(noisy: Array, last: int, scale: float) -> Array:
    """Users per bucket around and above the last one that stands out, which is ``last``."""
    k = np.arange(len(noisy)) - last
    level = math.log(max(float(noisy[last]), 2 * scale))
    slopes = np.array([*_RISING, *(power * _STEP for power in _POWERS)])
    slope, bend, offset = (grid.reshape(-1, 1) for grid in np.meshgrid(slopes, _BENDS, _LEVELS, indexing="ij"))
    allowed = ((slope >= _STEP) | (bend >= 0.02)).ravel()
    users = np.exp(np.minimum(level + offset - slope * k - bend * k**2, 40.0))[allowed]
    users = np.where((k > 0) & (users < _NOBODY), 0.0, users)
    spread = np.sqrt(scale**2 + (_TOLERANCE * users) ** 2 / 2 + users / 2)
    evidence = -(np.abs(noisy - users) / spread + np.log(spread)).sum(axis=1)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    typical = np.exp(weights @ np.log(users + 0.05)) - 0.05
    uncertain = weights @ (users - typical) ** 2 + (_TOLERANCE * typical) ** 2 + typical
    seen = (noisy * uncertain + typical * 2 * scale**2) / (uncertain + 2 * scale**2)
    result: Array = np.maximum(np.where(k <= 0, seen, typical), 0.0)
    return result
