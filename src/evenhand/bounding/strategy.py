"""The common shape of all strategies: per-user integers in, a bounded contribution with its declared norm out.

A strategy never decides by looking at a table. It turns the per-user summary into expressions whose last step
is a clamp to public integers: the clamp carries the guarantee, whatever arithmetic came before.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.guarantee import Relation, UsageError, parse_fraction
from evenhand.tables import Grid
from evenhand.tables.summaries import MOST_ROWS

LARGEST_LIMIT = 2**20
"""The largest bound in rows per user; with 2^29 grid steps a row, a contribution stays below 2^50."""

LARGEST_BOUND = 2**52
"""The largest bound in grid steps, below where sums of one user saturate."""


@dataclass(frozen=True)
class Summary:
    """What the engine knows about one user: how many rows, and their sum above the grid's bottom.

    Args:
        rows: Ibis integers, the user's number of rows.
        above: Ibis integers, Σ (grid integer − bottom) ≥ 0; None for statistics without a value column.
        grid: the public grid of the value column.
    """

    rows: Any
    above: Any = None
    grid: Grid | None = None

    @property
    def total(self) -> Any:
        """The user's sum of grid integers."""
        assert self.grid is not None
        if not self.grid.bottom:
            return self.above
        import ibis

        return self.above + ibis.least(self.rows, MOST_ROWS) * self.grid.bottom


@dataclass(frozen=True)
class Contribution:
    """Integers that one user adds to the totals, and how far one user can move those totals.

    Args:
        integers: Ibis integer expressions, one value a user each.
        l1: the declared L1 sensitivity of the vector of totals.
        l2_squared: the declared squared L2 sensitivity.
    """

    integers: tuple[Any, ...]
    l1: int
    l2_squared: int


@dataclass(frozen=True)
class WeightedMean:
    """A user's weighted mean as a pair of integers: ``value`` in [0, ``weight``], ``weight`` in [0, ``bound``].

    ``value/weight`` is the user's mean as a fraction of the way from the lower to the upper bound.
    """

    value: Any
    weight: Any
    bound: int


class Strategy(ABC):
    """How one user's contribution is bounded. Subclasses are frozen dataclasses with one public parameter."""

    title: str

    @property
    def rows_kept(self) -> int | None:
        """How many random rows of a user the pass over the table keeps; None for all."""
        return None

    @property
    @abstractmethod
    def parameter(self) -> Fraction | None:
        """The bound, None while it is left to be chosen."""

    @abstractmethod
    def describe(self) -> str:
        """What happens to a user's rows, in one sentence."""

    def supports(self, relation: Relation) -> bool:
        """Whether the strategy bounds anything under this relation."""
        return True

    def of_count(self, summary: Summary) -> Contribution:
        """The bounded number of rows."""
        raise self.refuse("a count")

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        """The bounded sum of a column."""
        raise self.refuse("a sum")

    def of_mean(self, summary: Summary, relation: Relation) -> WeightedMean:
        """The bounded weighted mean of a column."""
        raise self.refuse("a mean")

    def refuse(self, statistic: str) -> UsageError:
        """The error for a statistic that this strategy does not bound."""
        return UsageError(
            f"{self.title} does not apply to {statistic}; for sums and counts use eh.TotalCap, "
            "for means eh.SmoothWeights or eh.RowLimit, or leave bounding='auto'."
        )

    def __str__(self) -> str:
        return self.describe()


def parse_limit(given: Any, name: str, unit: str, largest: int = LARGEST_LIMIT) -> Fraction | None:
    """Read a positive public bound as an exact rational; None means that it is to be chosen."""
    if given is None:
        return None
    try:
        value = parse_fraction(given)
    except ValueError:
        raise UsageError(f"{name}({given!r}) needs a positive number of {unit}, such as {name}(10).") from None
    if not 0 < value <= largest:
        raise UsageError(
            f"{name}({given}) is out of range: expected more than 0 and at most {largest} {unit}. "
            "The bound must fit the integer range in which contributions are added exactly."
        )
    return value


def clamp(value: Any, low: Any, high: Any) -> Any:
    """Clamp Ibis integers to public integers (or to other non-null integers)."""
    import ibis

    return ibis.least(ibis.greatest(value, low), high)


def ceil(value: Fraction) -> int:
    """The declared bound in whole grid steps, never below what was promised."""
    return math.ceil(value)
