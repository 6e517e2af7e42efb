"""Draws of what lies behind released numbers: the noise, and what bounding may have taken away.

Draws are keyed by the event in the ledger, the column and the place of the group: the same release always has the same draws, so that
``2 * a - a`` is ``a``, and two releases never share the draws of their noise. What a model believes about heavy users is drawn once for all
groups of a column, and alike for the columns that rest on the same event.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.release.believed import Believed
from evenhand.release.intervals import Exact, Interval, Scaled, judged, noise_only

Array: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]
View: TypeAlias = Literal["truth", "noise", "judged"]

DRAWS = 10_000
"""Of a number. They are stratified, so a 95% interval of one release is its own to three digits."""
DRAWS_BY_GROUP, AT_ONCE = 2_000, 256
"""Of a number in each group, and how many groups are drawn at a time."""
_CONFIDENCES = (0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
"""At which a law is read where only its intervals are known; between them the logarithm of the odds is interpolated."""
_USUAL, _DEVIATION = 0.95, 0.6827
ALIKE = 0.3
"""A prior: the correlation of what bounding took from two numbers, of their normal scores. The bounds cut the same users in both, but what is not known about each
loss is mostly the noise of the histogram that it was seen through, and each has its own."""

VIEWS: dict[View, Callable[[Interval], Interval]] = {"truth": lambda one: one, "noise": noise_only, "judged": judged}


class Law(ABC):
    """Numbers whose truth is not known, one for each group."""

    @abstractmethod
    def draws(self, view: View, places: Places, count: int) -> Array:
        """So many draws of each of these groups, by group and draw; NaN where a draw may be anything."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Interval, ...]:
        """The intervals of the released numbers behind them: one of each kind."""


@dataclass(frozen=True)
class Known(Law):
    """Numbers that everybody knows."""

    values: Array

    def draws(self, view: View, places: Places, count: int) -> Array:
        return np.repeat(self.values[places][:, None], count, axis=1)

    @property
    def sources(self) -> tuple[Interval, ...]:
        return ()


