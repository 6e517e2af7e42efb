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
from evenhand.release import Receipt
from evenhand.statistics.busy_ranks import measured_ranks
from evenhand.statistics.ends import moves, wanted_ends
from evenhand.statistics.finding import find
from evenhand.statistics.shape import COARSE, Tree
from evenhand.tables import Secret

CAPACITY = 100
"""The weight of one user."""

PAIRS = (
    Pair("a user at the top, nobody else", (0, 0, 0, CAPACITY), (0, 0, 0, 0)),
    Pair("a user who moves the ranks of the others", (200, 0, 0, 200 + CAPACITY), (200, 0, 0, 200)),
)
"""Weights at four points, with one user and without."""

END_PAIRS = (
    Pair("a user above the answer", (0, 0, 0, CAPACITY), (0, 0, 0, 0)),
    Pair("a user on both sides", (CAPACITY // 2, 0, 0, CAPACITY // 2), (0, 0, 0, 0)),
)
"""The same for the ends of an interval around the second point."""


BUSY_PAIRS = (
    Pair("a user who is cut, nobody else", (0, 0, 0, CAPACITY), (0, 0, 0, 0)),
    Pair("a user who is cut among others", (300, 0, 0, 200 + CAPACITY), (300, 0, 0, 200)),
)
"""The same for what is measured about users who are cut: all of them are."""


def searched(
    weights: Sequence[int], capacity: int = CAPACITY, receipt: type[Transcript] = Transcript
) -> Sequence[float]:
    """How many of three quantiles are at the top, and what an attacker would add up of the noisy integers: those that count the top."""
    paid = receipt(Decimal(1), Decimal(0), "audit")
    wanted = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    found = find(paid, Secret(list(weights)), len(weights), wanted, capacity, Relation.PRESENCE, Decimal(1))
    counting = [shape.tolist()[-1] for shape in np.split(np.array(paid.seen), [COARSE, COARSE + len(weights)])]
    at_top = sum(places[0] == len(weights) - 1 for places in found.places.values())
    return [at_top, sum(counting), 2 * at_top + sum(counting)]


def ended(weights: Sequence[int], sensitivity: int = CAPACITY * moves(Relation.PRESENCE)) -> Sequence[float]:
    """Both ends of the interval around an answer at the second point, and how far apart they are."""
    (ends,) = wanted_ends([[1]], [0.5], {False: [[400.0]], True: [[400.0]]}, [1000], 4)
    scores = Secret([end.scores(weights) for end in ends])
    chosen = Receipt(Decimal(1), Decimal(0), "audit").choices(scores, [sensitivity] * len(ends), Decimal(1)).places
    low, high = (end.first + place for end, place in zip(ends, chosen, strict=True))
    return [low, high, high - low]


_EVEN = Tree(4).shape(Tree(4).counts([100] * 4), 1.0)
_BUSY = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[3.0, 3.0]]), np.ones(1)), 1.0)


def compared(weights: Sequence[int], receipt: type[Transcript] = Transcript) -> Sequence[float]:
    """From the weights of users who are cut at four points: what is measured above the middle of both kinds of users, and the rank that follows."""
    paid, half = receipt(Decimal(1), Decimal(0), "audit"), Fraction(1, 2)
    cells = Secret({"rows": list(weights), "cut": list(weights)})
    found = measured_ranks(paid, cells, _EVEN, [half], _BUSY, CAPACITY, Relation.PRESENCE, Decimal(1))
    _, uncut, _, cut = paid.seen
    return [uncut, cut, float(found[half].rank)]
