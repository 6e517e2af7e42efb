"""What clipping each user's total around a centre takes away: on either side, and as a bias.

A user with s rows whose mean lies d from the centre has residual s·d, of which what lies beyond the cap is cut. Sizes come from
the support, distances from the location, and a user of any size may lie anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.profiles import Array, Location, Support

_ONE_SIDED = 0.45  # a prior: part of the cut that does not cancel, though both sides look alike: tails are rarely alike
_UNEVEN = 0.5  # part of the squared difference between the sides that is believed: noise makes the other half
_COARSE = 256  # sizes that stand for all


@dataclass(frozen=True)
class Cut:
    """For each cap on one side: what is cut in all, its sum of squares, and how many users it touches."""

    total: Array
    squares: Array
    users: Array

    def at(self, places: npt.NDArray[np.intp]) -> Cut:
        """Those of the caps at these places."""
        return Cut(self.total[places], self.squares[places], self.users[places])


def cuts(support: Support, location: Location, length: float, caps: Array) -> tuple[Cut, Cut]:
    """What is cut below the centre and above it, for each of the caps (in the unit of ``length``, the range of a row)."""
    support = _coarsen(support)
    below, above = location.offsets < 0, location.offsets > 0
    return (
        _cut(support, -location.offsets[below] * length, location.weights[below], caps),
        _cut(support, location.offsets[above] * length, location.weights[above], caps),
    )


def cut_bias(below: Cut, above: Cut) -> Array:
    """The bias of a sum from which both are cut.

    Signs are random to a large part: what is cut adds up in quadrature, and a fixed part of it in full. Where one side
    is expected to lose more than the other, part of the difference counts too: the histogram behind it is noisy.
    """
    uneven = _UNEVEN * (above.total - below.total) ** 2
    bias: Array = np.sqrt(
        (_ONE_SIDED * (below.total + above.total)) ** 2 + uneven + below.squares + above.squares,
    )
    return bias


def _cut(support: Support, distances: Array, weights: Array, caps: Array) -> Cut:
    residual = np.outer(support.sizes, distances).ravel()
    users = np.outer(support.users, weights).ravel()
    order = np.argsort(residual)
    residual, users = residual[order], users[order]
    beyond = np.searchsorted(residual, caps, side="right")
    count, first, second = (
        np.append(np.cumsum((users * residual**power)[::-1])[::-1], 0.0)[beyond] for power in (0, 1, 2)
    )
    total = np.maximum(first - count * caps, 0.0)
    return Cut(total, np.maximum(second - 2 * caps * first + caps**2 * count, 0.0), count)


def _coarsen(support: Support) -> Support:
    """At most a few hundred sizes: enough for a forecast."""
    if len(support.sizes) <= _COARSE:
        return support
    edges = np.geomspace(support.sizes[0], support.sizes[-1] * 1.0001, _COARSE)
    k = np.searchsorted(edges, support.sizes, side="right")
    users = np.bincount(k, weights=support.users).astype(np.float64)
    rows = np.bincount(k, weights=support.users * support.sizes)
    return Support(rows[users > 0] / users[users > 0], users[users > 0])
