"""What a statistic is: public parameters, what a user or a row adds, and how noisy sums are read.

There are two roads. Per user (`per_user.py`): without groups, one integer or a few per user, the strategy's own arithmetic, and
means around a located centre. Per row (`per_row.py`): with groups, and for everything else, row integers weighted by user. A
statistic says what it needs on the road per row; ``ungrouped`` takes the road per user where there is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from evenhand.bounding import weight_for_average
from evenhand.guarantee import Relation, UsageError
from evenhand.noise import IntegerNoise
from evenhand.profiles import NARROWEST, Support
from evenhand.release import Interval, OfSize, Rule
from evenhand.statistics.formula import Operators
from evenhand.statistics.keys import Keys
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.statistics.weighted_rows import DistinctRows, WeightedRows
from evenhand.tables import Bounds, Grid, OpenBounds, Table, parse_bounds, parse_open_bounds
from evenhand.tables.expressions import Integers
from evenhand.tables.numbers import number

if TYPE_CHECKING:
    from evenhand.statistics.draft import Draft
    from evenhand.statistics.own_road import Road
    from evenhand.statistics.part import Part
    from evenhand.statistics.request import Request


@dataclass(frozen=True)
class Estimate:
    """The released value of one group, its interval, and the standard deviation of its noise.

    ``rows`` says about how many rows, as weighted, it is a mean of, where that is released with it; ``correction``, what was added to
    the value for what bounding probably took away.
    """

    value: float
    interval: Interval
    noise: float
    rows: float | None = None
    correction: float = 0.0


class Statistic(Operators, ABC):
    """A question about a table. Subclasses are frozen dataclasses whose fields are the public parameters.

    A statistic from outside is such a class on the list (`evenhand.statistics.register`): ``session.ask(Mine("v"), epsilon=1)``,
    or by its name, ``session.mine("v", epsilon=1)``, alone, by group, in ``aggregate``, in a preview and on the command line;
    ``planned_as`` puts it into plans. Its integers are weighted, summed, measured against ``reach`` and given noise by the
    framework; ``hidden`` integers of one row of weight 1 must not move by more than ``reach`` in L1 norm, which the neighbour
    suite and the audit check.
    """

    name: ClassVar[str]
    """The method of a session, and the word on the command line."""

    planned_as: ClassVar[str | None] = None
    """Which forecast a plan uses: "count", "sum" or "mean"; None if it can't be planned."""

    road: ClassVar[type[Part] | None] = None
    """How it is bounded and measured by row, where that is not by weighted rows."""

    own_road: ClassVar[type[Road] | None] = None
    """How all of it is released, where it is no sum over rows."""

    distinct: ClassVar[bool] = False
    """Whether a user counts once in each group, however many rows there are."""

    selects_keys: ClassVar[bool] = True
    """Whether groups may be selected privately; otherwise they must be public."""

    has_groups: ClassVar[bool] = False
    """Whether it has group columns of itself (`groups_by`)."""

    additive: ClassVar[bool] = False
    """Whether the values of groups add up to that of all rows."""

    unit_power: ClassVar[int] = 0
    """The power of its column's unit that the value is in; 0 for a number without a unit."""

    shown_as: ClassVar[str | None] = None
    """The column of a released frame; the name if None."""

    @property
    def groups_by(self) -> tuple[str, ...]:
        """The group columns that it has of itself; then ``by=`` can't be given."""
        return ()

    @property
    def aggregates(self) -> bool:
        """Whether it may be released together with others: it has one row for each group."""
        summed = self.own_road is None and not self.groups_by
        return summed and (self.road is not None or type(self).placed is Statistic.placed)

    @property
    def shape(self) -> type[WeightedRows]:
        """What is weighted by user on the road per row: rows, or one row for each user and group."""
        return DistinctRows if self.distinct else WeightedRows

    @property
    @abstractmethod
    def words(self) -> str:
        """The statistic in words."""

    @property
    def query(self) -> dict[str, Any]:
        """Its public parameters, for the ledger."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"statistic": self.name, **{name: _plain(value) for name, value in given.items()}}

    def on(self, table: Table) -> tuple[Table, Statistic]:
        """The table with the column that it needs and that is made for it, and what is asked of that; most need none."""
        return table, self

    def check(self, table: Table, by_row: bool = False) -> None:
        """Refuse, before any debit, a table that lacks what it needs; ``by_row``, also what the road per row can't do."""

    def check_integers(self, relation: Relation) -> None:
        """Build, before any debit, the expressions that will be summed, and refuse names that don't fit together."""
        import ibis

        row = ibis.table(dict.fromkeys(("weight", *(name for name, _ in self.columns)), "int64"))
        named = self.integers(row.weight, [row[name] for name, _ in self.columns])
        hidden, public = self.hidden(relation), self.public(relation)
        if {*hidden, *public} - {*named} or {*hidden} & {*public} or (public and not relation.counts_are_public):
            raise UsageError(
                f"{type(self).__name__} has integers {sorted(named)}, hides {list(hidden)} and takes {list(public)} for public under "
                f"protects={relation.value!r}; expected names of its integers, each hidden or public, and none public under presence."
            )

    @property
    def wants_bounds(self) -> tuple[WantedBounds, ...]:
        """The bounds that were left out and have to be found before anything else (`found_bounds.py`)."""
        return ()

    def with_bounds(self, found: Sequence[OpenBounds]) -> Statistic:
        """The same statistic with bounds for all that it wants; ends that are None stay wanted."""
        return self

    def without_bounds(self, request: Request) -> Draft | None:
        """The road without groups that needs none of the bounds that were left out, if there is one."""
        return None

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        """How the audit asks for it, on a table whose column has values in these bounds."""
        return cls()

    @classmethod
    def planned_bounds(cls, bounds: Bounds) -> Bounds:
        """The bounds of what a plan forecasts, given those of a value."""
        return bounds

    def ungrouped(self, request: Request) -> Draft | None:
        """The road per user, if there is one."""
        return None

    def placed(self, keys: Keys, table: Table) -> Keys:
        """The groups, split further by where a value lies, for histograms and quantiles."""
        return keys

    def road_for(self, request: Request) -> type[Part] | None:
        """How it is bounded and measured by group; None for weighted rows."""
        return self.road

    @property
    def components(self) -> dict[str, tuple[Statistic, Fraction]]:
        """Of a statistic that is made of others: those by name, with their parts of ε, and `combine`; none for most."""
        return {}

    def combine(self, estimates: Sequence[Estimate]) -> Estimate:
        """The estimate for one group from those of the components."""
        (estimate,) = estimates
        return estimate

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        """The value columns it reads, with their grids."""
        return ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it needs besides users and groups."""
        return tuple(name for name, _ in self.columns)

    @property
    def sum_grid(self) -> Grid | None:
        """The grid of a sum, for bounds that are given in the unit of its values."""
        return None

    @abstractmethod
    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        """What one row adds: integers by name, weighted, given the row's weight and values on their grids."""

    @abstractmethod
    def hidden(self, relation: Relation) -> tuple[str, ...]:
        """Which of the integers need noise; none if the statistic is public under this relation."""

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

    @property
    def rule(self) -> Rule:
        """When a released value is precise enough to be used."""
        return OfSize()

    @property
    def is_average(self) -> bool:
        """Whether weights matter rather than totals: then bounding biases only if heavy users differ from the others."""
        return False

    def best_weight(self, support: Support, epsilon: float) -> Fraction:
        """How many rows one user should count for at most, given how many rows users have: for averages."""
        return weight_for_average(support, epsilon)


