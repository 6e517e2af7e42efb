"""The ratio of two statistics, such as clicks over views, or spending over users.

Each of the two is bounded and gets noise by itself, with its own share of ε, on one reading of the table; dividing them
costs nothing more. Hidden group names are selected once for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

from evenhand.bounding import Auto
from evenhand.guarantee import EvenhandError, Relation, UsageError, divide, exact_sum, split
from evenhand.ledger import Cost, rho_with_pure
from evenhand.noise import IntegerNoise
from evenhand.profiles import Shelf
from evenhand.release import Additive, Exact, Interval, Quotient, Receipt, Scaled
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.count import Count
from evenhand.statistics.draft import EXACT, NOBODY, NOT_SHOWN, UNBOUNDED, UNKNOWN, Draft, Outcome
from evenhand.statistics.frames import GroupedInterval
from evenhand.statistics.keys import Keys
from evenhand.statistics.per_row import PerRow
from evenhand.statistics.request import Request
from evenhand.statistics.selection import Selection
from evenhand.statistics.several import joint_bounding, on_one_reading
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.users import Users
from evenhand.tables import Bounds, Grid, Table
from evenhand.tables.expressions import Integers

USERS_SHARE = Decimal("0.2")
"""Of ε for a number of users beside a count or sum: nobody is cut for it, so its noise is far smaller than the other's."""


@dataclass(frozen=True)
class HalfOfRatio(PerRow):
    """One of the two by row, on a reading and for groups that both share."""

    copy: Table = None  # type: ignore[assignment]

    def _reading(self) -> AbstractContextManager[Table]:
        return nullcontext(self.copy)


@dataclass(frozen=True)
class RatioRows(PerRow):
    """A ratio by group."""

    @property
    def ratio(self) -> RatioOf:
        """What is asked for."""
        (statistic,) = self.parts.values()
        assert isinstance(statistic, RatioOf)
        return statistic

    def draft(self) -> Draft:
        request, ratio, relation = self.request, self.ratio, self.request.relation
        hides = self.keys is None and not relation.counts_are_public
        whole = Allocation.of(request, None) if hides else None
        rest = request.epsilon if whole is None else exact_sum([whole.profile, whole.epsilon])
        delta = request.delta if hides else divide(request.delta, 2)
        shelf = request.shelf.frozen()
        halves = {
            name: PerRow(replace(request, epsilon=share, delta=delta, shelf=shelf), {name: part}, self.by, self.keys)
            for (name, part), share in zip(ratio.both.items(), ratio.shares(relation, rest), strict=True)
        }
        drafts = [half.draft() for half in halves.values()]
        cost = _together([draft.cost for draft in drafts], request.epsilon) if whole is None else whole.cost

        def run(receipt: Receipt) -> Outcome:
            with self._reading() as copy, self._keys(copy, whole, receipt) as (keys, selection):
                if not keys.groups:
                    return self._outcome(keys, {"ratio": []}, NOBODY, NOT_SHOWN, selection)
                outcomes = {name: self._half(half, copy, keys, hides).run(receipt) for name, half in halves.items()}
            return self._divided(keys, outcomes, selection)

        if cost is None:
            return Draft(self.label, request.free, None, self.query, UNBOUNDED, EXACT, run)
        bounding = joint_bounding(dict(zip(halves, (draft.bounding for draft in drafts), strict=True)))
        earlier = (purchase for draft in drafts for purchase in draft.guarantee.earlier)
        guarantee = request.guarantee(request.delta if cost.delta else Decimal(0)).resting_on(*earlier)
        query = {**self.query, "bounding": bounding.to_dict()}
        return Draft(self.label, guarantee, cost, query, bounding, UNKNOWN, run)

    def _half(self, half: PerRow, copy: Table, keys: Keys, hides: bool) -> Draft:
        """The draft of one of the two, once the groups are known.

        Where they were hidden, selecting them has taken all of δ, and a profile about them that the session has kept would
        be a purchase that the guarantee does not name: so an empty shelf.
        """
        request = replace(half.request, delta=Decimal(0), shelf=Shelf()) if hides else half.request
        return HalfOfRatio(request, half.parts, self.by, keys, copy=copy).draft()

    def _divided(self, keys: Keys, outcomes: Mapping[str, Outcome], selection: Selection | None) -> Outcome:
        above, below = (_estimates(outcome) for outcome in outcomes.values())
        quotients = [self.ratio.quotient(*pair) for pair in zip(above, below, strict=True)]
        estimates = [Estimate(quotient.value, quotient, quotient.spread) for quotient in quotients]
        public = all(outcome.bounding == UNBOUNDED for outcome in outcomes.values())
        bounding = UNBOUNDED if public else joint_bounding({name: one.bounding for name, one in outcomes.items()})
        return self._outcome(keys, {"ratio": estimates}, bounding, EXACT if public else UNKNOWN, selection)


