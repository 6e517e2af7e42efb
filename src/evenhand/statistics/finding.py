"""Choosing the points of several quantiles in several groups, with all the ε that is left once users are bounded.

A little of it releases the rough shape of the column over all groups (`shape.py`) and the weight of each group; the rest chooses points
(`search.py`), starting from that shape. Intervals turn ranks into values by it (`rank_intervals.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.guarantee import Relation, divide, split
from evenhand.release import Measurement, Noisy, Receipt
from evenhand.statistics.search import Split, Target, preferences, rank_scales, rounds, scores, span
from evenhand.statistics.shape import Shape, Tree
from evenhand.tables import Secret

SHAPE_SHARE = Fraction(1, 10)
WEIGHTS_SHARE = Fraction(1, 16)
"""For the shape, and of the rest for the weights of the groups."""


@dataclass(frozen=True)
class Cost:
    """How the ε of a release is divided: the shape, the weights of the groups, and the search.

    The weights are free where the number of rows is public.
    """

    shape: Decimal
    weights: Decimal
    search: Decimal

    @classmethod
    def of(cls, epsilon: Decimal, relation: Relation) -> Cost:
        """Divide."""
        shape, rest = split(epsilon, SHAPE_SHARE)
        weights, rest = (Decimal(0), rest) if relation.counts_are_public else split(rest, WEIGHTS_SHARE)
        return cls(shape, weights, rest)


@dataclass(frozen=True)
class Points:
    """What was released: a point for each quantile in each group, and what else is known.

    Args:
        places: the points, by quantile and group.
        scales: of each quantile's rank error, in weight.
        shape: of the column over all groups.
        weights: of each group.
        noise: in these weights; None where they are public.
    """

    places: dict[Fraction, list[int]]
    scales: dict[Fraction, float]
    shape: Shape
    weights: Sequence[int]
    noise: Noisy | None


def moved(levels: int, capacity: int, relation: Relation) -> tuple[int, int]:
    """How far one user moves counts of weighted rows on so many levels, in L1 and in squared L2 norm."""
    return levels * relation.moves * capacity, levels * relation.moves * capacity**2


def find(
    receipt: Receipt,
    weights: Secret[list[int]],
    points: int,
    quantiles: Sequence[Fraction],
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
) -> Points:
    """Find quantiles in each group.

    Args:
        receipt: pays.
        weights: of rows at each point, group after group; at most ``capacity`` of it is one user's.
        points: of each group.
        quantiles: which ones.
        capacity: the weight of one user over all groups.
        relation: which neighbours count.
        epsilon: for everything.
    """
    cost, tree, wanted = Cost.of(epsilon, relation), Tree(points), sorted(set(quantiles))
    counts = Measurement(lambda: weights.map(tree.counts), *moved(Tree.levels, capacity, relation))
    counted = receipt.numbers(counts, cost.shape)
    shape = tree.shape(counted.values, math.sqrt(counted.noise.variance))
    totals, noisy = weights.map(lambda given: _totals(given, points)), None
    if cost.weights:
        noisy = receipt.numbers(Measurement(lambda: totals, *moved(1, capacity, relation)), cost.weights)
    known = receipt.public(totals, relation) if noisy is None else noisy.values
    plan = rounds(wanted)
    found: dict[int, list[Split]] = {}
    for targets in plan:
        found |= _round(
            receipt,
            weights,
            len(known),
            wanted,
            targets,
            found,
            shape,
            capacity,
            relation,
            divide(cost.search, len(plan)),
        )
    scales = rank_scales(plan, relation, float(cost.search))
    return Points(
        {q: [split.point for split in found[place]] for place, q in enumerate(wanted)},
        {q: scales[place] * capacity for place, q in enumerate(wanted)},
        shape,
        known,
        noisy,
    )


@dataclass(frozen=True)
class _Choice:
    """A target in one group, between the points chosen there before.

    Args:
        target: which quantile.
        group: where.
        lower, upper: the points chosen before.
        sensitivity: how far one user moves a score.
        likely: what each point's likelihood before any row of the group is seen adds to its score.
    """

    target: Target
    group: int
    lower: Split | None
    upper: Split | None
    sensitivity: int
    likely: Sequence[int]

    def scores(self, weights: Sequence[int]) -> list[int]:
        first, end = span(len(weights), self.lower, self.upper)
        by_rank = scores(weights, self.target.rank, self.lower, self.upper)
        return [score + more for score, more in zip(by_rank, self.likely[first:end], strict=True)]


def _round(
    receipt: Receipt,
    weights: Secret[list[int]],
    groups: int,
    wanted: Sequence[Fraction],
    targets: Sequence[Target],
    found: dict[int, list[Split]],
    shape: Shape,
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
) -> dict[int, list[Split]]:
    """One round of choices: its targets in all groups, paid for together."""
    points, asked = shape.tree.points, list[_Choice]()
    for target in targets:
        sensitivity = capacity * target.moves(relation)
        likely = preferences(
            shape.preference(float(wanted[target.place])), 2 * Fraction(sensitivity) / Fraction(epsilon)
        )
        for group in range(groups):
            lower, upper = (None if end is None else found[end][group] for end in (target.lower, target.upper))
            asked.append(_Choice(target, group, lower, upper, sensitivity, likely))

    def scored(given: list[int]) -> list[list[int]]:
        return [one.scores(given[one.group * points : (one.group + 1) * points]) for one in asked]

    chosen = receipt.choices(weights.map(scored), [one.sensitivity for one in asked], epsilon)
    result: dict[int, list[Split]] = {target.place: [] for target in targets}
    for one, place in zip(asked, chosen.places, strict=True):
        point = span(points, one.lower, one.upper)[0] + place
        part = shape.part_below(point, float(wanted[one.target.place]))
        result[one.target.place].append(Split.between(point, part, one.lower, one.upper))
    return result


def _totals(weights: Sequence[int], points: int) -> list[int]:
    return [sum(weights[start : start + points]) for start in range(0, len(weights), points)]
