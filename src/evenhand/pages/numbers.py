"""Numbers as people read them."""

from __future__ import annotations

import math


def written(value: float, digits: int = 4) -> str:
    """A number with so many significant digits as people write it: 17,820 and 0.0032, not 1.782e+04; whole numbers keep all of theirs."""
    if not math.isfinite(value) or not value:
        return f"{value:g}"
    if not 1e-5 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    shown = f"{value:,.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def three_digits(value: float) -> str:
    """A number with three significant digits."""
    return written(value, 3)


def percent(part: float) -> str:
    """A part of a whole."""
    return "under 1%" if 0 < part < 0.01 else f"{part:,.0%}"


def rounded(value: object, noise: float | None = None) -> str:
    """A number rounded to the digits that the noise leaves meaningful."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if noise and 0 < noise < math.inf:
        digits = max(0, 2 - math.floor(math.log10(noise)) - 1)
        return f"{value:,.{min(digits, 12)}f}"
    return written(value)


def meaningful(value: object, low: object, high: object) -> tuple[object, object, object]:
    """A number and the ends of its interval without the digits that say nothing: a hundredth of the interval's width is kept."""
    ends = (value, low, high)
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in ends) or low == high:
        return ends
    decimals = min(max(2 - math.floor(math.log10(high - low)), 0), 300)  # type: ignore[operator]
    shown = (round(float(one), decimals) for one in ends)  # type: ignore[arg-type]
    found = tuple(int(one) if not decimals and abs(one) < 2**53 else one for one in shown)
    return found[0], found[1], found[2]


def ends_in_words(low: float, high: float, noise: float | None = None) -> str:
    """An interval, open ends in words."""
    if math.isinf(high):
        return f"at least {rounded(low, noise)}" if math.isfinite(low) else "anything"
    return (
        f"{rounded(low, noise)} to {rounded(high, noise)}" if math.isfinite(low) else f"at most {rounded(high, noise)}"
    )


def in_words(number: int) -> str:
    """Two significant digits, in words from a million on."""
    if number < 1000:
        return str(number)
    digits = math.floor(math.log10(number)) - 1
    rounded = round(number / 10**digits) * 10**digits
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if rounded >= size:
            return f"{rounded / size:g} {word}"
    return f"{rounded:,}"
