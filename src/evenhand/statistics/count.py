"""The number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from evenhand.bounding import Auto, TotalCap
from evenhand.guarantee import Relation
from evenhand.noise import IntegerNoise
from evenhand.release import Additive, Bounding, Error, Exact, OfSize, Receipt, Rule
from evenhand.release.intervals import noise_only
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.per_user import Total, public_total
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables.expressions import Integers

ONCE = Bounding("TotalCap", 1.0, "each user counts once, however many rows they have", "by definition")


@dataclass(frozen=True)
class Count(Statistic):
    """The number of rows.

    Each user's rows count up to a bound.

    Interval: discrete Laplace noise, and what the bound probably cut off. It may go below zero, since raising negative counts to zero would
    bias sums of them.

    Under values: public, exact, ε = 0.

    Proof: total-cap, row-weights.
    """

    name = "count"
    additive = True
    planned_as: ClassVar[str | None] = "count"

    @property
    def words(self) -> str:
        return "number of rows"

    def ungrouped(self, request: Request) -> Draft | None:
        if request.relation.counts_are_public:
            return public_total(request, self, lambda users: users.rows)
        if request.table.one_row and request.strategy is None and request.auto == Auto():
            return self.counted_once(request)
        return Total(self, request, contribute=lambda strategy, summary: strategy.of_count(summary)).draft()

    def counted_once(self, request: Request) -> Draft:
        """Each user counts for one row: where nobody has more, or where users are counted, that leaves nobody out, so there is no bias."""
        capped = replace(request, strategy=TotalCap(1))
        draft = Total(self, capped, contribute=lambda strategy, summary: strategy.of_count(summary)).draft()

        def run(receipt: Receipt) -> Outcome:
            outcome = draft.run(receipt)
            exact = noise_only(outcome.interval)  # nobody is cut, so nothing is unknown
            return replace(outcome, interval=exact, bounding=ONCE, error=_unbiased(outcome.error))

        return replace(draft, bounding=ONCE, error=_unbiased(draft.error), run=run)

    @property
    def rule(self) -> Rule:
        return OfSize("users" if self.distinct else "rows")

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return () if relation.counts_are_public else ("rows",)

    def public(self, relation: Relation) -> tuple[str, ...]:
        return ("exact",) if relation.counts_are_public else ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {"rows": weight, "exact": weight * 0 + 1}

    def reach(self, relation: Relation) -> int:
        return 1

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        if noise is None:
            return Estimate(sums["exact"], Exact(sums["exact"]), 0.0)
        return weighted_count(sums["rows"], noise)


def _unbiased(error: Error) -> Error:
    return Error(error.noise, 0.0, "no user is cut off")


def weighted_count(rows: int, noise: IntegerNoise) -> Estimate:
    """A number of rows, or users, from their noisy total weight; whole, as counts are."""
    return Estimate(round(rows / FULL), Additive(rows / FULL, noise, 1 / FULL), noise.variance**0.5 / FULL)
