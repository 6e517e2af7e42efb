"""`Population`: what is known about how much users contribute, as a few hundred plausible tables with weights.

Everything that depends on contributions reads the same tables: the bound, what it cuts off, the correction, the interval, the forecast. A noisy
histogram becomes a sample of `walk.py`; public counts become one table. What is measured later weighs the tables by how well they explain it. It is a model: one user
far above all others can hide from any of it. Nothing is read but released numbers and public facts, so it costs nothing (post-processing).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evenhand.population import priors
from evenhand.population.buckets import Buckets
from evenhand.population.cut import Cut
from evenhand.population.occupied import last_occupied
from evenhand.population.support import Array, Support
from evenhand.population.walk import CROWDS_MORE_OFTEN, TABLES, walks

_RATIO = math.log(4) / 3  # of the ends of a bucket far up, in logarithms
_NARROW, _WIDE = 0.3, 3.0  # buckets of small numbers, in widths of those far up, at least and at most
_NOBODY, _FEW = (
    0.3,
    0.05,
)  # expected users in a bucket, below which a typical list has none; and added before logarithms are averaged
_SMALL = 30.0  # expected users, below which there are a whole number of them


@dataclass(frozen=True)
class Population:
    """Plausible tables: users by bucket.

    Args:
        lows: where each bucket begins.
        highs: where it ends.
        users: of each table in each bucket.
        places: the mean of the contributions of these users.
        weights: of the tables; they add up to 1.
        likely: the same before crowds apart are held back (`priors.CHOOSES`).
        apart: of each table, whether it has a crowd apart.
        expected: users of each table, given the counts but for chance.
        doubt: the standard deviation of users.
        means: the mean of a bucket's users, where its slope says.
        last: the last bucket that stands out, or 0.
        visible: whether any stood out.
        hidden: about how many users far above all others would not have shown.
    """

    lows: Array
    highs: Array
    users: Array
    places: Array
    weights: Array
    likely: Array
    apart: npt.NDArray[np.bool_]
    expected: Array
    doubt: Array
    means: Array
    last: int
    visible: bool
    hidden: float

    @classmethod
    @np.errstate(all="ignore")  # a warning would show what was released
    def behind(cls, buckets: Buckets, counts: npt.ArrayLike, scale: float) -> Population:
        """Behind a noisy histogram.

        Guarantee: reads the noisy counts only.

        Args:
            buckets: of the histogram.
            counts: noisy.
            scale: of the Laplace noise on each.
        """
        noisy = np.asarray(counts, dtype=np.float64)[1:-1]
        edges = np.array(buckets.edges[1:], dtype=np.float64)
        usual = float(buckets.unit * (buckets.edges[1] / buckets.unit) ** priors.TOO_WIDE)
        top, found = last_occupied(noisy[None, :], edges, scale, usual)
        first = int(np.searchsorted(edges, usual))
        last, visible = (int(top[0]), True) if found[0] else (first, False)
        end = min(max(last, first) + priors.FARTHEST, len(edges))
        noisy, highs = noisy[:end], edges[:end]
        lows = np.append(0.0, highs[:-1]) + 1
        widths = np.clip(np.log((highs + 0.5) / (lows - 0.5)) / _RATIO, _NARROW, _WIDE)
        walk = walks(noisy, scale, widths, _begin(end, first), visible)
        near = priors.INSIDE * np.ones(end)
        near[last] = priors.ALIKE_INSIDE
        expected, doubt, users, inside = _given(noisy, scale, walk.users, near)
        means = np.clip(_place(walk.slopes, lows - 0.5, highs + 0.5), lows, highs)
        places = np.clip(means + inside * (highs - lows), lows, highs)
        apart = walk.crowds > 0
        likely = np.where(apart, 1 / CROWDS_MORE_OFTEN, 1.0)
        likely /= likely.sum()
        return cls(
            lows,
            highs,
            users,
            places,
            _held_back(likely, apart),
            likely,
            apart,
            expected,
            doubt,
            means,
            last=last if visible else 0,
            visible=visible,
            hidden=max(priors.HIDES * scale, 1.0),
        )

    @classmethod
    def exactly(cls, known: Support) -> Population:
        """Where contributions are public."""
        sizes, users, one = known.sizes, known.users[None, :], np.ones(1)
        last, nobody = max(len(sizes) - 1, 0), np.zeros(1, dtype=bool)
        none, at = np.zeros_like(users), sizes[None, :]
        return cls(sizes, sizes, users, at, one, one, nobody, users, none, at, last, True, 0.0)

    @functools.cached_property
    def sizes(self) -> Array:
        """The middle of each bucket."""
        middle: Array = (self.lows + self.highs) / 2
        return middle

    @property
    def crowd(self) -> float:
        """How much a crowd apart is believed in."""
        return float(self.weights[self.apart].sum())

    @functools.cached_property
    def _half(self) -> Array:
        """Half of the range around its mean over which a bucket's users are spread evenly."""
        half = np.minimum(self.places - self.lows, self.highs - self.places)
        return np.where(self.highs > self.lows, np.maximum(half, 0.0) + 0.5, 0.0)

    def lost(self, bound: float) -> Array:
        """What a bound cuts off from all users of each table together."""
        first = int(np.searchsorted(self.highs, bound, side="right"))
        place, half = self.places[:, first:], self._half[:, first:]
        inside = np.maximum(place + half - bound, 0.0) ** 2 / (4 * np.maximum(half, 1e-9))
        lost: Array = (self.users[:, first:] * np.where(bound <= place - half, place - bound, inside)).sum(axis=1)
        return lost

    def cut(self, bound: float) -> Cut:
        """What a bound cuts off, as a distribution."""
        return Cut.of(self.lost(bound), self.weights, self.hidden, self.crowd)

    def best(self, noise: float) -> int:
        """The bound, an upper edge, with the least expected squared error, once what it surely cuts off is added back.

        Args:
            noise: standard deviation of the noise for a bound of 1.
        """
        above = np.cumsum((self.users * self.places)[:, ::-1], axis=1)[:, ::-1]
        people = np.cumsum(self.users[:, ::-1], axis=1)[:, ::-1]
        lost = np.zeros_like(above)
        lost[:, :-1] = np.maximum(above[:, 1:] - self.highs[:-1] * people[:, 1:], 0.0)
        order = np.argsort(lost, axis=0)
        lost, weights = np.take_along_axis(lost, order, axis=0), self.weights[order]
        reached = np.cumsum(weights, axis=0)
        added = np.take_along_axis(
            lost, np.minimum((reached < priors.SURE).sum(axis=0), len(lost) - 1)[None, :], axis=0
        )
        kept = np.clip(priors.TRIMMED - (reached - weights), 0.0, weights)
        error = (noise * self.highs) ** 2 + (kept * (lost - added) ** 2).sum(axis=0) / kept.sum(axis=0)
        return int(self.highs[error.argmin()])

    @np.errstate(all="ignore")
    def given(self, measured: float, bound: float, scale: float) -> Population:
        """Once a bounded total is measured: tables that explain it better count for more, those with a crowd apart among them.

        Where in its bucket everybody lies, and how far the counts are off, is not known and makes little difference to what is cut off, so it is summed over, not sampled.

        Args:
            measured: all users' contributions, each at most the bound, with noise.
            bound: an upper edge.
            scale: of the noise.
        """
        whole = self.highs <= bound
        told, middle = self.expected[:, whole], self.sizes[whole]
        missed = measured - (told * self.means[:, whole]).sum(axis=1) - bound * self.users[:, ~whole].sum(axis=1)
        variance = 2 * scale**2 + ((self.doubt[:, whole] * middle) ** 2).sum(axis=1)
        apart = (told * (self.highs - self.lows)[whole]) ** 2
        last = (np.arange(len(whole)) == self.last)[whole]
        logs = []
        for part, prior in ((priors.INSIDE, 1 - priors.ALIKE), (priors.ALIKE_INSIDE, priors.ALIKE)):
            wide = variance + apart @ np.where(last, priors.ALIKE_INSIDE, part) ** 2
            # Laplace noise and many small errors together: near the middle as a normal variable, far out as a Laplace variable.
            logs.append(math.log(prior) - np.sqrt(1 + 2 * missed**2 / wide) - np.log(wide) / 2)
        fits = np.nan_to_num(np.logaddexp(*logs), nan=-1e300, neginf=-1e300)
        weights = self.likely * np.exp(fits - fits.max())
        return replace(self, weights=weights / weights.sum())

    def of(self, lows: Array, highs: Array, places: Array) -> Population:
        """The same users by another quantity."""
        return replace(self, lows=lows, highs=highs, places=places)

    def few(self, count: int, by: Array) -> Population:
        """A few tables that stand for all, as likely one as the other, by a quantity of theirs."""
        chosen = evenly(by, self.weights, count)
        alike = np.full(count, 1 / count)
        return replace(
            self,
            users=self.users[chosen],
            places=self.places[chosen],
            weights=alike,
            likely=alike,
            apart=self.apart[chosen],
            expected=self.expected[chosen],
            doubt=self.doubt[chosen],
            means=self.means[chosen],
        )

    def listed(self) -> tuple[Array, Array]:
        """Sizes, and users of each by table: those of a bucket at a quarter and three quarters of it, so that their mean is what it was.

        At the middle alone a bound there would seem to cut nobody.
        """
        quarter = (self.highs - self.lows) / 4
        part = np.clip((self.places - self.sizes + quarter) / np.maximum(2 * quarter, 1e-9), 0.0, 1.0)
        both = np.concatenate([self.users * (1 - part), self.users * part], axis=1)
        sizes, place = np.unique(np.concatenate([self.sizes - quarter, self.sizes + quarter]), return_inverse=True)
        users = np.zeros((len(sizes), len(both)))
        np.add.at(users, place, both.T)
        seen = users.any(axis=1)
        return sizes[seen], users[seen].T

    @property
    def typical(self) -> Support:
        """One plausible list of users: above the last visible bucket the geometric mean of the tables, so that a heavy one among many does not decide."""
        most = max(float(self.expected.sum(axis=1).max()), 1.0)
        few = _FEW if self.visible else _FEW * most
        hidden = np.where(self.expected < _NOBODY, 0.0, self.expected) if self.visible else self.expected
        users = np.exp(self.weights @ np.log(hidden + few)) - few
        if self.visible:
            users[: self.last + 1] = self.weights @ self.expected[:, : self.last + 1]
        some = users > 1e-3 * min(float(users.max()), 1.0)
        if not some.any():
            return Support(self.sizes[:1], np.ones(1), self.lows[:1])
        return Support(self.sizes[some], users[some], self.lows[some])


