"""Counts and sums: one bounded total, plus noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.bounding import Auto, Contribution, Strategy, Summary
from evenhand.release import Additive, Error, Receipt, noise_for
from evenhand.statistics.choosing import Chosen, cap_from_profile, pending, profile_of_total, users_once
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.profiles import given_profile, settled
from evenhand.statistics.request import Request, given
from evenhand.statistics.totals import measure
from evenhand.tables import Grid
from evenhand.tables.summaries import per_user


@dataclass(frozen=True)
class Total:
    """What is added up over users.

    Args:
        words: the statistic in words.
        query: its public parameters.
        columns: value columns with their grids; none for a count of rows.
        contribute: the bounded contribution of a user under a strategy.
        unit: what one integer step is worth.
    """

    words: str
    query: dict[str, Any]
    columns: Sequence[tuple[str, Grid]]
    contribute: Callable[[Strategy, Summary], Contribution]
    unit: float

    def summary(self, users: Any) -> Summary:
        """The per-user columns of this statistic."""
        return Summary(users.rows, users.above_0, self.columns[0][1]) if self.columns else Summary(users.rows)


def draft_total(request: Request, total: Total) -> Draft:
    """Work out a count or sum from public facts."""
    bounding = request.bounding
    if isinstance(bounding, Strategy):
        users = per_user(request.table, total.columns, bounding.rows_kept)
        contribution = total.contribute(bounding, total.summary(users))
        noise = noise_for(contribution.l1, contribution.l2_squared, request.epsilon)
        chosen = Chosen(bounding, given(bounding), request.epsilon)

        def run(receipt: Receipt) -> Outcome:
            return _finish(request, total, users, chosen, receipt)

        error = Error(noise.variance**0.5 * total.unit)
        return _draft(request, total, chosen.bounding, error, run)

    given_profile(request)  # refuses one that would leak, before any debit
    about = profile_of_total(bounding, total.columns, total.words)
    request = settled(request, about)

    def choose_and_run(receipt: Receipt) -> Outcome:
        assert isinstance(bounding, Auto)
        with users_once(request, bounding, total.columns) as (table, users):
            chosen = cap_from_profile(request, bounding, receipt, users, total.summary(users), about, total.unit)
            kept = chosen.strategy.rows_kept
            sampled = users if kept is None else per_user(table, total.columns, kept)
            return _finish(request, total, sampled, chosen, receipt)

    described = pending(bounding, request, about)
    return _draft(request, total, described, Error(None), choose_and_run)


def _draft(request: Request, total: Total, bounding: Any, error: Error, run: Callable[[Receipt], Outcome]) -> Draft:
    query = {**total.query, "bounding": bounding.to_dict()}
    return Draft(total.words, request.guarantee(), request.pure(), query, bounding, error, run)


def _finish(request: Request, total: Total, users: Any, chosen: Chosen, receipt: Receipt) -> Outcome:
    contribution = total.contribute(chosen.strategy, total.summary(users))
    noisy = receipt.numbers(measure(request.table, users, contribution), chosen.epsilon)
    value = noisy.values[0] * total.unit
    error = chosen.error(noisy.noise.variance**0.5 * total.unit)
    return Outcome(value, Additive(value, noisy.noise, total.unit), chosen.bounding, error)
