"""How far busy users differ: for users by number of rows, how far their means lie from the located centre, in a few noisy sums.

A bound takes weight from busy users, so it moves a mean as far as they differ from others: amin2019's open question. A user with s rows
belongs to one class by s, and adds to the sum of that class how far their mean lies from the centre, clamped to ± ``reach``. So one
user moves one number by at most the reach, and all classes together cost no more than one (docs/proofs/located-mean.md).
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from evenhand.guarantee import Relation, split
from evenhand.population.support import Support
from evenhand.profiles.location import Location
from evenhand.release import Measurement
from evenhand.tables import Table
from evenhand.tables.expressions import Rows
from evenhand.tables.summaries import exact_sum

if TYPE_CHECKING:
    import pyarrow as pa

STEPS = 1024
"""Integers between the centre and the reach."""

_PARTS = (0.4, 0.15, 0.05, 0.02, 0.007, 0.0025)  # of the users, those with most rows: where classes begin
_REACH = 2.0  # in radii of the run that holds most users
_EVIDENCE = 400.0  # users × ε that make the correlation with rows known to about a twentieth; more buys little
_LEAST = 12.0  # users × ε below which it says nothing
TILT_SHARES = (0.01, 0.03)
"""The least and the largest part of what is left of ε that is spent on it: where people are many, on the few that are busiest."""


@dataclass(frozen=True)
class TiltRequest:
    """Sums of distances to buy.

    Args:
        epsilon: what they cost.
        starts: the least number of rows of a user of each class, increasing from 1.
        centre: as a part of the value range.
        reach: how far from it a user's mean counts in full, likewise.
    """

    epsilon: Decimal
    starts: tuple[int, ...]
    centre: float
    reach: float

    def of(self, table: Table, users: Rows, width: int) -> Measurement:
        """The distances of users by class: each user adds at most `STEPS` either way to one of the sums, whatever the arithmetic does.

        Args:
            table: of the users.
            users: one row per user: ``rows`` and ``above_0``, their sum in steps above the lower bound.
            width: steps between the bounds.
        """
        import ibis

        one, zero = ibis.literal(1, "int64"), ibis.literal(0, "int64")
        later = [(users.rows >= start).ifelse(one, zero) for start in self.starts[1:]]
        position = users.above_0.cast("float64") / (users.rows.cast("float64") * float(width))
        distance = ((position - self.centre) * (STEPS / self.reach)).floor().cast("int64")
        placed = users.select(
            place=functools.reduce(operator.add, later),
            distance=ibis.least(ibis.greatest(distance, -STEPS), STEPS),
        )
        added = placed.group_by("place").aggregate(total=exact_sum(table, placed.distance))

        def sums(found: pa.Table) -> list[int]:
            by_class = dict(zip(found["place"].to_pylist(), found["total"].to_pylist(), strict=True))
            return [int(by_class.get(index) or 0) for index in range(len(self.starts))]

        moved = STEPS * table.relation.moves
        return Measurement(lambda: table.engine.fetch(added).map(sums), l1=moved, l2_squared=moved**2)


def tilt_request(support: Support, location: Location, epsilon: Decimal, relation: Relation) -> TiltRequest | None:
    """The sums worth buying; None if there are too few users for them to say anything, or all have about as many rows.

    Args:
        support: users by number of rows, public or bought.
        location: where their means lie.
        epsilon: what is left.
        relation: decides how far one user moves a sum.
    """
    people = max(support.people, 1.0)
    share = min(max(_EVIDENCE * relation.moves / (people * float(epsilon)), TILT_SHARES[0]), TILT_SHARES[1])
    starts = sorted({1, *(support.heaviest(part * people)[0] for part in _PARTS)})
    if people * float(epsilon) * share < _LEAST * relation.moves or len(starts) < 2:
        return None
    part, _ = split(epsilon, round(share, 5))
    return TiltRequest(part, tuple(starts), location.centre, _REACH * location.radius)
