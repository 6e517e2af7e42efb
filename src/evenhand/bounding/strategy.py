"""The common shape of all strategies: what a user adds goes in, a bounded contribution with its declared size comes out.

A strategy never decides by looking at a table, and it never bounds anything by itself: it says what it makes of a user and
between which limits that lies, and `Contribution` clamps to these limits. The clamp carries the guarantee, so a strategy
that miscalculates costs accuracy, never privacy. Over groups it names a norm and an amount, and the framework weights the
rows (`statistics/weighted_rows.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from evenhand.bounding.contribution import Bounded, Contribution, MeanContribution, Summary
from evenhand.bounding.forecasts import Evaluate, Question
from evenhand.guarantee import Amount, EvenhandError, Relation, UsageError, parse_fraction
from evenhand.pages.numbers import written
from evenhand.profiles import Array, Histogram, Support
from evenhand.tables import Grid

if TYPE_CHECKING:
    from evenhand.bounding.choice import Choice

LARGEST_LIMIT = 2**20
"""The largest bound in rows where users are summed up one by one: with 2^29 grid steps per row, below 2^50."""

LARGEST_AMOUNT = 2**36
"""The largest bound on a norm over groups: with weights of 16 bits, ``⌊N/norm⌋`` in doubles is the exact quotient."""

LARGEST_BOUND = 2**52
"""The largest bound in grid steps, below where sums of one user saturate."""


class Unset(Enum):
    """A bound that is left to be chosen."""

    UNSET = "to be chosen"


UNSET = Unset.UNSET

Limit: TypeAlias = Amount | Fraction | Unset
"""What a strategy takes for its bound."""


class Norm(Enum):
    """What is bounded for each user, over all groups together."""

    ROWS = "rows"
    VALUES = "absolute values"
    SQUARED_ROWS = "root of squared rows per group"
    SQUARED_VALUES = "root of squared absolute values per group"

    @property
    def gaussian(self) -> bool:
        """Whether it is an L2 norm, which goes with Gaussian noise; an L1 norm goes with Laplace noise."""
        return self in (Norm.SQUARED_ROWS, Norm.SQUARED_VALUES)

    @property
    def of_values(self) -> bool:
        """Whether it is in grid steps of a value instead of rows."""
        return self in (Norm.VALUES, Norm.SQUARED_VALUES)


class Strategy(ABC):
    """How one user's contribution is bounded. Subclasses are frozen dataclasses; their first field is the bound.

    A strategy from outside is such a class, given as ``bounding=Mine(3)``; `evenhand.bounding.register` puts it on the list
    that the command line and plans read. It needs ``describe``, and those of ``bound_count``, ``bound_sum``, ``bound_mean``
    (releases without groups), ``over_groups`` (with groups) and ``forecast`` (plans) that apply. Whatever they return, the
    framework clamps to the declared limits.
    """

    title: ClassVar[str]
    """The name: in Python, in releases and in plans; on the command line with or without hyphens."""

    effect: ClassVar[str] = "what a user adds is bounded by {bound}"
    """What a bound does to a user, in one clause of a plan; ``{half}`` is half of it."""

    unit: ClassVar[str] = "rows per user"
    largest: ClassVar[int] = 2**600
    """Beyond what a chosen bound can be in the unit of any values: a refusal then would come after the debit."""

    chosen_for: ClassVar[frozenset[str]] = frozenset()
    """For what its bound can be chosen: "total", "mean", "groups" (there by the framework)."""

    counts_rows: ClassVar[bool] = True
    """Whether the bound is a number of rows, whatever the values are."""

    draws_rows: ClassVar[bool] = False
    """Whether it draws rows at random, so that it needs them again once its bound is chosen."""

    bounds_values: ClassVar[bool] = False
    """Whether, over groups, it bounds a sum that is all that leaves by its values instead of its rows."""

    in_ball: ClassVar[bool] = False
    """Whether it bounds rows of several columns in an L1 ball."""

    broken_on_purpose: ClassVar[bool] = False
    """Only for twins that tests and audits have to catch: lets a class override the methods that clamp."""

    def __init_subclass__(cls) -> None:
        cls.title = cls.__name__
        overridden = [name for name in ("of_count", "of_sum", "of_mean") if name in cls.__dict__]
        if overridden and not cls.broken_on_purpose:
            raise UsageError(
                f"{cls.title} overrides {', '.join(overridden)}, which apply the clamp; implement "
                f"{', '.join(name.replace('of_', 'bound_') for name in overridden)} instead and declare the limits there."
            )

    def __post_init__(self) -> None:
        if self.is_set:
            _ = self.bound  # refuses what is none

    @property
    def given(self) -> Any:  # noqa: ANN401 - whatever the analyst wrote; `bound` reads it
        """The bound as it was given."""
        return getattr(self, fields(self)[0].name)  # type: ignore[arg-type]

    @property
    def is_set(self) -> bool:
        """Whether there is a bound; otherwise it is left to be chosen."""
        return self.given is not UNSET

    @property
    def bound(self) -> Fraction:
        """The bound, exactly."""
        if not self.is_set:
            raise EvenhandError(f"{self.title} has no bound yet; this is a defect in Evenhand, please report it.")
        try:
            value = parse_fraction(self.given)
        except ValueError:
            raise UsageError(
                f"{self.title}({self.given!r}) needs a positive number of {self.unit}, such as {self.title}(10)."
            ) from None
        if not 0 < value <= self.largest:
            most = self.largest if self.largest < 2**53 else f"{float(self.largest):.3g}"
            raise UsageError(
                f"{self.title}({self.given}) is out of range: expected more than 0 and at most {most} {self.unit}. "
                "The bound must fit the integer range in which contributions are added exactly."
            )
        return value

    def shown(self, otherwise: str) -> str:
        """The bound in words; ``otherwise`` while it is left to be chosen."""
        return written(float(self.bound)) if self.is_set else otherwise

    def steps(self, steps_per_unit: Fraction | int = 1, largest: int = LARGEST_BOUND) -> int:
        """The bound in whole grid steps, rounded up; refused, before data is read, if it leaves the integer range."""
        bound = self.bound * steps_per_unit
        steps = -(-bound.numerator // bound.denominator)
        if steps > largest:
            raise UsageError(
                f"{self.title} is too large for these bounds: {float(bound):.3g} grid steps, and the exact integer range ends "
                f"at {largest:.3g}. Lower it, or widen the bounds of a single value."
            )
        return steps

    @property
    def rows_kept(self) -> int | None:
        """How many random rows of a user the pass over the table keeps; None for all."""
        return None

    @property
    def caps_rows_at(self) -> float | None:
        """The most that one row can add to a sum, if the bound says so."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """What happens to a user's rows, in one sentence."""

    def supports(self, relation: Relation) -> bool:
        """Whether the strategy bounds anything under this relation."""
        return True

    # Without groups: a few integers per user.

    def bound_count(self, summary: Summary) -> Bounded:
        """The bounded number of rows."""
        raise self.refuse("a count")

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        """The bounded sum of a column."""
        raise self.refuse("a sum")

    def bound_mean(self, summary: Summary, relation: Relation) -> Bounded:
        """The bounded mean of a column: a sum, and the weight that divides it once both are summed up over users."""
        raise self.refuse("a mean")

    def of_count(self, summary: Summary) -> Contribution:
        """What a user adds to a count, clamped."""
        return Contribution.of(self.bound_count(summary), Relation.PRESENCE)

    def of_sum(self, summary: Summary, relation: Relation) -> Contribution:
        """What a user adds to a sum, clamped."""
        return Contribution.of(self.bound_sum(summary, relation), relation)

    def of_mean(self, summary: Summary, relation: Relation) -> MeanContribution:
        """What a user adds to a mean, clamped."""
        return MeanContribution.of(self.bound_mean(summary, relation), relation)

    # Over groups: all rows of a user get the same weight, such that the user's norm is at most an amount.

    @property
    def gaussian(self) -> bool:
        """Whether it bounds an L2 norm, which goes with Gaussian noise."""
        return False

    def over_groups(self, norm: Norm, grid: Grid | None) -> tuple[Fraction, str]:
        """The bound on a user's norm, in rows or in grid steps for a norm of values, and what it does, in words.

        ``grid`` is that of a sum; None for other statistics.
        """
        return self.bound, self.describe()

    # Choosing the bound.

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        """What each bound costs, and the bounds worth trying; None if the strategy does not answer the question."""
        return None

    def best_for_total(self, histogram: Histogram, epsilon: float, summary: Summary, by_rows: bool) -> Choice:
        """The best bound for a count or sum, given users by total, or by number of rows (``by_rows``)."""
        raise self.refuse("a count" if summary.grid is None else "a sum")

    def most_moved(self, support: Support, length: float) -> float | None:
        """How far the bound can have moved a mean, whatever the values are; None if nothing can be said.

        Args:
            support: users by number of rows, as a public fact.
            length: of the range of one value.
        """
        return None

    def require(self, support: Support, epsilon: Decimal) -> None:  # noqa: B027 (any number of users will do for most)
        """Refuse to choose a bound for a mean from too few users, as public numbers of rows say."""

    def best_for_mean(self, support: Support, grid: Grid, epsilon: float, relation: Relation) -> Strategy:
        """The strategy with the best bound for a mean, given users by number of rows."""
        raise self.refuse("a mean")

    def refuse(self, statistic: str) -> UsageError:
        """The error for a statistic that this strategy does not bound."""
        return UsageError(
            f"{self.title} does not apply to {statistic}; for sums and counts use eh.TotalCap, "
            "for means eh.SmoothWeights or eh.RowLimit, or leave bounding='auto'."
        )

    def __str__(self) -> str:
        return self.describe()
