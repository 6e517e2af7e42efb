"""Gradient descent over users with noise: each user's gradient clamped to a length that follows the gradients.

Every choice here is made from released numbers: how long a step is, where the clamp lies, what is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import FULL, UNIT, UserRows, clamped
from evenhand.learning.descent.margins import MarginBelief
from evenhand.learning.descent.noisy_sums import NoisySums, UserVectors, VectorShares
from evenhand.learning.slopes import SLOPE, Slopes

MOMENTUM = 0.9

AVERAGED = 1 / 2, 2 / 3
"""The part of the iterates, the last ones, whose average is the model: where noise is little, and where it is much."""

BEYOND = math.isqrt(FULL**2 // 19)
"""What a user whose gradient is longer than the clamp adds to their count: it takes a twentieth of a step's share."""

_RATE = 0.125  # how far the logarithm of the clamp moves for as many users too many as the noise of their count
_LONGEST, _LEAST = 0.1, 0.02  # of the weight: the step, in units of the inverse curvature
_LITTLE = 3e-4  # loss added by noise up to which steps are the longest, in units of the steepest slope
_MARGINS = 4.0  # the variance of classes' scores that is to be expected: chances are mostly between 2 and 98 percent
_SHOWN = 4  # times what noise would make of them, from which on squared coefficients are held back less
_SEEN = 8  # times its noise, which the number of users exceeds where a model can be relied on
_COUNTED = 10.0  # up to which a user's weight counts, or up to a quarter of the largest: few have more, and noise covers what one may add
_PART = FULL  # what a user adds to each of the sums that set the length of steps
_OCTAVES = 20  # of the length of gradients, from 2^-10 to 2^8
_FINEST = 10


@dataclass(frozen=True)
class Start:
    """Where a descent starts: the sum of weights, the first clamp, how far to step along a gradient, the average curvature.

    ``curvature`` is that of the average loss where the descent starts, in units of the steepest slope; a model that tells more is flatter.
    ``averaged``: the part of the iterates that is averaged; ``constant``: the score of the constant model to start from.
    ``shortest``, ``longest``: the clamp stays between them.
    ``margins``: about how much scores may vary with a model, beforehand; infinite if nothing is held against large coefficients.
    ``unsure``: how far noise may have put the log-odds of that constant off.
    ``hidden``: so few users that noise hides what was prepared, and nobody should rely on the model.
    """

    weight: float
    clip: float
    length: float
    curvature: float
    averaged: float = AVERAGED[0]
    constant: float = 0.0
    shortest: float = 0.0
    longest: float = math.inf
    hidden: bool = False
    margins: float = math.inf
    unsure: float = 0.0


def started(
    sums: NoisySums,
    slopes: Slopes,
    size: int,
    h: float,
    users: float,
    target: float,
    along: float,
    clip: float | None = None,
    constant: float = 0.0,
) -> Start:
    """Ask for sums of weights and of targets, and for a histogram of the lengths of gradients where all scores are ``constant``, if the last coefficient is one."""
    first, most = np.zeros(size * slopes.scores), min(h, max(h / 4, _COUNTED))
    first[-1] = constant

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h)
        for (part, targets), (_, gradients) in zip(rows.sums_of_targets(), rows.gradients(first, slopes), strict=True):
            weight, counts = weights[part], rows.counts[part]
            above = (targets / slopes.largest_target / counts + 1) / 2  # a user's average target, from 0 to 1
            totals = np.column_stack([weight * counts / most, above])
            yield np.hstack([np.rint(np.clip(totals, 0, 1) * _PART), _PART * _octaves(gradients, weight)])

    total, sd = sums.ask(per_user, 2 + _OCTAVES, 3 * _PART**2)
    total, sd = total / _PART, sd / _PART
    weight = max(float(total[0]), 2 * sd)
    rare = min(sd / users, 0.5)  # what noise could be taken for is no rare class
    mean = float(np.clip(total[1] / users, rare, 1 - rare))
    score, curvature, largest = slopes.start(mean)
    longer = np.cumsum(total[:1:-1])[::-1]  # users with gradients in this octave or above
    hidden = 3.5 * sd * np.sqrt(np.arange(_OCTAVES, 0, -1))  # by the noise of the octaves that are added up
    above = np.flatnonzero(longer > np.maximum(hidden, max(target, users / 20)))
    found = 2.0 ** (int(above[-1]) - _FINEST - 0.5) if len(above) else 1.0
    shortest, longest = 0.0, 2 * found  # slopes may be twice as steep with another model than with none
    margins = math.inf
    if slopes.by_label_width:  # labels may be skewed, and predictions vary no more than they do
        longest, margins = 8 * found, found**2 / size
    if slopes.steepest_at_zero:
        # A usual row at the steepest slope stays whole: with rare positives, these rows are all that there is to learn from.
        shortest = math.sqrt(size)
        found = longest = max(found, shortest)
        margins = _MARGINS
    weight, clip = weight * most, clip or found
    length, averaged = _pace(sums.plan, slopes, size, weight, clip, curvature, largest * along)
    seen = users >= _SEEN * sd
    unsure = rare / (mean * (1 - mean))
    return Start(weight, clip, length, curvature, averaged, score, shortest, longest, not seen, margins, unsure)


