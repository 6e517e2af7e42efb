"""What probably lies beyond an end of the bounds that were found: plausible tables behind the noisy cells of one side.

Around the last cell that stands out, the logarithm of how many values there are falls with the logarithm of their distance from the centre along a line
(a power law) or a parabola (log-normal). Beyond it a curve may go on, get flatter or steeper, or end there; and a few values of another kind may lie anywhere further out, too
few to be seen. A grid of such curves is weighted by how well they explain the noisy cells, those beyond included, and tables are sampled from it:
each is one plausible answer to every question, of values or of their squares. It reads released numbers only.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evenhand.population.cut import Cut
from evenhand.population.support import Array

_SLOPES = (-1.3, -0.4, 0.2, 0.5, 0.65, 0.8, 1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 4, 5, 7, 10, 15, 25)
_BENDS = (0.0, 0.025, 0.05, 0.12, 0.2, 0.4, 0.65, 1.2, 2.1, 3.7)
_STRAIGHT = 0.25  # how likely a power law is, against all that bend
_MODERATE, _UNUSUAL = 2.0, 1.0
"""Far out, a slope below this is the less likely the nearer it comes to a law without a mean, and how fast."""
_BEYOND = {0.7: 0.15, 1.0: 0.67, 1.4: 0.15, math.inf: 0.03}
"""By what a slope is multiplied beyond the last cell that stands out, and how likely that is; infinite where values end there."""
_LEVELS = np.exp(
    np.linspace(-1.3, 0.35, 8)
)  # the last cell that stands out has rather too high a number than too low a one
_UNSEEN = np.geomspace(0.01, 1.4, 8)  # the same where it does not stand out, as on a side where nothing was seen
_STANDS_OUT = 3.0  # scales of the noise
_SHARED = 0.35  # by which all values beyond it together may be more or fewer than a curve says, in logarithms
_BREAKS = 0.5  # how likely a curve explains not all cells, but those from some cell on; half of that, from the last on that stands out
_MISS, _FARTHER = 0.08, 0.9  # part by which a cell may lie off a curve, and how that grows with the distance
_FAR = 5.0  # in logarithms beyond the last cell that stands out: further out all curves look alike
_OTHERS = 0.03  # how likely there are values of another kind
_NEARER = 0.5  # how much less likely they are the further out they lie: per e-fold, in logarithms
_FEW = np.geomspace(0.03, 10.0, 12)  # so many, in scales of the noise
_TABLES = 600
_TOGETHER = 2
"""Cells in a bucket: finer ones hide the tail."""
_ROWS = (1, 10)
"""How many values of their own users may have, believed in alike: the fewer, the further apart are a few values of a long tail."""


@dataclass(frozen=True)
class Tail:
    """The values on one side of a centre.

    Args:
        lows, highs: between which distances from the centre the values of a bucket lie.
        tables: how many values each bucket holds, every user counting once; one row for each plausible table.
        people: about how many users there are.
        sign: 1 above the centre, -1 below.
        centre: seen from zero.
    """

    lows: Array
    highs: Array
    tables: Array = field(repr=False)
    people: float
    sign: int = 1
    centre: float = 0.0

    @classmethod
    def of(cls, tops: Sequence[float], visible: int, counts: Array, scale: float, people: float) -> Tail:
        """Read a noisy histogram.

        Args:
            tops: where cells end, seen from the centre.
            visible: how many of them there are up to the last that stands out, at least one.
            counts: noisy, of users by cell.
            scale: of the noise.
            people: about how many users there are.
        """
        first = visible % _TOGETHER if visible > _TOGETHER else 0
        highs = np.array(tops[first + _TOGETHER - 1 :: _TOGETHER])
        noisy = counts[first : first + len(highs) * _TOGETHER].reshape(-1, _TOGETHER).sum(axis=1)
        lows = np.append(tops[first - 1] if first else 0.0, highs[:-1])
        last = max(visible // _TOGETHER, 1) - 1
        return cls(lows, highs, plausible(lows, highs, noisy, scale * math.sqrt(_TOGETHER), last), max(people, 1.0))

    def left(self, end: float, power: int = 1) -> float:
        """What an end, seen from the centre, takes from a total over users beyond what is added back for it, as likely less as more.

        Args:
            end: where values are cut off.
            power: 1 for a total of values, 2 for one of squared distances from the centre.
        """
        lost = self._lost(end) if power == 1 else self._squares_lost(end, 0.0)
        cut = Cut.of(lost, np.ones(len(lost)))
        return abs(cut.median - cut.sure)

    def cut(self, bound: float) -> Cut:
        """By how much a bound probably lowers the mean, every user counting once; negative if it raises it."""
        return self._cut(self._lost(self._distance(bound))).times(self.sign)

    def cut_of_squares(self, bound: float, mean: float) -> Cut:
        """By how much a bound lowers the mean square of distances from a number that lies within it."""
        return self._cut(self._squares_lost(self._distance(bound), self._distance(mean)))

    def kept(self, bound: float) -> float:
        """What values on this side add to the mean of distances from the centre, every user counting once and no distance beyond a bound."""
        within = np.minimum(self._middles, max(self._distance(bound), 0.0))
        return float(self.tables.mean(axis=0) @ within) / self.people

    @functools.cached_property
    def _ends(self) -> Array:
        """Up to where the values of a bucket are spread evenly, for the same mean: where there are fewer further out, most lie near its low end."""
        usual = np.maximum(np.median(self.tables, axis=0), 1e-9)
        middles = np.log((self.lows + self.highs) / 2)
        slope = np.clip(np.append(-np.diff(np.log(usual)) / np.diff(middles), 0.0), 0.0, _SLOPES[-1]) + 1e-6
        ratio = np.where(self.lows > 0, self.highs / np.where(self.lows > 0, self.lows, 1.0), np.inf)
        with np.errstate(invalid="ignore"):
            place = slope / (slope - 1) * (1 - ratio ** (1 - slope)) / (1 - ratio**-slope)
            ends = self.lows * (2 * place - 1)
        return np.where(np.isfinite(ratio), np.minimum(ends, self.highs), self.highs)

    @functools.cached_property
    def _middles(self) -> Array:
        result: Array = (self.lows + self._ends) / 2
        return result

    def _lost(self, end: float) -> Array:
        """By table, what an end takes from the total; the values of a bucket are spread evenly over it."""
        over, under = (np.maximum(ends - end, 0.0) for ends in (self._ends, self.lows))
        result: Array = self.tables @ ((over**2 - under**2) / 2 / (self._ends - self.lows))
        return result

    def _squares_lost(self, end: float, at: float) -> Array:
        """The same of squared distances from a number."""
        top = np.maximum(self._ends, end)
        low = np.clip(self.lows, end, top)
        # The mean of (x - at)² over the part of a bucket beyond the end, less the square at the end.
        beyond = ((top - at) ** 3 - (low - at) ** 3) / 3 - (top - low) * (end - at) ** 2
        result: Array = self.tables @ (beyond / (self._ends - self.lows))
        return result

    def _cut(self, lost: Array) -> Cut:
        return Cut.of(lost / self.people, np.ones(len(lost)) / len(lost))

    def _distance(self, bound: float) -> float:
        return self.sign * (bound - self.centre)


def plausible(lows: Array, highs: Array, noisy: Array, scale: float, last: int) -> Array:
    """Plausible numbers of values by bucket, one row for each table, behind noisy ones.

    Guarantee: reads noisy numbers only; which tables are drawn depends on nothing else.

    Args:
        lows, highs: where buckets lie.
        noisy: the numbers with their noise.
        scale: of the noise.
        last: the last bucket that stands out.
    """
    source = np.random.default_rng(0)  # post-processing: the same noisy numbers always mean the same
    middles = (lows + highs) / 2
    distance = np.log(middles / middles[last])
    shapes, priors = _curves(tuple(distance.tolist()), last)
    levels = _LEVELS if noisy[last] > _STANDS_OUT * scale else _UNSEEN
    expected = shapes[:, None, :] * (max(float(noisy[last]), 2 * scale) * levels)[:, None]
    tolerance = _MISS * (1 + _FARTHER * np.abs(distance))
    width = np.sqrt(scale**2 + (expected + (tolerance * expected) ** 2) / 2)
    explained = -np.abs(noisy - expected) / width - np.log(width)
    explained[..., distance > _FAR] = 0.0
    # A curve that holds from a bucket on leaves those before it free.
    free = -1 - np.log(np.sqrt(scale**2 + np.maximum(noisy[:last], 0.0) ** 2 / 2))
    logs = np.cumsum(explained[..., ::-1], axis=-1)[..., ::-1][..., : last + 1]
    logs = logs + np.concatenate([[0.0], np.cumsum(free)]) + priors[:, None, None]
    if last:
        begins = np.full(last + 1, _BREAKS / 2 / last)
        begins[0], begins[last] = 1 - _BREAKS, begins[last] + _BREAKS / 2
        logs = logs + np.log(begins)
    chosen = _drawn(np.exp(logs - logs.max()).ravel(), source)
    curve, first = np.divmod(chosen, last + 1)
    tables = expected.reshape(-1, len(noisy))[curve]
    tables = np.where(np.arange(len(noisy)) < first[:, None], np.maximum(noisy, 0.0), tables)
    tables[:, last + 1 :] *= np.exp(_SHARED * source.standard_normal((len(tables), 1)))
    tables = tables + _others(noisy - tables.mean(axis=0), distance, scale, last, source)
    rows = np.resize(np.array(_ROWS), len(tables))[:, None]
    few = source.poisson(np.minimum(tables * rows, 1e15)) / rows
    # Where there are many, their noisy number says more than the curve.
    chance = (tolerance * tables) ** 2 + tables
    told = chance / (chance + 2 * scale**2)
    many = told * noisy + (1 - told) * tables + np.sqrt(told * 2) * scale * source.standard_normal(tables.shape)
    result: Array = np.where(tables > scale, np.maximum(many, 0.0), few)
    return result


@functools.lru_cache(maxsize=32)
def _curves(distance: tuple[float, ...], last: int) -> tuple[Array, Array]:
    """Curves that are 1 at the last bucket that stands out, and the logarithms of how likely they are beforehand."""
    away = np.array(distance)
    below, above = np.minimum(away, 0.0), np.maximum(away, 0.0)
    shapes, priors = [], []
    for slope, bend, (factor, likely) in itertools.product(_SLOPES, _BENDS, _BEYOND.items()):
        if slope < _SLOPES[3] and not bend:
            continue
        steep = slope * (factor if math.isfinite(factor) else 1.0) + 2 * bend * _FAR
        straight = _STRAIGHT if not bend else (1 - _STRAIGHT) / (len(_BENDS) - 1)
        logs = -slope * (below + (above * factor if math.isfinite(factor) else 0.0)) - bend * away**2
        shapes.append(np.where((above > 0) & math.isinf(factor), 0.0, np.exp(np.clip(logs, -700.0, 40.0))))
        heavy = 0.0 if math.isinf(factor) else max(_MODERATE - steep, 0.0)
        priors.append(math.log(likely * straight) - _UNUSUAL * heavy)
    return np.array(shapes), np.array(priors)


def _others(missed: Array, distance: Array, scale: float, last: int, source: np.random.Generator) -> Array:
    """By table, a few values of another kind, further out than any that stand out: where, and how many, as the noise leaves possible."""
    found = np.zeros((_TABLES, len(missed)))
    beyond = missed[last + 1 :]
    if not len(beyond):
        return found
    few = _FEW * scale
    nearer = np.exp(-_NEARER * distance[last + 1 :])
    explained = np.exp((np.abs(beyond[:, None]) - np.abs(beyond[:, None] - few)) / scale)
    odds = _OTHERS / len(few) * (nearer / nearer.sum())[:, None] * explained
    chosen = _drawn(np.append(odds.ravel(), 1 - _OTHERS), source)
    place, many = np.divmod(chosen[chosen < odds.size], len(few))
    found[np.flatnonzero(chosen < odds.size), last + 1 + place] = few[many]
    return found


def _drawn(weights: Array, source: np.random.Generator) -> Array:
    """Places, with these odds."""
    reached = np.cumsum(weights)
    part = (np.arange(_TABLES) + source.random()) / _TABLES
    places: Array = np.minimum(np.searchsorted(reached, part * reached[-1]), len(weights) - 1)
    return source.permutation(places)


def added(cuts: Sequence[Cut]) -> Cut:
    """What is cut off on both sides, or one, or none; they are independent."""
    total = Cut(np.zeros(1), np.ones(1))
    for cut in cuts:
        amounts, weights = np.add.outer(total.amounts, cut.amounts), np.multiply.outer(total.weights, cut.weights)
        hidden, crowd = max(total.hidden, cut.hidden), max(total.crowd, cut.crowd)
        total = Cut.of(amounts.ravel(), weights.ravel(), hidden, crowd)
    return total
