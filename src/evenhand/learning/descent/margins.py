"""What two bought numbers say about labels along a released model: where its margins should lie, and what it brings.

Margins are taken for normal, and chances for those of some middle and length along the model, which is not known: a posterior over both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.fitting import halved
from evenhand.learning.slopes import ByClass

SCORES = np.linspace(-5.0, 5.0, 101)
CHANCES = np.exp(-(SCORES**2) / 2) / np.exp(-(SCORES**2) / 2).sum()
_POINTS, _ZOOMS = 31, 6  # of the grid: points each way, and how often it closes in
_REACH = 5.0  # standard deviations, to which it then goes
_FAR = 12.0  # from where a model's middle is, the farthest that is thought of
_KEPT = (1.0, 0.5)  # parts of a length that is not known to be right
_DOUBT = 0.1
_BETWEEN = (np.arange(16) + 0.5) / 16


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