@dataclass(frozen=True)
class OfColumn(Statistic):
    """A statistic of a numeric column with bounds.

    Args:
        column: its name.
        bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped. Found privately where left out.
    """

    ease: ClassVar[float] = 1.0
    """How many times cheaper wide bounds are than for a mean."""
    noise_power: ClassVar[int] = 1
    """With which power of the width of the bounds its noise grows."""
    narrowest: ClassVar[int] = NARROWEST
    """Bounds that are found are at least this part of their distance from zero apart."""

    column: str
    bounds: OpenBounds | Sequence[float | None] | None = None

    def __post_init__(self) -> None:
        parse_open_bounds(self.bounds)  # refuses what are none

    @property
    def wants_bounds(self) -> tuple[WantedBounds, ...]:
        given = parse_open_bounds(self.bounds)
        want = WantedBounds(self.column, given, self.ease, self.noise_power, narrowest=self.narrowest)
        return (want,) if None in given else ()

    def with_bounds(self, found: Sequence[OpenBounds]) -> Self:
        return replace(self, bounds=found[0]) if found else self

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls(column, bounds)

    @property
    def range(self) -> Bounds:
        """The bounds as numbers."""
        low, high = parse_open_bounds(self.bounds)
        return parse_bounds(None if low is None or high is None else (low, high))

    @property
    def words(self) -> str:
        return f"{self.name} of {self.column}"

    @property
    def query(self) -> dict[str, Any]:
        return {**super().query, "bounds": list(parse_open_bounds(self.bounds))}

    def check(self, table: Table, by_row: bool = False) -> None:
        number(table, self.column)

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The public grid that row values are rounded to."""

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        return ((self.column, self.grid),)


def _plain(value: Any) -> Any:  # noqa: ANN401 - parameters of any kind, on their way to JSON
    if isinstance(value, Fraction):
        return float(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
