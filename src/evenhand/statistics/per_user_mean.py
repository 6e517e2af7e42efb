"""The average over users of their own mean, or of their own total: each user counts once, however many rows they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from evenhand.bounding import PROFILE_SHARE, Choice, SmoothWeights, Strategy, TotalCap, believed_cap
from evenhand.bounding.contribution import clamp
from evenhand.bounding.total_cap import SMOOTH
from evenhand.guarantee import UsageError, split
from evenhand.pages.numbers import three_digits
from evenhand.population.priors import TRIMMED
from evenhand.profiles import Cut, Histogram, total_buckets, users_by_bucket
from evenhand.release import Believed, Bounding, Error, Receipt, Unknown
from evenhand.statistics.believed_means import CAPPED, NOBODY_CUT, UNKNOWN_BIAS, with_amounts
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.mean import Mean, UserMeans
from evenhand.statistics.request import Request
from evenhand.statistics.user_values import UserMaxRows, UserMeanRows, UserTotalRows, UserValue, one_row_per_user
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.statistics.weighted_rows import VALUE_BITS, WeightedRows
from evenhand.tables import Grid, Table
from evenhand.tables.columns import schema_bounds, zero_or_one
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.grid import bits_for

if TYPE_CHECKING:
    from evenhand.statistics.part import Part

_FEWEST_STEPS = 2**8
"""Between the bounds of a total."""


@dataclass(frozen=True)
class PerUserMean(Mean):
    """The average over users of their own mean, or of their own total: each user counts once, by group once in each of their groups.

    ``bounds`` are those of one value with ``of="mean"``, of one user's total (by group: in one group) with ``of="total"``.
    Without groups part of ε buys a histogram of users by value, and values are capped where that forecasts the smallest error: bounds that are far too wide
    cost little; ``bounding=eh.TotalCap(500)`` gives the cap. By group the bounds are the cap: state close ones.

    Interval: as of a mean.

    Edge cases: a user without a number is left out under presence; under values they count, a missing value as the middle of the bounds in a mean and as nothing in
    a total. One row adds at most a thousand times the larger bound to a total.

    Proof: per-user-mean.

    Args:
        column: a numeric column.
        bounds: (low, high) for one value with ``of="mean"``, for the total of one user with ``of="total"``.
        of: ``"mean"`` or ``"total"`` of a user's rows.
    """

    name = "per_user_mean"
    planned_as = None
    distinct = True

    of: Literal["mean", "total", "max"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of not in ("mean", "total") and type(self) is PerUserMean:
            raise UsageError(
                f"per_user_mean(of={self.of!r}): expected of='mean', the average of users' own means, or of='total', "
                "the average of their own totals."
            )

    @property
    def wants_bounds(self) -> tuple[WantedBounds, ...]:
        wants = super().wants_bounds
        return tuple(replace(want, total=True, narrowest=16) for want in wants) if self.of == "total" else wants

    def check(self, table: Table, by_row: bool = False) -> None:
        super().check(table)
        if self.grid.width < _FEWEST_STEPS:
            raise UsageError(
                f"bounds={self.range} are too close together for their distance from zero: totals would be rounded more coarsely "
                "than they differ. Give wider bounds, or ask for of='mean'."
            )

    def road_for(self, request: Request) -> type[Part] | None:
        return None

    @property
    def words(self) -> str:
        return f"average over users of their {self.of} {self.column}"

    @property
    def shape(self) -> type[WeightedRows]:
        return {"mean": UserMeanRows, "total": UserTotalRows, "max": UserMaxRows}[self.of]

    def ungrouped(self, request: Request) -> Draft | None:
        named = request.named
        caps = named is None or ("total" in named.chosen_for and not named.counts_rows)
        if not caps or request.auto.profile is not None:
            raise UsageError(
                "per_user_mean() counts each user once, so rows need no bound; leave bounding out, or cap the value of a user "
                "with eh.TotalCap(500)."
            )
        return OnePerUser(self, request, self._value(bits_for(request.epsilon))).draft()

    @property
    def grid(self) -> Grid:
        return self._value(VALUE_BITS).grid

    @property
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        return self._value(VALUE_BITS).columns

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return super().integers(weight, [self._value(VALUE_BITS).above(values[0])])

    def _value(self, bits: int) -> UserValue:
        return UserValue(self.column, self.range, self.of, bits)


@dataclass(frozen=True)
class OnePerUser:
    """The mean of one value per user, each capped: given, or chosen from a noisy histogram of users by value.

    Locating users around a centre first, as a mean of rows does, was tried and is not used: the values of single users are often
    skewed, and a narrow clip around most of them then misses more than it saves in noise (benchmarks/accuracy).

    Args:
        statistic: what is asked for.
        request: table, ε and bounding.
        value: what is made of a user's rows.
    """

    statistic: Mean
    request: Request
    value: UserValue

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        request, statistic, given = self.request, self.statistic, self.request.strategy
        share = request.auto.share or PROFILE_SHARE
        bounding = Bounding(
            "auto", None, "the cap will be chosen privately", f"auto, for about {float(share):.0%} of ε"
        )
        settled = self._uncapped() if self._nobody_stands_out else None if given is None else self._given(given)
        if settled is not None:
            bounding = settled[0].bounding

        def run(receipt: Receipt) -> Outcome:
            with request.table.engine.kept(one_row_per_user(request.table, self.value)) as users:
                if settled is not None:
                    return self._release(users, *settled, None, request.epsilon, receipt)
                paid, left = split(request.epsilon, share)
                return self._release(users, *self._choose(users, paid, left, receipt), left, receipt)

        query = {**statistic.query, "bounding": bounding.to_dict()}
        rules = {statistic.name: statistic.rule}
        return Draft(statistic.words, request.guarantee(), request.pure(), query, bounding, Error(None), run, rules)

    @property
    def _nearest(self) -> float:
        """The value within the bounds that is nearest to zero: caps count from zero, as those of a sum do."""
        low, high = self.value.bounds
        return min(max(0.0, low), high)

    @property
    def _centre(self) -> int:
        """The same in steps above the lower bound."""
        return min(self.value.grid.steps_above(self._nearest), self.value.grid.width)

    @property
    def _nobody_stands_out(self) -> bool:
        """Whether values lie within their bounds by the schema and no cap is given: then no user is far above all others, and a cap has nothing to cut."""
        table, column, bounds = self.request.table, self.value.column, self.value.bounds
        narrow = zero_or_one(table, column, bounds) or schema_bounds(table, column) == bounds
        return narrow and self.value.of != "total" and self.request.strategy is None

    def _uncapped(self) -> tuple[Choice, int]:
        """Everybody's value as it is, for nothing."""
        words = "each user counts once, with a value within its bounds"
        choice = Choice(
            SmoothWeights(1), "the type of the column", bias=0.0, bias_basis="no user is cut off", words=words
        )
        return choice, max(self._centre, self.value.grid.width - self._centre)

    def _given(self, strategy: Strategy) -> tuple[Choice, int]:
        """The analyst's cap, and how many steps it leaves on either side of the value nearest to zero."""
        reach = self.value.grid.steps(strategy.bound - abs(Fraction(self._nearest)))
        if reach < 1:
            raise UsageError(
                f"{strategy.title}({float(strategy.bound):g}) lies below bounds={self.value.bounds}: nothing would be left of "
                "anybody. Raise it, or leave bounding out."
            )
        return Choice(strategy, words=self._words(float(strategy.bound))), reach

    def _choose(self, users: Rows, paid: Decimal, left: Decimal, receipt: Receipt) -> tuple[Choice, int, Cut | None]:
        """The cap with the smallest forecast error, from the noisy histogram; no cap if nobody stands out in it."""
        grid, centre, moves = self.value.grid, self._centre, self.request.relation.moves
        most = max(centre, grid.width - centre)
        buckets = total_buckets(most, most)
        counted = users_by_bucket(self.request.table, users, (users.above_0 - centre).abs(), buckets, moves)
        noisy = receipt.numbers(counted, paid).values
        basis = "a noisy histogram of users by value"
        histogram = Histogram(buckets, noisy, float(paid) / moves, basis)
        best = believed_cap(histogram, float(left))
        if not best.believed.visible or best.bound >= most:
            whole = Choice(
                TotalCap(abs(self._nearest) + grid.units(most)), basis, paid, words="each user counts once, uncapped"
            )
            return replace(whole, bias=0.0, bias_basis="no user is cut off"), most, None
        cap = abs(self._nearest) + grid.units(best.bound)
        lost = best.expected.times(grid.units(1) / max(sum(noisy), 1))
        words = self._words(cap)
        return (
            Choice(TotalCap(cap), basis, paid, bias=lost.spread(TRIMMED), bias_basis=SMOOTH, words=words),
            best.bound,
            lost,
        )

    def _words(self, cap: float) -> str:
        either = " either way" if self.value.bounds[0] < 0 else ""
        return f"each user counts once, with a {self.value.of} of at most {three_digits(cap)}{either}"

    def _release(
        self,
        users: Rows,
        choice: Choice,
        reach: int,
        lost: Cut | None,
        epsilon: Decimal,
        receipt: Receipt,
    ) -> Outcome:
        """The mean of the capped values: of a table in which each user has one row, on the part of the grid that is left."""
        grid, centre = self.value.grid, self._centre
        first, last = max(centre - reach, 0), min(centre + reach, grid.width)
        low = grid.low + grid.units(first)
        kept = Grid(low, grid.low + grid.units(last), low, grid.exponent)
        if kept.width != last - first:  # bounds so far from zero that doubles can't hold the ends: then nothing is cut
            first, kept = 0, grid
        capped = users.mutate(above_0=clamp(users.above_0 - first, 0, kept.width))
        mean = UserMeans(self.statistic, self.request, ((self.value.column, kept),))
        outcome = mean.bounded(capped, Choice(SmoothWeights(1)), epsilon, receipt)
        outcome = replace(outcome, bounding=choice.bounding, error=choice.error(outcome.error.noise or 0.0))
        if first == 0 and kept.width == grid.width:
            return replace(outcome, interval=Believed(outcome.interval, (), (), NOBODY_CUT))
        return self._believed(outcome, lost)

    def _believed(self, outcome: Outcome, lost: Cut | None) -> Outcome:
        """With what the cap took from users above it, in the unit of the value, per user."""
        bounds = low, high = self.value.bounds
        if lost is None:  # towards zero, if at all
            return replace(
                outcome,
                interval=Unknown(
                    outcome.interval, UNKNOWN_BIAS, least=low if low < 0 else None, most=high if high > 0 else None
                ),
            )
        cut = lost if low >= 0 else lost.times(-1) if high <= 0 else lost.of_either_sign()
        return with_amounts(outcome, cut.amounts, cut.weights, CAPPED, bounds)
