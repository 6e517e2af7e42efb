"""Sums over users with noise, each with a share of (ε, δ), and gradient descent along them: each user's gradient is clamped to a length that
follows the gradients.

Every choice here is made from released numbers: how long a step is, where the clamp lies, what is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from evenhand.guarantee import Relation
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import FULL, UNIT, UserRows, clamped
from evenhand.learning.slopes import SLOPE, Slopes
from evenhand.noise.steps import noise_multiplier
from evenhand.release import Receipt
from evenhand.tables import Secret

if TYPE_CHECKING:
    from evenhand.learning.descent.recalibration import MarginBelief

UserVectors = Callable[[UserRows], Iterator[Floats]]
"""Integer vectors of users, block by block: whole numbers below 2^40, held as doubles."""


AVERAGED = 1 / 2, 2 / 3
"""The part of the iterates, the last ones, whose average is the model: where noise is little, and where it is much."""

BEYOND = math.isqrt(FULL**2 // 19)
"""What a user whose gradient is longer than the clamp adds to their count: it takes a twentieth of a step's share."""

MOMENTUM = 0.9
_RATE = 0.125  # how far the logarithm of the clamp moves for as many users too many as the noise of their count
_SHOWN = 4  # times what noise would make of them, from which on squared coefficients are held back less


@dataclass(frozen=True)
class VectorShares:
    """The shares of all the vectors that a fit asks for, in order, and how much noise each gets.

    Everything here is public, and known before anything is debited.
    """

    epsilon: Decimal
    delta: Decimal
    relation: Relation
    shares: tuple[Fraction, ...]

    def sd(self, place: int, l2_squared: int) -> float:
        """The standard deviation of the noise in each number of a vector."""
        multiplier = noise_multiplier(self.epsilon, self.delta, self.relation, self.shares[place])
        return float(multiplier) * math.sqrt(l2_squared)

    def sd_of_all(self) -> float:
        """The noise, in units of one user's norm, that a vector would get with all shares."""
        return float(noise_multiplier(self.epsilon, self.delta, self.relation))

    def opened(self, rows: Secret[UserRows], receipt: Receipt) -> NoisySums:
        """Start asking, with what a receipt has paid for."""
        return NoisySums(self, rows, receipt.vectors(self.shares, self.relation, self.epsilon, self.delta))


class NoisySums:
    """Answers the vectors of a plan one after the other."""

    def __init__(
        self, plan: VectorShares, rows: Secret[UserRows], noisy: Callable[[Secret[list[int]], int], list[int]]
    ) -> None:
        self.plan, self._rows, self._noisy, self._place = plan, rows, noisy, 0

    def standardise(self, centre: Floats, ratio: Floats) -> None:
        """Replace the features by standardised ones, from released numbers."""
        self._rows.map(lambda rows: rows.standardise(centre, ratio))

    def whiten(self, means: Floats, matrix: Floats) -> None:
        """Replace standardised features by linear functions of them, from released numbers."""
        self._rows.map(lambda rows: rows.whiten(means, matrix))

    @property
    def sd(self) -> float:
        """The noise of the next vector, in units of one user's norm."""
        return self.plan.sd(self._place, 1)

    def ask(self, per_user: UserVectors, size: int, l2_squared: int) -> tuple[Floats, float]:
        """The noisy sum of vectors whose squared norm is at most ``l2_squared``, and the noise in each number."""
        sd = self.plan.sd(self._place, l2_squared)
        self._place += 1
        total = self._rows.map(lambda rows: _total(per_user(rows), size))
        return np.array([float(value) for value in self._noisy(total, l2_squared)]), sd


def _total(blocks: Iterator[Floats], size: int) -> list[int]:
    """Exact: the numbers of a block are whole, and few enough to be summed as doubles."""
    total = np.zeros(size, dtype=np.int64)
    for block in blocks:
        total += block.sum(axis=0).astype(np.int64)
    return [int(value) for value in total]


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
