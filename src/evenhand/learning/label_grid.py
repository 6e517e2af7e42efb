"""Labels as integers, for weights that are integers."""

from __future__ import annotations

import numpy as np

from evenhand.learning.inputs import Integers
from evenhand.learning.private_values import Floats
from evenhand.tables import Grid


def label_grid(bounds: tuple[float, float], bits: int) -> Grid:
    """A grid of 2^bits steps about the middle of the label bounds."""
    return Grid.about(bounds, bounds[0] + (bounds[1] - bounds[0]) / 2, bits - 1)


def label_steps(labels: Floats, grid: Grid) -> Integers:
    """Labels as integers of a grid about the middle: clamped, NaN in the middle.

    The last clamp carries the guarantee: whatever the doubles did, a label is one of ``bottom .. top``.
    """
    filled = np.where(np.isnan(labels), grid.origin, np.clip(labels, grid.low, grid.high))
    steps = np.floor(filled * grid.factor + grid.offset).astype(np.int64)
    return np.clip(steps, 0, grid.width) + grid.bottom
