"""The search for quantiles as a mechanism: few points and no engine, so that it can be drawn often."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.audit.mechanism import Pair
from evenhand.audit.releases import Transcript
from evenhand.bounding import BusyUsers, Family
from evenhand.guarantee import Relation
from evenhand.statistics.rank_search import Placed, Search
from evenhand.tables import Secret

CAPACITY = 100
"""The weight of one user."""

Kinds = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Weights at four points: of users who are not cut, of those who are, and of those far above the bound."""

_NOBODY = (0, 0, 0, 0)
_AT_TOP = (0, 0, 0, CAPACITY)

PAIRS = (
    Pair("a user at the top, nobody else", (_AT_TOP, _NOBODY, _NOBODY), (_NOBODY, _NOBODY, _NOBODY)),
    Pair(
        "a user who moves the ranks of the others",
        ((200, 0, 0, 200 + CAPACITY), _NOBODY, _NOBODY),
        ((200, 0, 0, 200), _NOBODY, _NOBODY),
    ),
)
"""With one user and without."""

BUSY_PAIRS = (
    Pair("a user who is cut, nobody else", (_NOBODY, _AT_TOP, _NOBODY), (_NOBODY, _NOBODY, _NOBODY)),
    Pair("a user far above the bound", (_NOBODY, _NOBODY, _AT_TOP), (_NOBODY, _NOBODY, _NOBODY)),
)
"""The same for the round that tells kinds of users apart."""

_BUSY = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[3.0, 3.0]]), np.ones(1)), 1.0)


def searched(kinds: Kinds, capacity: int = CAPACITY, receipt: type[Transcript] = Transcript) -> Sequence[float]:
    """How many of three quantiles are at the top, and what an attacker would add up of all rounds: the weight of the cells that hold the
    top, in standard deviations."""
    top, wanted = len(kinds[0]) - 1, [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    found = _search(kinds, capacity, receipt(Decimal(1), Decimal(0), "audit")).find(wanted, Decimal(1))
    at_top = sum(points[0] == top for points in found.points().values())
    weights = found.weights
    holds = ((weights.edges[0, :-1] <= top) & (weights.edges[0, 1:] > top)).astype(np.float64)
    counting = float(weights.mean[0] @ holds / np.sqrt(holds @ weights.covariance[0] @ holds))
    return [at_top, counting, at_top + counting]


def told_apart(kinds: Kinds, receipt: type[Transcript] = Transcript) -> Sequence[float]:
    """What is measured of each kind of users above the middle, and of users far above the bound."""
    paid = receipt(Decimal(1), Decimal(0), "audit")
    _search(kinds, CAPACITY, paid, _BUSY).measured(np.array([[2]]), Decimal(1), apart=True)
    _, full, _, cut, far = paid.seen
    return [full, cut, far]


def _search(kinds: Kinds, capacity: int, receipt: Transcript, busy: BusyUsers | None = None) -> Search:
    placed = Placed.of(np.arange(len(kinds[0])), [np.array(weights) for weights in kinds])
    return Search(receipt, Secret(placed), len(kinds[0]), 0, 1, capacity, Relation.PRESENCE, busy)
