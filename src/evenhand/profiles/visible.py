"""The public cells in which values are counted, and which of them stand out from the noise.

The cells lie between round numbers of either sign, ten to a decade, seen from a centre. First the run of cells with most evidence; then from
there outwards, where evidence has to grow with the width that it adds, since noise will grow with it. Reads noisy counts only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenhand.population.support import Array

MANTISSAS = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
DECADES = range(-9, 15)

LEVELS = (*(float(f"{mantissa}e{decade}") for decade in DECADES for mantissa in MANTISSAS), 1e15)
"""The round numbers of one sign. Bounds that are found lie between -1e15 and 1e15; what is below 1e-9 counts as zero."""

CELLS = 2 * len(LEVELS) + 1
"""One for zero, and on either side one up to each further level and one beyond the last. A round number belongs to the cell that it ends,
seen from zero: values up to 100 need no bound of 120."""

ZERO = len(LEVELS)
LOWS = np.array([-LEVELS[-1], *(-level for level in reversed(LEVELS[1:])), 0.0, 0.0, *LEVELS[1:]])
HIGHS = -LOWS[::-1]
"""The bounds that a cell needs. The cells at the ends are open, and the one in the middle is taken for zero."""

_ANY, _ZEROS = 8.0, 6.5
"""Evidence, as −ln of a probability, for any users at all, and for zeros: there are some e^6 runs of cells where users could be."""
_USUAL, _UNUSUAL, _NEGATIVE = (1e-3, 1e7), 0.7, 2.0
"""Columns usually hold positive numbers of such a size. Beyond, more evidence is needed for each e-fold, and for negative ones alone."""
_FINEST = 1e6
"""Around a centre, values usually lie within its distance from zero, and not within this part of it."""
_CERTAIN, _LAST = (5.0, 2.0), (0.5, 2.6)
"""Intercept and slope of the evidence that further cells need, as in `occupied.py`: cells are added as long as they are certain, and
once more with less evidence. The slope is for the logarithm of the width."""
_SURE = 10.0, 2.0
"""The same for cells that decide where to look next: there one that stands out by chance costs more than one that is missed."""
_INWARDS, _INWARDS_LONG, _SMALLER = 5.5, 3.8, 10.0
"""The same towards zero and across it, for values up to as large: at worst the width doubles. More for those so many times smaller, less for
long runs of cells, of which there are few that don't overlap."""
LONG = 5
"""Cells in a long run, at least."""

Given = tuple[float | None, float | None]
"""Bounds that the analyst gave, on either side."""


def surprise(total: Array, run: int) -> Array:
    """At most −ln P(sum of ``run`` Laplace(1) variables > total), by Chernoff's bound; 0 where the total is not positive."""
    t = np.maximum(total, 1e-9)
    theta = (np.sqrt(run**2 + t**2) - run) / t
    return np.where(total > 0, theta * t + run * np.log1p(-(theta**2)), 0.0)


def within(noisy: Sequence[float], given: Given) -> Array:
    """The weights, without those of cells outside bounds that were given."""
    low, high = given
    inside = np.ones(CELLS, dtype=bool)
    if low is not None:
        inside &= low < HIGHS
    if high is not None:
        inside &= high > LOWS
    return np.where(inside, np.asarray(noisy, dtype=np.float64), 0.0)


