"""The search for bounds as a mechanism: looks at cells around a centre, without an engine, so that it can be drawn often."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import Decimal

from evenhand.audit.mechanism import Pair
from evenhand.guarantee import exact_sum
from evenhand.profiles import CELLS, look_around
from evenhand.profiles.extent import LEVELS
from evenhand.release import Measurement, Receipt
from evenhand.tables import Secret

_ONE, _CROWD = 1370.0, (1000.0,) * 150
LOOK_PAIRS = (
    Pair("a user, nobody else", (_ONE,), ()),
    Pair("a user beyond a crowd", (*_CROWD, _ONE), _CROWD),
)
"""One value for each user, with one user and without. Where nobody stands out the reserve is spent; a crowd gets cells of its own."""

HALF = Decimal("0.5")


def looked(
    values: Sequence[float],
    reserve: Decimal = HALF,
    around: Callable[[Sequence[float], float], float] = lambda _, centre: centre,
) -> Sequence[float]:
    """The centre, the number of looks, and what an attacker would add up: the user's cell in all of them, by what they cost.

    Args:
        values: one for each user.
        reserve: of which half an ε is declared.
        around: where a broken twin lays the cells instead.
    """
    paid, told = Receipt(exact_sum([HALF, reserve]), Decimal(0), "audit"), list[float]()

    def buy(centre: float, epsilon: Decimal) -> list[float]:
        laid = around(values, centre)
        counts = [0] * CELLS
        for value in values:
            counts[_cell(value - laid)] += 1
        noisy = [float(count) for count in paid.numbers(Measurement(lambda: Secret(counts), 1, 1), epsilon).values]
        told.append(float(epsilon) * noisy[_cell(_ONE - laid)])
        return noisy

    look = look_around(buy, HALF, 1, reserve=reserve)
    return [around(values, look.centre), len(told), sum(told)]


def _cell(distance: float) -> int:
    away = bisect_left(LEVELS, abs(distance))
    return CELLS // 2 + (away if distance >= 0 else -away)
