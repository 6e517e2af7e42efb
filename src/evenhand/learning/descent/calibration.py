"""The intercept and the length of a released model, set right by two more numbers: what all users' slopes add up to, and what along the model.

What a clamp cuts off points one way where busy users differ from others, or where rows contradict the model: a model that says 0.3 where half of the
labels are positive, or coefficients that are a sixth too long. Noise makes them too long as well, and what holds noise back too short. A single
number of a user is much shorter than a gradient, so its clamp can be long, and it has little noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import FULL, UNIT, UserRows, clamped
from evenhand.learning.descent.descent import Descent, Start, responses
from evenhand.learning.descent.margins import Guess, Margins
from evenhand.learning.descent.noisy_sums import NoisySums
from evenhand.learning.loss_forecast import alone, curvatures
from evenhand.learning.slopes import SLOPE, ByClass, Slopes

CALIBRATION_SHARE = Fraction(1, 40)
"""The share of each of these numbers."""

MOST_CALIBRATED = 64
"""Features up to which the length is set right: beyond, they are not whitened, and how far margins spread is not known."""

_OF_RARER = 4
_PART = 1 / 16  # of h: the clamp of a user's sum of slopes
_LEAST = (
    8.0  # rows at the steepest slope that are never cut: with a rare class, a shorter clamp would cut that class alone
)
_CLAMPS = 2.0 ** (np.arange(-4, 9) / 4)  # of a user's slopes along the model: steepest ones, one deviation out
_FINE = 2**10  # steps of 1 in the direction of the model
_LARGEST = 2.0**30  # of a number that is multiplied with it: products add up exactly
_STANDS_OUT = 2  # times its noise, from which on a single number is believed
_OFF = 0.03  # how far clamps usually put the log-odds of all labels off, and lengths, relatively
_DIFFER = 0.5  # between the log-odds of users and of rows
_TIMES = 4  # as long as it was may a model become


def calibrated(sums: NoisySums, slopes: Slopes, h: float, start: Start, done: Descent, numbers: int) -> Descent:
    """The intercept, which is last, and the length of the coefficients moved to what is believed after two numbers were bought.

    Args:
        numbers: one for the intercept alone: it moves as far as what slopes add up to differs from noise.
    """
    f, length = done.f, float(np.linalg.norm(done.f[:-1]))
    # What noise adds is at most a fraction of what the rarer class adds, if one row of a user may count.
    per_row = sums.sd * math.sqrt(numbers)
    longest = min(max(_PART * h, _LEAST), max(start.weight * start.curvature / (_OF_RARER * per_row), 1.0))
    if slopes.by_label_width:  # rows that are off by as much as labels vary
        longest *= min(math.sqrt(start.margins), 1.0)
    margins = Margins(slopes, float(f[-1]), length) if isinstance(slopes, ByClass) else None
    clamps, at = np.array([longest, 1.0][:numbers]), f
    if numbers > 1 and margins is not None:
        # Where noise alone may have made half of the model, slopes of a constant one tell more about it.
        if 2 * alone(margins.slopes, start, done) > length:
            at = done.first
        seen = Margins(margins.slopes, float(at[-1]), length * (at is f))
        clamps[1] = seen.clamp(margins, _CLAMPS, per_row / start.weight)
        seen = replace(seen, longest=float(clamps[1]))
    toward = np.rint(f[:-1] * (_FINE / max(length, 1e-12)))

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h) * (FULL / (SLOPE * UNIT))
        for part, gradients in rows.gradients(at, slopes):
            found = [clamped(gradients[:, -1:], weights[part] / longest)[0]]
            if numbers > 1:
                own = np.clip(np.rint(gradients[:, :-1] * (weights[part] / clamps[1])[:, None]), -_LARGEST, _LARGEST)
                found.append(clamped((own @ toward)[:, None] / _FINE, np.ones(len(own)))[0])
            yield np.hstack(found)

    total, sd = sums.ask(per_user, numbers, numbers * FULL**2)
    off, noise = total * clamps / (FULL * start.weight), sd * clamps / (FULL * start.weight)
    if numbers > 1 and margins is not None:
        return _as_believed(margins, seen, start, done, off, noise)
    out = float(off[0]) * (1 - min(_STANDS_OUT * float(noise[0]) / max(abs(float(off[0])), 1e-300), 1.0) ** 2)
    if not out:
        return done
    moved = f.copy()
    moved[-1] = margins.middle_for(out) if margins else f[-1] - out / slopes.bend
    return replace(done, f=moved, moved=float(moved[-1] - f[-1]), recalibrated=float(noise[0]))


def _as_believed(margins: Margins, seen: Margins, start: Start, done: Descent, off: Floats, noise: Floats) -> Descent:
    """The model that loses least on average, after what its noise and its steps tell and what slopes added up to."""
    f, features, pull = done.f, len(done.f) - 1, float(done.pull[0])
    across, along, _ = curvatures(margins.slopes, margins.middle, margins.sd)
    # Half-way between where the descent started and ended.
    curved = np.sqrt(np.array([across, along]) * start.curvature)
    variance, left = responses((curved + pull) * start.weight, done)
    gone = max(float((1 - left[1]) * curved[1] / (curved[1] + pull)), 1 / _TIMES)
    by_noise = float((features - 1) * variance[0] + variance[1])
    made = max(alone(margins.slopes, start, done) ** 2, by_noise)
    # Of coefficients with noise in them, the part that is best kept; and steps, and what held them, may have left some of the way.
    least, largest = (max(margins.sd - one / max(margins.sd, 1e-12), 0.0) for one in (made, by_noise))
    right, between = largest / gone, largest - least
    unsure = math.hypot(between, by_noise * math.sqrt(2 / features) / max(margins.sd, 1e-12))
    most = math.sqrt(start.margins)
    near = min(math.hypot(2 * _OFF * margins.sd, math.sqrt(variance[1]), unsure) / gone, most)
    far = min(math.hypot(margins.sd / 2, math.sqrt(made)) / gone, most)
    constant = Margins(margins.slopes, start.constant, 0.0).odds
    known = math.hypot(_DIFFER, start.unsure)
    own = math.hypot(_OFF, math.sqrt(variance[0]), between / 2)
    odds = Guess(constant, known, 2 * known), Guess(margins.odds, own, math.hypot(own, 1.0))
    believed = seen.believed(odds, Guess(right, max(near, 1e-6), max(far, 1e-6), max(margins.sd / 8, 1e-6)), off, noise)
    middle, length = believed.best(margins.slopes, _TIMES * margins.sd)
    stretched = length / max(margins.sd, 1e-12)
    moved = np.append(f[:-1] * stretched, middle)
    return replace(
        done,
        f=moved,
        moved=middle - margins.middle,
        recalibrated=float(noise[0]),
        stretched=stretched,
        believed=believed,
    )
