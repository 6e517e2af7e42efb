"""Around which number the cells of `visible.py` should lie: values far from zero for their spread need cells around themselves.

Ten cells to a decade show years as 1,500 to 2,500. Around 2,000, which such cells show well enough, the same cells show them as -50 to +20. So a
first histogram is bought with a small part of ε; if what stands out lies far from zero, the next one has its cells around the middle of it, and
so on; what is left buys another look at the cells that will do. Every histogram is one of users by the cell of `value - centre`, with the
same sensitivity, and the centre is a function of the noisy weights before it (docs/proofs/found-bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.guarantee import exact_difference, exact_product, split
from evenhand.population.support import Array
from evenhand.profiles.extent import FEW_CELLS, HIGHS, LEVELS, LOWS, Extent, Given, extent_of, level_above, seen, within

FIRST = Fraction(1, 6)
"""Part of the ε for a look at new cells: it shows about where values are if all of ε shows how far they reach."""

AGAIN = Fraction(1, 3)
"""Part for a second look at the same cells where the first showed nothing."""

LOOKS = 3
"""Centres at most: each is about ten times nearer to the values than the one before, and a half of ε is left for the last cells."""

FAR = 0.4
"""Values are far from zero if they begin beyond this part of their end: bounds from zero would be two thirds too wide."""

MOST = 0.8
"""The part of the users visible before that better cells show too."""

NARROWEST = 2**16
"""Bounds are at least this part of their distance from zero apart, so that grids resolve them."""

_NOTHING = Decimal(0)

Buy = Callable[[float, Decimal], list[float]]


@dataclass(frozen=True)
class Look:
    """The noisy weight of users in the cells around a centre.

    Args:
        centre: a round number.
        counts: the weights.
        scale: of their noise; of several looks together, that of a Laplace variable with the same variance, whose tails are heavier.
    """

    centre: float
    counts: Array
    scale: float

    def with_another(self, other: Look) -> Look:
        """Two looks at the same cells as one, each with the weight that gives the least variance."""
        mine, others = self.scale**-2, other.scale**-2
        counts = (mine * self.counts + others * other.counts) / (mine + others)
        return Look(self.centre, counts, (mine + others) ** -0.5)

    def extent(
        self, epsilon: float, given: Given, outside: float = 0.0, narrowest: int = NARROWEST, power: int = 1
    ) -> Extent:
        """Bounds, as `extent_of` says, seen from zero, and at least ``1/narrowest`` of their distance from it apart."""
        found = extent_of(self.counts.tolist(), self.scale, epsilon, self._relative(given), outside, self.centre, power)
        ends = (found.low, found.high)
        if self.centre and found.visible:
            low, high = _rounded(_sum(self.centre, found.low), _sum(self.centre, found.high))
            ends = max(low, -LEVELS[-1]), min(high, LEVELS[-1])
        low, high = (end if one is None else one for end, one in zip(ends, given, strict=True))
        room = level_above(max(abs(low), abs(high)) / narrowest)
        if high - low < room:
            low, high = (low, _sum(low, room)) if given[1] is None else (_sum(high, -room), high)
        tails = tuple(replace(tail, centre=self.centre) for tail in found.tails)
        outer = min(low, found.outer[0] + self.centre), max(high, found.outer[1] + self.centre)
        first, last, _ = self._seen(given)
        coarse = found.visible and last - first < FEW_CELLS and self.next_centre(given) is not None
        return replace(found, low=low, high=high, coarse=coarse, tails=tails, centre=self.centre, outer=outer)

    def stands_out(self, given: Given) -> bool:
        """Whether any users are visible."""
        return self._seen(given)[2]

    def shows_what(self, before: Look, given: Given) -> bool:
        """Whether most of the users are visible here who were visible before: cells around a centre may show just those who are at it."""
        (here, noise), (there, other) = self._weight(given), before._weight(given)
        return here + noise > MOST * (there - other)

    def _weight(self, given: Given) -> tuple[float, float]:
        """Of what is visible, and the standard deviation of its noise."""
        first, last, _ = self._seen(given)
        return float(self.counts[first : last + 1].sum()), self.scale * (2 * (last + 1 - first)) ** 0.5

    def next_centre(self, given: Given) -> float | None:
        """A better centre: in the middle of what is visible, if that lies far from this one; None if this one will do."""
        first, last, visible = self._seen(given, sure=True)
        low, high = float(LOWS[first]), float(HIGHS[last])
        near, far = sorted((abs(low), abs(high)))
        if not visible or low * high <= 0 or near < FAR * far:
            return None
        if high - low < abs(self.centre) / NARROWEST:
            return None
        # Values in neighbouring cells most likely lie about their common edge; of a single cell the middle is as good as any place.
        running = np.cumsum(np.maximum(self.counts[first : last + 1], 0.0))
        edges = HIGHS[first:last] if first < last else np.array([(low + high) / 2])
        place = int(np.abs(running[: len(edges)] - running[-1] / 2).argmin())
        centre = _sum(self.centre, float(edges[place]))
        return centre if abs(centre) < LEVELS[-1] else None

    def _seen(self, given: Given, sure: bool = False) -> tuple[int, int, bool]:
        return seen(within(self.counts.tolist(), self._relative(given)) / self.scale, self.centre, sure)

    def _relative(self, given: Given) -> Given:
        low, high = (None if one is None else one - self.centre for one in given)
        return low, high


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Numbers that a person would say, up to a twentieth of the width further out: multiples of 1 or 5 with zeros."""
    width = Fraction(repr(high)) - Fraction(repr(low))
    if not width > 0:
        return low, high
    step = Fraction(10) ** math.floor(math.log10(width / 20))
    step *= 5 if 5 * step <= width / 20 else 1
    return float(Fraction(repr(low)) // step * step), float(-(-Fraction(repr(high)) // step) * step)


def _sum(one: float, other: float) -> float:
    """As decimals: 0.3 and 0.02 are 0.32."""
    return float(Fraction(repr(one)) + Fraction(repr(other)))


def look_around(
    buy: Buy, epsilon: Decimal, moves: int, given: Given = (None, None), reserve: Decimal = _NOTHING
) -> Look:
    """Spend ε on looks at cells, the last of them around a centre that suits the values.

    Guarantee: reads noisy weights only, and buys looks that cost ε together, or ε and the reserve.

    Args:
        buy: the noisy weights of the cells around a centre, for a part of ε.
        epsilon: for all looks.
        moves: how far one user moves the weights, in L1 norm.
        given: a bound that the analyst gave, on either side.
        reserve: spent too if nothing stands out after that, or if the cells don't suit the values yet.
    """
    left = epsilon

    def look(centre: float, share: Fraction | None) -> Look:
        nonlocal left
        paid = left if share is None else split(epsilon, share)[0]
        left = exact_difference(left, paid)
        return Look(centre, np.array(buy(centre, paid), dtype=np.float64), moves / float(paid))

    def nearer(found: Look, before: Look) -> tuple[Look, Look]:
        """With all that is left, a look around a better centre, and the one before it."""
        for _ in range(LOOKS):
            centre = found.next_centre(given)
            if centre is None or exact_product(left, 3) <= epsilon:
                break
            before, found = found, look(centre, FIRST)
        return found.with_another(look(found.centre, None)), before

    found = look(0.0, FIRST)
    if not found.stands_out(given):
        found = found.with_another(look(0.0, AGAIN))
    found, before = nearer(found, found)
    if reserve and (not found.stands_out(given) or found.next_centre(given) is not None):
        left = reserve
        found, before = nearer(found, before)
    return found if found.stands_out(given) and found.shows_what(before, given) else before
