"""The intercept and the length of a released model, set right by two more numbers: what all users' slopes add up to, and what along the model.

What a clamp cuts off points one way where busy users differ from others, or where rows contradict the model: a model that says 0.3 where half of the
labels are positive, or coefficients that are a sixth too long. Noise makes them too long as well, and what holds noise back too short. A single
number of a user is much shorter than a gradient, so its clamp can be long, and it has little noise.

What the two numbers say about labels along the model is a posterior over the middle and the length of its margins, which are taken for normal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import FULL, UNIT, UserRows, clamped
from evenhand.learning.descent.descent import Descent, NoisySums, Start, responses
from evenhand.learning.fitting import halved
from evenhand.learning.loss_forecast import alone, curvatures
from evenhand.learning.slopes import SLOPE, ByClass, Slopes

SCORES = np.linspace(-5.0, 5.0, 101)
CHANCES = np.exp(-(SCORES**2) / 2) / np.exp(-(SCORES**2) / 2).sum()
_POINTS, _ZOOMS = 31, 6  # of the grid: points each way, and how often it closes in
_REACH = 5.0  # standard deviations, to which it then goes
_FAR = 12.0  # from where a model's middle is, the farthest that is thought of
_KEPT = (1.0, 0.5)  # parts of a length that is not known to be right
_DOUBT = 0.1
_BETWEEN = (np.arange(16) + 0.5) / 16


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


@dataclass(frozen=True)
class Guess:
    """A number that is about ``mean``, give or take ``sd``, or ``far`` in one case of five; if ``nothing`` is given, within that of 0 in one of seven."""

    mean: float
    sd: float
    far: float
    nothing: float = 0.0

    def against(self, values: Floats) -> Floats:
        """Minus twice the logarithm of how likely values are, up to a constant."""
        parts = [(0.65 if self.nothing else 0.8, self.mean, self.sd), (0.2, self.mean, self.far)]
        parts += [(0.15, 0.0, self.nothing)] if self.nothing else []
        each = [np.log(part / sd) - np.square((values - mean) / sd) / 2 for part, mean, sd in parts]
        return -2 * np.asarray(np.logaddexp.reduce(each))


@dataclass(frozen=True, eq=False)
class Margins:
    """A model whose margins have this middle and standard deviation; labels may follow another middle and length along it.

    ``longest``: what a row adds to slopes along the model at most.
    """

    slopes: ByClass
    middle: float
    sd: float
    longest: float = math.inf

    @property
    def chances(self) -> Floats:
        """Of a positive label by score, if the model is right."""
        return self.slopes.chances(self.middle + self.sd * SCORES)

    def clamp(self, right: Margins, lengths: Floats, noise: float) -> float:
        """The shortest of these clamps that takes less than half its noise off slopes along the model, if another one is right; ``noise``: of a clamp of 1."""
        whole = float(self._sums(right.chances)[1])
        taken = (abs(float(replace(self, longest=float(one))._sums(right.chances)[1]) - whole) / one for one in lengths)
        return float(next((one for one, off in zip(lengths, taken, strict=True) if off <= noise / 2), lengths[-1]))

    def middle_for(self, off: float) -> float:
        """The middle at which slopes would add up to ``off``, on average, if chances were right there."""
        return (
            sum(
                halved(
                    lambda tried: not self._sums(self.slopes.chances(tried + self.sd * SCORES))[0] > off,
                    self.middle - _FAR,
                    self.middle + _FAR,
                )
            )
            / 2
        )

    @property
    def odds(self) -> float:
        """The log-odds of all labels, if the model's chances are right."""
        return float(_odds(self.chances))

    def believed(self, odds: Sequence[Guess], length: Guess, off: Floats, noise: Floats) -> MarginBelief:
        """What labels follow, after slopes, and those along the model, added up to ``off`` with this noise; on a grid that closes in on it.

        Args:
            odds: what is known of the log-odds of all labels beforehand; ``length``: of the length that is right along the model.
        """
        ranges = [(self.middle - _FAR, self.middle + _FAR), (0.0, length.mean + 4 * length.far)]
        for _ in range(_ZOOMS):
            grid = np.meshgrid(*(np.linspace(*one, _POINTS) for one in ranges), indexing="ij")
            middles, lengths = (one.ravel() for one in grid)
            chances = self.slopes.chances((middles[:, None] + lengths[:, None] * SCORES).ravel()).reshape(
                len(middles), -1
            )
            against = np.square((self._sums(chances) - off) / noise).sum(axis=1) + length.against(lengths)
            against += sum(one.against(_odds(chances)) for one in odds)
            weights = np.exp((against.min() - against) / 2)
            weights /= weights.sum()
            for place, (values, least) in enumerate(((middles, -math.inf), (lengths, 0.0))):
                mean = float(weights @ values)
                apart = (ranges[place][1] - ranges[place][0]) / (_POINTS - 1)
                reach = _REACH * max(math.sqrt(float(weights @ (values - mean) ** 2)), apart / 3)
                ranges[place] = max(mean - reach, ranges[place][0], least), min(mean + reach, ranges[place][1])
        return MarginBelief(chances, weights, math.sqrt(float(weights @ (lengths - weights @ lengths) ** 2)))

    def _sums(self, chances: Floats) -> Floats:
        """What slopes, and those along the model, add up to with these chances by score; a row for each row of them."""
        slopes = self.slopes.by_class(self.middle + self.sd * SCORES)
        both = np.stack([slopes, np.clip(slopes * SCORES, -self.longest, self.longest)], axis=1) * CHANCES
        return np.asarray((1 - chances) @ both[0].T + chances @ both[1].T)


