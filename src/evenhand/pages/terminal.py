"""A trade-off curve for a terminal: blocks for the error, a mark below the best bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand.pages.numbers import three_digits

if TYPE_CHECKING:
    from evenhand.planning.forecasts import Curve

_BLOCKS = " ▁▂▃▄▅▆▇█"


def small_curve(curve: Curve, width: int = 60, height: int = 4) -> str:
    """The total error over the range of bounds, both on logarithmic scales, as a few lines of text."""
    best = int(curve.error.argmin())
    low, high = np.log(curve.bounds[0]), np.log(curve.bounds[-1])
    if high <= low:
        return f"the only bound is {three_digits(float(curve.bounds[0]))}: error {three_digits(float(curve.error[0]))}"
    at = np.linspace(low, high, width)
    error = np.interp(at, np.log(curve.bounds), np.log(curve.error))
    level = (error - error.min()) / max(float(np.ptp(error)), 1e-12) * (8 * height - 1) + 1
    lines = [
        "".join(_BLOCKS[int(np.clip(value - 8 * row, 0, 8))] for value in level) for row in range(height - 1, -1, -1)
    ]
    place = round((np.log(curve.bounds[best]) - low) / (high - low) * (width - 1))
    left, right = three_digits(float(curve.bounds[0])), three_digits(float(curve.bounds[-1]))
    ruler = f"{left}{right.rjust(width - len(left))}"
    return "\n".join(["error", *lines, " " * place + "▲ best bound " + three_digits(float(curve.bounds[best])), ruler])
