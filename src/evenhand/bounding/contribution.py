"""What one user adds, clamped to the limits that a strategy declares: the clamp carries the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evenhand.guarantee import Relation, UsageError
from evenhand.tables import Grid
from evenhand.tables.expressions import Integers
from evenhand.tables.summaries import MOST_ROWS

FARTHEST = 2**62
"""How far apart limits may be, in steps: sums of 64-bit integers saturate there."""


@dataclass(frozen=True)
class Summary:
    """What the engine knows about one user: how many rows, and their sum above the grid's bottom.

    Args:
        rows: the user's number of rows.
        above: Σ (grid integer − bottom) ≥ 0; None for statistics without a value column.
        grid: the public grid of the value column.
    """

    rows: Integers
    above: Integers = None
    grid: Grid | None = None

    @property
    def valued(self) -> Grid:
        """The grid, of a statistic with a value column."""
        assert self.grid is not None
        return self.grid

    @property
    def total(self) -> Integers:
        """The user's sum of grid integers."""
        if not self.valued.bottom:
            return self.above
        import ibis

        return self.above + ibis.least(self.rows, MOST_ROWS) * self.valued.bottom

    @property
    def steps_per_unit(self) -> Fraction:
        """How many integer steps make one unit of the statistic."""
        return self.grid.steps_per_unit if self.grid else Fraction(1)


@dataclass(frozen=True)
class Bounded:
    """What a strategy makes of one user, and the limits that it promises; nothing is clamped yet.

    Args:
        value: one integer per user.
        length: how far apart the limits are, in whole steps.
        low: the lower limit: an integer, or, where row counts are public, an expression of the user's ``rows`` alone.
        weight: of a mean, what divides the value once both are summed up. Under presence it lies between 0 and ``length``, and
            the value between 0 and it; where row counts are public it is an expression of the user's ``rows`` alone.
        rows: of a mean whose denominator gets noise of its own, the bounded number of rows.
        centre: of a mean, what is added in the end, in grid steps per row.
        expected: about how many rows there are; a noisy denominator is kept within half and twice this.
    """

    value: Integers
    length: int
    low: Integers | int = 0
    weight: Integers | None = None
    rows: Bounded | None = None
    centre: int = 0
    expected: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= whole(self.length) <= FARTHEST:
            raise UsageError(
                f"a strategy declared limits {self.length} steps apart; expected a distance of 0 or more, up to {FARTHEST}."
            )
        if isinstance(self.value, int):
            raise UsageError(
                f"a strategy declared the value {self.value}; expected an expression of the user's summary."
            )
        for given in (self.value, self.low, self.weight):
            require_own(given)


@dataclass(frozen=True)
class Contribution:
    """Integers that one user adds to the totals, and how far one user can move those totals.

    Args:
        integers: one value per user each.
        l1: the L1 sensitivity of the vector of totals.
        l2_squared: the squared L2 sensitivity.
    """

    integers: tuple[Integers, ...]
    l1: int
    l2_squared: int

    @classmethod
    def of(cls, bounded: Bounded, relation: Relation) -> Contribution:
        """Clamp to the declared limits.

        A user who comes or goes moves the total by at most the limit further from zero; one whose values change, by the
        distance of the limits, which then may depend on public row counts.
        """
        low, length = bounded.low, bounded.length
        if relation is Relation.PRESENCE:
            low = whole(low)
            moves = max(abs(low), abs(low + length))
        else:
            require_public(low)
            low = low if isinstance(low, int) else low.fill_null(0)
            moves = length
        return cls((clamp(bounded.value, low, low + length),), moves, moves**2)


@dataclass(frozen=True)
class MeanContribution:
    """What one user adds to a mean.

    Args:
        sums: under presence, how far the weighted values lie above the lower bound and how far below the upper; else one
            integer, the value.
        weight: the public weight that divides the value; None under presence.
        rows: a denominator that gets noise of its own, under presence; ``sums`` is then one integer.
        centre: added in the end, in grid steps per row.
        expected: as in `Bounded`.
    """

    sums: Contribution
    weight: Integers | None = None
    rows: Contribution | None = None
    centre: int = 0
    expected: float | None = None

    @classmethod
    def of(cls, bounded: Bounded, relation: Relation) -> MeanContribution:
        """Clamp to the declared limits.

        Under presence the two sums add up to the weight, which is at most ``length``: so the pair moves by no more than that.
        """
        if relation is not Relation.PRESENCE:
            if bounded.weight is None:
                raise UsageError(
                    "a strategy gave a mean no weight; expected an expression of the user's number of rows."
                )
            require_public(bounded.weight)
            return cls(Contribution.of(bounded, relation), bounded.weight, centre=bounded.centre)
        if bounded.rows is not None:
            rows = Contribution.of(bounded.rows, relation)
            return cls(Contribution.of(bounded, relation), None, rows, bounded.centre, bounded.expected)
        bound = bounded.length
        weight = clamp(bounded.weight, 0, bound)
        value = clamp(bounded.value, 0, weight)
        return cls(Contribution((value, weight - value), bound, bound**2))


def clamp(value: Integers, low: Integers | int, high: Integers | int) -> Integers:
    """Clamp to public integers, or to other integers that are never null."""
    import ibis

    return ibis.least(ibis.greatest(value, low), high)


def whole(limit: Integers | int) -> int:
    """A limit that has to be a plain integer."""
    if not isinstance(limit, int):
        raise UsageError(
            f"a strategy declared {limit!r} as a limit; expected a whole number of steps: under protects='presence' nothing "
            "that a user has may decide how far the user moves the result."
        )
    return limit


def require_own(given: Integers | int | None) -> None:
    """Refuse, before data is read, what is not a whole number made of the user's own summary.

    The clamp bounds what each user adds; it could not bound what one user does to the others.
    """
    if given is None or isinstance(given, int):
        return
    import ibis.expr.operations as ops

    kinds = (ops.Subquery, ops.Reduction, ops.Analytic, ops.WindowFunction, ops.Unnest, ops.Impure)
    if given.op().find(kinds, filter=ops.Value) or not given.type().is_integer():
        raise UsageError(
            f"a strategy declared a value, limit or weight of type {given.type()} that is no whole number made of the user's own "
            "summary; expected integers, and no aggregate, window, subquery or random number."
        )


def require_public(limit: Integers | int | None) -> None:
    """Refuse, before data is read, a limit that depends on more than a user's public number of rows."""
    if limit is None or isinstance(limit, int):
        return
    import ibis.expr.operations as ops

    others = {field.name for field in limit.op().find(ops.Field, filter=ops.Value)} - {"rows"}
    if others:
        raise UsageError(
            f"a strategy declared a limit or weight that depends on {sorted(others)}; expected an integer or an expression of "
            "the user's number of rows alone: everything else is private."
        )
