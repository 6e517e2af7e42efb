"""Plausible numbers of users by bucket behind a noisy histogram.

The logarithm of the number of users is a random walk over the buckets, with a slope that changes little from one bucket to the next (`priors.py`): power
laws, log-normal tails, ends, breaks and crowds apart are all walks. It is filtered from the lowest bucket up, on a grid of levels and slopes, and sampled
from the highest one down. No random numbers: the same counts give the same tables.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.population import priors
from evenhand.population.support import Array

TABLES = 400
CROWDS_MORE_OFTEN = 20.0
"""Tables with a crowd apart are sampled so many times more often, and weighted by as much less: what is measured later may speak for them."""

_APART = priors.CROWD * CROWDS_MORE_OFTEN
_ON = 1 - priors.JUMP - priors.END
_STEP = 0.15  # of the grid, in logarithms of users
_STEEPEST, _RISING = -8.0, 4.5  # slopes, at most
_GROWTH = 0.3  # between slopes, of their size: flat ones have to be told apart more finely


@dataclass(frozen=True)
class Walks:
    """Sampled walks.

    Args:
        users: expected, by table and bucket.
        slopes: in logarithms of users, from the bucket before.
        crowds: of each table, how many crowds apart it has.
    """

    users: Array
    slopes: Array
    crowds: Array


@functools.cache
def _slopes() -> tuple[npt.NDArray[np.intp], Array, Array, Array, Array]:
    """Slopes in steps of the grid and in logarithms; how likely each is at first, and after a jump; and after each other one."""
    sizes = [0]
    for most in (_STEEPEST, _RISING):
        steps = 1
        while steps * _STEP <= abs(most):
            sizes.append(round(math.copysign(steps, most)))
            steps += max(1, round(_GROWTH * steps))
    shifts = np.array(sorted(sizes))
    slopes = shifts * _STEP
    width = np.gradient(slopes)
    steeper = priors.DOWN + priors.STEEPEN * np.maximum(slopes - priors.MODERATE, 0.0)
    change = slopes[None, :] - (slopes - steeper)[:, None]
    gently = np.exp(-((change / priors.BEND) ** 2) / 2) / (priors.BEND * math.sqrt(2 * math.pi))
    wildly = 1 / (1 + (change / priors.WILDLY) ** 2) / (priors.WILDLY * math.pi)
    wildly *= (slopes <= priors.FLATTEST)[None, :] | (slopes[None, :] <= slopes[:, None])
    turn = ((1 - priors.WILD) * gently + priors.WILD * wildly) * width
    falling = width * (slopes <= priors.FLATTEST)
    return shifts, slopes, width / width.sum(), falling / falling.sum(), turn / turn.sum(axis=1, keepdims=True)


@functools.lru_cache(maxsize=64)
def places(buckets: int) -> Array:
    """Numbers between 0 and 1 to sample with, always the same."""
    draws: Array = np.random.default_rng(buckets).random((buckets, 2, TABLES))
    return draws


class _Grid:
    """Levels and slopes, and how the walk goes on.

    A state is a level and a slope; a level in a crowd apart; or nobody: after somebody, or not yet.

    Args:
        most: the largest logarithm of users that is possible.
        scale: of the noise.
        begin: how likely it is that users begin at each bucket, if they have not.
        fewest: how many begin, at least.
    """

    def __init__(self, most: float, scale: float, begin: Array, fewest: float) -> None:
        self.shifts, self.slopes, first, falling, self.turn = _slopes()
        self.turned = np.ascontiguousarray(self.turn.T)
        self.levels = np.arange(math.log(priors.LEAST), most + _STEP, _STEP)
        self.begin, count = begin, len(self.levels)
        someone, shown = _even(self.levels > math.log(fewest)), math.log(max(scale, 1.0))
        self.apart = _even((self.levels >= shown) & (self.levels <= shown + math.log(priors.MANY)))
        self.fresh, self.jump = np.multiply.outer(someone, first), np.multiply.outer(someone, falling)
        before = np.arange(count)[:, None] - self.shifts
        self.inside = (before >= 0) & (before < count)
        self.before = np.clip(before, 0, count - 1) * len(self.slopes) + np.arange(len(self.slopes))

    def moved(self, alive: Array) -> tuple[Array, float]:
        """After a step of the walk: the states, and how likely it is that the walk fell below the least level."""
        turned: Array = alive @ self.turn
        moved: Array = np.take(turned, self.before) * self.inside
        return _ON * moved, _ON * max(float(alive.sum() - moved.sum()), 0.0)


def _even(some: npt.NDArray[np.bool_]) -> Array:
    weights: Array = some / max(float(some.sum()), 1.0)
    return weights


def walks(noisy: Array, scale: float, widths: Array, begin: Array, visible: bool) -> Walks:
    """Sample tables.

    Args:
        noisy: users by bucket.
        scale: of the noise.
        widths: of the buckets, in those of the raster far up: users of small whole numbers lie in narrower or wider ones.
        begin: how likely it is that users begin at each, if they have not.
        visible: whether anybody stands out.
    """
    most = math.log(max(float(noisy.max()), 0.0) + 6 * scale + 3) + 0.5 - math.log(widths.min())
    fewest = priors.FEWEST if visible else max(scale, priors.FEWEST)
    grid = _Grid(most, scale, begin, fewest)
    users = np.exp(grid.levels) * widths[:, None]
    return _sampled(grid, users, _filtered(grid, *_likelihoods(noisy, scale, users)))


def _likelihoods(noisy: Array, scale: float, users: Array) -> tuple[Array, Array]:
    """Of each count, if so many users are expected, and if there is nobody: Laplace near zero, and otherwise about as wide."""

    def logs(expected: Array) -> Array:
        width = np.sqrt(scale**2 + expected / 2 + (priors.MISS * expected) ** 2)
        fit: Array = -np.abs(noisy[:, None] - expected) / width - np.log(width)
        return fit

    some, none = logs(users), logs(np.zeros((len(noisy), 1)))
    most = np.maximum(some.max(axis=1, keepdims=True), none)
    return np.exp(some - most), np.exp(none - most)[:, 0]


@dataclass(frozen=True)
class _Filtered:
    """How likely each state is, given the counts up to each bucket: of those who go on, in a crowd apart, nobody any more, and nobody yet; and how
    likely it was to fall below the least level on the way to each."""

    alive: Array
    crowd: Array
    gone: Array
    yet: Array
    fell: Array


def _filtered(grid: _Grid, some: Array, none: Array) -> _Filtered:
    buckets = len(some)
    found = _Filtered(
        np.zeros((buckets, *grid.fresh.shape)),
        np.zeros((buckets, len(grid.levels))),
        np.zeros(buckets),
        np.zeros(buckets),
        np.zeros(buckets),
    )
    here, crowd, gone, yet = np.zeros(grid.fresh.shape), np.zeros(len(grid.levels)), 0.0, 1.0
    for place, begin in enumerate(grid.begin):
        before, apart = float(here.sum()), float(crowd.sum())
        moved, fell = grid.moved(here) if place else (here, 0.0)
        here = (moved + begin * yet * grid.fresh + priors.JUMP * before * grid.jump) * some[place][:, None]
        crowd = (_APART * gone + priors.WIDER * apart) * grid.apart * some[place]
        gone = ((1 - _APART) * gone + priors.END * before + fell + (1 - priors.WIDER) * apart) * none[place]
        yet = (1 - begin) * yet * none[place]
        whole = max(float(here.sum()) + float(crowd.sum()) + gone + yet, 1e-300)
        here, crowd, gone, yet = here / whole, crowd / whole, gone / whole, yet / whole
        found.alive[place], found.crowd[place], found.gone[place], found.yet[place] = here, crowd, gone, yet
        found.fell[place] = fell
    return found


def _sampled(grid: _Grid, users: Array, filtered: _Filtered) -> Walks:
    """Tables, from the highest bucket down; somebody is in each. States are numbered: going on, in a crowd, nobody any more, nobody yet."""
    buckets, slopes, levels = len(users), len(grid.slopes), len(grid.levels)
    people = levels * slopes
    nobody, waiting = people + levels, people + levels + 1
    draws = places(buckets)
    found, slope, crowds = np.zeros((TABLES, buckets)), np.zeros((TABLES, buckets)), np.zeros(TABLES)
    last = np.cumsum(np.concatenate([filtered.alive[-1].ravel(), filtered.crowd[-1], filtered.gone[-1:]]))
    state = np.minimum(np.searchsorted(last, (np.arange(TABLES) + 0.5) / TABLES * last[-1]), nobody)
    state = state[np.argsort(draws[-1, 0], kind="stable")]
    for place in range(buckets - 1, -1, -1):
        going, apart = np.flatnonzero(state < people), (state >= people) & (state < nobody)
        level, tilt = np.divmod(state[going], slopes)
        found[going, place], slope[going, place] = users[place][level], grid.slopes[tilt]
        found[apart, place] = users[place][state[apart] - people]
        crowds += apart
        if not place:
            break
        before, crowd = filtered.alive[place - 1], filtered.crowd[place - 1]
        gone, many, some = filtered.gone[place - 1], float(crowd.sum()), float(before.sum())
        first, second = draws[place - 1]
        any_one, any_crowd = _drawn(before.ravel(), second), people + _drawn(crowd, second)
        # Nobody any more: as before, or somebody's last bucket was the one before.
        stayed = (1 - _APART) * gone
        ended = stayed + (1 - priors.WIDER) * many
        left = first * (ended + priors.END * some + filtered.fell[place])
        left = np.where(left < stayed, nobody, np.where(left < ended, any_crowd, any_one))
        # In a crowd apart: it began here, or goes on.
        alone = _APART * gone
        in_crowd = np.where(first * (alone + priors.WIDER * many) < alone, nobody, any_crowd)
        # Going on: from a level and a slope, after a jump, or from nobody yet.
        came = level - grid.shifts[tilt]
        inside = (came >= 0) & (came < levels)
        came = np.clip(came, 0, levels - 1)
        steps = np.cumsum(before[came] * (_ON * inside)[:, None] * grid.turned[tilt], axis=1)
        jumped = steps[:, -1] + priors.JUMP * some * grid.jump[level, tilt]
        drawn = first[going] * (jumped + grid.begin[place] * filtered.yet[place - 1] * grid.fresh[level, tilt])
        old = came * slopes + np.minimum((steps < drawn[:, None]).sum(axis=1), slopes - 1)
        state = np.where(apart, in_crowd, np.where(state == nobody, left, waiting))
        state[going] = np.where(drawn < steps[:, -1], old, np.where(drawn < jumped, any_one[going], waiting))
    return Walks(found, slope, crowds)


def _drawn(weights: Array, uniform: Array) -> npt.NDArray[np.intp]:
    """Places drawn in proportion to weights."""
    reached = np.cumsum(weights)
    place: npt.NDArray[np.intp] = np.minimum(np.searchsorted(reached, uniform * reached[-1]), len(weights) - 1)
    return place