def seen(evidence: Array, centre: float = 0.0, sure: bool = False, power: int = 1) -> tuple[int, int, bool]:
    """The first and the last cell that stand out, and whether any does.

    Args:
        evidence: the noisy weight of each cell, in scales of its noise.
        centre: around which the cells lie; if it is not zero, users were seen about there before.
        sure: only cells that hardly ever stand out by chance, in either direction.
        power: with which power of the width that they add the noise will grow.
    """
    usual, negative = (_USUAL, _NEGATIVE) if not centre else ((abs(centre) / _FINEST, abs(centre)), 0.0)
    reach = np.maximum(np.maximum(-LOWS, HIGHS), LEVELS[0])
    unusual = _UNUSUAL * np.log(np.maximum(np.maximum(reach / usual[1], usual[0] / reach), 1.0))
    unusual[:ZERO] += negative
    zeros = float(evidence[ZERO])
    sums = np.concatenate([[0.0], np.cumsum(np.where(np.arange(CELLS) == ZERO, 0.0, evidence))])
    best, first, last = -math.inf, ZERO, ZERO
    for run in (1, 2, 3, 4, 6, 10, 20, 40):
        found = surprise(sums[run:] - sums[:-run], run) - np.maximum(unusual[run - 1 :], unusual[: CELLS - run + 1])
        place = int(found.argmax())
        if found[place] > best:
            best, first, last = float(found[place]), place, place + run - 1
    if best < _ANY and zeros > _ZEROS:
        return ZERO, ZERO, True
    visible = best >= _ANY
    first, last = _filled(evidence, first, last)
    if sure:
        return *_grown_both_ways(evidence, first, last, _SURE, abs(centre)), visible
    if zeros > _ZEROS:
        first, last = min(first, ZERO), max(last, ZERO)
    certain, once = ((need[0], power * need[1]) for need in (_CERTAIN, _LAST))
    first, last = _grown_both_ways(evidence, first, last, certain, abs(centre))
    end = _grown(evidence, first, last, once, (1, 2), abs(centre))
    start = CELLS - 1 - _grown(evidence[::-1], CELLS - 1 - last, CELLS - 1 - first, once, (1, 2), abs(centre))
    return start, end, visible


def _grown_both_ways(
    evidence: Array, first: int, last: int, need: tuple[float, float], usual: float
) -> tuple[int, int]:
    """The run of cells with all those further ones that are certain."""
    before = None
    while before != (first, last):
        before = first, last
        for runs in ((1, 2), (3, 4, 6, 10, 20)):
            last = _grown(evidence, first, last, need, runs, usual)
            first = CELLS - 1 - _grown(evidence[::-1], CELLS - 1 - last, CELLS - 1 - first, need, runs, usual)
    return first, last


def _filled(evidence: Array, first: int, last: int) -> tuple[int, int]:
    """A run without those cells at its ends that hold less than half of what others hold on average."""
    enough = np.flatnonzero(evidence[first : last + 1] >= evidence[first : last + 1].mean() / 2)
    return (first + int(enough[0]), first + int(enough[-1])) if len(enough) else (first, last)


def _grown(evidence: Array, first: int, last: int, need: tuple[float, float], runs: Sequence[int], usual: float) -> int:
    """The last cell, further up where there is evidence for it.

    Most users may lie at one number, as those who buy one piece: how close they are together says nothing about the others. So what stands
    out for sure counts unless it is further away than is ``usual``.
    """
    low, high, farthest = LOWS[first], HIGHS[last], last
    sums = np.concatenate([[0.0], np.cumsum(evidence)])
    if high == low == 0.0 and not usual:
        return last
    width = max(high - low, abs(high) / 2, abs(low) / 2, LEVELS[0])
    for run in runs:
        starts = np.arange(last + 1, CELLS - run + 1)
        ends = starts + run - 1
        found = surprise(sums[starts + run] - sums[starts], run)
        wider = np.log(np.maximum((HIGHS[ends] - low) / width, 1.0))
        needed = need[0] + math.log(len(runs)) + need[1] * wider
        if high <= 0.0 and need is not _SURE:
            size = np.maximum(np.abs(HIGHS[ends]), LEVELS[0]) / max(-low, LEVELS[0])
            far = np.maximum(need[1] * np.log(size), -np.log(_SMALLER * size))
            needed = (_INWARDS if run < LONG else _INWARDS_LONG) + np.maximum(far, 0.0) + wider
        if usual:
            away = np.log(np.maximum(np.maximum(np.abs(HIGHS[ends]), np.abs(LOWS[starts])) / usual, 1.0))
            needed = np.minimum(needed, _SURE[0] + math.log(len(runs)) + _SURE[1] * away)
        enough = found >= needed
        for place in np.flatnonzero(enough):
            farthest = max(farthest, _filled(evidence, int(starts[place]), int(ends[place]))[1])
    return farthest
