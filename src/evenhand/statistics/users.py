"""The number of distinct users."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from evenhand.bounding import Auto
from evenhand.guarantee import UsageError
from evenhand.release import Additive, Bounding, Noisy
from evenhand.statistics.count import Count
from evenhand.statistics.draft import Draft
from evenhand.statistics.per_user import public_total
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate


@dataclass(frozen=True)
class Users(Count):
    """The number of distinct users; by group, each counts once in each of their groups.

    Nobody is cut off, so there is no bias: the noise has scale 1/ε for every table.

    Interval: the noise, exactly; it may go below zero.

    Under values: public, exact, ε = 0.

    Proof: total-cap, row-weights, key-selection.
    """

    name = "users"
    additive = False
    planned_as = None
    distinct = True

    @property
    def words(self) -> str:
        return "number of users"

    def ungrouped(self, request: Request) -> Draft | None:
        """Capping each user at one row counts everybody once, so there is no bias."""
        if request.strategy is not None or request.auto != Auto():
            raise UsageError("users() counts each user once, so there is nothing to bound; leave bounding out.")
        if request.relation.counts_are_public:
            return public_total(request, self, lambda users: users.rows.clip(upper=1))
        return self.counted_once(request)


def supporters(noisy: Noisy, price: Decimal, groups: int) -> tuple[list[Estimate], Bounding]:
    """Numbers of supporters as numbers of users, where hardly anybody is in more groups than count; and what choosing that cost."""
    spread = noisy.noise.variance**0.5
    most = "one group" if groups == 1 else f"at most {groups} groups"
    words = f"each user counts once in a group, in {most}; for those who are in more they are drawn at random"
    chosen = "chosen from a noisy histogram of users by number of groups: hardly anybody is in more"
    estimates = [Estimate(count, Additive(count, noisy.noise, 1), spread) for count in noisy.values]
    return estimates, Bounding("GroupLimit", float(groups), words, chosen, price)
