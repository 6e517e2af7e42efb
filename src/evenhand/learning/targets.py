"""From labels to what a loss compares the margin with; the same rule for every label, whatever its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.base import public_number
from evenhand.learning.private_values import Floats, doubles, equal
from evenhand.tables import parse_bounds


@dataclass(frozen=True)
class Classes:
    """Two public class labels: +1 for the second, −1 for the first. Any other label counts as missing."""

    labels: tuple[Any, Any]
    middle: ClassVar[float] = -1.0
    """What a missing label counts as where rows can't be dropped: the first class."""

    @classmethod
    def parse(cls, given: Sequence[Any]) -> Classes:
        """Read ``classes=(negative, positive)``."""
        labels = tuple(given) if np.ndim(given) == 1 else ()
        if len(labels) != 2 or labels[0] == labels[1]:
            raise UsageError(
                f"classes={given!r}; expected the two labels (negative, positive), chosen without looking at the data."
            )
        return cls(labels)

    def targets(self, column: NDArray[Any]) -> Floats:
        """±1, and NaN where the label is missing or neither class."""
        self.require_kind(column.dtype.kind in "biufc", column.dtype.kind in "US", str(column.dtype))
        first, second = (equal(column, label) for label in self.labels)
        return np.where(second, 1.0, np.where(first, -1.0, np.nan))

    def weights(self, given: Mapping[Any, float] | str | None) -> tuple[float, float]:
        """Read ``class_weight={label: weight}``: public numbers for both classes."""
        if given is None:
            return 1.0, 1.0
        if not isinstance(given, Mapping) or set(given) != set(self.labels):
            raise UsageError(
                f"class_weight={given!r}; expected one weight for each of the classes {self.labels!r}. How many labels there are of "
                "each is private, so 'balanced' would have to buy it: session.count(by=label, epsilon=...), then give the weights."
            )
        first, second = (
            public_number(f"class_weight[{label!r}]", given[label], smallest=1e-3, largest=1e3) for label in self.labels
        )
        return first, second

    def require_kind(self, numbers: bool, text: bool, declared: str) -> None:
        """Refuse labels of a declared type that can't hold the classes: every row would count as missing."""
        of_numbers = [isinstance(label, int | float | np.number | np.bool_) for label in self.labels]
        if (numbers and not any(of_numbers)) or (text and all(of_numbers)):
            raise UsageError(
                f"y holds {declared}, but classes={self.labels!r}; expected labels of the type of the classes. Give the classes "
                "as they are in y, or convert y."
            )


@dataclass(frozen=True)
class Bounded:
    """Numbers, clamped to public bounds and centred."""

    bounds: tuple[float, float]
    middle: ClassVar[float] = 0.0
    """What a missing label counts as where rows can't be dropped."""

    @classmethod
    def parse(cls, given: tuple[float, float] | None) -> Bounded:
        """Read ``label_bounds=(low, high)``; squares of labels times numbers of rows must be doubles."""
        bounds = parse_bounds(given, "label_bounds")
        public_number("the width of label_bounds", bounds[1] - bounds[0], smallest=1e-50, largest=1e50)
        return cls(bounds)

    def targets(self, column: NDArray[Any]) -> Floats:
        """Clamped labels about the middle, NaN where the label is missing."""
        half = self.width / 2
        return np.clip(np.clip(doubles(column, "y"), *self.bounds) - self.offset, -half, half)

    @property
    def width(self) -> float:
        """``high − low``."""
        return self.bounds[1] - self.bounds[0]

    @property
    def offset(self) -> float:
        """The middle of the bounds: added back to predictions."""
        return sum(self.bounds) / 2


Targets = Classes | Bounded
