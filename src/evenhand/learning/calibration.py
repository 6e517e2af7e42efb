"""The intercept of a released model, set right by one more number: what all users' predictions are off by, on average.

Busy users may differ from others, and then what a clamp cuts off points one way: a model that says 0.3 where half of the labels are positive. The
sum of a user's slopes alone is much shorter than a gradient, so its clamp can be long, and a single number has little noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from evenhand.learning.descent import Descent, Start
from evenhand.learning.loss_forecast import level
from evenhand.learning.noisy_sums import NoisySums
from evenhand.learning.private_values import Floats
from evenhand.learning.slopes import SLOPE, ByClass, Slopes
from evenhand.learning.user_rows import FULL, UNIT, UserRows, clamped

SHARE = Fraction(1, 40)
"""The share of the vector of this one number."""

_OF_RARER = 4
_PART = 1 / 16  # of h: the clamp of a user's sum of slopes
_LEAST = (
    8.0  # rows at the steepest slope that are never cut: with a rare class, a shorter clamp would cut that class alone
)


def calibrated(sums: NoisySums, slopes: Slopes, h: float, start: Start, done: Descent) -> Descent:
    """The intercept, which is last, moved to where slopes add up to nothing; as far as what they add up to differs from noise."""
    f = done.f
    # What noise adds is at most a fraction of what the rarer class adds, if one row of a user may count.
    longest = min(max(_PART * h, _LEAST), max(start.weight * start.curvature / (_OF_RARER * sums.sd), 1.0))
    if slopes.by_label_width:  # rows that are off by as much as labels vary
        longest *= min(math.sqrt(start.margins), 1.0)

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h) * (FULL / (longest * SLOPE * UNIT))
        for part, gradients in rows.gradients(f, slopes):
            yield clamped(gradients[:, -1:], weights[part])[0]

    total, sd = sums.ask(per_user, 1, FULL**2)
    off, noise = float(total[0]) * longest / (FULL * start.weight), sd * longest / (FULL * start.weight)
    if abs(off) <= 2 * noise:
        return done
    off *= 1 - (2 * noise / off) ** 2
    moved = f.copy()
    if isinstance(slopes, ByClass):
        moved[-1] = level(slopes, float(f[-1]), math.sqrt(float(f[:-1] @ f[:-1])), off)
    else:
        moved[-1] -= off / slopes.bend
    return replace(done, f=moved, moved=float(moved[-1] - f[-1]), recalibrated=noise)
