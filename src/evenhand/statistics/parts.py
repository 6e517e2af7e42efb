"""The statistics of a grouped release: what a row adds, and how the noisy sums of a group are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.guarantee import Relation
from evenhand.noise import IntegerNoise
from evenhand.planning import Support, smooth_bound
from evenhand.planning.weights import HETEROGENEITY, ROW_SD
from evenhand.release import Additive, Exact, Interval, Ratio
from evenhand.statistics.weighted_rows import FULL, VALUE_BITS
from evenhand.tables import Bounds, Grid


@dataclass(frozen=True)
class Estimate:
    """The released value of one group, its interval, and the standard deviation of its noise."""

    value: float
    interval: Interval
    noise: float


@dataclass(frozen=True)
class Part(ABC):
    """One statistic among those that share a pass.

    Args:
        name: the column it gets in the result.
    """

    name: str

    @property
    def is_average(self) -> bool:
        """Whether weights matter rather than totals: then bounding biases only if heavy users differ from the others."""
        return False

    def best_weight(self, support: Support, epsilon: float) -> Fraction:
        """How many rows one user should count for at most, given how many rows users have: for averages."""
        bound = smooth_bound(support, ROW_SD**2, 1.0, epsilon, HETEROGENEITY)
        return Fraction(bound).limit_denominator(1000)

    @property
    @abstractmethod
    def words(self) -> str:
        """The statistic in words."""

    @property
    @abstractmethod
    def query(self) -> dict[str, Any]:
        """Its public parameters."""

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        """The value columns it reads, with their grids."""
        return ()

    @abstractmethod
    def hidden(self, relation: Relation) -> tuple[str, ...]:
        """Which of the integers need noise; none if the statistic is public under this relation."""

    @abstractmethod
    def integers(self, weight: Any, values: Sequence[Any]) -> dict[str, Any]:
        """What one row adds: integers by name, weighed, given the row's weight and values on their grids."""

    def public(self, relation: Relation) -> tuple[str, ...]:
        """Which of the integers are public under this relation and needed to read the result."""
        return ()

    @abstractmethod
    def reach(self, relation: Relation) -> int:
        """The L1 norm by which one row of weight 1 can move the hidden integers."""

    @abstractmethod
    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        """The estimate for one group, from the integers that may be seen: noisy ones, and those that are public.

        ``noise`` is None when nothing had to be hidden.
        """


@dataclass(frozen=True)
class CountPart(Part):
    """The number of rows."""

    @property
    def words(self) -> str:
        return "number of rows"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": "count"}

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return () if relation.counts_are_public else ("rows",)

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ("exact",) if relation.counts_are_public else ()

    def integers(self, weight: Any, values: Sequence[Any]) -> dict[str, Any]:
        return {"rows": weight, "exact": weight * 0 + 1}

    def reach(self, relation: Relation) -> int:
        return 1

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        if noise is None:
            return Estimate(sums["exact"], Exact(sums["exact"]), 0.0)
        return weighed_count(sums["rows"], noise)


def weighed_count(rows: int, noise: IntegerNoise) -> Estimate:
    """A number of rows, or users, from their noisy total weight; whole, as counts are."""
    return Estimate(round(rows / FULL), Additive(rows / FULL, noise, 1 / FULL), noise.variance**0.5 / FULL)


@dataclass(frozen=True)
class SumPart(Part):
    """The sum of a column. When counts are public it is the number of rows times the weighted mean: nothing is cut off."""

    column: str
    bounds: Bounds

    @property
    def words(self) -> str:
        return f"sum of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": "sum", "column": self.column, "bounds": list(self.bounds)}

    @property
    def grid(self) -> Grid:
        """Seen from zero, so that integers are proportional to values."""
        return Grid.about(self.bounds, origin=0.0, bits=VALUE_BITS)

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        return ((self.column, self.grid),)

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("sum",)

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ("weight", "exact") if relation.counts_are_public else ()

    def integers(self, weight: Any, values: Sequence[Any]) -> dict[str, Any]:
        return {"sum": values[0] * weight, "weight": weight, "exact": weight * 0 + 1}

    def reach(self, relation: Relation) -> int:
        return self.grid.width if relation.counts_are_public else self.grid.reach

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        weight = sums.get("weight")
        unit = self.grid.units(1) * (sums["exact"] / weight if weight else 1 / FULL)
        value = sums["sum"] * unit
        return Estimate(value, Additive(value, noise, unit), noise.variance**0.5 * unit)


@dataclass(frozen=True)
class MeanPart(Part):
    """The mean of a column: two noisy sums when counts are secret, one over a public weight otherwise."""

    column: str
    bounds: Bounds

    @property
    def is_average(self) -> bool:
        return True

    @property
    def words(self) -> str:
        return f"mean of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": "mean", "column": self.column, "bounds": list(self.bounds)}

    @property
    def grid(self) -> Grid:
        """Seen from the lower bound, so that integers are nonnegative."""
        return Grid.about(self.bounds, origin=self.bounds[0], bits=VALUE_BITS)

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        return ((self.column, self.grid),)

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("above",) if relation.counts_are_public else ("above", "below")

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ("weight",) if relation.counts_are_public else ()

    def integers(self, weight: Any, values: Sequence[Any]) -> dict[str, Any]:
        return {"above": values[0] * weight, "below": (self.grid.top - values[0]) * weight, "weight": weight}

    def reach(self, relation: Relation) -> int:
        return self.grid.width

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        low, width = self.bounds[0], self.bounds[1] - self.bounds[0]
        if "below" in sums:
            total = sums["above"] + sums["below"]
            ratio = Ratio(sums["above"], total, (noise, noise), (0.0, 1.0), low, width, paired=True)
            return Estimate(ratio.value, ratio, ratio.spread)
        if not sums["weight"]:  # publicly no rows: the middle, over the whole range
            return Estimate(low + width / 2, Additive(low + width / 2, noise, width, self.bounds), width / 2)
        unit = self.grid.units(1) / sums["weight"]
        value = low + sums["above"] * unit
        interval = Additive(value, noise, unit, self.bounds)
        return Estimate(min(max(value, low), low + width), interval, noise.variance**0.5 * unit)
