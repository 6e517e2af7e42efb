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
from typing import Any

import numpy as np

from evenhand.bounding import Belief, BusyUsers, Shift
from evenhand.guarantee import Relation
from evenhand.release import Measurement, Receipt
from evenhand.statistics.prefix_weights import Cells
from evenhand.tables import Secret

_LEAST_STEP = Fraction(1, 500)
_ELSEWHERE = 0.3  # by which r may differ at another rank, for each unit of rank
_MOST = 0.7  # of the way to either end that a rank is moved

Far = tuple[float, float]
"""The weight of users far above the bound, with noise, and the standard deviation of that."""


@dataclass(frozen=True)
class Moved:
    """Where a quantile is looked for among the weighted rows.

    Args:
        rank: there.
        below: how far below that its rank may be in truth, with 95% on both sides together, as a share of the rows.
        above: how far above.
        measured: whether it was measured.
    """

    rank: Fraction
    below: float
    above: float
    measured: bool


@dataclass(frozen=True)
class Measured:
    """What was measured: where each quantile is to be looked for, and the weights by the way, if any."""

    moved: Mapping[Fraction, Moved]
    cells: Cells | None = None


def moves(capacity: int, relation: Relation) -> tuple[int, int]:
    """How far one user moves weights of cells that share no row, in L1 and in squared L2 norm (docs/proofs/quantiles.md)."""
    return relation.moves * capacity, relation.moves * capacity**2


def moved_ranks(busy: BusyUsers, quantiles: Sequence[Fraction]) -> dict[Fraction, Moved]:
    """Without a measurement ranks stay, and the prior says how far they may be off."""
    shifts = {q: busy.moved(float(q), Belief.beforehand()) for q in quantiles}
    return {q: Moved(q, shift.below, shift.above, False) for q, shift in shifts.items()}


def far_weight(measured: Sequence[Cells]) -> Far | None:
    """From all measurements that have it, by their precision."""
    found = [(cells.far, 1 / cells.variance) for cells in measured if cells.far is not None]
    precision = sum(each for _, each in found)
    return (sum(far * each for far, each in found) / precision, precision**-0.5) if found else None


def informed(busy: BusyUsers, far: Far | None, capacity: int) -> BusyUsers:
    """What is known about busy users once the weight of those far above the bound was measured, if it was."""
    return busy if far is None else busy.given(*(one / capacity for one in far))


def measured_ranks(
    receipt: Receipt,
    weights: Secret[dict[str, list[int]]],
    places: Sequence[int],
    points: int,
    quantiles: Sequence[Fraction],
    busy: BusyUsers,
    capacity: int,
    relation: Relation,
    epsilon: Decimal,
) -> Measured:
    """Measure how far busy users differ, over all groups together, at a guess of each quantile.

    Args:
        receipt: pays.
        weights: at each point, group after group: of all ``rows``, and of users who are ``cut``.
        places: about where the quantiles are, as released before.
        points: of each group.
        quantiles: in increasing order.
        busy: what is known about users who are cut.
        capacity: the weight of one user over all groups.
        relation: which neighbours count.
        epsilon: for this.
    """
    edges = [0, *itertools.accumulate(places, max), points]
    parts = Measurement(lambda: weights.map(lambda cells: by_part(cells, edges, points)), *moves(capacity, relation))
    noisy = receipt.numbers(parts, epsilon)
    uncut, cut = noisy.values[: len(edges) - 1], noisy.values[len(edges) - 1 :]
    # In rows; a sum over some of the parts has the noise of all of them.
    scale = float(noisy.noise.scale) / capacity * busy.bound * math.sqrt(len(uncut) / 2)
    everything = max(sum(noisy.values), 1)
    shifts, weighted, ranks = list[Shift](), [0.0], [0.0]
    for place, q in enumerate(quantiles, 1):
        below, above = (sum(uncut[:place]), sum(cut[:place])), (sum(uncut[place:]), sum(cut[place:]))
        # What is measured holds where it was: at this rank among the weighted rows, and that rank among all rows.
        weighted.append(min(max(sum(below) / everything, weighted[-1] + 1e-3), 1 - 1e-3))
        there = min(max(weighted[-1], 0.02), 0.98)
        error = math.hypot(busy.error(there, scale), _ELSEWHERE * abs(there - float(q)))
        belief = Belief.after(busy.measured(below, above), error)
        shifts.append(busy.moved(float(q), belief))
        ranks.append(min(max(weighted[-1] - busy.moved(weighted[-1], belief).by, ranks[-1] + 1e-3), 1 - 1e-3))
    looked_for = np.interp([float(q) for q in quantiles], [*ranks, 1.0], [*weighted, 1.0])
    result: dict[Fraction, Moved] = {}
    least = Fraction(0)
    for place, (q, shift, wanted) in enumerate(zip(quantiles, shifts, looked_for.tolist(), strict=True), 1):
        limited = float(q) + min(max(wanted - float(q), -_MOST * float(q)), _MOST * (1 - float(q)))
        rank = max(Fraction(limited).limit_denominator(1000), least + _LEAST_STEP)
        least = min(rank, 1 - _LEAST_STEP * (len(quantiles) - place + 1))
        off = float(least) - wanted  # what the limits above took back may be there as well
        result[q] = Moved(least, shift.below + max(off, 0.0), shift.above + max(-off, 0.0), True)
    both = np.array([[float(a + b) for a, b in zip(uncut, cut, strict=True)]])
    return Measured(result, Cells(np.array([edges], dtype=np.int64), both, max(2 * noisy.noise.variance, 1 / 6)))


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


def near_and_far(cells: Mapping[str, Sequence[int]], points: int) -> list[int]:
    """The weight at each point over all groups, of users who are not far above the bound; then that of those who are, wherever it lies."""
    near = [sum(cells["rows"][point::points]) - sum(cells["far"][point::points]) for point in range(points)]
    return [*near, sum(cells["far"])]


def in_sentence(moved: Mapping[Fraction, Moved]) -> str:
    """What is known about the bias."""
    if not any(one.measured for one in moved.values()):
        return "of bounding is in the interval, by a prior about how far busy users differ"
    return "of bounding is corrected and in the interval: how far busy users differ was measured"


def corrections(moved: Mapping[Fraction, Moved]) -> dict[str, Any]:
    """For the details of a release: at which rank among the bounded rows each quantile was looked for, if at another than its own."""
    ranks = {float(q): float(one.rank) for q, one in moved.items() if one.rank != q}
    if not ranks:
        return {}
    words = ", ".join(f"{q:g} was looked for at rank {rank:.3f}" for q, rank in ranks.items())
    return {"correction": {"words": f"{words} of the bounded rows, since busy users differ", "ranks": ranks}}
