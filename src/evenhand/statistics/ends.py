"""Where the interval of a quantile ends: points with enough weight between them and the quantile, chosen like the quantile itself.

Noise, and what bounding does, move the rank of an answer by some weight that is known beforehand. The value that lies so much weight above
the answer is where its interval ends. It is found by one more choice between the answer and the next quantile's, so the interval
needs no model of how values lie: empty stretches, many rows of one value and long tails are all seen.

An end is chosen with noise too, so it is looked for a little further out, by what that noise adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from evenhand.guarantee import Relation
from evenhand.statistics.search import Split, scores, span
from evenhand.statistics.shape import Shape

CONFIDENCE = 0.95
"""Ends are bought for this; others are taken from them in proportion."""

PARTS = 1000
"""Ranks of ends are multiples of 1/1000 of the weight that is looked at."""

_INWARDS = 0.6
"""Part of the scale of an end's noise that it is moved out by: only an end that falls too near the answer does harm, and the
noise of both is seldom large at once."""

_SEEN = 2.5  # standard deviations that a share of the shape is taken to be off by


@dataclass(frozen=True)
class Reach:
    """How far the rank of an answer may be off, in weight.

    Args:
        noise: scale of the rank error.
        own: scale of the rank error of an end.
        below, above: how far bounding may have moved the rank in each direction, with `CONFIDENCE`.
    """

    noise: float
    own: float
    below: float
    above: float

    def at(self, confidence: float, above: bool, bias: bool = True) -> float:
        """With this probability at most so far to one side; the tails of a choice fall like a Laplace variable's."""
        tail = math.log(1 / (1 - confidence))
        part = NormalDist().inv_cdf((1 + confidence) / 2) / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        bounded = part * (self.above if above else self.below) if bias else 0.0
        return math.hypot(self.noise * tail, _INWARDS * self.own * tail, bounded)


@dataclass(frozen=True)
class End:
    """An end to be chosen, of one quantile in one group.

    Args:
        place: which quantile.
        group: where.
        above: whether it is the upper end.
        first, last: the points it is chosen from, the answer's own and the next quantile's, or the end of the grid.
        rank: of the end among the rows between, counted from below, in thousandths.
    """

    place: int
    group: int
    above: bool
    first: int
    last: int
    rank: int

    def scores(self, weights: Sequence[int]) -> list[int]:
        """Of all points but the answer's own, which has no rows in this range; a user of weight 1 moves none by more than `PARTS`."""
        everything, nothing = 2**20, 0
        # Rows at the answer are in no range, rows at the next quantile's point in this one: ranges of one round share no row.
        lower = Split(self.first, everything if self.above else nothing)
        upper = Split(self.last, everything if self.above else nothing)
        rank = Fraction(self.rank, PARTS)
        return [score * (PARTS // rank.denominator) for score in scores(weights, rank, lower, upper)]

    @property
    def points(self) -> tuple[int, int]:
        """The first point, and one after the last."""
        return span(0, Split(self.first, 0), Split(self.last, 0))


def moves(relation: Relation) -> int:
    """How far one user of weight 1 moves the scores of one end (docs/proofs/quantiles.md)."""
    return PARTS * relation.moves


def wanted_ends(
    answers: Sequence[Sequence[int]],
    ranks: Sequence[float],
    reaches: Mapping[bool, Sequence[Sequence[float]]],
    weights: Sequence[float],
    points: int,
) -> list[list[End]]:
    """The rounds of ends: lower and upper ones, together if there is one quantile. Ends beyond the next quantile are left out.

    Args:
        answers: chosen points by quantile and group.
        ranks: of the quantiles.
        reaches: how far ends are, in weight, below and above, by quantile and group.
        weights: of the groups, as far as they are known.
        points: of the grid.
    """
    found: dict[bool, list[End]] = {False: [], True: []}
    for place, rank in enumerate(ranks):
        for group, answer in enumerate(answers[place]):
            for above in found:
                after = place + (1 if above else -1)
                inside = 0 <= after < len(ranks)
                bound = answers[after][group] if inside else (points - 1 if above else 0)
                room = abs((ranks[after] if inside else float(above)) - rank) * weights[group]
                part = reaches[above][place][group] / room if room > 0 else math.inf
                if part < 1 and bound != answer:
                    thousandths = min(max(round(PARTS * part), 1), PARTS - 1)
                    first, last = (answer, bound) if above else (bound, answer)
                    found[above].append(
                        End(place, group, above, first, last, thousandths if above else PARTS - thousandths)
                    )
    together = [*found[False], *found[True]]
    return [one for one in ([together] if len(ranks) == 1 else [found[False], found[True]]) if one]


def settled(
    chosen: Mapping[tuple[int, int, bool], int],
    answers: Sequence[Sequence[int]],
    points: int,
) -> list[list[tuple[int, int]]]:
    """Both ends by quantile and group: as chosen, or else those of the next quantile, or else the ends of the grid."""
    quantiles, groups = len(answers), len(answers[0])
    result = [[(0, points - 1)] * groups for _ in answers]
    for group in range(groups):
        low, high = 0, points - 1
        lows, highs = [], []
        for place in range(quantiles):
            low = min(chosen.get((place, group, False), low), answers[place][group])
            lows.append(low)
        for place in reversed(range(quantiles)):
            high = max(chosen.get((place, group, True), high), answers[place][group])
            highs.append(high)
        for place, pair in enumerate(zip(lows, reversed(highs), strict=True)):
            result[place][group] = pair
    return result


def within_node(shape: Shape, answer: int, rank: float, below: float, above: float) -> tuple[int, int]:
    """The ends where many rows share a value: those of the answer's node, if the shape shows that the rank lies well inside it."""
    (first, last), (before, upto) = shape.node(answer), shape.around(answer)
    doubt = _SEEN * shape.doubt(answer)
    low = first if rank - before > math.hypot(below, doubt) else 0
    high = last if upto - rank > math.hypot(above, doubt) else shape.tree.points - 1
    return low, high
