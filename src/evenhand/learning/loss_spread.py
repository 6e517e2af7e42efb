"""How far users' losses lie apart: Var(H), the quantity by which amin2019 bounds the bias of dropping rows, bought from people's rows.

A user with s rows of losses l in [0, 1] has the mean loss L = Σl/s, and the average product of two of their rows' losses, P = ((Σl)² − Σl²)/(s(s − 1)),
whose expectation is the square of that of L: unlike L² it holds none of the scatter of rows. With weights w = min(s, h), over users with two rows or more,
Var(H) = ΣwP/Σw − (ΣwL/Σw)². As 0 ≤ P ≤ L ≤ 1, the three numbers w(1 − L), w(L − P) and wP are not negative and add up to w: one user moves them by h in L1 norm, together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from evenhand.guarantee import Guarantee, Relation
from evenhand.learning.linear_hypotheses import UNIT
from evenhand.release import Measurement, Receipt
from evenhand.release.intervals import check_confidence
from evenhand.tables import Secret


@dataclass(frozen=True)
class LossSpread:
    """Var(H) of one hypothesis, noisy: the variance of users' losses, users weighted by their rows up to ``rows_per_user``.

    Args:
        variance: between 0 and 1/4; ``sd``, its root, is what `plan` takes as ``heterogeneity``.
        sums: the three noisy sums; ``scale``: of their noise.
        rows_per_user: h.
        guarantee: what was promised.
    """

    sums: tuple[float, float, float]
    scale: float
    rows_per_user: int
    guarantee: Guarantee

    @property
    def variance(self) -> float:
        """Of users' losses; 0 where noise hides it."""
        return _variance(self.sums)

    @property
    def sd(self) -> float:
        """Its root."""
        return math.sqrt(self.variance)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A range for ``sd``; it covers the noise only. All three sums lie within it with this probability or more."""
        radius = self.scale * math.log(3 / (1 - check_confidence(confidence)))
        corners = [
            _variance((one + a * radius, two + b * radius, three + c * radius))
            for (one, two, three) in (self.sums,)
            for a, b, c in itertools.product((-1, 0, 1), repeat=3)
        ]
        return math.sqrt(min(corners)), math.sqrt(max(corners))


def parts(losses: Sequence[int], users: Sequence[int], rows_per_user: int) -> list[int]:
    """The three sums in steps, of each row's loss in steps from 0 to UNIT; exact integers, each user's clamped."""
    totals = [0, 0, 0]
    for _, rows in itertools.groupby(zip(users, losses, strict=True), key=lambda pair: pair[0]):
        own = [loss for _, loss in rows]
        size, total = len(own), sum(own)
        if size < 2:
            continue
        weight = min(size, rows_per_user)
        mean = min(max(total // size, 0), UNIT)
        pairs = (total * total - sum(loss * loss for loss in own)) // (size * (size - 1) * UNIT)
        product = min(max(pairs, 0), mean)
        for place, part in enumerate((UNIT - mean, mean - product, product)):
            totals[place] += weight * part
    return totals


def bought_spread(
    sums: Secret[list[int]],
    rows_per_user: int,
    relation: Relation,
    epsilon: Decimal,
    receipt: Receipt,
    guarantee: Guarantee,
) -> LossSpread:
    """Var(H) from noisy sums."""
    reach, moves = rows_per_user * UNIT, relation.moves
    noisy = receipt.numbers(Measurement(lambda: sums, l1=moves * reach, l2_squared=moves * reach**2), epsilon)
    one, two, three = (float(value) / UNIT for value in noisy.values)
    scale = moves * rows_per_user / float(epsilon)
    return LossSpread((one, two, three), scale, rows_per_user, guarantee)


def _variance(sums: tuple[float, float, float]) -> float:
    weight = sum(sums)
    if weight <= 0:
        return 0.25
    mean, square = (sums[1] + sums[2]) / weight, sums[2] / weight
    return float(np.clip(square - mean**2, 0.0, 0.25))
