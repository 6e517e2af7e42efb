"""From labels to what a loss compares the margin with; the same rule for every label, whatever its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.data.private_values import Floats, Integers, doubles, equal, identity, require_number_labels
from evenhand.learning.fitting import public_number
from evenhand.tables import Grid, parse_bounds

MOST_CLASSES = 1000


@dataclass(frozen=True)
class Classes:
    """Public class labels. Of two, −1 stands for the first and +1 for the second; of more, their places. Any other label counts as missing."""

    labels: tuple[Any, ...]

    @classmethod
    def parse(cls, given: Sequence[Any], most: int = 2) -> Classes:
        """Read ``classes=(negative, positive)``, or more where a loss has a score for each class."""
        labels = tuple(given) if np.ndim(given) == 1 else ()
        if len(labels) < 2 or len({identity(label) for label in labels} - {None}) != len(labels):
            raise UsageError(
                f"classes={given!r}; expected two different labels (negative, positive), or more of them, chosen without looking at "
                "the data."
            )
        if len(labels) > most:
            raise UsageError(
                f"classes={given!r} are {len(labels)}; expected two labels (negative, positive), or WeightedERM(loss='logistic'), "
                f"which takes up to {MOST_CLASSES}."
            )
        return cls(labels)

    @property
    def codes(self) -> tuple[float, ...]:
        """What stands for each label."""
        return (-1.0, 1.0) if len(self.labels) == 2 else tuple(map(float, range(len(self.labels))))

    @property
    def middle(self) -> float:
        """What a missing label counts as where rows can't be dropped: the first class."""
        return self.codes[0]

    def label_of(self, code: float) -> object:
        """The label that a code stands for."""
        return self.labels[self.codes.index(code)]

    def targets(self, column: NDArray[Any]) -> Floats:
        """Codes, and NaN where the label is missing or no class."""
        found = np.full(column.shape, np.nan)
        for label, code in zip(self.labels, self.codes, strict=True):
            found[equal(column, label)] = code
        return found

    def weights(self, given: Mapping[Any, float] | None) -> Floats:
        """Read ``class_weight={label: weight}``: public numbers for all classes, divided by the largest of them."""
        if given is None:
            return np.ones(len(self.labels))
        if not isinstance(given, Mapping) or set(given) != set(self.labels):
            raise UsageError(
                f"class_weight={given!r}; expected one weight for each of the classes {self.labels!r}. How many labels there are of "
                "each is private, so 'balanced' would have to buy it: session.count(by=label, epsilon=...), then give the weights."
            )
        named = [(f"class_weight[{label!r}]", given[label]) for label in self.labels]
        found = np.array([public_number(name, weight, smallest=1e-6, largest=1e6) for name, weight in named])
        return np.asarray(found / found.max())

    def require_kind(self, kind: str, name: str) -> None:
        """Refuse labels of a declared type, a `declared_kind`, that can't hold the classes: every row would count as missing."""
        of_numbers = [isinstance(label, int | float | np.number | np.bool_) for label in self.labels]
        if (kind == "numbers" and not any(of_numbers)) or (kind == "text" and all(of_numbers)):
            raise UsageError(
                f"y holds {name}, but classes={self.labels!r}; expected labels of the type of the classes. Give the classes "
                "as they are in y, or convert y."
            )


@dataclass(frozen=True)
class BoundedLabels:
    """Numbers, clamped to public bounds and centred."""

    bounds: tuple[float, float]
    middle: ClassVar[float] = 0.0
    """What a missing label counts as where rows can't be dropped."""

    @classmethod
    def parse(cls, given: tuple[float, float] | None) -> BoundedLabels:
        """Read ``label_bounds=(low, high)``; squares of labels times numbers of rows must be doubles."""
        bounds = parse_bounds(given, "label_bounds")
        public_number("the width of label_bounds", bounds[1] - bounds[0], smallest=1e-50, largest=1e50)
        return cls(bounds)

    def require_kind(self, kind: str, name: str) -> None:
        """Refuse labels whose declared type holds no numbers: every row would count as missing."""
        require_number_labels(kind, name)

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


Targets = Classes | BoundedLabels


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
