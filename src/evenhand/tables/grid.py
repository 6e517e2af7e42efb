"""The public integer grid that makes sensitivity exact.

Each value is clamped to its bounds, shifted by a public origin, multiplied by a power of two and rounded to
an integer inside the engine. Sums of integers depend neither on the order of rows nor on the engine, so the change
that one user causes is bounded exactly, with no allowance for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.guarantee import UsageError, told

BITS = 28
"""Row values span at most 2^28 grid steps either way: fine enough for hundreds of millions of users, and 2^24 rows of one
user add up to less than 2^53, where doubles are still exact integers (see `saturation`)."""


def bits_for(epsilon: Decimal) -> int:
    """How fine a grid is worth: fewer bits at a tiny ε, where the noise hides them and its scale must fit 64 bits."""
    return max(6, min(BITS, BITS + 6 + math.frexp(float(epsilon))[1] - 1))


Bounds = tuple[float, float]

LARGEST_OPEN = 1e15
"""The outer range of bounds that are found (see `profiles/extent.py`)."""


OpenBounds = tuple[float | None, float | None]


def parse_open_bounds(given: Iterable[float | None] | None, name: str = "bounds") -> OpenBounds:
    """Read a pair of which either number may be left out, as None, or both: those are found privately."""
    if given is None:
        return None, None
    expected = f"expected {name}=(low, high), or (low, None) where the upper end is to be found"
    try:
        low, high = () if isinstance(given, str) else given
    except (TypeError, ValueError):
        raise UsageError(f"{name}={told(given)} is not a pair; {expected}.") from None
    if low is not None and high is not None:
        return parse_bounds((low, high), name)
    try:
        ends = tuple(None if end is None else float(end) for end in (low, high))
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name}={told(given)} is not a pair of numbers; {expected}.") from None
    if not all(end is None or abs(end) <= LARGEST_OPEN for end in ends):
        raise UsageError(
            f"{name}={told(given)}: where one end is left out, the other lies between ±{LARGEST_OPEN:g}; {expected}."
        )
    return ends[0], ends[1]


def parse_bounds(given: Iterable[float] | None, name: str = "bounds") -> Bounds:
    """Read a pair (low, high) of finite numbers with low < high."""
    expected = f"expected {name}=(low, high), two finite numbers with low < high, chosen without looking at the data"
    if given is None:
        raise UsageError(
            f"{name} are missing; {expected}. They say how large one value can be: for star ratings {name}=(0.5, 5)."
        )
    try:
        low, high = (float(bound) for bound in (() if isinstance(given, str) else given))
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name}={told(given)} is not a pair of numbers; {expected}.") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError(f"{name}=({low}, {high}) are not finite; {expected}.")
    if low >= high:
        raise UsageError(f"{name}=({low}, {high}) are reversed or empty; {expected}.")
    if not (high - low > 1e-150 and max(abs(low), abs(high)) < 1e150):
        raise UsageError(f"{name}=({low}, {high}) are too extreme for doubles; rescale the column.")
    return low, high


@dataclass(frozen=True)
class Grid:
    """Values in ``[low, high]`` as integers in ``[bottom, top]``: ``(x − origin)·2^exponent``, rounded half up.

    Engines compute how many steps a value lies above ``bottom``, by one multiplication, one addition and one ``floor`` in
    doubles. Each is monotone, so every value in the bounds lands between 0 and ``width``, whatever the rounding.
    """

    low: float
    high: float
    origin: float
    exponent: int

    @classmethod
    def about(cls, bounds: Bounds, origin: float, bits: int = BITS) -> Grid:
        """The finest grid of 2^bits steps for these bounds, seen from ``origin``."""
        low, high = bounds
        reach = max(abs(low - origin), abs(high - origin))
        return cls(low, high, origin, bits - math.frexp(reach)[1])

    @property
    def steps_per_unit(self) -> Fraction:
        """How many grid steps make one unit of the value: a power of two, so scaling is exact in doubles."""
        return Fraction(2) ** self.exponent

    @property
    def factor(self) -> float:
        """The same as a double, exactly."""
        return math.ldexp(1.0, self.exponent)

    @property
    def bottom(self) -> int:
        """The integer of the lower bound: 0 if that is the origin."""
        if self.origin == self.low:
            # By definition, not by rounding: for a large origin ``0.5 − origin·factor`` is a tie that may round to 1 − origin·factor.
            # It is never below ``−origin·factor``, so no value in the bounds lands below 0.
            return 0
        # In exact numbers: rounding up here would put the lower bound itself below the bottom.
        return math.floor(Fraction(self.low) * self.steps_per_unit + Fraction(self._half))

    @property
    def top(self) -> int:
        """The integer of the upper bound."""
        return self.bottom + self.width

    @property
    def width(self) -> int:
        """``top − bottom``: how far one row can move."""
        return self.steps_above(self.high)

    @property
    def offset(self) -> float:
        """What the engine adds to ``x·factor`` before it takes the floor."""
        return self._half - self.bottom

    def steps_above(self, value: float) -> int:
        """How many steps a value within the bounds lies above ``bottom``: the same double arithmetic as in the engine."""
        return math.floor(value * self.factor + self.offset)

    @property
    def reach(self) -> int:
        """The largest magnitude of one row."""
        return max(abs(self.bottom), abs(self.top))

    @property
    def least(self) -> int:
        """The smallest magnitude of one row: 0 unless all values have one sign."""
        return max(self.bottom, -self.top, 0)

    def units(self, steps: float | Fraction) -> float:
        """Grid steps as a number in the column's unit (without the origin)."""
        return float(Fraction(steps) / self.steps_per_unit)

    def steps(self, amount: float | Fraction) -> int:
        """An amount in the column's unit as grid steps, rounded up: caps never shrink to zero."""
        return math.ceil(Fraction(amount) * self.steps_per_unit)

    @property
    def _half(self) -> float:
        return 0.5 - self.origin * self.factor
