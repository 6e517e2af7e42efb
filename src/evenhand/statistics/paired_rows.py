"""Pairs of user and group in place of rows, from a reading that has formed them (`tables/paired.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from evenhand.bounding import Norm
from evenhand.guarantee import Relation
from evenhand.statistics.count import Count
from evenhand.statistics.keys import ID
from evenhand.statistics.mean import Mean
from evenhand.statistics.statistic import Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.users import Users
from evenhand.statistics.weighted_rows import WeightedRows
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.paired import ROWS, PairedTable
from evenhand.tables.summaries import known

_LINEAR = (Count, Users, Sum, Mean)


@dataclass(frozen=True)
class PairedRows(WeightedRows):
    """Pairs of user and group in place of rows: what a user adds is the sums of a pair times the user's weight.

    Args:
        distinct: a pair counts once, however many rows it has.
    """

    are_pairs: ClassVar[bool] = True

    distinct: bool = False

    def rows(self) -> Rows:
        """Users, group, `ROWS`, and for each value column ``value_i`` and ``size_i``."""
        import ibis

        table = self.table
        assert isinstance(table, PairedTable)
        rows = self.keys.attach(table, table.expression)
        rows = rows.filter(*(known(table, rows[name]) for name in table.user_names))
        found = table.of(rows, self.columns)
        kept = rows.select(ID, *table.user_names, **found)
        if self.columns and table.relation is Relation.PRESENCE:
            kept = kept.filter(kept[ROWS] > 0)
        return kept.mutate(**{ROWS: ibis.literal(1, "int64")}) if self.distinct else kept

    def pairs(self, norms: Sequence[Norm]) -> Rows:
        rows = self.rows()
        sizes = {Norm.ROWS: ROWS, Norm.VALUES: "size_0"}
        return rows.select(*self.table.user_names, **{norm.name: rows[sizes[norm]] for norm in norms})


def linear(statistic: Statistic) -> bool:
    """Whether its integers are a user's weight times sums over rows. By exact type: a subclass may add what is not."""
    return type(statistic) in _LINEAR


def pair_integers(
    statistic: Statistic, weight: Integers, rows: Integers, sums: Sequence[Integers]
) -> dict[str, Integers]:
    """`Statistic.integers` summed over the rows of a pair, which all have this weight."""
    if isinstance(statistic, Mean):
        above = sums[0] * weight
        return {"above": above, "below": (rows * statistic.grid.top - sums[0]) * weight, "weight": rows * weight}
    if isinstance(statistic, Sum):
        return {"sum": sums[0] * weight, "weight": rows * weight, "exact": rows}
    return {"rows": rows * weight, "exact": rows}
