"""How the means of users lie around a centre: a weighted family of curves behind a noisy histogram of them.

Most curves have two sides of their own width and a tail like a normal, an exponential or a slower law, others are log-normal from either end of
the range, because what clipping cuts off on one side and not on the other is what moves a mean. A curve is weighted by how well it explains the noisy counts; where users are
visible the counts decide, so that two groups of users need not look like one hump. It reads released numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.population import Array, evenly
from evenhand.profiles.location import Location, LocationRequest

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