@dataclass(frozen=True)
class RatioOf(Statistic):
    """One statistic over another: each a count, a number of users or a sum.

    Args:
        numerator: such as ``eh.sum("clicks", bounds=(0, 50))``.
        denominator: such as ``eh.users()``.
    """

    name = "ratio"
    road = RatioRows

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
    def columns(self) -> tuple[tuple[str, Grid], ...]:
        return self.numerator.columns + self.denominator.columns

    def shares(self, relation: Relation, epsilon: Decimal) -> tuple[Decimal, Decimal]:
        """The ε of each; all of it for one where the other is public."""
        if not all(part.hidden(relation) for part in self.both.values()):
            return epsilon, epsilon
        users = [isinstance(part, Users) for part in self.both.values()]
        if users[0] == users[1]:
            return split(epsilon, Fraction(1, 2))
        few, many = split(epsilon, USERS_SHARE)
        return (few, many) if users[0] else (many, few)

    def quotient(self, numerator: Interval, denominator: Interval) -> Quotient:
        """The two as released, divided."""
        positive = all(not isinstance(part, Sum) or part.range[0] >= 0 for part in self.both.values())
        return Quotient(_released(numerator), _released(denominator), positive)

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
            above, below = outcomes_of(receipt).values()
            quotient = self.quotient(above.interval, below.interval)
            joint = bounding if public else joint_bounding({"numerator": above.bounding, "denominator": below.bounding})
            return Outcome(
                quotient.value, quotient, joint, replace(EXACT if public else UNKNOWN, noise=quotient.spread)
            )

        if public:
            return Draft(self.words, request.free, None, self.query, bounding, EXACT, run)
        earlier = (purchase for draft in drafts for purchase in draft.guarantee.earlier)
        guarantee = request.guarantee().resting_on(*earlier)
        query = {**self.query, "bounding": bounding.to_dict()}
        return Draft(self.words, guarantee, request.pure(), query, bounding, UNKNOWN, run)

    # A ratio adds up nothing of its own: its two parts do.

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ()

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {}

    def reach(self, relation: Relation) -> int:
        return 0

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        raise EvenhandError("a ratio is read from its two parts; this is a defect in Evenhand, please report it.")


def _estimates(outcome: Outcome) -> list[Interval]:
    assert isinstance(outcome.interval, GroupedInterval)
    (estimates,) = outcome.interval.estimates.values()
    return [estimate.interval for estimate in estimates]


def _released(interval: Interval) -> Additive | Exact:
    """A released number with its noise."""
    if isinstance(interval, Scaled):
        inner = _released(interval.interval)
        assert isinstance(inner, Additive)
        return Additive(inner.value * interval.factor, inner.noise, inner.unit * interval.factor)
    assert isinstance(interval, Additive | Exact)
    return interval


def _together(costs: Sequence[Cost | None], epsilon: Decimal) -> Cost | None:
    """What the two cost together; None if both are public."""
    paid = [cost for cost in costs if cost is not None]
    if not paid:
        return None
    if not any(cost.delta for cost in paid):
        return Cost.pure(epsilon)
    rho = sum((Fraction(cost.rho) for cost in paid if cost.rho is not None), Fraction(0))
    pure = exact_sum(cost.epsilon for cost in paid if cost.rho is None)
    return Cost.zcdp(rho_with_pure(rho, pure), epsilon=epsilon, delta=exact_sum(cost.delta for cost in paid))