def _pace(
    plan: VectorShares, slopes: Slopes, size: int, weight: float, clip: float, curvature: float, largest: float
) -> tuple[float, float]:
    """How far to step along the gradient, and the part of the iterates to average, from released numbers.

    At most 2/L with the trace of the second derivative for L, which keeps descent with this momentum stable whatever the
    correlations; standardised features have a mean square of 1. Noise adds about ½·size·s²/κ to the loss of a model that has
    converged (s: the noise of the averaged gradient, κ: the curvature). Where that is much, shorter steps stop earlier, and less
    noise gets in; and more iterates are averaged if the first ones were not far off, as they are where all scores start at 0.
    """
    noise = math.sqrt(2) * plan.sd_of_all() * clip / weight
    added = size * slopes.scores * noise**2 / (2 * curvature)
    part = min(max(_LONGEST * _LITTLE / max(added, 1e-300), _LEAST), _LONGEST)
    averaged = AVERAGED[slopes.at_constant and part < _LONGEST / 2]
    return min(2 / largest, part / curvature) / weight, averaged


def _octaves(gradients: Floats, weights: Floats) -> Floats:
    """In which octave the length of a user's weighted gradient is, one-hot; from an exact sum of squares."""
    short, _ = clamped(gradients, weights * (2.0**_FINEST / (SLOPE * UNIT)))
    exponent = np.frexp(np.einsum("ij,ij->i", short, short))[1]  # the square is below 2^exponent
    hot: Floats = np.eye(_OCTAVES)[np.minimum((exponent + 1) // 2, _OCTAVES - 1)]
    return hot


@dataclass(frozen=True, eq=False)
class Descent:
    """What a descent did: where it started, the averaged iterate, the last clamp, and the noise in the gradient of each step.

    ``length``: how far it stepped along a gradient; ``averaged``: from which step on; ``beyond``: how many users were beyond the clamp in
    an average step of those, None if they were not counted; ``pull``: how strongly each coefficient is held where it started;
    ``moved``: how far the intercept was moved in the end, and ``recalibrated``: the noise of the average slope that it was moved by;
    ``stretched``: by what coefficients were multiplied, and ``believed``: what labels are believed to follow along the model.
    """

    first: Floats
    f: Floats
    clip: float
    noise: Floats
    length: float
    averaged: int
    beyond: float | None
    pull: Floats
    moved: float = 0.0
    recalibrated: float = 0.0
    stretched: float = 1.0
    believed: MarginBelief | None = None


def descend(
    sums: NoisySums,
    slopes: Slopes,
    size: int,
    h: float,
    start: Start,
    *,
    steps: int,
    regularisation: float,
    follow: float | None,
    intercept: bool,
    nearest: Callable[[Floats], Floats] | None = None,
) -> Descent:
    """T steps with momentum, from a constant model on, and the average of the last ones.

    Args:
        follow: how many users' gradients may be longer than the clamp, which moves to keep it so; None: it stays.
        intercept: whether the last coefficient is one, which starts as the constant model's.
        nearest: the projection to the set that coefficients are confined to.
    """
    length = 1 / (1 / start.length + regularisation * start.weight)
    f, speed, average = (np.zeros(size) for _ in range(3))
    if intercept:
        f[-1] = start.constant
    origin, first, pull = f, steps - math.ceil(start.averaged * steps), np.zeros(size)
    clip, noise, beyond = start.clip, np.zeros(steps), 0.0
    for step in range(steps):
        total, sd = sums.ask(
            _gradient(f, slopes, h, clip, follow is not None),
            size + (follow is not None),
            FULL**2 + (BEYOND**2 if follow is not None else 0),
        )
        pull = _pulled(sums.plan, start, f - origin, intercept)
        gradient, noise[step] = total[:size] * (clip / FULL), sd * clip / FULL
        speed = MOMENTUM * speed - length * (gradient + start.weight * (regularisation * f + pull * (f - origin)))
        f, before = f + speed, f
        if nearest is not None:
            f = nearest(f)
            speed = f - before
        if step >= first:
            average += f / (steps - first)
            beyond += float(total[-1]) / BEYOND / (steps - first)
        if follow is not None:
            clip = _followed(clip, total[size] / BEYOND, sd / BEYOND, follow)
            clip = min(max(clip, start.shortest), start.longest)
    return Descent(origin, average, clip, noise, length, first, None if follow is None else max(beyond, 0.0), pull)


def _pulled(plan: VectorShares, start: Start, gone: Floats, intercept: bool) -> Floats:
    """How strongly each coefficient is held where it started, against the average loss: by its noise over what it may be beforehand.

    A coefficient with the error s/κ that varies by τ² has its best estimate κ/(κ + s²/(κτ²)) of the way. Scores vary with all features
    together; a constant moves by half their standard deviation. Where a class is rare and the loss flat, nothing else would hold them.
    """
    features = len(gone) - intercept
    expected = np.full(len(gone), start.margins / max(features, 1))
    if intercept:
        expected[-1] = start.margins / 4
    noise = (plan.sd_of_all() * start.clip / start.weight) ** 2
    # Coefficients that noise would not have made so long have shown how much they vary.
    shown = float(gone[:features] @ gone[:features]) / (_SHOWN * max(features, 1) * noise / start.curvature**2)
    return np.asarray(noise / (start.curvature * expected) / max(shown, 1.0))


def _gradient(f: Floats, slopes: Slopes, h: float, clip: float, counted: bool) -> UserVectors:
    """Clamped gradients of users in units of clip/FULL, and which were longer (`BEYOND`)."""
    unit = FULL / (clip * SLOPE * UNIT)

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h) * unit
        for part, gradients in rows.gradients(f, slopes):
            found, inside = clamped(gradients, weights[part])
            yield np.column_stack([found, np.where(inside, 0, BEYOND)]) if counted else found

    return per_user


def _followed(clip: float, beyond: float, sd: float, follow: float) -> float:
    """The next clamp: longer if more users than ``follow``, or than half the noise, were beyond it.

    A smaller number could not be told from noise: the clamp would wander. With these numbers its logarithm stays within
    about 0.3 of where it should be if the number of longer gradients falls with the cube of their length.
    """
    off = (beyond - max(follow, sd / 2)) / sd
    return clip * math.exp(_RATE * min(max(off, -2.0), 4.0))


def responses(curved: Floats, done: Descent) -> tuple[Floats, Floats]:
    """The variance that the noise of all steps leaves in the averaged iterate, and the part of the way that was not gone.

    Args:
        curved: second derivatives of the summed loss along each direction.
    """
    steps, first = len(done.noise), done.averaged
    curved = np.minimum(curved, 2 / done.length)  # beyond, steps would be unstable, which their length rules out
    moved, speed, trace = np.full(len(curved), -done.length), np.full(len(curved), -done.length), []
    for _ in range(steps):  # what noise of 1 in a step does to the iterates after it
        trace.append(moved)
        speed = MOMENTUM * speed - done.length * curved * moved
        moved = moved + speed
    until = np.vstack([np.zeros(len(curved)), np.cumsum(trace, axis=0)])
    places = np.arange(steps)
    effect = (until[steps - places] - until[np.maximum(first - places, 0)]) / (steps - first)
    # Starting 1 away is like a push of that curvature in every step.
    gone = -(curved * effect.sum(axis=0))
    return (effect**2 * done.noise[:, None] ** 2).sum(axis=0), 1 - gone
