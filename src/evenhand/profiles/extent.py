"""Between which round numbers the values of a column lie, as far as a noisy histogram of users shows it.

Each user has weight one in all, spread over public cells in proportion to the user's rows there: a single odd row of a user with many
rows weighs little, and a user with many rows no more than one with few. The cells lie between round numbers of either sign, ten to a
decade, and those numbers are the bounds that can be found: values are clamped where it is shown.

Reading the noisy histogram costs nothing more. First the cells that stand out: from the run of cells with most evidence outwards, where
evidence has to grow with the width that it adds, since noise will grow with it. Then, at an end away from zero, a model of the tail
(`posterior.py`) says how many users may lie beyond, and the bound is the number with the least forecast error. It is a model: it serves to
choose a bound, never a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenhand.profiles.buckets import Buckets
from evenhand.profiles.posterior import posterior
from evenhand.profiles.support import Array

MANTISSAS = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
DECADES = range(-9, 15)

LEVELS = (*(float(f"{mantissa}e{decade}") for decade in DECADES for mantissa in MANTISSAS), 1e15)
"""The round numbers of one sign. Bounds that are found lie between -1e15 and 1e15; what is below 1e-9 counts as zero."""

CELLS = 2 * len(LEVELS) + 1
"""One for zero, and on either side one up to each further level and one beyond the last. A round number belongs to the cell that it ends,
seen from zero: values up to 100 need no bound of 120."""

_ZERO = len(LEVELS)
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
_SLACK = 2.0
"""A narrower bound is kept if its forecast squared error is at most so many times the least: tails are guessed, visible ends are seen. An error
is then at most 1.4 times the least that the model forecasts."""
_NEAR_ZERO = 0.5
"""Values that begin below this part of their end get bounds that begin at zero."""
_LONG = 5
"""And so do others if a run of cells before them, from this length on, holds more than one standard deviation of its noise."""
_NARROWEST = 16
"""Bounds are at least this part of their distance from zero apart."""
_BELOW, _BEYOND, _UNSEEN = 30, 15, 3.0
"""Cells below and above the last visible one, from which its tail is read; those above don't stand out, so they count for at most so many
scales of the noise."""


@dataclass(frozen=True)
class Extent:
    """Bounds that were found.

    Args:
        low, high: round numbers, or the bound that was given.
        visible: whether values stood out from the noise at all; if not, the bounds are the outer range, so that intervals stay true.
    """

    low: float
    high: float
    visible: bool


Given = tuple[float | None, float | None]


def extent_of(
    noisy: Sequence[float],
    scale: float,
    epsilon: float,
    given: Given = (None, None),
    outside: float = 0.0,
    centre: float = 0.0,
) -> Extent:
    """The bounds with the least forecast error.

    Guarantee: reads the noisy counts only.

    Args:
        noisy: the weight of users in each cell.
        scale: of the Laplace noise on each.
        epsilon: for which the bounds are; the larger, the more it matters not to cut values off.
        given: a bound that the analyst gave, on either side.
        outside: the part of the weight on either side that may lie outside without loss.
        centre: what was taken off the values before they were put into cells, and off the bounds here.
    """
    low, high = given
    counts = within(noisy, given)
    first, last, visible = seen(counts / scale, centre)
    if not visible:
        first, last = 0, CELLS - 1
    kept = _trimmed(counts, scale, first, last, outside) if outside and visible else (first, last)
    top, bottom = float(HIGHS[kept[1]]), float(LOWS[kept[0]])
    if kept[1] == last:
        top = _end(counts, scale, last, epsilon, max(-bottom, 0.0))
    if kept[0] == first:
        bottom = -_end(counts[::-1], scale, CELLS - 1 - first, epsilon, max(top, 0.0))
    bottom, top = (bottom if low is None else low), (top if high is None else high)
    if low is None and bottom > 0 and (bottom < _NEAR_ZERO * top or _before(counts, scale, kept[0])):
        bottom = 0.0
    if high is None and top < 0 and (top > _NEAR_ZERO * bottom or _before(counts[::-1], scale, CELLS - 1 - kept[1])):
        top = 0.0
    if bottom == top == 0.0 and given == (None, None):
        top = (
            1.0 if not centre else level_above(abs(centre) / 1000)
        )  # nothing but zeros is visible: most such columns are flags
    # All may be clamped to a bound that was given; and a bound that is seen to within a cell is not known better than that.
    while top - bottom < max(abs(bottom), abs(top)) / _NARROWEST or top == bottom:
        bottom, top = (bottom, level_above(top)) if high is None else (-level_above(-bottom), top)
    return Extent(bottom + 0.0, top + 0.0, visible)


def _before(counts: Array, scale: float, first: int) -> bool:
    """Whether there may be users just before the first cell that stands out, too few or too scattered to stand out themselves."""
    return any(
        counts[max(first - run, _ZERO) : first].sum() > scale * math.sqrt(2 * run)
        for run in (_LONG, 2 * _LONG, 4 * _LONG)
    )


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


def seen(evidence: Array, centre: float = 0.0, sure: bool = False) -> tuple[int, int, bool]:
    """The first and the last cell that stand out, and whether any does.

    Args:
        evidence: the noisy weight of each cell, in scales of its noise.
        centre: around which the cells lie; if it is not zero, users were seen about there before.
        sure: only cells that hardly ever stand out by chance, in either direction.
    """
    usual, negative = (_USUAL, _NEGATIVE) if not centre else ((abs(centre) / _FINEST, abs(centre)), 0.0)
    reach = np.maximum(np.maximum(-LOWS, HIGHS), LEVELS[0])
    unusual = _UNUSUAL * np.log(np.maximum(np.maximum(reach / usual[1], usual[0] / reach), 1.0))
    unusual[:_ZERO] += negative
    zeros = float(evidence[_ZERO])
    sums = np.concatenate([[0.0], np.cumsum(np.where(np.arange(CELLS) == _ZERO, 0.0, evidence))])
    best, first, last = -math.inf, _ZERO, _ZERO
    for run in (1, 2, 3, 4, 6, 10):
        found = surprise(sums[run:] - sums[:-run], run) - np.maximum(unusual[run - 1 :], unusual[: CELLS - run + 1])
        place = int(found.argmax())
        if found[place] > best:
            best, first, last = float(found[place]), place, place + run - 1
    if best < _ANY and zeros > _ZEROS:
        return _ZERO, _ZERO, True
    visible = best >= _ANY
    first, last = _filled(evidence, first, last)
    if sure:
        return *_grown_both_ways(evidence, first, last, _SURE), visible
    if zeros > _ZEROS:
        first, last = min(first, _ZERO), max(last, _ZERO)
    first, last = _grown_both_ways(evidence, first, last, _CERTAIN)
    end = _grown(evidence, first, last, _LAST, (1, 2))
    return CELLS - 1 - _grown(evidence[::-1], CELLS - 1 - last, CELLS - 1 - first, _LAST, (1, 2)), end, visible


def _grown_both_ways(evidence: Array, first: int, last: int, need: tuple[float, float]) -> tuple[int, int]:
    """The run of cells with all those further ones that are certain."""
    before = None
    while before != (first, last):
        before = first, last
        for runs in ((1, 2), (3, 4, 6, 10, 20)):
            last = _grown(evidence, first, last, need, runs)
            first = CELLS - 1 - _grown(evidence[::-1], CELLS - 1 - last, CELLS - 1 - first, need, runs)
    return first, last


def _filled(evidence: Array, first: int, last: int) -> tuple[int, int]:
    """A run without those cells at its ends that hold less than half of what others hold on average."""
    enough = np.flatnonzero(evidence[first : last + 1] >= evidence[first : last + 1].mean() / 2)
    return (first + int(enough[0]), first + int(enough[-1])) if len(enough) else (first, last)


def _grown(evidence: Array, first: int, last: int, need: tuple[float, float], runs: Sequence[int]) -> int:
    """The last cell, further up where there is evidence for it."""
    low, high, farthest = LOWS[first], HIGHS[last], last
    sums = np.concatenate([[0.0], np.cumsum(evidence)])
    if high == low == 0.0:
        return last
    width = max(high - low, abs(high) / 2, abs(low) / 2)
    for run in runs:
        starts = np.arange(last + 1, CELLS - run + 1)
        ends = starts + run - 1
        found = surprise(sums[starts + run] - sums[starts], run)
        wider = np.log(np.maximum((HIGHS[ends] - low) / width, 1.0))
        needed = need[0] + math.log(len(runs)) + need[1] * wider
        if high <= 0.0 and need is not _SURE:
            size = np.maximum(np.abs(HIGHS[ends]), LEVELS[0]) / max(-low, LEVELS[0])
            far = np.maximum(need[1] * np.log(size), -np.log(_SMALLER * size))
            needed = (_INWARDS if run < _LONG else _INWARDS_LONG) + np.maximum(far, 0.0) + wider
        enough = found >= needed
        for place in np.flatnonzero(enough):
            farthest = max(farthest, _filled(evidence, int(starts[place]), int(ends[place]))[1])
    return farthest


def _trimmed(counts: Array, scale: float, first: int, last: int, outside: float) -> tuple[int, int]:
    """Without the cells at either end that hold no more than ``outside`` of the weight, as far as noise lets one tell."""
    total = max(float(counts[first : last + 1].sum()), scale)

    def dropped(run: Array) -> int:
        upper = np.cumsum(run) + scale * np.sqrt(2 * np.arange(1, len(run) + 1))
        fits = np.flatnonzero(upper <= outside * total)
        return int(fits[-1]) + 1 if len(fits) else 0

    run = counts[first : last + 1]
    low, high = dropped(run[:-1]), dropped(run[:0:-1])
    return (first + low, last - high) if low + high < len(run) else (first, last)


def _end(counts: Array, scale: float, last: int, epsilon: float, below: float) -> float:
    """The upper end with the least forecast error, given the last visible cell, and how far bounds reach below zero."""
    if last <= _ZERO or last == CELLS - 1:
        return float(HIGHS[last])
    first, beyond = max(_ZERO + 1, last - _BELOW), min(CELLS - 2, last + _BEYOND)
    tops = [Fraction(repr(float(top))) for top in HIGHS[first : beyond + 1]]
    edges = (0, *(int(1000 * top / tops[0]) for top in tops))
    buckets = Buckets(edges, edges[last - first + 1])
    above = np.minimum(counts[last + 1 : beyond + 1], _UNSEEN * scale)
    believed = posterior(buckets, [0.0, *counts[first : last + 1], *above, 0.0], scale)
    ends = np.array(edges[1 + last - first :], dtype=np.float64)
    cut = np.array([believed.cut(end).median for end in ends])
    squared = 2 * ((ends + below * 1000 / float(tops[0])) / epsilon) ** 2 + cut**2
    return float(HIGHS[last + int(np.flatnonzero(squared <= _SLACK * squared.min())[0])])


def level_above(value: float) -> float:
    """The least round number above one."""
    return min((level for level in (*(-one for one in LEVELS), 0.0, *LEVELS) if level > value), default=2 * value)
