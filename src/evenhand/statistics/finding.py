"""Choosing the points of several quantiles in several groups, with all the ε that is left once users are bounded.

A little of it releases the rough shape of the column over all groups (`shape.py`) and the weight of each group; most of the rest chooses points
(`search.py`), starting from that shape, and what is left then chooses where their intervals end (`ends.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.guarantee import Relation, divide, split
from evenhand.release import Measurement, Receipt
from evenhand.statistics.busy_ranks import Moved
from evenhand.statistics.ends import CONFIDENCE, End, Reach, moves, settled, wanted_ends, within_node
from evenhand.statistics.search import Split, Target, preferences, rank_scales, rounds, scores, span
from evenhand.statistics.shape import Shape, Tree, moved
from evenhand.tables import Secret

SHAPE_SHARE = Fraction(1, 10)
WEIGHTS_SHARE = Fraction(1, 16)
ENDS_SHARE = Fraction(1, 3)
"""For the shape, where nothing is known about the weight; of the rest for the weights of the groups; of the rest for the ends of intervals."""

_SHAPE_SHARES = (Fraction(8, 100), Fraction(1, 4))
_SEEN = 40
"""If the weight of all rows is known: what shows a node with 1/40 of it, between these limits. A shape that shows less draws answers into empty stretches."""

_OF_DEVIATION = 0.65
"""The scale of a Laplace variable with the 95% quantile of a normal one of standard deviation 1."""


def shape_share(capacity: int, weight: float | None, relation: Relation, epsilon: float) -> Fraction:
    """The part of ε for the shape.

    Args:
        capacity: the weight of one user.
        weight: of all rows, as released before; None if nothing is known.
        relation: which neighbours count.
        epsilon: for everything.
    """
    if weight is None:
        return SHAPE_SHARE
    deviation = math.sqrt(2) * moved(Tree.levels, capacity, relation)[0] / epsilon
    least, most = _SHAPE_SHARES
    return min(max(Fraction(_SEEN * deviation / max(weight, 1e-9)).limit_denominator(100), least), most)


@dataclass(frozen=True)
class Cost:
    """How the ε of a release is divided: the shape, the weights of the groups, the search, and the ends of intervals.

    The weights are free where the number of rows is public.
    """

    shape: Decimal
    weights: Decimal
    search: Decimal
    ends: Decimal

    @classmethod
    def of(cls, epsilon: Decimal, relation: Relation, shape_share: Fraction = SHAPE_SHARE) -> Cost:
        """Divide."""
        shape, rest = split(epsilon, shape_share)
        weights, rest = (Decimal(0), rest) if relation.counts_are_public else split(rest, WEIGHTS_SHARE)
        ends, search = split(rest, ENDS_SHARE)
        return cls(shape, weights, search, ends)


@dataclass(frozen=True)
class Points:
    """What was released: a point for each quantile in each group, with the ends of its interval.

    Args:
        places: the points, by quantile and group.
        ends: the points where intervals end, by quantile and group.
        reaches: how far ranks may be off, by quantile and group; None where the weight of a group is lost in noise.
        weights: of each group.
        moved: where each quantile was looked for.
    """

    places: dict[Fraction, list[int]]
    ends: dict[Fraction, list[tuple[int, int]]]
    reaches: dict[Fraction, list[Reach | None]]
    weights: Sequence[int]
    moved: Mapping[Fraction, Moved]


def find(
    receipt: Receipt,
    weights: Secret[list[int]],
    points: int,
    quantiles: Sequence[Fraction],
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
    believed: Callable[[Shape], Mapping[Fraction, Moved]] = lambda _: {},
    weight: float | None = None,
) -> Points:
    """Find quantiles in each group.

    Args:
        receipt: pays.
        weights: of rows at each point, group after group; at most ``capacity`` of it is one user's.
        points: of each group.
        quantiles: which ones.
        capacity: the weight of one user over all groups.
        relation: which neighbours count.
        epsilon: for everything but what ``believed`` measures.
        believed: what bounding does to the rank of each quantile, once the shape is seen; nothing is known where it is left out.
        weight: of all rows, as far as it is known.
    """
    cost = Cost.of(epsilon, relation, shape_share(capacity, weight, relation, float(epsilon)))
    tree, wanted = Tree(points), sorted(set(quantiles))
    counts = Measurement(lambda: weights.map(tree.counts), *moved(Tree.levels, capacity, relation))
    counted = receipt.numbers(counts, cost.shape)
    shape = tree.shape(counted.values, math.sqrt(counted.noise.variance))
    totals, noisy = weights.map(lambda given: _totals(given, points)), None
    if cost.weights:
        noisy = receipt.numbers(Measurement(lambda: totals, *moved(1, capacity, relation)), cost.weights)
    known = receipt.public(totals, relation) if noisy is None else noisy.values
    told = believed(shape)
    moves_of = {q: told.get(q, Moved(q, 0.0, 0.0, False)) for q in wanted}
    ranks = [one.rank for one in moves_of.values()]
    plan = rounds(ranks)
    found: dict[int, list[Split]] = {}
    for targets in plan:
        found |= _round(
            receipt,
            weights,
            len(known),
            ranks,
            targets,
            found,
            shape,
            capacity,
            relation,
            divide(cost.search, len(plan)),
        )
    # Of the weight of a group, cautiously: one standard deviation of its noise less.
    slack = 0.0 if noisy is None else math.sqrt(noisy.noise.variance)
    sizes = [max(weight - slack, 0.0) for weight in known]
    own = 2 * relation.moves * capacity / float(cost.ends) * (1 if len(wanted) == 1 else 2)
    reaches: list[list[Reach | None]] = [[] for _ in wanted]
    for group, size in enumerate(sizes):
        doubts = {
            place: _OF_DEVIATION * shape.split_doubt(splits[group].point) * size / capacity
            for place, splits in found.items()
        }
        scales = rank_scales(plan, relation, float(cost.search), doubts)
        for place, q in enumerate(wanted):
            bias = moves_of[q].below * size, moves_of[q].above * size
            reaches[place].append(Reach(scales[place] * capacity, own, *bias) if size else None)
    answers = [[split.point for split in found[place]] for place, _ in enumerate(wanted)]
    ends = _ends(receipt, weights, ranks, answers, reaches, sizes, shape, capacity, relation, cost.ends)
    return Points(
        dict(zip(wanted, answers, strict=True)),
        dict(zip(wanted, ends, strict=True)),
        dict(zip(wanted, reaches, strict=True)),
        known,
        moves_of,
    )


def _ends(
    receipt: Receipt,
    weights: Secret[list[int]],
    wanted: Sequence[Fraction],
    answers: Sequence[Sequence[int]],
    reaches: Sequence[Sequence[Reach | None]],
    sizes: Sequence[float],
    shape: Shape,
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
) -> list[list[tuple[int, int]]]:
    """The ends of all intervals, in one round or two."""
    points, ranks = shape.tree.points, [float(q) for q in wanted]
    far = {
        above: [[math.inf if reach is None else reach.at(CONFIDENCE, above) for reach in row] for row in reaches]
        for above in (False, True)
    }
    plan = wanted_ends(answers, ranks, far, sizes, points)
    paid, sensitivity = divide(epsilon, 1 if len(wanted) == 1 else 2), capacity * moves(relation)
    scale = 2 * Fraction(sensitivity) / Fraction(paid)
    likely = functools.cache(lambda percent: preferences(shape.preference(percent / 100), scale))
    chosen: dict[tuple[int, int, bool], int] = {}
    for targets in plan:
        asked = []
        for one in targets:
            rank = ranks[one.place] + (1 if one.above else -1) * far[one.above][one.place][one.group] / sizes[one.group]
            asked.append((one, likely(min(max(round(100 * rank), 1), 99))[slice(*one.points)]))

        def scored(given: list[int], asked: Sequence[tuple[End, Sequence[int]]] = tuple(asked)) -> list[list[int]]:
            return [
                [
                    score + more
                    for score, more in zip(
                        one.scores(given[one.group * points : (one.group + 1) * points]), prior, strict=True
                    )
                ]
                for one, prior in asked
            ]

        places = receipt.choices(weights.map(scored), [sensitivity] * len(targets), paid).places
        for one, place in zip(targets, places, strict=True):
            chosen[one.place, one.group, one.above] = one.first + place
    ends = settled(chosen, answers, points)
    if len(sizes) > 1 or not sizes[0]:
        return ends
    for place, rank in enumerate(ranks):  # the shape is that of the only group
        below, above = (far[side][place][0] / sizes[0] for side in (False, True))
        low, high = within_node(shape, answers[place][0], rank, below, above)
        ends[place][0] = (max(ends[place][0][0], low), min(ends[place][0][1], high))
    return ends


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
