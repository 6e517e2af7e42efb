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

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.population.cut import Cut
from evenhand.population.support import Array
from evenhand.profiles.beyond import Tail, added

_SLACK = 1.4
"""Far from zero, and for squares, a narrower bound is kept if its forecast error is at most so many times the least."""
_NEAR_ZERO = 0.5
"""Values that begin below this part of their end get bounds that begin at zero."""
_HIDDEN, _DOUBT = 0.1, 0.5
"""The part of all users on the other side of a centre from which on bounds include some of it: half way between none and a fifth. Less so many standard deviations of
its noise, where the centre is not zero: values are expected on both sides of it, and to miss them costs more than bounds half as wide again."""
FEW_CELLS = 2
"""What spans no more cells than this may be a single number."""
_ONE_NUMBER = 10
"""Values that lie within this part of their distance from zero, in a few cells, are one number for all that is visible."""
_DEEP = 30
"""Times nearer to the centre than bounds reach: users within do not count as lying on the other side."""
_NARROWEST = 16
"""Bounds are at least this part of their distance from zero apart."""
_SHOWS = 10.0
"""Scales of the noise from which on a cell next to zeros stands out: about one time in a thousand it does not."""
_BELOW, _BEYOND, _NEAR, _FARTHEST, _INSIDE = 30, 60, 4, 15, 6
"""Cells below and above the last visible one that its tail explains, how many above far from zero, and how many of them further out,
or further in for squares, an end may lie."""


@dataclass(frozen=True)
class Extent:
    """Bounds that were found.

    Args:
        low, high: round numbers, or the bound that was given.
        visible: whether values stood out from the noise at all; if not, the bounds are the outer range, so that intervals stay true.
        coarse: whether they lie within a small part of the bounds, and it could not be seen where.
        open: whether values stand out beyond the outer range, so that it is not known how far they reach.
        tails: what may lie beyond the ends that were found, as far as a model tells.
        centre: of the cells in which values were counted.
        outer: the ends of all that is visible, where some may lie outside.
        thin: where nothing but zeros is visible, the largest part of the users who may all have one other value and not show; ``hidden``, their number.
    """

    low: float
    high: float
    visible: bool
    coarse: bool = False
    open: bool = False
    tails: tuple[Tail, ...] = ()
    centre: float = 0.0
    outer: tuple[float, float] = (math.inf, -math.inf)
    thin: float = 1.0
    hidden: float = math.inf

    @functools.cached_property
    def cut(self) -> Cut:
        """By how much the bounds probably lower the mean, every user counting once."""
        return added([tail.cut(self._end(tail)) for tail in self.tails])

    @functools.cached_property
    def cut_of_squares(self) -> Cut:
        """The same for the mean square of distances from the mean."""
        return added([tail.cut_of_squares(self._end(tail), self.mean) for tail in self.tails])

    @property
    def mean(self) -> float:
        """About the mean of the values between the bounds, every user counting once."""
        mean = self.centre + math.fsum(tail.sign * tail.kept(self._end(tail)) for tail in self.tails)
        return min(max(mean, self.low), self.high)

    @property
    def size(self) -> float:
        """About the mean of their absolute values."""
        return abs(self.centre) or math.fsum(tail.kept(self._end(tail)) for tail in self.tails)

    @property
    def people(self) -> float:
        """About how many users there are; 0 where no tail was read."""
        return max((tail.people for tail in self.tails), default=0.0)

    def contradicted(self, statistic: str, value: object) -> bool:
        """Whether a number is so large that other values than zero must be spread over cells that don't show, and so may lie anywhere."""
        if not isinstance(value, float) or statistic not in ("mean", "per_user_mean", "sum"):
            return False
        return value > (self.hidden if statistic == "sum" else self.low + self.thin * (self.high - self.low))

    def _end(self, tail: Tail) -> float:
        return self.high if tail.sign > 0 else self.low


