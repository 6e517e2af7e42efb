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
from evenhand.statistics.finding import Look, find
from evenhand.tables import Secret

CAPACITY = 100
"""The weight of one user."""

PAIRS = (
    Pair("a user at the top, nobody else", (0, 0, 0, CAPACITY), (0, 0, 0, 0)),
    Pair("a user who moves the ranks of the others", (200, 0, 0, 200 + CAPACITY), (200, 0, 0, 200)),
)
"""Weights at four points, with one user and without."""

BUSY_PAIRS = (
    Pair("a user who is cut, nobody else", (0, 0, 0, CAPACITY), (0, 0, 0, 0)),
    Pair("a user who is cut among others", (300, 0, 0, 200 + CAPACITY), (300, 0, 0, 200)),
)
"""The same for what is measured about users who are cut: all of them are."""


def searched(
    weights: Sequence[int], capacity: int = CAPACITY, receipt: type[Transcript] = Transcript
) -> Sequence[float]:
    """How many of three quantiles are at the top, and what an attacker would add up of the noisy weights: those of the cells that hold the
    top, by their precision."""
    paid, top = receipt(Decimal(1), Decimal(0), "audit"), len(weights) - 1
    wanted = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    found = find(paid, Secret(list(weights)), top + 1, 1, wanted, capacity, Relation.PRESENCE, Decimal(1))
    at_top = sum(point == top for q in wanted for *_, point in found.of(q))
    counting = 0.0
    for cells in found.measured:
        holds = (cells.edges[0, :-1] <= top) & (cells.edges[0, 1:] > top)
        counting += float(cells.weights[0] @ holds) * CAPACITY / cells.variance
    return [at_top, counting, at_top + counting]


def chosen(weights: Sequence[int], receipt: type[Receipt] = Receipt) -> Sequence[float]:
    """The median among points that were equally likely before."""
    paid = receipt(Decimal(1), Decimal(0), "audit")
    look = Look(paid, Secret(list(weights)), len(weights), 1, CAPACITY, Relation.PRESENCE)
    (place,), _ = look.chosen(Fraction(1, 2), np.array([[0, len(weights)]]), np.array([[0.0, 1.0]]), Decimal(1))
    return [place]


_BUSY = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[3.0, 3.0]]), np.ones(1)), 1.0)


def compared(weights: Sequence[int], receipt: type[Transcript] = Transcript) -> Sequence[float]:
    """From the weights of users who are cut at four points: what is measured above the middle of both kinds of users, and the rank that follows."""
    paid, half = receipt(Decimal(1), Decimal(0), "audit"), Fraction(1, 2)
    cells = Secret({"rows": list(weights), "cut": list(weights)})
    found = measured_ranks(paid, cells, [2], 4, [half], _BUSY, CAPACITY, Relation.PRESENCE, Decimal(1))
    _, uncut, _, cut = paid.seen
    return [uncut, cut, float(found.moved[half].rank)]


def apart(weights: Sequence[int], receipt: type[Transcript] = Transcript) -> Sequence[float]:
    """From weights at three points and, as the last one, of users far above the bound: what is measured of either, and what follows for the cell."""
    paid = receipt(Decimal(1), Decimal(0), "audit")
    look = Look(paid, Secret(list(weights)), len(weights) - 1, 1, CAPACITY, Relation.PRESENCE, apart=True)
    cells = look.at(np.array([[0, len(weights) - 1]]), Decimal(1))
    near, far = paid.seen
    return [near, far, float(cells.weights[0, 0])]
