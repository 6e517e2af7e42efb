"""What bounding did to a mean, as far as released numbers tell: amounts with weights, the truth minus the bounded mean.

A bound moves weight from busy users to others, and clipping around a centre cuts off more on one side than on the other. How much
depends on four things that are not released exactly, and for each of them on a list of possibilities:

- how many users have how many rows, those too few to be seen included (`population/tables.py`; public under values);
- how user means lie around the centre (`profiles/location.py`);
- how far busy users differ: a user's mean grows by κ·τ with each standard deviation of the logarithm of the number of rows, τ being the
  standard deviation of user means. Beforehand κ is about ± 0.25 (`mean_evidence.py`);
- whether busy users vary less, as chance in a user's own rows does, or more (`OWN`).

Every combination predicts the bounded mean as well. It was released, so combinations that miss it count for little: a row mean that lies
above the mean of users says that busy users lie above, for nothing. All of it is post-processing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from evenhand.bounding.choice import Choice
from evenhand.bounding.forecasts import ROW_SD, USUAL_SPREAD, USUAL_TILT
from evenhand.bounding.located_mean import LocatedMean
from evenhand.bounding.over_groups import Sizes
from evenhand.bounding.strategy import Strategy
from evenhand.population.priors import TRIMMED
from evenhand.profiles import Array, MeanShapes, evenly
from evenhand.profiles.location import STEPS, TiltRequest
from evenhand.tables import Grid

OWN = (1.0, 0.4, 2.0)
"""Parts of the variance of user means that do not shrink with more rows: busy users vary as others do, or less, since chance in their own rows
evens out, or more, since amounts grow in proportion."""
UNLOCATED = (0.03, USUAL_SPREAD, 0.2)
"""Standard deviations of user means as parts of the range, where nothing was located."""

MISFIT = 1.5
"""Prior: how much further what bounding did may lie from what is expected than the possibilities say, since tables bend in ways that none of them has."""

_LINE = 0.1  # by which means of users may miss a line in the logarithm of rows, in τ
_AROUND = np.array([-1.7320508, 0.0, 1.7320508])  # Gauss–Hermite
_AROUND_WEIGHTS = np.array([1 / 6, 2 / 3, 1 / 6])
_AMOUNTS = 301
_OF_VARIANCE = 1 / 6
_FACTORS = (1, 2, 4, 8, 16)  # of caps


@dataclass(frozen=True)
class MeanBelief:
    """What is known about users, for the question what a bound did to their mean.

    Args:
        strategy: the bound.
        sizes: users by number of rows.
        width: steps of the grid between the bounds of a value.
        shapes: how user means lie around ``centre``; None if they were not located.
        centre: as a part of the range.
        asked: rows from which on a user was asked for their mean.
        tilt: how far busy users were seen to differ; None if that was not bought.
    """

    strategy: Strategy
    sizes: Sizes
    width: int
    shapes: MeanShapes | None = None
    centre: float = 0.5
    asked: int = 1
    tilt: Tilt | None = None

    @property
    def visible(self) -> bool:
        """Whether the numbers of rows of users stood out from the noise."""
        return self.sizes.visible

    @np.errstate(all="ignore")  # a warning would show what was released
    def expected_square(self) -> float:
        """Of what bounding does, as far as is known before the bounded mean is released; as a part of the range.

        What is expected counts in full. Of the variance around it, which is mostly that of priors and wider than what happens on most tables, a part. As
        wherever a bound is chosen, the largest outcomes don't count: no bound guards against a single giant.
        """
        assert self.shapes is not None  # users were located
        amounts, weights = _located(self, self.shapes)
        order = np.argsort(np.abs(np.nan_to_num(amounts)), kind="stable")
        amounts, weights = np.nan_to_num(amounts)[order], weights[order] / weights.sum()
        weights = np.clip(TRIMMED - (np.cumsum(weights) - weights), 0.0, weights)
        mean = float(np.average(amounts, weights=weights))
        return mean**2 + _OF_VARIANCE * float(np.average((amounts - mean) ** 2, weights=weights))

    def amounts(self, value: float, noise: float) -> tuple[Array, Array]:
        """What to add to the released mean: amounts with weights, as parts of the range.

        Args:
            value: the released mean as a part of the range, before any correction.
            noise: its standard deviation, likewise.
        """
        # Whatever was released, nothing is raised or warned about: that would show it.
        with np.errstate(all="ignore"):
            if self.shapes is None:
                amounts, weights = _unlocated(self.strategy, self.sizes)
            else:
                amounts, weights = _located(self, self.shapes, value, noise)
                middle = np.average(amounts, weights=weights)
                amounts = middle + MISFIT * (amounts - middle)
        return np.clip(np.nan_to_num(amounts), -1.0, 1.0), weights


def with_belief(choice: Choice, belief: MeanBelief, grid: Grid) -> Choice:
    """The choice with what is known about users; caps around a centre so many times larger that what they are expected to do and what noise does are
    least together. The forecast they come from takes busy users to lie as others do, and a few shapes for all.
    """
    made, least = choice.strategy, math.inf
    if not isinstance(made, LocatedMean):
        return replace(choice, belief=belief)
    for factor in _FACTORS:
        wider = replace(belief, strategy=made.times(factor))
        error = ((choice.noise or 0.0) / grid.width * factor) ** 2 + wider.expected_square()
        if error >= least:
            break
        belief, least = wider, error
    assert isinstance(belief.strategy, LocatedMean)
    shown, words = belief.strategy.in_units(grid)
    return replace(choice, strategy=belief.strategy, shown=shown, words=words, belief=belief)


Predicted: TypeAlias = tuple[Array, Array, Array, Array]
"""By possibility, curve and list of users: the bounded mean, the chance in it, what to add to it, and the chance in that."""


def _located(
    belief: MeanBelief, shapes: MeanShapes, value: float | None = None, noise: float = 0.0
) -> tuple[Array, Array]:
    """Every combination of what is not known, weighted by how well it predicts what was released."""
    users = Users(belief.sizes, shapes, belief.asked)
    bounded, chance, amount, spread = _predicted(belief, users)
    variance = noise**2 + chance**2 + (_LINE * users.tau[:, None]) ** 2
    missed = np.zeros_like(bounded) if value is None else value - bounded
    variance = np.full_like(variance, 1e12) if value is None else variance  # nothing is known of it yet
    together = Compared.of(missed[..., None], np.ones(1), variance[..., None])
    if belief.tilt is not None:
        seen = [belief.tilt.compared(users, users.shrunk(own)) for own in OWN]
        parts = (np.stack([vars(one)[name] for one in seen])[..., None] for name in vars(together))
        together = Compared(*(one + other for one, other in zip(vars(together).values(), parts, strict=True)))
    believed = prior()[:, None, None] * shapes.likely[:, None] * belief.sizes.weights
    return _few(amount, spread, together.likelihood(shapes.doubt) * believed)


def _predicted(belief: MeanBelief, users: Users) -> Predicted:
    """What each combination predicts, by `OWN` first."""
    found: list[Predicted] = []
    for shrunk in map(users.shrunk, OWN):
        if isinstance(belief.strategy, LocatedMean):
            found.append(_clipped(belief.strategy, belief.centre, belief.width, users, shrunk))
        else:
            found.append(_weighted(float(belief.strategy.bound), belief.centre, users, shrunk))
    bounded, chance, amount, spread = (np.stack(parts) for parts in zip(*found, strict=True))
    return bounded, chance, amount, spread


def _clipped(strategy: LocatedMean, centre: float, width: int, users: Users, shrunk: Array) -> Predicted:
    """Distances from a centre, capped."""
    sizes, total = users.sizes, users.sizes.rows
    below, above, middle = strategy.below / width, strategy.above / width, strategy.centre / width
    counted = total if strategy.rows_cap is None else sizes.users @ np.minimum(sizes.sizes, strategy.rows_cap)
    usual = centre - middle + users.mean[:, None] + users.shift
    reach = np.abs(usual).max(axis=(0, 1)) + shrunk * np.abs(users.around).max()
    near = sizes.sizes * np.minimum(reach, max(middle, 1 - middle)) <= min(below, above)  # nobody of this size is cut
    first = (usual * sizes.sizes)[..., near] @ sizes.users[:, near].T
    second = ((usual**2 + (users.tau[:, None] * shrunk) ** 2) * sizes.sizes**2)[..., near] @ sizes.users[:, near].T
    place = usual[..., ~near, None] + shrunk[~near, None] * users.around[:, None, :]
    residual = sizes.sizes[~near, None] * np.clip(place, -middle, 1 - middle)
    kept = np.clip(residual, -below, above)
    cut = residual - kept
    far, weights = sizes.users[:, ~near].T, users.shapes.weights
    kept1, kept2, excess, squares = (
        np.einsum("kcsp,cp->kcs", part, weights) @ far for part in (kept, kept**2, cut, cut**2)
    )
    first, second = first + kept1, second + kept2
    bounded = first / counted
    chance = np.sqrt(squares + second * (1 - total / counted) ** 2) / total
    return middle + bounded, np.sqrt(second) / counted, (first + excess) / total - bounded, chance


def _weighted(bound: float, centre: float, users: Users, shrunk: Array) -> Predicted:
    """Rows that are weighted, so that nobody counts for more than ``bound`` of them."""
    sizes = users.sizes
    weight = np.minimum(bound, sizes.sizes)
    counted = weight / (sizes.users @ weight)[:, None]
    moved = sizes.sizes / sizes.rows[:, None] - counted
    variance = np.multiply.outer(users.tau**2, shrunk**2)
    bounded = centre + users.mean[:, None] + users.shift @ (sizes.users * counted).T
    chance, spread = (np.sqrt(variance @ (sizes.users * part**2).T) for part in (counted, moved))
    amount = users.shift @ (sizes.users * moved).T
    return bounded, np.broadcast_to(chance, bounded.shape), amount, np.broadcast_to(spread, bounded.shape)


def _unlocated(strategy: Strategy, sizes: Sizes) -> tuple[Array, Array]:
    """Nothing is known about user means but the prior."""
    total, weight = sizes.rows, np.minimum(float(strategy.bound), sizes.sizes)
    moved = sizes.sizes / total[:, None] - weight / (sizes.users @ weight)[:, None]
    tilted = shifts(sizes.activity()) @ (sizes.users * moved).T
    chance = np.sqrt((sizes.users * moved**2).sum(axis=1))
    tau = np.array(UNLOCATED)[:, None, None]
    amount, spread = tau * tilted, tau * chance
    if strategy.draws_rows:
        left_out = (sizes.users * (weight - weight**2 / sizes.sizes)).sum(axis=1)
        spread = np.hypot(spread, ROW_SD * np.sqrt(left_out) / (sizes.users @ weight))
    weights = prior()[:, None] * sizes.weights
    return _few(amount, np.broadcast_to(spread, amount.shape), np.broadcast_to(weights, amount.shape))


def _few(amount: Array, spread: Array, weights: Array) -> tuple[Array, Array]:
    """A few hundred amounts that stand for all, the chance in each included."""
    amounts = (amount[..., None] + spread[..., None] * _AROUND).ravel()
    chosen = evenly(amounts, (weights[..., None] * _AROUND_WEIGHTS).ravel(), _AMOUNTS)
    return amounts[chosen], np.full(_AMOUNTS, 1 / _AMOUNTS)


TILTS = np.array([-0.8, -0.45, -0.2, 0.0, 0.2, 0.45, 0.8])
"""Possible κ, correlations of a user's mean with the logarithm of their rows; `USUAL_TILT` is their usual size. The tails are those of a t law, so
that a large one that was seen is believed."""
BENDS = {-0.4: 0.15, 0.0: 0.7, 0.4: 0.15}
"""Possible changes of κ above `KNEE`, and how likely each is: the busiest users may be of another kind, such as machines or shops."""
KNEE = 1.5
"""Standard deviations above the usual logarithm of rows: about one user in fifteen."""

JUMPS = (-6.0, -3.0, -1.5, 1.5, 3.0, 6.0)
"""Possible distances in τ of the busiest users from all others, who lie alike: machines among people."""
JUMP_FROM = (1.2, 2.0)
"""Standard deviations above the usual logarithm of rows from which on users are such."""
JUMP = 0.004
"""How likely each of them is beforehand."""

_OFF_LINE = 0.15  # by which the users of one class may miss the line, in τ
_FREEDOM = 4.0  # of the t law by which predictions may miss what was released


@dataclass(frozen=True)
class Tilt:
    """Noisy sums of how far users lie from the centre, by class of rows.

    Args:
        request: what was bought.
        sums: in parts of its reach.
        noise: standard deviation of the noise on each.
    """

    request: TiltRequest
    sums: Array
    noise: float

    @classmethod
    def of(cls, request: TiltRequest, noisy: Sequence[int], moves: int) -> Tilt:
        """Read what was released."""
        return cls(request, np.asarray(noisy) / STEPS, math.sqrt(2) * moves / float(request.epsilon))

    def compared(self, users: Users, shrunk: Array) -> Compared:
        """How possibilities explain the sums, the users of a class taken together.

        Args:
            users: what is known about them.
            shrunk: by size, the standard deviation of user means, in τ.
        """
        reach, starts, people = self.request.reach, self.request.starts, users.people
        place = np.searchsorted(starts, users.sizes.sizes, side="right") - 1
        classes = people[:, None] * (place[:, None] == np.arange(len(starts)))  # one column for each class
        total = classes.sum(axis=0)
        average = classes / np.maximum(total, 1e-9)
        spread = (shrunk @ average)[:, None] * users.around[:, None, :]
        clipped = np.clip((users.mean[:, None, None] + spread + (users.shift @ average)[..., None]) / reach, -1, 1)
        weights = users.shapes.weights[:, None, :]
        first, second = (weights * clipped).sum(axis=-1) * total, (weights * clipped**2).sum(axis=-1) * total
        slope = (weights * (np.abs(clipped) < 1)).sum(axis=-1) * total / reach
        variance = self.noise**2 + second + (_OFF_LINE * users.tau[:, None] * slope) ** 2
        return Compared.of(self.sums - first, slope, variance)


@dataclass(frozen=True)
class Users:
    """Users by number of rows and where their means lie, put together.

    Args:
        sizes: by number of rows.
        shapes: curves of where the means of those lie who were asked.
        asked: rows from which on a user was.
    """

    sizes: Sizes
    shapes: MeanShapes
    asked: int

    @functools.cached_property
    def people(self) -> Array:
        """Expected users of each size."""
        return self.sizes.weights @ self.sizes.users

    @functools.cached_property
    def mean(self) -> Array:
        """Of each curve."""
        mean: Array = (self.shapes.weights * self.shapes.offsets).sum(axis=1)
        return mean

    @functools.cached_property
    def around(self) -> Array:
        """The points of each curve, seen from its mean."""
        return self.shapes.offsets - self.mean[:, None]

    @functools.cached_property
    def tau(self) -> Array:
        """The standard deviation of each curve."""
        tau: Array = np.sqrt((self.shapes.weights * self.around**2).sum(axis=1))
        return tau

    @functools.cached_property
    def _heavy(self) -> Array:
        """Expected users of each size who were asked."""
        sizes = self.sizes.sizes
        return np.where(sizes >= min(self.asked, sizes[-1]), self.people, 0.0) + 1e-12

    @functools.cached_property
    def shift(self) -> Array:
        """By possibility, curve and size: how far means of users lie from those of the users asked."""
        activity = self.sizes.activity()
        usual = float(self._heavy @ activity / self._heavy.sum())
        return shifts(activity, usual)[:, None, :] * self.tau[:, None]

    def shrunk(self, own: float) -> Array:
        """By size, the standard deviation of user means in τ, if a part ``own`` of its square does not shrink with more rows; above 1 it grows."""
        usual = self._heavy.sum() / (self._heavy / self.sizes.sizes).sum()
        found: Array = np.sqrt(np.clip(own + (1 - own) * usual / self.sizes.sizes, 0.25, 4.0))
        return found


@dataclass(frozen=True)
class Compared:
    """What was released against what possibilities predict, up to one unknown offset that all predictions share."""

    squares: Array
    cross: Array
    slopes: Array
    logs: Array

    @classmethod
    def of(cls, missed: Array, slope: Array, variance: Array) -> Compared:
        """Sums over the last axis: of misses that grow by ``slope`` with the offset, with these variances."""
        parts = missed**2 / variance, missed * slope / variance, slope**2 / variance, np.log(variance)
        return cls(*(np.asarray(part).sum(axis=-1) for part in parts))

    def likelihood(self, doubt: float) -> Array:
        """By a t law, the offset having standard deviation ``doubt``; up to a factor."""
        slopes = 1 + doubt**2 * self.slopes
        squares = np.maximum(self.squares - doubt**2 * self.cross**2 / slopes, 0.0)
        logs = -_FREEDOM * np.log1p(squares / _FREEDOM) - (self.logs + np.log(slopes)) / 2
        likelihood: Array = np.exp(logs - logs.max())
        return likelihood


def shifts(activity: Array, usual: float = 0.0) -> Array:
    """By possibility and size, how far means of users lie from those of users with the ``usual`` activity, in τ."""
    above = np.maximum(activity - KNEE, 0.0) - max(usual - KNEE, 0.0)
    line = np.multiply.outer(TILTS, activity - usual)[:, None, :] + np.multiply.outer([*BENDS], above)
    steps = np.multiply.outer(
        JUMPS, np.greater.outer(activity, JUMP_FROM).T * 1.0 - np.greater(usual, JUMP_FROM)[:, None]
    )
    found: Array = np.concatenate([part.reshape(-1, len(activity)) for part in (line, steps)])
    return found


def prior() -> Array:
    """How likely each possibility is beforehand: κ by a t law of three degrees of freedom."""
    lines = np.multiply.outer((1 + (TILTS / USUAL_TILT) ** 2) ** -2.0, [*BENDS.values()]).ravel()
    jumps = np.full(len(JUMPS) * len(JUMP_FROM), JUMP)
    found: Array = np.concatenate([lines / lines.sum() * (1 - jumps.sum()), jumps])
    return found
