"""What a statistic says about bounds that the analyst left out."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.profiles import NARROWEST
from evenhand.tables import Bounds, OpenBounds
from evenhand.tables.grid import LARGEST_OPEN

_ROOM = 10.0
"""How many times further from zero than for a mean the bounds of a value lie where only totals are capped. Each user counts once when bounds are
found, and busy users' values may be larger (pay)."""


@dataclass(frozen=True)
class WantedBounds:
    """Bounds that the analyst left out.

    Args:
        column: of which column.
        given: the bound that was given on one side, if any.
        ease: how many times cheaper a wide bound is than for a mean.
        power: with which power of the width of the bounds noise grows.
        outside: the part of the values on either side that may lie outside without loss.
        total: bounds of the total of a user's values, not of one value.
        narrowest: bounds are at least this part of their distance from zero apart, so that its grid has steps enough between them.
    """

    column: str
    given: OpenBounds = (None, None)
    ease: float = 1.0
    power: int = 1
    outside: float = 0.0
    total: bool = False
    narrowest: int = NARROWEST


def further(low: float, high: float, given: OpenBounds = (None, None)) -> Bounds:
    """Bounds that were found, with `_ROOM`, unless all values lie far from zero."""
    if low > 0 or high < 0:
        return low, high
    low = max(_ROOM * low, -LARGEST_OPEN) if given[0] is None else low
    return low, min(_ROOM * high, LARGEST_OPEN) if given[1] is None else high
