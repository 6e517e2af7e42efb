"""Gradient descent over users with noise: each user's gradient clamped to a length that follows the gradients.

Every choice here is made from released numbers: how long a step is, where the clamp lies, what is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from evenhand.learning.noisy_sums import NoisySums, PerUser, Plan
from evenhand.learning.private_values import Floats
from evenhand.learning.slopes import SLOPE, Slopes
from evenhand.learning.user_rows import FULL, UNIT, UserRows, clamped

MOMENTUM = 0.9

BEYOND = math.isqrt(FULL**2 // 19)
"""What a user whose gradient is longer than the clamp adds to their count: it takes a twentieth of a step's share."""

_RATE = 0.125  # how far the logarithm of the clamp moves for as many users too many as the noise of their count
_FURTHEST = 2  # times the first clamp: slopes are half the steepest at the start
_LONGEST, _LEAST = 0.1, 0.02  # of the weight: the step, in units of the inverse curvature
_LITTLE = 3e-4  # loss added by noise up to which steps are the longest
_SEEN = 8  # times its noise, which the sum of weights exceeds where a model can be relied on
_PART = FULL  # what a user adds to each of the sums that set the length of steps
_STEEP = 4  # times as many squared spreads as there are coefficients: a user's rows beyond count as this
_OCTAVES = 20  # of the length of gradients, from 2^-10 to 2^8
_FINEST = 10


@dataclass(frozen=True)
class Start:
    """Where a descent starts: the sum of weights, the first clamp, how far to step along a gradient, the average curvature.

    ``curvature`` is at most what it says: for weighted rows, averaged over coefficients, in units of the steepest slope.
    ``hidden``: so few users that noise hides what was prepared, and nobody should rely on the model.
    """

    weight: float
    clip: float
    length: float
    curvature: float
    hidden: bool = False


def started(
    sums: NoisySums, slopes: Slopes, size: int, h: float, users: float, target: float, clip: float | None = None
) -> Start:
    """Ask for sums of weights and squared norms, and for a histogram of the lengths of gradients at the start."""
    most, zero = _STEEP * size * UNIT**2, np.zeros(size * slopes.scores)

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h)
        for (part, squares), (_, gradients) in zip(rows.squared_norms(), rows.gradients(zero, slopes), strict=True):
            weight = weights[part]
            totals = np.column_stack([weight * rows.counts[part] / h, squares * weight / (h * most)])
            yield np.hstack([np.rint(np.clip(totals, 0, 1) * _PART), _PART * _octaves(gradients, weight)])

    total, sd = sums.ask(per_user, 2 + _OCTAVES, 3 * _PART**2)
    sd /= _PART
    weight, squares = np.maximum(total[:2] / _PART, 2 * sd) * h
    longer = np.cumsum(total[:1:-1])[::-1] / _PART  # users with gradients in this octave or above
    hidden = 3.5 * sd * np.sqrt(np.arange(_OCTAVES, 0, -1))  # by the noise of the octaves that are added up
    above = np.flatnonzero(longer > np.maximum(hidden, max(target, users / 20)))
    found = 2.0 ** (int(above[-1]) - _FINEST - 0.5) if len(above) else 1.0
    start = _start(sums.plan, slopes, size, float(weight), float(squares) * _STEEP, clip or found)
    return replace(start, hidden=bool(total[0] < _SEEN * sd * _PART))


def _start(plan: Plan, slopes: Slopes, size: int, weight: float, squares: float, clip: float) -> Start:
    """How far to step along the gradient, from released numbers; ``squares`` is the weighted sum of ‖x‖²/size.

    At most 2/L with the trace of the second derivative for L, which keeps descent with this momentum stable whatever
    the correlations. Noise adds about ½·size·s²/κ to the loss of a model that has converged (s: the noise of the average
    gradient of the second half, κ: the average curvature). Where that is much, shorter steps stop earlier, and less noise gets in.
    """
    noise, average = math.sqrt(2) * plan.sd_of_all() * clip / weight, slopes.bend * squares / weight
    added = size * slopes.scores * noise**2 / (2 * average)
    part = min(max(_LONGEST * _LITTLE / max(added, 1e-300), _LEAST), _LONGEST)
    return Start(weight, clip, min(2 / (squares * size * slopes.curvature), part / (weight * slopes.bend)), average)


def _octaves(gradients: Floats, weights: Floats) -> Floats:
    """In which octave the length of a user's weighted gradient is, one-hot; from an exact sum of squares."""
    short, _ = clamped(gradients, weights * (2.0**_FINEST / (SLOPE * UNIT)))
    exponent = np.frexp(np.einsum("ij,ij->i", short, short))[1]  # the square is below 2^exponent
    hot: Floats = np.eye(_OCTAVES)[np.minimum((exponent + 1) // 2, _OCTAVES - 1)]
    return hot


@dataclass(frozen=True, eq=False)
class Descent:
    """What a descent did: the averaged iterate, the last clamp, and the noise in the gradient of the last step."""

    f: Floats
    clip: float
    noise: float


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
    nearest: Callable[[Floats], Floats] | None = None,
) -> Descent:
    """T steps with momentum, and the average of the second half.

    Args:
        follow: how many users' gradients may be longer than the clamp, which moves to keep it so; None: it stays.
        nearest: the projection to the set that coefficients are confined to.
    """
    length = 1 / (1 / start.length + regularisation * start.weight)
    f, speed, average = (np.zeros(size) for _ in range(3))
    clip, noise = start.clip, 0.0
    for step in range(steps):
        total, sd = sums.ask(
            _gradient(f, slopes, h, clip, follow is not None),
            size + (follow is not None),
            FULL**2 + (BEYOND**2 if follow is not None else 0),
        )
        gradient, noise = total[:size] * (clip / FULL), sd * clip / FULL
        speed = MOMENTUM * speed - length * (gradient + regularisation * start.weight * f)
        f, before = f + speed, f
        if nearest is not None:
            f = nearest(f)
            speed = f - before
        if step >= steps // 2:
            average += f / (steps - steps // 2)
        if follow is not None:
            clip = min(_followed(clip, total[size] / BEYOND, sd / BEYOND, follow), _FURTHEST * start.clip)
    return Descent(average, clip, noise)


def _gradient(f: Floats, slopes: Slopes, h: float, clip: float, counted: bool) -> PerUser:
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
