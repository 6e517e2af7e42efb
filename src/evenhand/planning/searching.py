"""The inverse questions: which ε, or how many users, for a given error."""

from __future__ import annotations

import math
from collections.abc import Callable

from evenhand.guarantee import UsageError


def smallest(enough: Callable[[float], bool], low: float, high: float, what: str) -> float:
    """Bisect on a logarithmic scale for the smallest argument that is enough."""
    if not enough(high):
        raise UsageError(
            f"no {what} up to {high:g} reaches this error with the bounds in this plan; aim at a larger error."
        )
    if enough(low):
        return low
    for _ in range(50):
        if high / low < 1 + 1e-9:
            break
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
