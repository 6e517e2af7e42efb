"""The road per user: one pass makes a few integers per user, the strategy bounds them, and their totals leave.

It is taken by releases without groups: the strategy's own arithmetic applies, no row is weighted, and a mean can be
released around a located centre.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import ClassVar

import numpy as np

from evenhand.bounding import PROFILE_SHARE, Assumptions, Choice, Contribution, Question, Strategy, Summary
from evenhand.profiles import (
    About,
    Buckets,
    Histogram,
    Profile,
    Wanted,
    over,
    public_sizes,
    row_buckets,
    rows_with,
    total_buckets,
    users_by_bucket,
)
from evenhand.release import Additive, Bounding, Error, Exact, Measurement, Receipt, noise_for
from evenhand.release.intervals import noise_only
from evenhand.statistics.believed_means import PUBLIC_BIAS, Widened
from evenhand.statistics.believing import corrected, uncorrected
from evenhand.statistics.draft import EXACT, UNBOUNDED, Draft, Outcome
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Statistic
from evenhand.tables import Grid, Secret, Table
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.summaries import exact_sum, per_user


@dataclass(frozen=True)
class PerUser(ABC):
    """A statistic without groups.

    Args:
        statistic: what is asked for.
        request: table, ε and bounding.
        columns: the value column with its grid; none for a count of rows.
    """

    share: ClassVar[Decimal] = PROFILE_SHARE
    located: ClassVar[bool] = False

    statistic: Statistic
    request: Request
    columns: tuple[tuple[str, Grid], ...] = ()

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        request, strategy = self.request, self.request.strategy
        if strategy is not None:
            users = per_user(request.table, self.columns, strategy.rows_kept)
            error, choice = self.forecast(users, strategy), Choice(strategy)

            def run(receipt: Receipt) -> Outcome:
                with request.table.engine.held(users) as kept:
                    return self.finish(kept, choice, request.epsilon, receipt)

            return self._draft(choice.bounding, error, None, run)
        about = self.about()
        wanted = request.wants(about, about.quantity == "rows")

        def choose_and_run(receipt: Receipt) -> Outcome:
            with self.users() as (table, users):
                choice, left = self.choose(users, wanted, receipt)
                kept = choice.strategy.rows_kept
                bounded = users if kept is None else per_user(table, self.columns, kept)
                return self.finish(bounded, choice, left, receipt)

        error = Error(None) if wanted is None or wanted.known is None else self.expected(wanted.known)
        return self._draft(request.pending(wanted, self.share, self.located), error, wanted, choose_and_run)

    @abstractmethod
    def about(self) -> About:
        """The profile that a choice of the bound wants; refuses a strategy whose bound can't be chosen."""

    @abstractmethod
    def forecast(self, users: Rows, strategy: Strategy) -> Error:
        """The error under a given bound, as far as public facts tell; refuses what does not fit, before any debit."""

    @abstractmethod
    def choose(self, users: Rows, wanted: Wanted | None, receipt: Receipt) -> tuple[Choice, Decimal]:
        """The bound, and what is left of ε."""

    @abstractmethod
    def finish(self, users: Rows, choice: Choice, epsilon: Decimal, receipt: Receipt) -> Outcome:
        """Bound the users, and release what they add up to."""

    def expected(self, profile: Profile) -> Error:
        """The error under the bound that a profile which is there already will choose, where that can be said before the debit."""
        return Error(None)

    def summary(self, users: Rows) -> Summary:
        """The per-user columns of this statistic."""
        return Summary(users.rows, users.above_0, self.columns[0][1]) if self.columns else Summary(users.rows)

    def measure(self, users: Rows, contribution: Contribution) -> Measurement:
        """The totals of a bounded contribution, with its declared sensitivity."""
        totals = fetch_totals(self.request.table, users, contribution.integers)
        return Measurement(totals, contribution.l1, contribution.l2_squared)

    @contextmanager
    def users(self) -> Iterator[tuple[Table, Rows]]:
        """The summaries that a bound is chosen from and then applied to, and the rows they come from.

        A strategy that draws rows needs them again once its bound is known: then a copy of them is kept.
        """
        table, named = self.request.table, self.request.named
        names = [name for name, _ in self.columns]
        rows = table.once(names) if named is not None and named.draws_rows else nullcontext(table)
        with rows as copy, copy.engine.kept(per_user(copy, self.columns), lasting=True) as users:
            yield copy, users

    def _draft(
        self, bounding: Bounding, error: Error, wanted: Wanted | None, run: Callable[[Receipt], Outcome]
    ) -> Draft:
        request, query = self.request, {**self.statistic.query, "bounding": bounding.to_dict()}
        rules = {self.statistic.name: self.statistic.rule}
        draft = Draft(self.statistic.words, request.promise(wanted), request.pure(), query, bounding, error, run, rules)
        return replace(draft, beforehand=self.beforehand)

    def beforehand(self) -> None:  # noqa: B027 (most need nothing)
        """Refuse, by public facts that are read before the debit, what would say nothing."""


