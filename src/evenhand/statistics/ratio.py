"""The ratio of two statistics, such as clicks over views, or spending over users.

Each of the two is bounded and gets noise by itself, with its own share of ε, on one reading of the table; dividing them
costs nothing more. Hidden group names are selected once for both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

from evenhand.bounding import Auto
from evenhand.guarantee import EvenhandError, Relation, UsageError, split
from evenhand.noise import IntegerNoise
from evenhand.release import Receipt
from evenhand.statistics.believed_means import corrected
from evenhand.statistics.believed_ratios import believed_quotient, measured_quotient
from evenhand.statistics.count import Count
from evenhand.statistics.draft import EXACT, UNBOUNDED, UNKNOWN, Draft, Outcome
from evenhand.statistics.request import Request
from evenhand.statistics.several import joint_bounding, on_one_reading
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.users import Users
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.tables import Bounds, OpenBounds, Table
from evenhand.tables.expressions import Integers

USERS_SHARE = Fraction(1, 5)
"""Of ε for a number of users beside a count or sum: nobody is cut for it, so its noise is far smaller than the other's."""


@dataclass(frozen=True)
class RatioOf(Statistic):
    """One statistic over another: each a count, a number of users or a sum.

    Each has half of ε, but a number of users a fifth. Both come from one reading. A row counts in each if it has what that one needs, as in SQL's
    ``SUM(a) / SUM(b)``. A given ``bounding`` holds for both. For an average over users ``per_user_mean`` is more accurate.

    Interval: every ratio that fits both numbers within their noise (Fieller's method).

    Edge cases: where the denominator does not stand out from its noise the value is NaN and the upper end infinite; the lower end is still valid, unless
    sums can be negative.

    Proof: one-release.

    Args:
        numerator: such as ``eh.sum("clicks", bounds=(0, 50))``.
        denominator: such as ``eh.users()``.
    """

    name = "ratio"

    numerator: Statistic
    denominator: Statistic

    def __post_init__(self) -> None:
        for name, part in self.both.items():
            if type(part) not in (Count, Users, Sum):
                raise UsageError(
                    f"ratio({name}={part!r}): expected eh.count(), eh.users() or eh.sum(...), for example "
                    'ratio(eh.sum("clicks", bounds=(0, 50)), eh.count(), epsilon=0.5).'
                )

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls(Sum(column, bounds), Count())

    @property
    def both(self) -> dict[str, Statistic]:
        """The two by name."""
        return {"numerator": self.numerator, "denominator": self.denominator}

    @property
    def wants_bounds(self) -> tuple[WantedBounds, ...]:
        return self.numerator.wants_bounds + self.denominator.wants_bounds

    def with_bounds(self, found: Sequence[OpenBounds]) -> RatioOf:
        above = len(self.numerator.wants_bounds)
        return RatioOf(self.numerator.with_bounds(found[:above]), self.denominator.with_bounds(found[above:]))

    @property
    def words(self) -> str:
        return f"{self.numerator.words} over {self.denominator.words}"

    @property
    def query(self) -> dict[str, Any]:
        return {"statistic": self.name, **{name: part.query for name, part in self.both.items()}}

    def check(self, table: Table, by_row: bool = False) -> None:
        for part in self.both.values():
            part.check(table, by_row)

    def check_integers(self, relation: Relation) -> None:
        for part in self.both.values():
            part.check_integers(relation)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.numerator.reads + self.denominator.reads

    @property
    def components(self) -> dict[str, tuple[Statistic, Fraction]]:
        users = [isinstance(part, Users) for part in self.both.values()]
        first = Fraction(1, 2)
        if users[0] != users[1]:
            first = USERS_SHARE if users[0] else 1 - USERS_SHARE
        return {"numerator": (self.numerator, first), "denominator": (self.denominator, 1 - first)}

    def combine(self, estimates: Sequence[Estimate]) -> Estimate:
        above, below = estimates
        value, interval = believed_quotient(above.interval, below.interval, self._nonnegative)
        measured, noise = measured_quotient(interval)
        return Estimate(value, interval, noise, correction=value - measured if math.isfinite(value) else 0.0)

    def shares(self, relation: Relation, epsilon: Decimal) -> tuple[Decimal, Decimal]:
        """The ε of each; all of it for one where the other is public."""
        if not all(part.hidden(relation) for part in self.both.values()):
            return epsilon, epsilon
        return split(epsilon, self.components["numerator"][1])

    @property
    def _nonnegative(self) -> bool:
        return all(not isinstance(part, Sum) or part.range[0] >= 0 for part in self.both.values())

    def ungrouped(self, request: Request) -> Draft | None:
        requests = [replace(request, epsilon=share) for share in self.shares(request.relation, request.epsilon)]
        for place, part in enumerate(self.both.values()):
            if isinstance(part, Users):  # has nothing to bound, whatever was given for the other
                requests[place] = replace(requests[place], strategy=None, auto=Auto())
        drafts, outcomes_of = on_one_reading(requests, self.both)
        public = all(draft.cost is None for draft in drafts)
        bounding = (
            UNBOUNDED if public else joint_bounding(dict(zip(self.both, (one.bounding for one in drafts), strict=True)))
        )

        def run(receipt: Receipt) -> Outcome:
            return quotient(outcomes_of(receipt), self._nonnegative)

        if public:
            return Draft(self.words, request.free, None, self.query, bounding, EXACT, run)
        earlier = (purchase for draft in drafts for purchase in draft.guarantee.earlier)
        guarantee = request.guarantee().resting_on(*earlier)
        query = {**self.query, "bounding": bounding.to_dict()}
        return Draft(self.words, guarantee, request.pure(), query, bounding, UNKNOWN, run, {self.name: self.rule})

    # A ratio adds up nothing of its own: its two parts do.

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {}

    def reach(self, relation: Relation) -> int:
        return 0

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        raise EvenhandError("a ratio is read from its two parts; this is a defect in Evenhand, please report it.")


def quotient(parts: Mapping[str, Outcome], nonnegative: bool) -> Outcome:
    """What the outcomes of two statistics say about their quotient."""
    above, below = parts.values()
    value, interval = believed_quotient(above.interval, below.interval, nonnegative)
    measured, noise = measured_quotient(interval)
    hidden = {name: part.bounding for name, part in parts.items() if part.bounding is not UNBOUNDED}
    details = {}
    if abs(value - measured) > 0.05 * noise:
        details["correction"] = corrected(measured, value, noise)
    error = replace(UNKNOWN if hidden else EXACT, noise=noise)
    return Outcome(value, interval, joint_bounding(hidden), error, details)
