"""Pairs of user and group: what a located mean by group is made of, inside the engine.

A pair has a number of rows and a sum of grid integers. Every released integer is, for each pair, an integer times the integer
weight ``⌊N/norm⌋`` of its user, where the norm is that of the same integers over all groups of the user. So what one
user adds to all groups together has a norm of at most N, exactly (docs/proofs/group-means.md).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.statistics.keys import ID, Keys
from evenhand.statistics.paired_rows import PairedRows
from evenhand.statistics.weighted_rows import FULL, WeightedRows, fetch_groups
from evenhand.tables import Grid, Secret, Table
from evenhand.tables.expressions import Column, Integers, Rows
from evenhand.tables.paired import ROWS, PairedTable
from evenhand.tables.saturation import MOST_ROWS, saturating_sum

PART_BITS = 12
PART = 2**PART_BITS
"""Steps of the rough mean of a pair: it only serves to find a centre."""

OCTAVES = 10
"""The number of rows of a pair is told apart up to two to this power."""

ROW = 2**16
"""Steps of one usual row."""

_LARGEST = 2**52


@dataclass(frozen=True)
class Centres:
    """For each group a centre in grid steps, and what one row counts for: one over the rows that a user there usually has."""

    centres: npt.NDArray[np.int64]
    scales: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """All pairs of user and group of one reading.

    Args:
        table: the copy of the rows.
        keys: the groups.
        grid: of the value column, seen from its lower bound.
        rows: in the engine, one row per pair: the users, the group, ``count`` rows and their sum ``above`` the lower bound.
        squared: whether norms are L2 norms.
    """

    table: Table
    keys: Keys
    grid: Grid
    rows: Rows
    squared: bool = False

    @classmethod
    @contextmanager
    def of(cls, copy: Table, keys: Keys, column: str, grid: Grid, squared: bool = False) -> Iterator[Pairs]:
        """Form the pairs once, and keep them in the engine."""
        import ibis

        columns = ((column, grid),)
        if isinstance(copy, PairedTable):
            found = PairedRows(copy, keys, columns).rows()
            pairs = found.select(*copy.user_names, ID, count=found[ROWS], above=found.value_0)
        else:
            rows = WeightedRows(copy, keys, columns).rows()
            pairs = rows.group_by([*copy.user_names, ID]).aggregate(
                count=ibis.least(rows.count(), MOST_ROWS), above=saturating_sum(rows.value_0)
            )
        with copy.engine.kept(pairs) as kept:
            yield cls(copy, keys, grid, kept, squared)

    @contextmanager
    def users(self, placed: Rows | None = None, **integers: Integers) -> Iterator[Rows]:
        """One row per user, kept: the norm of each of the integers over the user's groups."""
        rows = self.rows if placed is None else placed
        norms = {name: self._norm(value) for name, value in integers.items()}
        with self.table.engine.kept(rows.group_by(list(self.table.user_names)).aggregate(**norms)) as users:
            yield users

    @contextmanager
    def groups_per_user(self) -> Iterator[Rows]:
        """One row per user, kept: the number of ``groups``, and its root, slightly too large."""
        rows = self.rows
        users = rows.group_by(list(self.table.user_names)).aggregate(groups=rows.count())
        with self.table.engine.kept(users.mutate(root=users.groups.cast("float64").sqrt() * (1 + 2.0**-24))) as kept:
            yield kept

    def _norm(self, value: Integers) -> Column:
        if not self.squared:
            return saturating_sum(value.abs())
        import ibis

        double = value.cast("float64")
        # Slightly too large, as in `WeightedRows.norms`: rounding can then only lower a weight.
        norm = (double * double).sum().sqrt() * (1 + 2.0**-24)
        return ibis.least(norm, ibis.literal(2.0**53, "float64"))

    def about(self, centres: Centres) -> Rows:
        """The pairs with two integers: ``residual``, the distance of the sum from rows × centre, and ``size``, the rows.

        Both are counted in rows that a user of the group usually has.
        """
        import ibis
        import pyarrow as pa

        engine, owner = self.table.engine, centres
        held = engine.hold(
            owner,
            pa.table(
                {
                    ID: pa.array(range(self.keys.groups), type=pa.int64()),
                    "centre": pa.array(centres.centres, type=pa.int64()),
                    "scale": pa.array(centres.scales, type=pa.float64()),
                }
            ),
        )
        joined = self.rows.join(held, ID, how="inner")
        half = ibis.literal(0.5, "float64")
        residual = (joined.above - joined["count"] * joined.centre).cast("float64") * joined.scale
        size = joined["count"].cast("float64") * joined.scale * ibis.literal(float(ROW), "float64")
        return joined.select(
            *self.table.user_names,
            ID,
            residual=_whole(engine.floor(residual + half)),
            size=_whole(engine.floor(size + half)),
        )

    def parts(self) -> dict[str, Integers]:
        """Rough integers of each pair from 0 to `PART`: the mean above the lower bound, below the upper, and the octave of the rows."""
        import ibis

        rows = self.rows
        one, zero = ibis.literal(1, "int64"), ibis.literal(0, "int64")
        mean = rows.above.cast("float64") * (PART / self.grid.width) / rows["count"].cast("float64")
        above = self.table.engine.floor(mean + ibis.literal(0.5, "float64")).cast("int64")
        above = ibis.least(ibis.greatest(above, 0), PART)
        octave = functools.reduce(
            operator.add, ((rows["count"] >= 2 ** (step + 1)).ifelse(one, zero) for step in range(OCTAVES))
        )
        return {"above": above, "below": PART - above, "octave": octave * (PART // OCTAVES)}

    def sums(
        self, users: Rows, weighted: Sequence[tuple[str, int, str]], placed: Rows | None = None, **others: Integers
    ) -> Callable[[], Secret[dict[str, list[int]]]]:
        """Sums by group, from one query that runs at most once.

        Args:
            users: with norms.
            weighted: names of integers, each with the capacity and the norm of its weight.
            placed: pairs that carry those integers as columns; the plain ones if None.
            others: integers of the plain pairs by name; those that are not weighted are summed as they are.
        """
        rows = self.rows if placed is None else placed
        rows = rows.mutate(**others) if others else rows
        weights = {f"weight_{name}": weight(users[norm], capacity) for name, capacity, norm in weighted}
        joined = rows.join(users.select(*self.table.user_names, **weights), list(self.table.user_names), how="inner")
        integers = {name: joined[name] * joined[f"weight_{name}"] for name, _, _ in weighted}
        integers |= {name: joined[name] for name in others if name not in integers}
        return functools.cache(lambda: fetch_groups(self.table, joined, self.keys.groups, integers))


def weight(norm: Column, capacity: int) -> Integers:
    """``⌊capacity/norm⌋``, at most `FULL`: the exact quotient for a capacity up to 2^52 (docs/proofs/row-weights.md)."""
    import ibis

    divisor = ibis.greatest(norm.cast("float64"), ibis.literal(1.0, "float64"))
    quotient = (ibis.literal(float(capacity), "float64") / divisor).floor()
    return ibis.least(quotient, ibis.literal(float(FULL), "float64")).cast("int64")


def _whole(double: Column) -> Integers:
    """A whole double as an integer that fits, whatever the sums were."""
    import ibis

    limit = float(_LARGEST)
    return ibis.least(ibis.greatest(double, ibis.literal(-limit, "float64")), ibis.literal(limit, "float64")).cast(
        "int64"
    )


def picked(sums: Callable[[], Secret[dict[str, list[int]]]], *names: str) -> Callable[[], Secret[list[int]]]:
    """Some of the sums, one after the other."""

    def join(found: Mapping[str, list[int]]) -> list[int]:
        return [number for name in names for number in found[name]]

    return lambda: sums().map(join)