@dataclass(frozen=True)
class Total(PerUser):
    """A count or sum: one bounded total, plus noise.

    Args:
        contribute: what a user adds under a strategy.
        unit: what one integer step is worth.
    """

    contribute: Callable[[Strategy, Summary], Contribution] = field(kw_only=True)
    unit: float = 1

    def about(self) -> About:
        """Of totals; of rows for a count, and where rows are what is known or bounded."""
        auto, question = self.request.auto, self.statistic.words
        auto.require("total", f"a {question}")
        if not self.columns or auto.for_total.counts_rows or auto.profile is not None:
            return rows_with((name for name, _ in self.columns), question)
        return About("total", self.columns, question)

    def forecast(self, users: Rows, strategy: Strategy) -> Error:
        contribution = self.contribute(strategy, self.summary(users))
        noise = noise_for(contribution.l1, contribution.l2_squared, self.request.epsilon)
        told = self.columns and self.request.relation.counts_are_public and strategy.rows_kept is None
        return (
            Error(noise.variance**0.5 * self.unit, None, PUBLIC_BIAS)
            if told
            else Error(noise.variance**0.5 * self.unit)
        )

    def choose(self, users: Rows, wanted: Wanted | None, receipt: Receipt) -> tuple[Choice, Decimal]:
        assert wanted is not None  # a total is chosen for only where row counts are hidden
        histogram, left = self.histogram(users, wanted, receipt)
        return self.best(users, histogram, left, wanted.about.quantity == "rows"), left

    def histogram(self, users: Rows, wanted: Wanted, receipt: Receipt) -> tuple[Histogram, Decimal]:
        """The profile that was wanted, and what is left of ε."""
        request, summary = self.request, self.summary(users)
        by_rows = wanted.about.quantity == "rows"
        buckets = self._buckets(summary, by_rows)
        quantity = summary.rows if by_rows or summary.grid is None else summary.total.abs()
        paid, left = wanted.price(request.epsilon, request.auto.share or self.share)
        return wanted.get(receipt, buckets, users_by_bucket(request.table, users, quantity, buckets), paid), left

    def best(self, users: Rows, histogram: Histogram, epsilon: Decimal, by_rows: bool = False) -> Choice:
        """The bound with the least forecast error, given a profile and what is left of ε."""
        best = self.request.auto.for_total.best_for_total(histogram, float(epsilon), self.summary(users), by_rows)
        return best.costing(histogram.paid)

    def expected(self, profile: Profile) -> Error:
        by_rows, users = self.about().quantity == "rows", per_user(self.request.table, self.columns)
        summary, epsilon = self.summary(users), float(self.request.epsilon)
        histogram = over(profile, self._buckets(summary, by_rows))
        choice = self.request.auto.for_total.best_for_total(histogram, epsilon, summary, by_rows)
        return choice.error(self.forecast(users, choice.strategy).noise or 0.0)

    def _buckets(self, summary: Summary, by_rows: bool) -> Buckets:
        if by_rows or summary.grid is None:
            return row_buckets()
        return total_buckets(summary.grid.reach, least=summary.grid.least)

    def finish(self, users: Rows, choice: Choice, epsilon: Decimal, receipt: Receipt) -> Outcome:
        request, strategy = self.request, choice.strategy
        if choice.cut is None and self.columns and request.relation.counts_are_public and strategy.rows_kept is None:
            with request.table.engine.kept(
                users
            ) as kept:  # read once, for the total and for the public numbers of rows
                return self._at_worst(self._finish(kept, choice, epsilon, receipt), kept, strategy, receipt)
        return self._finish(users, choice, epsilon, receipt)

    def _at_worst(self, outcome: Outcome, users: Rows, strategy: Strategy, receipt: Receipt) -> Outcome:
        """The outcome of a given bound with the most that it can have cut off, whatever the values are: public numbers of rows tell."""
        grid, relation = self.columns[0][1], self.request.relation
        support = public_sizes(self.request.table, users, receipt)
        bounds, assumed = (grid.low, grid.high), Assumptions(0.0, 0.0, 0.0)
        found = strategy.forecast(Question("sum", bounds, self.request.epsilon, relation, assumed), support)
        if found is None:
            return outcome
        most = float(found[0](np.array([float(strategy.bound)])).proven[0])
        interval = Widened(
            noise_only(outcome.interval),
            most if grid.top > 0 else 0.0,
            (-math.inf, math.inf),
            below=most if grid.bottom < 0 else 0.0,
        )
        error = replace(outcome.error, bias=most, basis="at most, whatever the values are")
        return replace(outcome, interval=interval, error=error)

    def _finish(self, users: Rows, choice: Choice, epsilon: Decimal, receipt: Receipt) -> Outcome:
        request, strategy = self.request, choice.strategy
        contribution = request.table.engine.remembered(
            ("contribution", self.statistic, tuple(self.columns), strategy, request.relation, users.op()),
            lambda: self.contribute(strategy, self.summary(users)),
        )
        noisy = receipt.numbers(self.measure(users, contribution), epsilon)
        measured = Additive(noisy.values[0] * self.unit, noisy.noise, self.unit)
        error = choice.error(noisy.noise.variance**0.5 * self.unit)
        if choice.cut is None:
            grid = self.summary(users).grid
            interval = uncorrected(measured, grid is not None and grid.bottom < 0, grid is None or grid.top > 0)
            return Outcome(measured.value, interval, choice.bounding, error)
        cut = choice.cut.given(noisy.values[0], noisy.noise.variance)
        found = corrected(measured, cut, not self.columns)
        return Outcome(found.value, found.interval, choice.bounding, error, found.details)


def public_total(request: Request, statistic: Statistic, value: Callable[[Rows], Integers]) -> Draft:
    """An exact answer: under values, who is there and with how many rows is public."""
    users = per_user(request.table)

    def run(receipt: Receipt) -> Outcome:
        with request.table.engine.held(users) as kept:
            totals = fetch_totals(request.table, kept, [value(kept)])
            exact = receipt.public(totals(), request.relation)[0]
        return Outcome(exact, Exact(exact), UNBOUNDED, EXACT)

    return Draft(statistic.words, request.free, None, statistic.query, UNBOUNDED, EXACT, run)


def fetch_totals(table: Table, users: Rows, integers: Sequence[Integers]) -> Callable[[], Secret[list[int]]]:
    """Sum each per-user expression over all users, in the engine."""
    sums = table.engine.remembered(
        ("totals", users.op(), *(value.op() for value in integers)),
        lambda: users.aggregate(**{f"total_{index}": exact_sum(table, value) for index, value in enumerate(integers)}),
    )
    return lambda: table.engine.fetch(sums).map(
        lambda found: [int(found[f"total_{index}"][0].as_py() or 0) for index in range(len(integers))]
    )