def evenly(values: Array, weights: Array, count: int) -> npt.NDArray[np.intp]:
    """Places of ``count`` of the values that stand for all: at the middles of equal parts of the weight."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.nan_to_num(weights[order]))
    places: npt.NDArray[np.intp] = order[
        np.minimum(np.searchsorted(reached, (np.arange(count) + 0.5) / count * reached[-1]), len(order) - 1)
    ]
    return places


def _begin(buckets: int, usual: int) -> Array:
    """How likely it is that users begin at each bucket if they have not: anywhere up to what is usual, and seldom far above it."""
    place = np.arange(buckets)
    begin = np.where(place < usual, 1 / (usual + 3 - np.minimum(place, usual)), priors.BEGIN)
    begin[0] = priors.BEGIN_FIRST if usual == 0 else begin[0]
    return begin


def _given(noisy: Array, scale: float, users: Array, near: Array) -> tuple[Array, Array, Array, Array]:
    """Users of each table, given the counts as well: expected, their standard deviation, and drawn; and by how much the mean of a bucket's lies off."""
    normal, place = _draws(len(noisy))
    chance = np.random.default_rng(len(noisy) + 2)
    own, noise = users + (priors.MISS * users) ** 2, 2 * scale**2
    told = np.maximum((noisy * own + users * noise) / (own + noise), 0.0) * (users > 0)
    small = (users < _SMALL) & (users < noise)
    expected = np.where(small, users, told)
    doubt = np.where(small, np.sqrt(users), np.sqrt(own * noise / (own + noise)))
    drawn = np.where(small, chance.poisson(np.where(small, users, 0.0)), np.maximum(told + doubt * normal, 0.0))
    drawn *= users > 0
    inside = place * np.sqrt(1 / 12 / np.maximum(drawn, 1.0) + near**2)
    return expected, doubt, drawn, inside


@functools.lru_cache(maxsize=64)
def _draws(buckets: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(buckets + 1)
    return rng.standard_normal((TABLES, buckets)), rng.standard_normal((TABLES, buckets))


def _place(slopes: Array, lows: Array, highs: Array) -> Array:
    """The mean of a bucket's users if their density falls like a power: of x^(-1-s) between its ends, but not at the poles 0 and 1."""
    middles = np.log(lows * highs) / 2
    power = np.clip(-slopes / np.diff(middles, prepend=middles[0] - _RATIO), -3.0, 8.0) + 1e-6
    ratio = highs / lows
    mean: Array = lows * power / (power - 1) * (1 - ratio ** (1 - power)) / (1 - ratio**-power)
    return mean


def _held_back(likely: Array, apart: npt.NDArray[np.bool_]) -> Array:
    crowd = float(likely[apart].sum())
    if apart.all():
        return likely
    most = priors.CHOOSES * (1 - crowd) / (1 - priors.CHOOSES)
    weights = np.where(apart, likely * min(1.0, most / max(crowd, 1e-9)), likely)
    found: Array = weights / max(float(weights.sum()), 1e-300)
    return found
