"""How far busy users differ, measured: the weight below a guess of each quantile, of users who are cut and of all others.

Bounding gives busy users less weight, so where they differ the quantile has another rank among the weighted rows than q. That
rank is what the search then looks for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.bounding import BusyUsers, belief, unmeasured
from evenhand.guarantee import Relation, split
from evenhand.release import Measurement, Receipt
from evenhand.statistics.shape import Tree, moved
from evenhand.tables import Secret

GUESS_SHARE = Fraction(1, 4)
"""Of what measuring costs, for guesses where the quantiles are."""

_LEAST_STEP = Fraction(1, 500)
_MOST = 0.7  # of the way to either end that a rank is moved


@dataclass(frozen=True)
class Moved:
    """Where a quantile is looked for among the weighted rows.

    Args:
        rank: there.
        deviation: how far bounding may move the rank besides, one standard deviation, as a share of the rows.
        measured: whether it was measured.
    """

    rank: Fraction
    deviation: float
    measured: bool


def moved_ranks(busy: BusyUsers, quantiles: Sequence[Fraction]) -> dict[Fraction, Moved]:
    """Without a measurement ranks stay, and the prior says how far they may be off."""
    return {q: Moved(q, busy.moved(float(q), unmeasured())[1], False) for q in quantiles}


def measured_ranks(
    receipt: Receipt,
    weights: Secret[dict[str, list[int]]],
    points: int,
    quantiles: Sequence[Fraction],
    busy: BusyUsers,
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
) -> dict[Fraction, Moved]:
    """Measure how far busy users differ, over all groups together, at a guess of each quantile.

    Args:
        receipt: pays.
        weights: at each point, group after group: of all ``rows``, and of users who are ``cut``.
        points: of each group.
        quantiles: in increasing order.
        busy: what is known about users who are cut.
        capacity: the weight of one user over all groups.
        relation: which neighbours count.
        epsilon: for this.
    """
    guessed, left = split(epsilon, GUESS_SHARE)
    tree = Tree(points)
    counts = Measurement(
        lambda: weights.map(lambda cells: tree.counts(cells["rows"])), *moved(Tree.levels, capacity, relation)
    )
    counted = receipt.numbers(counts, guessed)
    shape = tree.shape(counted.values, math.sqrt(counted.noise.variance))
    edges = [0, *(shape.place(float(q)) for q in quantiles), points]
    parts = Measurement(lambda: weights.map(lambda cells: by_part(cells, edges, points)), *moved(1, capacity, relation))
    noisy = receipt.numbers(parts, left)
    uncut, cut = noisy.values[: len(edges) - 1], noisy.values[len(edges) - 1 :]
    # In rows; a sum over some of the parts has the noise of all of them.
    scale = float(noisy.noise.scale) / capacity * busy.bound * math.sqrt(len(uncut) / 2)
    result: dict[Fraction, Moved] = {}
    least = Fraction(0)
    for place, q in enumerate(quantiles, 1):
        below, above = (sum(uncut[:place]), sum(cut[:place])), (sum(uncut[place:]), sum(cut[place:]))
        shift, deviation = busy.moved(float(q), belief(busy.measured(below, above), busy.error(float(q), scale)))
        shift = min(max(shift, -_MOST * float(q)), _MOST * (1 - float(q)))
        rank = max((q + Fraction(shift)).limit_denominator(1000), least + _LEAST_STEP)
        least = min(rank, 1 - _LEAST_STEP * (len(quantiles) - place + 1))
        result[q] = Moved(least, deviation, True)
    return result


def by_part(cells: Mapping[str, Sequence[int]], edges: Sequence[int], points: int) -> list[int]:
    """Weight between the edges, over all groups: of users who are not cut, then of those who are."""
    rows, cut = (
        [
            sum(sum(cells[name][start + low : start + high]) for start in range(0, len(cells[name]), points))
            for low, high in itertools.pairwise(edges)
        ]
        for name in ("rows", "cut")
    )
    return [*(every - some for every, some in zip(rows, cut, strict=True)), *cut]


def in_sentence(moved: Mapping[Fraction, Moved]) -> str:
    """What is known about the bias."""
    if not any(one.measured for one in moved.values()):
        return "of bounding is in the interval, by a prior about how far busy users differ"
    ranks = ", ".join(f"{float(one.rank):.3f} for {float(q):g}" for q, one in moved.items())
    return f"of bounding is corrected and in the interval: how far busy users differ was measured (rank {ranks})"
