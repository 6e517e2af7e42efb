"""What bounding did to a mean, as far as released numbers tell: amounts with weights, the truth minus the bounded mean.

A bound moves weight from busy users to others, and clipping around a centre cuts off more on one side than on the other. How much
depends on four things that are not released exactly, and for each of them on a list of possibilities:

- how many users have how many rows, those too few to be seen included (`population/tables.py`; public under values);
- how user means lie around the centre (`profiles/mean_shapes.py`);
- how far busy users differ: a user's mean grows by κ·τ with each standard deviation of the logarithm of the number of rows, τ being the
  standard deviation of user means. Beforehand κ is about ± 0.25 (`mean_evidence.py`);
- whether busy users vary less, as chance in a user's own rows does, or more (`OWN`).

Every combination predicts the bounded mean as well. It was released, so combinations that miss it count for little: a row mean that lies
above the mean of users says that busy users lie above, for nothing. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from evenhand.bounding.choice import Choice
from evenhand.bounding.forecasts import ROW_SD, USUAL_SPREAD
from evenhand.bounding.located_mean import LocatedMean
from evenhand.bounding.mean_evidence import Compared, Tilt, Users, prior, shifts
from evenhand.bounding.strategy import Strategy
from evenhand.bounding.user_lists import Sizes
from evenhand.profiles import Array, MeanShapes, evenly
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

        What is expected counts in full. Of the variance around it, which is mostly that of priors and wider than what happens on most tables, a part.
        """
        assert self.shapes is not None  # users were located
        amounts, weights = _located(self, self.shapes)
        amounts = np.nan_to_num(amounts)
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
