"""Several quantiles by a few rounds of private choices: the middle one first, then one on each side, and so on.

The point chosen for a quantile splits the rows; those below it are all that the lower quantiles look at, those above all that
the upper ones do. In one round a row is in one range only, so a round costs the same ε however many ranges it has, and m
quantiles take ⌈log₂(m + 1)⌉ rounds (Kaplan, Schnapp and Stemmer 2022).

The score of a point is minus the distance of the wanted rank from the ranks that the point covers: zero for the true quantile
even where many rows share one value. A point that splits keeps its rows on both sides in a public proportion.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from evenhand.guarantee import Relation
from evenhand.profiles import Array

_DENOMINATOR = 1000


SPLIT_BITS = 20


@dataclass(frozen=True)
class Split:
    """A chosen point, and which part of the rows at it counts as below.

    Args:
        point: where.
        share: the public part of what the range had at the point that goes below, in 2^-20.
        outer: the split at the same point that was an end of the range, if one was: it had divided the rows there before.
        above: whether the range was above that one.
        place: where among all rows at the point, from 0 to 1, the split is.
    """

    point: int
    share: int
    outer: Split | None = None
    above: bool = False
    place: float = 0.0

    @classmethod
    def between(cls, point: int, place: float, lower: Split | None, upper: Split | None) -> Split:
        """A split of the range between two others, inside that one of them which divided the rows at this point last."""
        ends = [
            (end, above) for end, above in ((lower, True), (upper, False)) if end is not None and end.point == point
        ]
        outer, above = max(ends, key=lambda end: end[0].depth, default=(None, False))
        low = max((end.place for end, is_below in ends if is_below), default=0.0)
        high = min((end.place for end, is_below in ends if not is_below), default=1.0)
        place = min(max(place, low), high)
        share = (place - low) / (high - low) if high > low else 0.5
        return cls(point, int(share * 2**SPLIT_BITS), outer, above, place)

    @property
    def depth(self) -> int:
        """How many splits there are at the point, as far as this one knows."""
        return 1 if self.outer is None else 1 + self.outer.depth

    def parts(self, weight: int) -> tuple[int, int]:
        """Of the weight at the point what the range had of it, below and above.

        All parts of all splits at a point add up to its weight, and none falls when it grows (docs/proofs/quantiles.md).
        """
        had = weight if self.outer is None else self.outer.parts(weight)[self.above]
        below = had * self.share >> SPLIT_BITS
        return below, had - below


@dataclass(frozen=True)
class Target:
    """A quantile to be found between two that have been: which, between which (None: the ends), and its rank there."""

    place: int
    lower: int | None
    upper: int | None
    rank: Fraction

    @property
    def whole(self) -> bool:
        """Whether it looks at all rows of a group."""
        return self.lower is None and self.upper is None

    def moves(self, relation: Relation) -> int:
        """How far one user of weight 1 moves a score (docs/proofs/quantiles.md)."""
        a, b = self.rank.numerator, self.rank.denominator
        if relation is Relation.PRESENCE:
            return max(a, b - a)
        return b if self.whole else 2 * max(a, b - a)


def rounds(quantiles: Sequence[Fraction]) -> list[list[Target]]:
    """The targets of each round, for quantiles in increasing order."""
    found: list[list[Target]] = []

    def plan(first: int, last: int, lower: int | None, upper: int | None, depth: int) -> None:
        if first > last:
            return
        middle = (first + last) // 2
        low = Fraction(0) if lower is None else quantiles[lower]
        high = Fraction(1) if upper is None else quantiles[upper]
        rank = ((quantiles[middle] - low) / (high - low)).limit_denominator(_DENOMINATOR)
        while len(found) <= depth:
            found.append([])
        found[depth].append(Target(middle, lower, upper, rank))
        plan(first, middle - 1, lower, middle, depth + 1)
        plan(middle + 1, last, middle, upper, depth + 1)

    plan(0, len(quantiles) - 1, None, None, 0)
    return found


def rank_scales(
    plan: Sequence[Sequence[Target]],
    relation: Relation,
    epsilon: float,
    doubts: Mapping[int, float] = MappingProxyType({}),
) -> dict[int, float]:
    """About the scale of each quantile's rank error, for one user of weight 1: its own choice, and what it inherits from the splits.

    Args:
        plan: the rounds.
        relation: which neighbours count.
        epsilon: for all rounds.
        doubts: how far the share of the rows at a chosen point that a split puts below it may be off, by quantile, in the same unit.
    """
    scales: dict[int, float] = {}
    for target in itertools.chain.from_iterable(plan):
        own = 2 * target.moves(relation) / target.rank.denominator * len(plan) / epsilon
        lower, upper = (
            0.0 if end is None else math.hypot(scales[end], doubts.get(end, 0.0))
            for end in (target.lower, target.upper)
        )
        rank = float(target.rank)
        scales[target.place] = math.hypot(own, (1 - rank) * lower, rank * upper)
    return scales


def span(points: int, lower: Split | None, upper: Split | None) -> tuple[int, int]:
    """The range of points between two splits: its first, and one after its last."""
    return 0 if lower is None else lower.point, points if upper is None else upper.point + 1


def scores(weights: Sequence[int], rank: Fraction, lower: Split | None, upper: Split | None) -> list[int]:
    """The score of each point between two splits; for a rank a/b, b times the distance, so that scores are integers."""
    first, end = span(len(weights), lower, upper)
    if end - first == 1:
        return [0]
    inside = list(weights[first:end])
    if lower is not None:
        inside[0] = lower.parts(inside[0])[1]
    if upper is not None:
        inside[-1] = upper.parts(inside[-1])[0]
    a, b = rank.numerator, rank.denominator
    running = [0, *itertools.accumulate(inside)]
    offsets = [b * below - a * running[-1] for below in running]
    return [-max(0, before, -upto) for before, upto in itertools.pairwise(offsets)]


def preferences(logarithms: Array, scale: Fraction) -> list[int]:
    """What a public preference, in logarithms, is worth in scores whose choice has noise of this scale."""
    factor = float(scale)
    return [int(factor * value) for value in (logarithms - logarithms.max()).tolist()]
