"""Located means on tables with a handful of users, where Auto would not locate anybody.

Every centre and all caps must be safe, so they may be anything here: the centre is the fullest bin of a noisy histogram of
user means, and the caps are given.
"""

from __future__ import annotations

from decimal import Decimal

from evenhand.audit.pairs import HIGH, LOW
from evenhand.bounding import Auto, LocatedMean, Summary
from evenhand.guarantee import split
from evenhand.planning import LocationRequest
from evenhand.release import Bounding, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft
from evenhand.statistics.choosing import Chosen, user_means
from evenhand.statistics.mean import draft_mean
from evenhand.statistics.request import Request
from evenhand.statistics.shelf import About
from evenhand.tables.expressions import Rows

_BINS = 8


def located_mean(
    ask: Drafts,
    below: int,
    above: int,
    strategy: type[LocatedMean] = LocatedMean,
    bounds: tuple[float, float] = (LOW, HIGH),
) -> Draft:
    """The mean of the column ``v`` with ε = 1: a quarter locates users, the rest releases the capped distances.

    Args:
        ask: the table.
        below: the cap below the centre, in grid steps.
        above: the cap above it.
        strategy: a located mean, or a broken twin of it.
        bounds: of the values.
    """

    def choose(request: Request, auto: Auto, receipt: Receipt, users: Rows, summary: Summary, about: About) -> Chosen:
        paid, left = split(request.epsilon, Decimal("0.25"))
        wanted = LocationRequest(paid, rows=1, bins=_BINS, expected=10.0)
        counts = receipt.numbers(user_means(request, users, summary, wanted), paid).values
        assert summary.grid is not None
        centre = summary.grid.width * (2 * counts.index(max(counts)) + 1) // (2 * _BINS)
        public = request.relation.counts_are_public
        for_rows, for_sum = (Decimal(0), left) if public else split(left, Decimal("0.2"))
        made = strategy(centre, below, above, rows_cap=None if public else 3, rows=None if public else 10.0)
        return Chosen(made, Bounding(made.title, None, made.describe()), for_sum, epsilon_rows=for_rows)

    return draft_mean(ask._request(1, 0, "auto"), "v", bounds, choose)
