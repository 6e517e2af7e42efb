"""Which tokens have answered: one bit each, so that a report counts once however often it comes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Seen:
    """A set of serials below ``tokens``, one bit each: its size is fixed when the tokens are issued."""

    def __init__(self, tokens: int) -> None:
        self.bits = np.zeros((tokens + 7) // 8, np.uint8)

    def claim(self, serials: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Mark serials as seen; True for each that comes for the first time, here or in an earlier call."""
        order = _sorted(serials)
        ascending = serials if order is None else serials[order]
        first = np.ones(len(serials), bool)
        first[1:] = ascending[1:] != ascending[:-1]
        place, mask = ascending >> 3, (1 << (ascending & 7)).astype(np.uint8)
        first &= (self.bits[place] & mask) == 0
        place, mask = place[first], mask[first]
        if len(place):
            starts = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
            self.bits[place[starts]] |= np.bitwise_or.reduceat(mask, starts)
        if order is None:
            return first
        fresh = np.empty_like(first)
        fresh[order] = first
        return fresh

    def overlap(self, other: Seen) -> int:
        return int(np.bitwise_count(self.bits & other.bits).sum())


def _sorted(serials: NDArray[np.uint32]) -> NDArray[np.intp] | None:
    """The order that sorts serials, equal ones as they came; None if they ascend already."""
    if np.all(serials[1:] >= serials[:-1]):
        return None
    # Sorting serial and place as one number is much faster than a stable argsort.
    packed = serials.astype(np.uint64) << np.uint64(32) | np.arange(len(serials), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.intp)
