"""Secret coins: the only randomness that privacy rests on."""

from __future__ import annotations

import secrets
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Protocol

from evenhand.guarantee import fixed_context

PRECISION = 64
"""Probabilities are multiples of 2^-64."""

_DOWN, _UP = fixed_context(60, ROUND_FLOOR), fixed_context(60, ROUND_CEILING)


class Coins(Protocol):
    """A source of secret randomness. Tests put their own in place of `SecureCoins`; nothing else does."""

    def below(self, n: int) -> int:
        """A whole number from 0 to n-1, each equally likely."""

    def chance(self, threshold: int) -> bool:
        """True with probability threshold / 2^64."""


class SecureCoins:
    """Coins from the operating system's secure source."""

    def below(self, n: int) -> int:
        return secrets.randbelow(n)

    def chance(self, threshold: int) -> bool:
        return secrets.randbits(PRECISION) < threshold


@lru_cache
def flip_threshold(epsilon: Decimal) -> int:
    """The least T with T / 2^64 >= 1 / (e^ε + 1): how often a bit is flipped, rounded toward more flipping.

    Guarantee:
        (1 - T/2^64) / (T/2^64) <= e^ε exactly: releasing one bit so flipped is ε-private.
    """
    power = _DOWN.next_minus(_DOWN.exp(epsilon))  # exp rounds to the nearest, whatever the context says
    exact = _UP.divide(Decimal(1 << PRECISION), _DOWN.add(power, Decimal(1)))
    return int(_UP.to_integral_value(exact))