def _odds(chances: Floats) -> Floats:
    part = np.clip(chances @ CHANCES, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(part / (1 - part)))


@dataclass(frozen=True, eq=False)
class MarginBelief:
    """Chances of a positive label by the score along a model, how likely each is, and the standard deviation of the length."""

    chances: Floats
    weights: Floats
    unsure: float

    def best(self, slopes: ByClass, longest: float) -> tuple[float, float]:
        """The middle and the length, up to ``longest``, of the margins that lose least on average; shorter ones until they are likely to beat a constant."""
        expected = self.weights @ self.chances

        def summed(middle: float, length: float) -> Floats:
            negative, positive = slopes.by_class(middle + length * SCORES)
            own = ((1 - expected) * negative + expected * positive) * CHANCES
            return np.array([own.sum(), own @ SCORES])

        def middle_of(length: float) -> float:
            return sum(halved(lambda tried: summed(tried, length)[0] > 0, -32.0, 32.0)) / 2

        low, _ = halved(lambda tried: summed(middle_of(tried), tried)[1] > 0, 0.0, longest)
        for part in _KEPT:
            found = middle_of(part * low), part * low
            if self.surely(self.gains(slopes, *found)) > 0:
                break
        return found

    def surely(self, values: Floats) -> float:
        """What is exceeded in nine cases of ten."""
        order = np.argsort(values)
        place = int(np.searchsorted(np.cumsum(self.weights[order]), _DOUBT))
        return float(values[order[min(place, len(order) - 1)]])

    def gains(self, slopes: ByClass, middle: float, length: float) -> Floats:
        """How much less than a constant model these margins lose, with each of the chances."""
        constant = slopes.constant(float(np.clip(self.weights @ self.chances @ CHANCES, 1e-9, 1 - 1e-9)))
        off = middle + length * SCORES - constant
        between = (constant + off[:, None] * _BETWEEN).ravel()
        negative, positive = slopes.by_class(between).reshape(2, len(off), -1).mean(axis=2) * off * CHANCES
        return -np.asarray((1 - self.chances) @ negative + self.chances @ positive)


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
