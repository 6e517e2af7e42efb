"""Rows weighted by user: the shape of every grouped statistic, of histograms and of quantiles.

A user who adds much weighs each row less, by one public integer formula: ``W = ⌊N/norm⌋``, at most `FULL`. The norm is the
user's number of rows, or sum of absolute values (L1), or the root of the summed squares of rows per group (L2). What a
user adds to all groups together is then at most ``N``, exactly; and for L1 no (user, group) pair has to be formed:
two passes over a copy and a hash join are cheaper than ``GROUP BY user, group``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from evenhand.bounding import Norm
from evenhand.statistics.keys import ID, Keys
from evenhand.tables import Grid, Secret, Table
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.sampling import sampled_rows
from evenhand.tables.saturation import exact_sum, saturating_sum
from evenhand.tables.summaries import known, valid_rows

if TYPE_CHECKING:
    import pyarrow as pa

WEIGHT_BITS = 16
FULL = 2**WEIGHT_BITS
"""The weight of a row of a user who is not cut."""

VALUE_BITS = 16
"""Row values on a coarser grid than ungrouped ones: with the weight, 2^30 rows of a group fit 62 bits."""

WEIGHT = "evenhand_weight"


@dataclass(frozen=True)
class WeightedRows:
    """Rows with their group, their user's weight, and value columns on their grids.

    Args:
        table: a copy of the rows made by `Table.once`, since they are needed twice.
        keys: the groups.
        columns: value columns with their grids.
        sampled: keep at most this many random rows of a user; None for all.
        drawn: those rows, once they have been chosen.
    """

    table: Table
    keys: Keys
    columns: tuple[tuple[str, Grid], ...]
    sampled: int | None = None
    drawn: Rows | None = None
    are_pairs: ClassVar[bool] = False
    """Whether the rows are pairs of user and group already."""

    @contextmanager
    def fixed(self) -> Iterator[WeightedRows]:
        """The same rows each time: a random choice is made once and kept, since norms and sums must be about one choice."""
        if self.sampled is None:
            yield self
            return
        with self.table.engine.kept(self.rows()) as drawn:
            yield replace(self, drawn=drawn)

    def rows(self) -> Rows:
        """The rows that count: user columns, group, and ``value_i`` for each column."""
        if self.drawn is not None:
            return self.drawn
        grouped = replace(self.table, expression=self.keys.attach(self.table, self.table.expression))
        valid, values = valid_rows(grouped, self.columns)
        named = {
            f"value_{index}": value.cast("int64") + grid.bottom
            for index, (value, (_, grid)) in enumerate(zip(values, self.columns, strict=True))
        }
        selected = valid.select(ID, **self.table.user_keys(valid), **named)
        selected = selected.filter(*(known(self.table, selected[name]) for name in self.table.user_names))
        return selected if self.sampled is None else sampled_rows(self.table, selected, self.sampled)

    def norms(self, norms: Sequence[Norm]) -> Rows:
        """One row per user: the user columns, and each norm in a column of its name."""
        user = list(self.table.user_names)
        if not (self.are_pairs or any(norm.gaussian for norm in norms)):
            rows = self.rows()
            return rows.group_by(user).aggregate(**{norm.name: _l1(rows, norm) for norm in norms})
        pairs = self.pairs(_linear(norms))
        linear = {norm.name: saturating_sum(pairs[norm.name]) for norm in norms if not norm.gaussian}
        squares = {norm.name: _squares(pairs[_LINEAR[norm].name]) for norm in norms if norm.gaussian}
        users = pairs.group_by(user).aggregate(**linear, **squares)
        # Slightly too large: rounding in sums over up to 2^24 groups, and in the root, can then only lower a weight.
        return users.mutate(**{name: users[name].sqrt() * (1 + 2.0**-24) for name in squares})

    def pairs(self, norms: Sequence[Norm]) -> Rows:
        """One row for each user and group: the user columns, and each of these L1 norms in a column of its name."""
        rows = self.rows()
        return rows.group_by([*self.table.user_names, ID]).aggregate(**{norm.name: _l1(rows, norm) for norm in norms})

    def weighted(self, users: Rows, norm: Norm, capacity: int) -> Rows:
        """The rows with the integer weight of their user in the column `WEIGHT`."""
        weights = users.select(*self.table.user_names, **{WEIGHT: quotient(users[norm.name], capacity)})
        return self.rows().join(weights, list(self.table.user_names), how="inner")


_LINEAR = {Norm.SQUARED_ROWS: Norm.ROWS, Norm.SQUARED_VALUES: Norm.VALUES}
"""What is squared, summed up over one group."""


def _linear(norms: Sequence[Norm]) -> list[Norm]:
    return list(dict.fromkeys(_LINEAR.get(norm, norm) for norm in norms))


def _l1(rows: Rows, norm: Norm) -> Integers:
    return rows.count() if norm is Norm.ROWS else saturating_sum(rows.value_0.abs())


def _squares(count: Integers) -> Integers:
    return (count.cast("float64") * count.cast("float64")).sum()


class DistinctRows(WeightedRows):
    """One row for each user and group, however many rows there are; so a user's norm is a number of groups."""

    def rows(self) -> Rows:
        if self.drawn is not None:
            return self.drawn
        return super().rows().select(*self.table.user_names, ID).distinct()


def quotient(norm: Column, capacity: int) -> Integers:
    """A user's weight ``⌊capacity/norm⌋``, at most `FULL`.

    In doubles it is the exact quotient for a capacity up to 2^52 (docs/proofs/row-weights.md).
    """
    import ibis

    size = ibis.greatest(norm.cast("float64"), ibis.literal(1.0, "float64"))
    weight = (ibis.literal(float(capacity), "float64") / size).floor()
    return ibis.least(weight, ibis.literal(float(FULL), "float64")).cast("int64")


def capacity_of(limit: Fraction) -> int:
    """N: the weight that all rows of one user have together, at most."""
    return max(1, int(limit * FULL))


def fetch_groups(
    table: Table, rows: Rows, groups: int, integers: Mapping[str, Integers]
) -> Secret[dict[str, list[int]]]:
    """Sum row integers by group in the engine; groups without rows are zero."""
    sums = {name: exact_sum(table, value) for name, value in integers.items()}

    def by_group(answer: pa.Table) -> dict[str, list[int]]:
        found = answer.to_pydict()
        result = {name: [0] * groups for name in integers}
        for position, group in enumerate(found[ID]):
            for name in integers:
                result[name][group] = int(found[name][position] or 0)
        return result

    return table.engine.fetch(rows.group_by(ID).aggregate(**sums)).map(by_group)
