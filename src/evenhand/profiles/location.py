"""Where the users' means lie: a coarse private histogram that makes a narrow clip possible.

A mean over a range of length B needs noise for a user whose values move from one end to the other, though real user
means lie close together. So part of ε buys a histogram of user means: every user with at least ``rows`` rows falls into one of ``bins``
equal bins, hence one user changes one count by one (presence) or two counts by one each (values). What follows
clips each user's total around the centre found here (`bounding/located_mean.py`).

Only users with many rows are in it: their means have the least sampling error, and clipping affects them most.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import Relation, split
from evenhand.population import evenly
from evenhand.population.support import Array, Support
from evenhand.profiles.counting import users_by_place
from evenhand.release import Measurement
from evenhand.tables import Table
from evenhand.tables.expressions import Rows
from evenhand.tables.summaries import exact_sum

if TYPE_CHECKING:
    import pyarrow as pa


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


_WIDTHS = (0.1, 0.2, 0.35, 0.55, 0.85, 1.3, 2.0, 3.2)  # of a side, in radii of the run that holds most users
_CENTRES = np.linspace(-1.0, 1.0, 9)  # of the curve, likewise
_TAILS = (2.0, 1.0, 0.6, 0.4)  # exponent of the distance in the logarithm of the density
_BETA = (0.3, 0.6, 1.0, 2.0)  # exponents of beta laws over the whole range: users at both ends, at one end, anywhere
_LOG_WIDTHS = (0.3, 0.5, 0.8, 1.2, 1.7)  # standard deviations of the logarithm
_KEPT = 48  # curves that may have users far away besides
_FAR = {
    0.002: 0.1,
    0.01: 0.1,
    0.04: 0.1,
    0.12: 0.1,
}  # the part of the users who lie far away, and how likely that is beforehand
_FALLS = (0.0, 1.5, 3.0)  # with which power of the distance their density falls
_ONE_SIDED = 1.0  # standard deviation of the logarithm of one side's width over the other's, beforehand
_TOLERANCE = 0.15  # by which a curve may miss a count, besides noise and chance
_LUMP = 4.0  # scales of the noise, besides the logarithm of the number of bins, that a count has to lie above a curve: by chance one time in a hundred
_FINE = 192  # points of a curve, at least
_CURVES = 4  # that stand for all
_HEAVIER = {0: 0.5, 1: 0.25, -1: 0.25}  # on which side the tail is heavier than a curve says, and how likely that is
_STRETCHED = np.array([2.0, 1.5, 1.2])  # by how much, from the outermost point on
_PARTS = np.array([0.001, 0.005, 0.02, 0.05, 0.12, 0.3, 0.5])
_EDGES = np.concatenate([[0.0], _PARTS, 1 - _PARTS[-2::-1], [1.0]])  # of the users that a point stands for


@dataclass(frozen=True)
class MeanShapes:
    """Curves of how far user means lie from a centre, as parts of the value range.

    Args:
        offsets: by curve, points (negative below the centre).
        weights: by curve, the part of the users that a point stands for.
        likely: how much each curve is believed in.
        doubt: standard deviation of what is not known about the mean of the offsets.
    """

    offsets: Array
    weights: Array
    likely: Array
    doubt: float


@np.errstate(all="ignore")  # a warning would show what was released
def mean_shapes(request: LocationRequest, counts: npt.ArrayLike, location: Location, moves: int) -> MeanShapes:
    """The family behind a noisy histogram of user means, around the centre of ``location``.

    Guarantee: reads the noisy counts only.
    """
    noisy = np.asarray(counts, dtype=np.float64)
    bins, scale, people = len(noisy), moves / float(request.epsilon), max(request.expected, 1.0)
    fine = max(1, -(-_FINE // bins))
    places = (np.arange(bins * fine) + 0.5) / (bins * fine)
    radius = max(location.radius, 0.5 / bins)
    middle, left, right, power = (
        grid.reshape(-1, 1)
        for grid in np.meshgrid(
            location.centre + radius * _CENTRES, *[radius * np.array(_WIDTHS)] * 2, _TAILS, indexing="ij"
        )
    )
    humps = np.exp(-(np.abs((places - middle) / np.where(places < middle, left, right)) ** power))
    first, last = (grid.reshape(-1, 1) for grid in np.meshgrid(_BETA, _BETA, indexing="ij"))
    curves = np.concatenate(
        [
            humps,
            places ** (first - 1) * (1 - places) ** (last - 1),
            _log_normal(places, location.centre + radius * _CENTRES),
            _log_normal(1 - places, 1 - location.centre - radius * _CENTRES),
        ]
    )
    curves = np.maximum(curves / np.maximum(curves.sum(axis=1, keepdims=True), 1e-300), 1e-12)  # nowhere impossible
    offsets = places - location.centre

    def explained(curves: Array) -> tuple[Array, Array, Array]:
        """Users in each bin, the variance of what else may be in it, and how well that explains the counts."""
        users = people * curves.reshape(len(curves), bins, fine).sum(axis=2)
        chance = (_TOLERANCE * users) ** 2 + users
        spread = np.sqrt(scale**2 + chance / 2)
        return users, chance, -(np.abs(noisy - users) / spread + np.log(spread)).sum(axis=1)

    evidence = explained(curves)[2]
    evidence[: len(humps)] -= (np.log(left / right).ravel() / _ONE_SIDED) ** 2 / 2
    chosen = evenly(curves @ (offsets * np.abs(offsets)), np.exp(evidence - evidence.max()), _KEPT)
    curves, before = _with_far(curves[chosen], offsets, radius)
    users, chance, evidence = explained(curves)
    weights = before * np.exp(evidence - evidence.max())
    chosen = evenly(curves @ (offsets * np.abs(offsets)), weights, _CURVES)
    curves, users = curves[chosen], users[chosen]
    # Users of a few rows each lie in lumps, which no curve has: where a count stands out from a curve, it is believed.
    unusual = np.full(bins, (_LUMP + math.log(bins)) * scale)
    if request.shares:
        unusual[[0, -1]] = 0.0
    lumps = np.maximum(noisy - users - unusual, 0.0)
    chance = chance[chosen] + users.var(axis=0) + lumps**2
    seen = np.maximum(users + chance / (chance + 2 * scale**2) * (noisy - users), 0.0)
    curves *= np.repeat(seen / np.maximum(users, 1e-12), fine, axis=1)
    curves /= curves.sum(axis=1, keepdims=True)
    near = offsets[np.abs(offsets) < 3 * radius]
    # Laplace noise on the bins in which users are looked for, and the chance that is in their means.
    noise = scale * math.sqrt(2 * float(near @ near) / fine)
    doubt = math.hypot(noise, radius * math.sqrt(people)) / people
    points, weights = _points(curves, offsets)
    points, likely = _with_tails(points)
    return MeanShapes(points, np.tile(weights, (len(_HEAVIER), 1)), likely, min(doubt, radius))


def _with_far(curves: Array, offsets: Array, radius: float) -> tuple[Array, Array]:
    """Curves as they are and with a few users far away, on one side or both, and how likely each is beforehand.

    Bins far away hold few users each, none of which stands out: only together do they show that most users being near zero does not
    keep a few in a hundred from lying anywhere (claims, spending, visits).
    """
    found, before, distance = [curves], [1 - sum(_FAR.values())], np.maximum(np.abs(offsets) / radius, 1.0)
    sides = [side for side in (offsets > radius, offsets < -radius, np.abs(offsets) > radius) if side.any()]
    for side in sides:
        for fall in _FALLS:
            far = side * distance**-fall
            for part, likely in _FAR.items():
                found.append((1 - part) * curves + part * far / far.sum())
                before.append(likely / len(sides) / len(_FALLS))
    return np.concatenate(found), np.repeat(before, len(curves))


def _log_normal(places: Array, middles: Array) -> Array:
    """Curves whose logarithm is normal, from one end of the range: amounts that are mostly small and at times very large."""
    middle, width = (grid.reshape(-1, 1) for grid in np.meshgrid(middles[middles > 0], _LOG_WIDTHS, indexing="ij"))
    found: Array = np.exp(-((np.log(places / middle) / width) ** 2) / 2) / places
    return found


def _with_tails(points: Array) -> tuple[Array, Array]:
    """Each curve as it is, and with a heavier tail on either side: few users are there, so the counts can't tell."""
    found = []
    for side in _HEAVIER:
        stretched = points.copy()
        if side:
            stretched[:, ::-side][:, : len(_STRETCHED)] *= _STRETCHED
        found.append(stretched)
    return np.concatenate(found), np.repeat([*_HEAVIER.values()], len(points)) / len(points)


