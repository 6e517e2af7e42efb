"""How many rows, and how many users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evenhand.bounding import TotalCap
from evenhand.release import Bounding, Error, Exact, Receipt
from evenhand.statistics.additive import Total, draft_total
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.request import Request, free
from evenhand.statistics.totals import fetch_totals
from evenhand.tables.summaries import per_user

UNBOUNDED = Bounding("none", None, "nothing has to be bounded", "a public fact under this relation")


def draft_count(request: Request) -> Draft:
    """The number of rows; a public fact when counts are public."""
    words, query = "number of rows", {"statistic": "count"}
    if request.relation.counts_are_public:
        return _public(request, words, query, lambda users: users.rows)
    return draft_total(request, Total(words, query, (), lambda strategy, summary: strategy.of_count(summary), 1))


def draft_users(request: Request) -> Draft:
    """The number of distinct users: capping each at one row counts everybody once, so there is no bias."""
    words, query = "number of users", {"statistic": "users"}
    if request.relation.counts_are_public:
        return _public(request, words, query, lambda users: users.rows.clip(upper=1))
    total = Total(words, query, (), lambda strategy, summary: strategy.of_count(summary), 1)
    draft = draft_total(replace(request, bounding=TotalCap(1)), total)
    bounding = Bounding("TotalCap", 1.0, "each user counts once, however many rows they have", "by definition")

    def run(receipt: Receipt) -> Outcome:
        outcome = draft.run(receipt)
        return replace(outcome, bounding=bounding, error=_unbiased(outcome.error))

    return replace(draft, bounding=bounding, error=_unbiased(draft.error), run=run)


def _unbiased(error: Error) -> Error:
    return Error(error.noise, 0.0, "no user is cut off")


def _public(request: Request, words: str, query: dict[str, Any], value: Callable[[Any], Any]) -> Draft:
    """An exact answer: under values and labels, who is there and with how many rows is public."""
    users = per_user(request.table)
    fetch = fetch_totals(request.table, users, [value(users)])
    error = Error(0.0, 0.0, "the exact answer is public")

    def run(receipt: Receipt) -> Outcome:
        exact = fetch().reveal()[0]
        return Outcome(exact, Exact(exact), UNBOUNDED, error)

    return Draft(words, free(request), None, query, UNBOUNDED, error, run)
