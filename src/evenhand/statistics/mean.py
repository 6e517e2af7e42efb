"""The mean of a column."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from evenhand.bounding import (
    MEAN_SHARE,
    ROWS_SHARE,
    Auto,
    Choice,
    MeanBelief,
    MeanContribution,
    Sizes,
    Strategy,
    Tilt,
    best_mean,
    with_belief,
)
from evenhand.guarantee import Relation, UsageError, exact_difference, exact_sum, split
from evenhand.noise import IntegerNoise
from evenhand.profiles import (
    About,
    Support,
    Wanted,
    exact_sizes,
    locate,
    location_request,
    mean_shapes,
    public_sizes,
    row_buckets,
    rows_with,
    tilt_request,
    users_by_bucket,
)
from evenhand.release import Additive, Error, Measurement, OfSpread, Ratio, Receipt, Rule, public
from evenhand.statistics.believed_means import PUBLIC_BIAS, believed, limited
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.per_user import PerUser, fetch_totals
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, OfColumn
from evenhand.statistics.user_values import UserValue
from evenhand.statistics.weighted_rows import FULL, VALUE_BITS
from evenhand.tables import Grid
from evenhand.tables.columns import zero_or_one
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.grid import bits_for
from evenhand.tables.summaries import per_user

if TYPE_CHECKING:
    from evenhand.statistics.part import Part


@dataclass(frozen=True)
class Mean(OfColumn):
    """The mean of a column over rows (not over users); a list for several columns, which share ε equally.

    Two numbers are released: how far values lie above the lower bound, and how far below the upper one. For each user they add up to the user's
    weight, so the pair needs no more noise than one number. Around a located centre the numerator is the distance from the centre, and the number of
    rows gets a fifth of ε.

    Interval: bounding takes weight from busy users, so it rests on a model of how many rows users have, where user means lie, and how far busy users
    differ, all weighted by how well they explain what was released. It does not know a single user with a large part of all rows, and is too
    short where user means have a long tail on one side. Under a given bound it is the whole range. ``noise_interval`` covers both
    numbers' noise (Fieller's method).

    Several columns in a ball (``ball=``, under values): one user moves all columns together by at most twice the bound, so 30 columns have the noise of 3. For
    shares of a whole, 0/1 codes, counts of a few events; rows outside are scaled to the ball. Up to 64 columns, without groups.

    Edge cases: the value lies within the bounds; where the noisy weight is not positive, in their middle.

    Proof: mean-pair, located-mean, group-means, ball.
    """

    name = "mean"
    planned_as: ClassVar[str | None] = "mean"
    unit_power: ClassVar[int] = 1

    def ungrouped(self, request: Request) -> Draft | None:
        from evenhand.statistics.per_user_mean import OnePerUser  # which is a mean itself

        low, _ = self.range
        bits, unbounded = bits_for(request.epsilon), request.strategy is None and request.auto == Auto()
        if request.table.one_row and unbounded:
            return OnePerUser(self, request, UserValue(self.column, self.range, "mean", bits)).draft()
        grid = Grid.about(self.range, origin=low, bits=bits)
        return UserMeans(self, request, ((self.column, grid),)).draft()

    def road_for(self, request: Request) -> type[Part] | None:
        """Around a centre of each group, where nothing is said about the bound."""
        from evenhand.statistics.group_means import GroupMeans  # which is made of roads that know statistics

        shares = zero_or_one(request.table, self.column, self.range)
        return GroupMeans if request.strategy is None and request.auto == Auto() and not shares else None

    @property
    def is_average(self) -> bool:
        return True

    @property
    def rule(self) -> Rule:
        return OfSpread(*self.range)

    @property
    def grid(self) -> Grid:
        """Seen from the lower bound, so that integers are nonnegative."""
        return Grid.about(self.range, origin=self.range[0], bits=VALUE_BITS)

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("above",) if relation.counts_are_public else ("above", "below")

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ("weight",) if relation.counts_are_public else ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {"above": values[0] * weight, "below": (self.grid.top - values[0]) * weight, "weight": weight}

    def reach(self, relation: Relation) -> int:
        return self.grid.width

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        low, width = self.range[0], self.range[1] - self.range[0]
        if "below" in sums:
            total = sums["above"] + sums["below"]
            ratio = Ratio(sums["above"], total, (noise, noise), (0.0, 1.0), low, width, paired=True)
            return Estimate(ratio.value, ratio, ratio.spread, max(total, 0) / (self.grid.top * FULL))
        if not sums["weight"]:  # publicly no rows: the middle, over the whole range
            return Estimate(low + width / 2, Additive(low + width / 2, noise, width, self.range), width / 2)
        unit = self.grid.units(1) / sums["weight"]
        value = low + sums["above"] * unit
        interval = Additive(value, noise, unit, self.range)
        spread, rows = noise.variance**0.5 * unit, sums["weight"] / FULL
        return Estimate(min(max(value, low), low + width), interval, spread, rows)


@dataclass(frozen=True)
class UserMeans(PerUser):
    """A mean without groups: weighted users, or their distances from a centre that was located privately.

    Under presence two integers are released together: how far the weighted values lie above the lower bound, and how
    far below the upper. They add up to the user's weight, so the pair moves by no more than the weight alone; their ratio
    is the mean. Under values the total weight is public and one integer is enough.
    """

    share: ClassVar[Decimal] = MEAN_SHARE
    located: ClassVar[bool] = True

    @property
    def grid(self) -> Grid:
        """Of the column."""
        return self.columns[0][1]

    def about(self) -> About:
        self.request.auto.require("mean", "a mean")
        return rows_with([self.columns[0][0]], self.statistic.words)

    def forecast(self, users: Rows, strategy: Strategy) -> Error:
        if strategy.of_mean(self.summary(users), self.request.relation).rows is not None:
            raise UsageError(
                f"{strategy.title} releases two totals, from users that are kept in between; that is for bounding='auto'."
            )
        if self.request.relation.counts_are_public and strategy.rows_kept is None:
            return Error(None, None, PUBLIC_BIAS)
        return Error(None)

    def beforehand(self) -> None:
        """Under values it is public how many users there are, and so whether they are enough for a bound that is to be chosen."""
        request, named = self.request, self.request.auto.strategy
        if request.strategy is None and named is not None and request.relation.counts_are_public:
            sizes = exact_sizes(request.table, per_user(request.table, self.columns))
            named.require(public(sizes, request.relation), request.epsilon)

    def choose(self, users: Rows, wanted: Wanted | None, receipt: Receipt) -> tuple[Choice, Decimal]:
        """Users by number of rows are public under values, and bought under presence.

        Then, if there are users enough, a coarse histogram of user means is bought, so that users may be clipped narrowly
        around where they are, and a few sums that tell how far busy users differ.
        """
        request, relation, grid = self.request, self.request.relation, self.grid
        support, sizes, paid, left = self._support(users, wanted, receipt)
        if request.auto.strategy is not None:
            choice = request.auto.for_mean(support, grid, left, relation).costing(paid)
            if not choice.strategy.counts_rows:
                return replace(choice, bias=choice.strategy.most_moved(support, grid.high - grid.low)), left
            return replace(choice, belief=MeanBelief(choice.strategy, sizes, grid.width)), left
        shares = zero_or_one(request.table, self.columns[0][0], self._bounds)
        location, tilt, buying = None, None, location_request(support, left, relation, shares)
        if buying is not None:
            noisy = receipt.numbers(buying.of(request.table, users, grid.width), buying.epsilon)
            left, paid = exact_difference(left, buying.epsilon), exact_sum([paid, buying.epsilon])
            location = locate(buying, noisy.values, relation)
        tilting = None if location is None else tilt_request(support, location, left, relation)
        if tilting is not None:
            sums = receipt.numbers(tilting.of(request.table, users, grid.width), tilting.epsilon)
            left, paid = exact_difference(left, tilting.epsilon), exact_sum([paid, tilting.epsilon])
            tilt = Tilt.of(tilting, sums.values, relation.moves)
        choice = best_mean(support, grid, left, relation, location).costing(paid)
        belief = MeanBelief(choice.strategy, sizes, grid.width)
        if buying is not None and location is not None:
            shapes = mean_shapes(buying, noisy.values, location, relation.moves)
            belief = replace(belief, shapes=shapes, centre=location.centre, asked=buying.rows, tilt=tilt)
        return with_belief(choice, belief, grid), left

    def _support(self, users: Rows, wanted: Wanted | None, receipt: Receipt) -> tuple[Support, Sizes, Decimal, Decimal]:
        """Users by number of rows, as a bound is chosen and as its effect is judged; what was paid, and what is left of ε."""
        request = self.request
        if wanted is None:
            support = public_sizes(request.table, users, receipt)
            return support, Sizes.exact(support), Decimal(0), request.epsilon
        buckets = row_buckets()
        paid, left = wanted.price(request.epsilon, request.auto.share or self.share)
        measurement = users_by_bucket(request.table, users, users.rows, buckets)
        histogram = wanted.get(receipt, buckets, measurement, paid)
        sizes = Sizes.of(histogram.posterior)
        return histogram.support, sizes, paid, left

    def finish(self, users: Rows, choice: Choice, epsilon: Decimal, receipt: Receipt) -> Outcome:
        relation = self.request.relation
        if choice.belief is not None:
            outcome = self.bounded(users, choice, epsilon, receipt)
            return believed(outcome, choice.belief, self._bounds, relation.counts_are_public)
        if choice.bias is not None or not relation.counts_are_public or choice.strategy.rows_kept is not None:
            own = choice.basis is not None
            return limited(self.bounded(users, choice, epsilon, receipt), choice.bias, self._bounds, own)
        with self.request.table.engine.kept(users) as kept:  # read once, for the mean and for the public number of rows
            support = public_sizes(self.request.table, kept, receipt)
            most = choice.strategy.most_moved(support, self.grid.high - self.grid.low)
            return limited(self.bounded(kept, choice, epsilon, receipt), most, self._bounds)

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.grid.low, self.grid.high

    def bounded(self, users: Rows, choice: Choice, epsilon: Decimal, receipt: Receipt) -> Outcome:
        """The mean of the bounded users, with the interval of its noise."""
        mean = choice.strategy.of_mean(self.summary(users), self.request.relation)
        if mean.weight is not None:
            return self._over_public(users, mean, mean.weight, choice, epsilon, receipt)
        grid, width, step = self.grid, self.grid.high - self.grid.low, self.grid.units(1)
        if mean.rows is None:
            noisy = receipt.numbers(self.measure(users, mean.sums), epsilon)
            above, below = noisy.values
            ratio = Ratio(above, above + below, (noisy.noise, noisy.noise), (0.0, 1.0), grid.low, width, paired=True)
        else:
            for_rows, for_sum = split(epsilon, ROWS_SHARE)
            residual = receipt.numbers(self.measure(users, mean.sums), for_sum)
            rows = receipt.numbers(self.measure(users, mean.rows), for_rows)
            ratio = Ratio(
                residual.values[0],
                rows.values[0],
                (residual.noise, rows.noise),
                (-mean.centre, grid.width - mean.centre),
                grid.low + mean.centre * step,
                step,
                paired=False,
                expected=mean.expected,
            )
        return Outcome(ratio.value, ratio, choice.bounding, choice.error(ratio.spread))

    def _over_public(
        self,
        users: Rows,
        mean: MeanContribution,
        weight: Integers,
        choice: Choice,
        epsilon: Decimal,
        receipt: Receipt,
    ) -> Outcome:
        """A noisy total over a public weight, lifted by a centre (in grid steps per row)."""
        grid, relation = self.grid, self.request.relation
        integers = [*mean.sums.integers, weight, users.rows]
        totals = functools.cache(fetch_totals(self.request.table, users, integers))
        value_alone = Measurement(lambda: totals().map(lambda sums: sums[:1]), mean.sums.l1, mean.sums.l2_squared)
        noisy = receipt.numbers(value_alone, epsilon)
        total_weight, rows = receipt.public(totals().map(lambda sums: sums[1:]), relation)
        width = grid.high - grid.low
        unit = width / total_weight if total_weight else width  # an empty table: noise over the whole range
        base = grid.low + grid.units(mean.centre) if total_weight else grid.low + width / 2
        value = base + noisy.values[0] * unit
        interval = Additive(value, noisy.noise, unit, (grid.low, grid.high))
        bounded = min(max(value, grid.low), grid.high)
        error = choice.error(noisy.noise.variance**0.5 * unit)
        return Outcome(bounded, interval, choice.bounding, error, public_rows=rows)
