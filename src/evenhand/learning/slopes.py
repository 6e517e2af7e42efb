"""The slope of a loss as a table of integers over a public grid of margins.

A library's exponential may differ in its last bit with the place of a number in an array, and then one more user would
change what the others contribute. Looked up by an exact integer margin, a row's slope depends on that row alone. And
the code of a loss, which may be anybody's, never sees a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.learning.losses import Loss
from evenhand.learning.private_values import Floats
from evenhand.learning.targets import Bounded, Targets

Shorts = NDArray[np.int16]

SLOPE = 2**14
"""Steps from 0 to the steepest slope."""

LABEL_STEPS = 2**15
"""Steps over the width of the label bounds: targets are from −2^14 to 2^14."""

MARGIN_BITS = 29
"""Margins are integers in units of 2^−29: 11 bits of the features, 18 of the coefficients."""

_CELLS = 2**15
_CLASS_BITS = 9  # classes: cells of 2^-9 from margin -32 to 32
_AROUND = 2**6  # cells on each side over which an average slope's rise is measured: an eighth of a margin
_NUMBER_BITS = 13  # numbers: cells of 2^-13 label widths, up to two widths on each side


@dataclass(frozen=True, eq=False)
class Slopes:
    """Slopes by margin and class, or by margin minus label in units of the label's width.

    Args:
        table: one row of cells for each class, or a single one; integers from −2^14 to 2^14.
        bits: a cell is 2^−bits wide.
        curvature: the largest derivative of a slope, in units of the steepest.
        width: the width of the label bounds; 1 for classes.
    """

    table: Shorts
    bits: int
    curvature: float
    width: float

    @classmethod
    def of(cls, loss: Loss, targets: Targets) -> Slopes:
        """Evaluate a loss on the grid: beyond its ends the slope is that of the last cell."""
        cells = np.arange(_CELLS) - _CELLS // 2 + 0.5
        if isinstance(targets, Bounded):
            offs = cells / 2.0**_NUMBER_BITS * targets.width
            rows, bits, width = [loss.slope(offs, np.zeros(_CELLS))], _NUMBER_BITS, targets.width
        else:
            margins = cells / 2.0**_CLASS_BITS
            rows = [loss.slope(margins, np.full(_CELLS, target)) for target in (-1.0, 1.0)]
            bits, width = _CLASS_BITS, 1.0
        steps = np.clip(np.rint(np.nan_to_num(np.array(rows)) / loss.steepest * SLOPE), -SLOPE, SLOPE)
        return cls(steps.astype(np.int16).ravel(), bits, loss.roundest * width / loss.steepest, width)

    @property
    def classifies(self) -> bool:
        """Whether targets are ±1."""
        return len(self.table) > _CELLS

    @property
    def largest_target(self) -> int:
        """In steps."""
        return 1 if self.classifies else LABEL_STEPS // 2

    def weighted(self, weights: tuple[float, float]) -> Slopes:
        """The same for a loss whose classes have weights; the heavier one keeps its steps, so no slope becomes steeper."""
        parts = np.array(weights)[:, None] / max(weights)
        table = np.rint(self.table.reshape(2, _CELLS) * parts).astype(np.int16)
        return replace(self, table=table.ravel())

    def by_class(self, margins: Floats) -> Floats:
        """Slopes at public margins, for the first and the second class, in units of the steepest."""
        centres = (np.arange(_CELLS) - _CELLS // 2 + 0.5) / 2.0**self.bits
        return np.array([np.interp(margins, centres, row) for row in self.table.reshape(2, _CELLS) / SLOPE])

    def best_constant(self, mean: float) -> tuple[float, float]:
        """The margin that a constant model would have, and how curved the average loss is there.

        ``mean`` is the part of positive labels, or the place of the mean label between its bounds.
        """
        if len(self.table) == _CELLS:
            return mean - 0.5, self.curvature
        average = (np.array([1 - mean, mean]) @ self.table.reshape(2, _CELLS)) / SLOPE
        place = int(np.clip(np.searchsorted(average, 0.0), _AROUND, _CELLS - 1 - _AROUND))
        rise = float(average[place + _AROUND] - average[place - _AROUND]) / (2 * _AROUND / 2.0**self.bits)
        return (place - _CELLS // 2) / 2.0**self.bits, rise

    def at(self, margins: Floats, targets: Shorts) -> Floats:
        """The integer slope of each row, as a double."""
        numbers = len(self.table) == _CELLS
        off = margins - targets * (2.0**MARGIN_BITS / LABEL_STEPS) if numbers else margins
        cells = np.clip(np.floor(off * 2.0 ** (self.bits - MARGIN_BITS)), -_CELLS // 2, _CELLS // 2 - 1)
        places = cells.astype(np.int32) + _CELLS // 2
        if not numbers:
            places += _CELLS * (targets > 0)
        return self.table[places].astype(np.float64)


def target_steps(values: Floats, targets: Targets) -> Shorts:
    """Targets as integers: ±1 for classes, steps of the label's width for numbers."""
    scaled = np.rint(values / targets.width * LABEL_STEPS) if isinstance(targets, Bounded) else values
    return np.clip(scaled, -LABEL_STEPS // 2, LABEL_STEPS // 2).astype(np.int16)
