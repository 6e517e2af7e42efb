"""What probably lies beyond an end of the bounds that were found, on the posterior that also chose the end.

The cells of `extent.py` up to the last visible one, and those after it, are a noisy histogram of users by distance from the centre. So the
family of tails that is believed in for what users contribute (`posterior.py`) also says which values lie beyond any bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.population.buckets import Buckets
from evenhand.population.cut import Cut
from evenhand.population.support import Array
from evenhand.population.tables import Population, evenly

_UNSEEN = 3.0
"""Buckets beyond the last visible one don't stand out, so they count for at most so many scales of the noise."""
_VALUES = (1, 10)
"""How many values of their own users may have, believed in alike: the largest of all lies further out where there are more of them, and
nothing that is released tells."""
_TOGETHER = 2
"""Cells in a bucket, which makes buckets as wide as those of contributions (`buckets.py`): finer ones hide the tail."""
_HEAVIER, _LIKELY = 3.0, 0.15
"""A prior: how many times more may lie beyond a bound than the curves say, and how likely that is. A tail that flattens where nobody is seen looks like
one that does not, and what it hides is in the last few values."""
_FINE = 1000
"""Steps of the first bucket: posteriors count in integers."""


@dataclass(frozen=True)
class Tail:
    """The values on one side of a centre.

    Args:
        posteriors: of values by distance from the centre, one for each of `_VALUES`.
        unit: what one of their steps is worth.
        people: about how many users there are.
        sign: 1 above the centre, -1 below.
        centre: seen from zero.
    """

    posteriors: tuple[Population, ...]
    unit: float
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
        ends = tops[first + _TOGETHER - 1 :: _TOGETHER]
        whole = counts[first : first + len(ends) * _TOGETHER].reshape(-1, _TOGETHER).sum(axis=1)
        below, noise = max(visible // _TOGETHER, 1), scale * math.sqrt(_TOGETHER)
        noisy = np.append(whole[:below], np.minimum(whole[below:], _UNSEEN * noise))
        unit = ends[0] / _FINE
        edges = (0, *(round(end / unit) for end in ends))
        buckets = Buckets(edges, edges[below])
        believed = [Population.behind(buckets, [0.0, *(noisy * values), 0.0], noise * values) for values in _VALUES]
        return cls(tuple(believed), unit, max(people, 1.0))

    def left(self, end: float, power: int = 1) -> float:
        """What an end, seen from the centre, takes from a total over users beyond what is added back for it, as likely less as more.

        Args:
            end: where values are cut off.
            power: 1 for a total of values, 2 for one of squared distances from the centre.
        """
        cut = self.cut(self.centre + self.sign * end) if power == 1 else self._squared(round(end / self.unit), 0)
        return abs(cut.median - cut.sure) * self.people

    def cut(self, bound: float) -> Cut:
        """By how much a bound probably lowers the mean, every user counting once; negative if it raises it."""
        cuts = [one.cut(self._steps(bound)).times(1 / values) for one, values in self._each()]
        return _either(cuts).times(self.sign * self.unit / self.people)

    def cut_of_squares(self, bound: float, mean: float) -> Cut:
        """By how much a bound lowers the mean square of distances from a number that lies within it."""
        return self._squared(self._steps(bound), self._steps(mean))

    def _squared(self, end: int, at: int) -> Cut:
        cuts = [_squares(one, at).cut(max(end - at, 0) ** 2).times(1 / values) for one, values in self._each()]
        return _either(cuts).times(self.unit**2 / self.people)

    def kept(self, bound: float) -> float:
        """What values on this side add to the mean of distances from the centre, every user counting once and no distance beyond a bound."""
        one = self.posteriors[0]
        within = np.minimum(one.sizes, max(self._steps(bound), 0))
        totals = one.users @ within
        return float(totals[evenly(totals, one.weights, 1)[0]]) * self.unit / self.people

    def _each(self) -> Iterator[tuple[Population, int]]:
        return zip(self.posteriors, _VALUES, strict=True)

    def _steps(self, bound: float) -> int:
        """Rounded as edges are: a bound that is the end of a bucket does not reach into the next."""
        return round(self.sign * (bound - self.centre) / self.unit)


def or_heavier(cut: Cut) -> Cut:
    """The same, if the tail may be heavier than the curves say."""
    amounts = np.concatenate([cut.amounts, _HEAVIER * cut.amounts])
    weights = np.concatenate([(1 - _LIKELY) * cut.weights, _LIKELY * cut.weights])
    return Cut.of(amounts, weights, cut.hidden, cut.crowd)


def added(cuts: Sequence[Cut]) -> Cut:
    """What is cut off on both sides, or one, or none; they are independent."""
    total = Cut(np.zeros(1), np.ones(1))
    for cut in cuts:
        amounts, weights = np.add.outer(total.amounts, cut.amounts), np.multiply.outer(total.weights, cut.weights)
        hidden, crowd = max(total.hidden, cut.hidden), max(total.crowd, cut.crowd)
        total = Cut.of(amounts.ravel(), weights.ravel(), hidden, crowd)
    return total


def _squares(given: Population, at: int) -> Population:
    """Every bucket as one of squared distances; those below ``at``, which no bound reaches, count for nothing."""
    lows, highs, places, means = (
        np.maximum(ends - at, 0.0) ** 2 for ends in (given.lows - 0.5, given.highs, given.places, given.means)
    )
    return replace(given, lows=lows + 0.5, highs=highs, places=places, means=means)


def _either(cuts: Sequence[Cut]) -> Cut:
    """One of several, each as likely."""
    amounts, weights = (
        np.concatenate(each) for each in zip(*((cut.amounts, cut.weights) for cut in cuts), strict=True)
    )
    return Cut.of(amounts, weights, max(cut.hidden for cut in cuts), max(cut.crowd for cut in cuts))
