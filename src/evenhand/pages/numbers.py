"""Numbers as people read them."""

from __future__ import annotations

import math


def three_digits(value: float) -> str:
    """A number with three significant digits, as a person would write it."""
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < 1e-4:
        return f"{value:.2e}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percent(part: float) -> str:
    """A part of a whole."""
    return "under 1%" if 0 < part < 0.01 else f"{part:,.0%}"


def rounded(value: object, noise: float | None = None) -> str:
    """A number rounded to the digits that the noise leaves meaningful."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if noise and noise > 0:
        digits = max(0, 2 - math.floor(math.log10(noise)) - 1)
        return f"{value:,.{min(digits, 12)}f}"
    return f"{value:,.4g}"


def ends_in_words(low: float, high: float, noise: float | None = None) -> str:
    """An interval, open ends in words."""
    if math.isinf(high):
        return f"at least {rounded(low, noise)}" if math.isfinite(low) else "anything"
    return (
        f"{rounded(low, noise)} to {rounded(high, noise)}" if math.isfinite(low) else f"at most {rounded(high, noise)}"
    )
