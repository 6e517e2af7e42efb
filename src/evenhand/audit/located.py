"""Located means on tables with a handful of users, where Auto would not locate anybody.

Every centre and all caps must be safe, so they may be anything here: the centre is the fullest bin of a noisy histogram of
user means, and the caps are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from evenhand.audit.pairs import HIGH, LOW
from evenhand.bounding import Choice, LocatedMean
from evenhand.guarantee import split
from evenhand.profiles import LocationRequest, TiltRequest, Wanted
from evenhand.release import Bounding, Error, Exact, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft, Mean, Outcome, Request
from evenhand.statistics.mean import UserMeans
from evenhand.tables import Grid
from evenhand.tables.expressions import Rows
from evenhand.tables.grid import bits_for
from evenhand.tables.summaries import per_user

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
    request = Request.parse(ask.table, 1)
    grid = Grid.about(bounds, origin=bounds[0], bits=bits_for(request.epsilon))
    return _Located(Mean("v", bounds), request, (("v", grid),), below, above, strategy).draft()


def tilted(ask: Drafts, kind: type[TiltRequest] = TiltRequest) -> Draft:
    """How far users by number of rows lie from a given centre, alone with ε = 1.

    Args:
        ask: the table.
        kind: the request, or a broken twin of it.
    """
    request = Request.parse(ask.table, 1)
    grid = Grid.about((LOW, HIGH), origin=LOW, bits=bits_for(request.epsilon))
    asked, words = kind(request.epsilon, (1, 2, 4), 0.5, 0.3), Bounding("none", None, "each user counts in one class")

    def run(receipt: Receipt) -> Outcome:
        users = per_user(request.table, (("v", grid),))
        sums = receipt.numbers(asked.of(request.table, users, grid.width), request.epsilon)
        return Outcome([float(value) for value in sums.values], Exact(0.0), words, Error(None))

    query = {"statistic": "distances by number of rows"}
    return Draft(query["statistic"], request.guarantee(), request.pure(), query, words, Error(None), run)


@dataclass(frozen=True)
class _Located(UserMeans):
    """A mean whose caps are given."""

    below: int = 1
    above: int = 1
    made: type[LocatedMean] = LocatedMean

    def choose(self, users: Rows, wanted: Wanted | None, receipt: Receipt) -> tuple[Choice, Decimal]:
        paid, left = split(self.request.epsilon, Decimal("0.25"))
        asked = LocationRequest(paid, rows=1, bins=_BINS, expected=10.0)
        counts = receipt.numbers(asked.of(self.request.table, users, self.grid.width), paid).values
        centre = self.grid.width * (2 * counts.index(max(counts)) + 1) // (2 * _BINS)
        public = self.request.relation.counts_are_public
        rows_cap, rows = (None, None) if public else (3, 10.0)
        return Choice(self.made(self.above, self.below, centre, rows_cap, rows)), left
