"""Where the users' means lie: a coarse private histogram that makes a narrow clip possible.

A mean over a range of length B needs noise for a user whose values move from one end to the other, though real user
means lie close together. So part of ε buys a histogram of user means: every user with at least ``rows`` rows falls into one of ``bins``
equal bins, hence one user changes one count by one (presence) or two counts by one each (values). What follows
clips each user's total around the centre found here (`bounding/located_mean.py`).

Only users with many rows are in it: their means have the least sampling error, and clipping affects them most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import Relation, split
from evenhand.population.support import Array, Support
from evenhand.profiles.counting import users_by_place
from evenhand.release import Measurement
from evenhand.tables import Table
from evenhand.tables.expressions import Rows

_EVIDENCE = 100  # users × ε that the histogram should hold to find the centre
LOCATION_SHARES = (0.08, 0.25)
"""The least and the largest part of ε that locating users may take: a few users in a hundred who lie far away show only in a sum of many bins."""

_ROWS_FOR_A_SHARE = 25
"""Rows of a user from which on their share of ones tells where they are: by chance alone it is off by up to a tenth. With fewer, users of a 0/1
column lie all over the range, many at its ends, and no narrow interval holds them."""

_HEAVY = 0.2  # of all users, those with most rows are asked at least: they hold most rows
_ENOUGH = 20.0  # users × ε / sensitivity below which bins are too noisy to use
_WANTED = 80.0  # the same, above which only users with more rows are asked
_FINEST, _COARSEST = 256, 8  # bins: finer ones say no more than a bound needs, coarser ones locate nothing
_PER_BIN = 3.0  # users × ε / sensitivity for each bin: with fewer none stands out
_NEARLY = 0.8  # of a distance, from which on users count as lying that far away: bins are coarse
_AT_MOST = 2.0  # standard deviations of noise that may hide users there
_FALSE_BINS = 0.002  # expected number of bins that noise alone makes stand out
_MOST = 0.8  # of the users asked lie in the run of bins that sets the centre
_CAUTION = 1.0  # standard deviations of noise that a run must have to spare
_TAIL = ((1.2, 0.13), (1.7, 0.07), (2.5, 0.018), (4.0, 0.003))  # where the others may lie, in radii of that run


@dataclass(frozen=True)
class LocationRequest:
    """A histogram of user means to buy: ε, the least number of rows that a user needs to be asked, the number of bins.

    ``expected`` is the number of users with that many rows, as far as is known; ``shares``, whether rows are 0 or 1. Then users who always or never
    do what is counted are at the ends of the range, and a crowd there is nothing unusual.
    """

    epsilon: Decimal
    rows: int
    bins: int
    expected: float
    shares: bool = False

    def of(self, table: Table, users: Rows, width: int) -> Measurement:
        """Users with enough rows, by where their mean lies: one bin per user, whatever the arithmetic does.

        Args:
            table: of the users.
            users: one row per user: ``rows`` and ``above_0``, their sum in steps above the lower bound.
            width: steps between the bounds.
        """
        import ibis

        asked = users.filter(users.rows >= self.rows)
        position = asked.above_0.cast("float64") / (asked.rows.cast("float64") * float(width))
        place = (position * float(self.bins)).floor().cast("int64")
        place = ibis.least(ibis.greatest(place, 0), self.bins - 1)
        return users_by_place(table, asked, place, self.bins, table.relation.moves)


@dataclass(frozen=True)
class Location:
    """Where user means lie, as parts of the value range: a centre, and weights on offsets from it (negative below).

    ``radius`` is about how far most users lie from it.
    """

    centre: float
    offsets: Array
    weights: Array
    radius: float

    @property
    def spread(self) -> float:
        """Root mean squared distance from the centre."""
        return math.sqrt(float(self.weights @ self.offsets**2))


def location_request(
    support: Support, epsilon: Decimal, relation: Relation, shares: bool = False
) -> LocationRequest | None:
    """The histogram of user means worth buying; None if there are too few users, or users with rows enough, for it to show anything.

    Args:
        support: users by number of rows, public or bought.
        epsilon: what is left.
        relation: decides how far one user moves the histogram.
        shares: whether rows are 0 or 1.
    """
    people, sensitivity = support.people, relation.moves
    share = min(max(_EVIDENCE / max(people * float(epsilon), 1e-9), LOCATION_SHARES[0]), LOCATION_SHARES[1])
    part, _ = split(epsilon, round(share, 4))
    budget = float(part) / sensitivity
    if people * budget < _ENOUGH:
        return None
    asked = max(_WANTED / budget, _HEAVY * people)
    rows, expected = support.heaviest(asked)
    if shares and rows < _ROWS_FOR_A_SHARE:
        return None
    bins = 2 ** int(math.log2(min(max(expected * budget / _PER_BIN, _COARSEST), _FINEST)))
    return LocationRequest(part, rows, bins, expected, shares)


def locate(request: LocationRequest, counts: npt.ArrayLike, relation: Relation) -> Location | None:
    """Read a noisy histogram of user means: the shortest run of bins that holds most users, and who stands out beyond it.

    Guarantee: reads the noisy counts only.

    Args:
        request: what was bought.
        counts: the noisy counts, one per bin.
        relation: as when it was bought.
    """
    noisy = np.asarray(counts, dtype=np.float64)
    bins, scale = len(noisy), relation.moves / float(request.epsilon)
    first, last = _shortest(noisy, _MOST * request.expected, _CAUTION * scale)
    middles = (np.arange(bins) + 0.5) / bins
    inside = np.maximum(noisy[first:last], 0.0)
    if not inside.any():
        return None
    inside /= inside.sum()
    centre = float(inside @ middles[first:last])
    # Inside a bin users lie anywhere: two points at a quarter of its width stand for them.
    quarter = 0.25 / bins
    # A run of bins filled evenly has radius √3·sd; where most users sit in a few of its bins, they lie closer together.
    deviation = math.sqrt(float(inside @ (middles[first:last] - centre) ** 2) + quarter**2)
    radius = min((last - first) / (2 * bins), math.sqrt(3) * deviation)
    spots = np.concatenate([middles[first:last] - quarter, middles[first:last] + quarter])
    seen = np.where(noisy > scale * math.log(bins / _FALSE_BINS), noisy, 0.0)
    if request.shares:
        seen[[0, -1]] = np.maximum(noisy[[0, -1]], 0.0)
    seen[first:last] = 0.0
    hidden = [
        min(part * request.expected, _hidden(noisy, np.abs(middles - centre), min(factor * radius, 1.0), scale)) / 2
        for factor, part in _TAIL
    ]
    far = radius * np.array([factor for factor, _ in _TAIL])
    # On either side alike, but no user lies beyond the range.
    offsets = np.concatenate([spots - centre, middles - centre, -np.minimum(far, centre), np.minimum(far, 1 - centre)])
    weights = np.concatenate([np.tile(inside, 2) * _MOST * request.expected / 2, seen, hidden, hidden])
    return Location(centre, offsets[weights > 0], weights[weights > 0] / weights.sum(), radius)


def _hidden(noisy: Array, distance: Array, beyond: float, scale: float) -> float:
    """At most how many users can lie this far from the centre without standing out from the noise."""
    far = noisy[distance > _NEARLY * beyond]
    return max(float(far.sum()), 0.0) + _AT_MOST * scale * math.sqrt(2 * max(len(far), 1))


def _shortest(counts: Array, wanted: float, caution: float) -> tuple[int, int]:
    """The shortest run of bins whose counts add up to ``wanted``, the fullest of them; all bins if none does.

    The fullest run owes part of its count to luck, so it must exceed what is wanted by ``caution`` times the root of the
    noise variance that it has collected.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for width in range(1, len(counts)):
        runs = sums[width:] - sums[:-width]
        if runs.max() >= wanted + caution * math.sqrt(2 * width):
            first = int(runs.argmax())
            return first, first + width
    return 0, len(counts)
