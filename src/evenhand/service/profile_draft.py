"""A profile as a question: what `Session.profile` buys, paid for first and drawn later, like every answer of a server."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.guarantee import Amount, UsageError
from evenhand.ledger import Cost
from evenhand.profiles import Order, Profile
from evenhand.release import Bounding, Error, Receipt
from evenhand.statistics import Draft, Outcome
from evenhand.statistics.request import Request
from evenhand.tables import Table
from evenhand.tables.engines import one_reading

_ONE_BUCKET = Bounding("none", None, "each user is counted in one bucket of a histogram", "nothing had to be chosen")


@dataclass(frozen=True)
class ProfileDraft(Draft):
    """A draft whose answer is a `Profile`."""

    order: Order | None = None

    def drawn(self, receipt: Receipt) -> Profile:  # type: ignore[override]
        """The profile that was paid for."""
        assert self.order is not None
        with one_reading():
            return self.order.drawn(receipt)


def profile_draft(table: Table, epsilon: Amount | None = None) -> ProfileDraft:
    """A private histogram of users by number of rows, before anything is spent."""
    if table.relation.counts_are_public:
        raise UsageError(
            "with protects='values' the number of rows of each user is public, so there is nothing to buy."
        )
    order = Order(table, Request.parse(table, epsilon, 0, "auto").epsilon)
    cost = Cost.pure(order.epsilon)
    words = "users by number of rows"
    return ProfileDraft(
        words,
        order.guarantee,
        cost,
        order.query,
        _ONE_BUCKET,
        Error(None),
        _no_outcome,
        source=table.source,
        order=order,
    )


def _no_outcome(receipt: Receipt) -> Outcome:
    raise NotImplementedError("a profile is drawn, not measured: it is no release of a value")