def _points(curves: Array, offsets: Array) -> tuple[Array, Array]:
    """A few points for each curve, more of them in its tails: the means of parts of its users."""
    ends = np.concatenate([np.zeros((len(curves), 1)), np.cumsum(curves, axis=1)], axis=1)
    moments = np.concatenate([np.zeros((len(curves), 1)), np.cumsum(curves * offsets, axis=1)], axis=1)
    first = np.array([np.interp(_EDGES, end, moment) for end, moment in zip(ends, moments, strict=True)])
    weights = np.diff(_EDGES)
    return np.diff(first, axis=1) / weights, np.broadcast_to(weights, (len(curves), len(weights)))


STEPS = 1024
"""Integers between the centre and the reach."""

_TILT_PARTS = (0.4, 0.15, 0.05, 0.02, 0.007, 0.0025)  # of the users, those with most rows: where classes begin
_REACH = 2.0  # in radii of the run that holds most users
_TILT_EVIDENCE = 400.0  # users × ε that make the correlation with rows known to about a twentieth; more buys little
_LEAST = 12.0  # users × ε below which it says nothing
TILT_SHARES = (0.01, 0.03)
"""The least and the largest part of what is left of ε that is spent on it: where people are many, on the few that are busiest."""


@dataclass(frozen=True)
class TiltRequest:
    """Sums of distances to buy.

    Args:
        epsilon: what they cost.
        starts: the least number of rows of a user of each class, increasing from 1.
        centre: as a part of the value range.
        reach: how far from it a user's mean counts in full, likewise.
    """

    epsilon: Decimal
    starts: tuple[int, ...]
    centre: float
    reach: float

    def of(self, table: Table, users: Rows, width: int) -> Measurement:
        """The distances of users by class: each user adds at most `STEPS` either way to one of the sums, whatever the arithmetic does.

        Args:
            table: of the users.
            users: one row per user: ``rows`` and ``above_0``, their sum in steps above the lower bound.
            width: steps between the bounds.
        """
        import ibis

        one, zero = ibis.literal(1, "int64"), ibis.literal(0, "int64")
        later = [(users.rows >= start).ifelse(one, zero) for start in self.starts[1:]]
        position = users.above_0.cast("float64") / (users.rows.cast("float64") * float(width))
        distance = ((position - self.centre) * (STEPS / self.reach)).floor().cast("int64")
        placed = users.select(
            place=functools.reduce(operator.add, later),
            distance=ibis.least(ibis.greatest(distance, -STEPS), STEPS),
        )
        added = placed.group_by("place").aggregate(total=exact_sum(table, placed.distance))

        def sums(found: pa.Table) -> list[int]:
            by_class = dict(zip(found["place"].to_pylist(), found["total"].to_pylist(), strict=True))
            return [int(by_class.get(index) or 0) for index in range(len(self.starts))]

        moved = STEPS * table.relation.moves
        return Measurement(lambda: table.engine.fetch(added).map(sums), l1=moved, l2_squared=moved**2)


def tilt_request(support: Support, location: Location, epsilon: Decimal, relation: Relation) -> TiltRequest | None:
    """The sums worth buying; None if there are too few users for them to say anything, or all have about as many rows.

    Args:
        support: users by number of rows, public or bought.
        location: where their means lie.
        epsilon: what is left.
        relation: decides how far one user moves a sum.
    """
    people = max(support.people, 1.0)
    share = min(max(_TILT_EVIDENCE * relation.moves / (people * float(epsilon)), TILT_SHARES[0]), TILT_SHARES[1])
    starts = sorted({1, *(support.heaviest(part * people)[0] for part in _TILT_PARTS)})
    if people * float(epsilon) * share < _LEAST * relation.moves or len(starts) < 2:
        return None
    part, _ = split(epsilon, round(share, 5))
    return TiltRequest(part, tuple(starts), location.centre, _REACH * location.radius)