@dataclass(frozen=True)
class Released(Law):
    """A released column.

    Args:
        event: of the debit, which keys the draws of the noise; with it ``column``.
        belief: the event of the purchase that a model read, which keys what bounding may have done.
        column: its name.
        intervals: one for each group.
    """

    event: str
    belief: str
    column: str
    intervals: Sequence[Interval]

    def draws(self, view: View, places: Places, count: int) -> Array:
        wanted, back = np.unique(places, return_inverse=True)
        noise = self._uniforms(wanted, count)
        belief = self._belief(count)
        found = [
            drawn(VIEWS[view](self.intervals[place]), own, belief) for place, own in zip(wanted, noise, strict=True)
        ]
        return np.stack(found)[back]

    def _belief(self, count: int) -> Array:
        """One for all groups of the column, and like that of other columns as far as `ALIKE` says (a Gaussian copula)."""
        from scipy.special import ndtr, ndtri  # it loads slowly

        shared, own = (
            ndtri(_permuted(key, 1, count)[0]) for key in (self.belief, f"{self.event}/{self.column}/belief")
        )
        found: Array = ndtr(math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * own)
        return found

    def _uniforms(self, places: Places, count: int) -> Array:
        size = min(AT_ONCE, len(self.intervals))
        parts = [
            _permuted(f"{self.event}/{self.column}/{chunk}", size, count)[places[places // AT_ONCE == chunk] % AT_ONCE]
            for chunk in np.unique(places // AT_ONCE)
        ]
        return np.concatenate(parts)

    @property
    def sources(self) -> tuple[Interval, ...]:
        return tuple({type(one): one for one in self.intervals}.values())


@dataclass(frozen=True)
class Computed(Law):
    """A function of other numbers, group by group.

    Args:
        function: of their draws.
        parts: each with the place of each of the groups in it.
    """

    function: Callable[..., Array]
    parts: tuple[tuple[Law, Places], ...]

    def draws(self, view: View, places: Places, count: int) -> Array:
        return self.function(*(law.draws(view, at[places], count) for law, at in self.parts))

    @property
    def sources(self) -> tuple[Interval, ...]:
        return tuple(one for law, _ in self.parts for one in law.sources)


@dataclass(frozen=True)
class Sums(Law):
    """Sums over groups. Where only the ends of their intervals are known, they are taken to err together.

    Args:
        law: of the groups.
        members: the groups in each sum.
    """

    law: Law
    members: tuple[Places, ...]

    def draws(self, view: View, places: Places, count: int) -> Array:
        return np.stack([self._sum(view, self.members[place], count) for place in places])

    def _sum(self, view: View, groups: Places, count: int) -> Array:
        together = any(isinstance(one, Levels) for one in self.law.sources)
        total = np.zeros(count)
        for start in range(0, len(groups), AT_ONCE):
            found = self.law.draws(view, groups[start : start + AT_ONCE], count)
            total += (np.sort(found, axis=1) if together else found).sum(axis=0)
        return total

    @property
    def sources(self) -> tuple[Interval, ...]:
        return self.law.sources


@dataclass(frozen=True)
class Stacked(Law):
    """The groups of one law, then those of another."""

    first: Law
    groups: int
    second: Law

    def draws(self, view: View, places: Places, count: int) -> Array:
        found = np.empty((len(places), count))
        upper = places < self.groups
        if upper.any():
            found[upper] = self.first.draws(view, places[upper], count)
        if not upper.all():
            found[~upper] = self.second.draws(view, places[~upper] - self.groups, count)
        return found

    @property
    def sources(self) -> tuple[Interval, ...]:
        return (*self.first.sources, *self.second.sources)


@dataclass(frozen=True)
class Levels:
    """The interval of one number in a release that was read from a file or came from a server: its ends at some confidences."""

    ends: Mapping[float, tuple[float, float]]
    noise: Mapping[float, tuple[float, float]]
    covers: str

    def at(self, confidence: float) -> tuple[float, float]:
        if confidence in self.ends:
            return self.ends[confidence]
        low, high = drawn(self, np.array([(1 - confidence) / 2, (1 + confidence) / 2]), np.zeros(0)).tolist()
        return low, high

    @property
    def noise_only(self) -> Levels:
        """The noise alone."""
        return Levels(self.noise, self.noise, self.covers)

    @property
    def judged(self) -> Levels:
        """What a verdict reads: the noise, where nothing is known about what the bound did."""
        return self if all(map(math.isfinite, self.ends[_USUAL])) else self.noise_only


def _permuted(key: str, rows: int, count: int) -> Array:
    """Evenly spaced numbers between 0 and 1, in an order of its own in each row."""
    seed = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=16).digest(), "big")
    order = np.tile(np.arange(count), (rows, 1))
    found: Array = (np.random.Generator(np.random.Philox(key=seed)).permuted(order, axis=1) + 0.5) / count
    return found


def drawn(interval: Interval, noise: Array, belief: Array) -> Array:
    """Where the truth may lie: the quantiles of the law at these probabilities, one for its noise and one for what is believed beside it."""
    if isinstance(interval, Exact):
        return np.full(len(noise), interval.value)
    if isinstance(interval, Scaled):
        return drawn(interval.interval, noise, belief) * interval.factor
    if isinstance(interval, Believed):
        around = drawn(interval.noise_only, noise, belief)
        if len(interval.amounts):
            reached = np.cumsum(np.asarray(interval.weights, dtype=np.float64))
            place = np.minimum(np.searchsorted(reached, belief * reached[-1]), len(reached) - 1)
            around = around + np.asarray(interval.amounts, dtype=np.float64)[place]
        return np.clip(around, *interval.feasible)
    levels = sorted(interval.ends) if isinstance(interval, Levels) else _CONFIDENCES
    ends = np.array([interval.at(level) for level in levels], dtype=np.float64)
    odds = np.log((1 + np.array(levels)) / (1 - np.array(levels)))
    wanted = np.log(noise / (1 - noise))
    return np.where(wanted < 0, _between(-wanted, odds, ends[:, 0]), _between(wanted, odds, ends[:, 1]))


def _between(wanted: Array, odds: Array, ends: Array) -> Array:
    """Ends at other odds than those known: on lines between them, and further out on the last of these."""
    known = np.isfinite(ends)
    if not known.any():
        return np.full(len(wanted), ends[0])
    finite, last = ends[known], odds[known]
    found: Array = np.interp(wanted, last, finite)
    if not known.all():
        found[wanted > last[-1]] = ends[~known][-1]
    elif len(finite) > 1:
        slope = (finite[-1] - finite[-2]) / (last[-1] - last[-2])
        found = np.where(wanted > last[-1], finite[-1] + slope * (wanted - last[-1]), found)
    return found
