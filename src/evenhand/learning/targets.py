"""From labels to what a loss compares the margin with; the same rule for every label, whatever its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from evenhand.guarantee import UsageError
from evenhand.learning.inputs import Floats, label_vector


@dataclass(frozen=True)
class Classes:
    """Two public class labels: +1 for the second, −1 for anything else."""

    labels: tuple[Any, Any]

    @classmethod
    def parse(cls, given: Any) -> Classes:
        """Read ``classes=(negative, positive)``."""
        labels = tuple(given) if np.ndim(given) == 1 else ()
        if len(labels) != 2 or labels[0] == labels[1]:
            raise UsageError(
                f"classes={given!r}; expected the two labels (negative, positive), chosen without looking at the data."
            )
        return cls(labels)

    def targets(self, y: Any) -> Floats:
        """±1, and NaN where the label is missing."""
        column = column_or_1d(y, warn=True)
        missing = np.array([value is None or value != value for value in column.tolist()])
        signs = np.where(column == self.labels[1], 1.0, -1.0)
        return np.where(missing, np.nan, signs)

    @property
    def middle(self) -> float:
        """What a missing label counts as where rows can't be dropped: the first class."""
        return -1.0


@dataclass(frozen=True)
class Bounded:
    """Numbers, clamped to public bounds and centred."""

    bounds: tuple[float, float]

    def targets(self, y: Any) -> Floats:
        """Clamped labels about the middle, NaN where the label is missing."""
        column = column_or_1d(y, warn=True)
        return np.clip(label_vector(column, len(column)), *self.bounds) - self.offset

    @property
    def offset(self) -> float:
        """The middle of the bounds: added back to predictions."""
        return sum(self.bounds) / 2

    @property
    def middle(self) -> float:
        """What a missing label counts as where rows can't be dropped."""
        return 0.0


Targets = Classes | Bounded