def extent_of(
    noisy: Sequence[float],
    scale: float,
    epsilon: float,
    given: Given = (None, None),
    outside: float = 0.0,
    centre: float = 0.0,
    power: int = 1,
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
        power: with which power of the width of the bounds noise grows.
    """
    low, high = given
    counts = within(noisy, given)
    first, last, visible = seen(counts / scale, centre, power=power)
    if not visible:
        first, last = 0, CELLS - 1
    kept = _trimmed(counts, scale, first, last, outside) if outside and visible else (first, last)
    top, bottom = float(HIGHS[kept[1]]), float(LOWS[kept[0]])
    outer, tails = (float(LOWS[first]), float(HIGHS[last])), []
    people = max(float(counts[first : last + 1].sum()), scale)
    # Values that lie far from zero for their spread are years, temperatures, heights, and seldom have long tails.
    far = abs(centre) > max(HIGHS[last], -LOWS[first])
    beyond, slack = _NEAR if far else _BEYOND, _SLACK if far or power > 1 else 1.0
    squares = power if far else 1  # a long tail of squares is mostly guessed: ends are chosen as for a mean
    if high is None and visible and kept[1] == last and (tail := _tail(counts, scale, last, people, beyond)):
        top = _best(tail, last, epsilon, max(-bottom, 0.0), squares, slack)
        tails.append(tail)
    if (
        low is None
        and visible
        and kept[0] == first
        and (tail := _tail(counts[::-1], scale, CELLS - 1 - first, people, beyond))
    ):
        bottom = -_best(tail, CELLS - 1 - first, epsilon, max(top, 0.0), squares, slack)
        tails.append(replace(tail, sign=-1))
    bottom, top = (bottom if low is None else low), (top if high is None else high)
    if low is None and bottom > 0 and (bottom < _NEAR_ZERO * top or _before(counts, scale, kept[0])):
        bottom = 0.0
    if high is None and top < 0 and (top > _NEAR_ZERO * bottom or _before(counts[::-1], scale, CELLS - 1 - kept[1])):
        top = 0.0
    if centre and visible and last - first < FEW_CELLS and max(-LOWS[first], HIGHS[last]) < abs(centre) / _ONE_NUMBER:
        # All that is visible is one number. It says nothing of how far others are from it, but its distance from zero does.
        place = int(np.searchsorted(HIGHS, abs(centre)))
        others = (_tail(counts, scale, place, people, _NEAR), _tail(counts[::-1], scale, place, people, _NEAR))
        tails = [replace(tail, sign=sign) for tail, sign in zip(others, (1, -1), strict=True) if tail is not None]
    elif centre and visible and low is None and bottom == 0.0 < top:
        bottom, tail = _across(counts, scale, people, top, centre)
        bottom, tails = -bottom, [*tails, replace(tail, sign=-1)]
    elif visible and high is None and top == 0.0 > bottom:  # around zero too: few columns hold negative numbers alone
        top, tail = _across(counts[::-1], scale, people, -bottom, centre)
        tails.append(tail)
    thin, hidden = 1.0, math.inf
    if bottom == top == 0.0 and given == (None, None):
        # Nothing but zeros is visible: most such columns are flags.
        top, hidden = (1.0 if not centre else level_above(abs(centre) / 1000)), _SHOWS * scale
        thin = hidden / (people + hidden)
    # All may be clamped to a bound that was given; and a bound that is seen to within a cell is not known better than that.
    while top - bottom < max(abs(bottom), abs(top)) / _NARROWEST or top == bottom:
        upwards = high is None and (low is not None or top < LEVELS[-1])
        bottom, top = (bottom, level_above(top)) if upwards else (-level_above(-bottom), top)
    beyond_all = visible and ((high is None and last == CELLS - 1) or (low is None and first == 0))
    return Extent(bottom + 0.0, top + 0.0, visible, False, beyond_all, tuple(tails), 0.0, outer, thin, hidden)


def _across(counts: Array, scale: float, people: float, reach: float, centre: float) -> tuple[float, Tail]:
    """How far below a centre bounds should begin if nothing stands out there, since it is no end; and what may lie there.

    Args:
        counts: noisy.
        scale: of the noise.
        people: about how many users there are.
        reach: how far bounds go above the centre.
        centre: zero, or about where the values lie.
    """
    near = (-reach <= LOWS) & (-reach / _DEEP >= HIGHS)
    noise = _DOUBT * scale * math.sqrt(2 * int(near.sum())) if centre else 0.0
    hidden = float(counts[near].sum()) > _HIDDEN * people - noise
    last = min(max(int(np.searchsorted(HIGHS, reach)), ZERO + 1), CELLS - 2)
    tail = _tail(counts[::-1], scale, last, people, 0 if centre else _BEYOND)
    assert tail is not None
    wanted = reach / 2 if centre else reach
    return next((level for level in LEVELS if level >= wanted), 0.0) if hidden else 0.0, tail


def _before(counts: Array, scale: float, first: int) -> bool:
    """Whether a run of cells just before the first that stands out holds more than one standard deviation of its noise."""
    return any(
        counts[max(first - run, ZERO) : first].sum() > scale * math.sqrt(2 * run) for run in (LONG, 2 * LONG, 4 * LONG)
    )


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


def _tail(counts: Array, scale: float, last: int, people: float, beyond: int) -> Tail | None:
    """What may lie beyond the last visible cell; None where it is not above zero, or the open one."""
    if last <= ZERO or last == CELLS - 1:
        return None
    first, end = max(ZERO + 1, last - _BELOW), min(CELLS - 1, last + beyond + 1)
    return Tail.of(HIGHS[first:end].tolist(), last + 1 - first, counts[first:end], scale, people)


def _best(tail: Tail, last: int, epsilon: float, below: float, power: int, slack: float) -> float:
    """The upper end with the least forecast error, given the last visible cell, and how far bounds reach below zero.

    For squares it may lie before that cell: a few visible values far out cost less than noise for the square of the width.
    """
    first = last if power == 1 else max(last - _INSIDE, ZERO + 1)
    ends = HIGHS[first : min(CELLS - 1, last + _FARTHEST + 1)].tolist()
    noise = [math.sqrt(2) * (end + below if power == 1 else (end + below) ** 2 / 3) / epsilon for end in ends]
    errors = np.array([math.hypot(one, tail.left(end, power)) for end, one in zip(ends, noise, strict=True)])
    return float(ends[int(np.flatnonzero(errors <= slack * errors.min())[0])])


def level_above(value: float) -> float:
    """The least round number above one."""
    return min((level for level in (*(-one for one in LEVELS), 0.0, *LEVELS) if level > value), default=2 * value)


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
