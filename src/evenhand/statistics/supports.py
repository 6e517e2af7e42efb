"""How much support each hidden group has, in the engine: a user adds the same to each of their groups, of which at most k count.

Only users in more than k groups are sampled; for all others a join with the number of their groups is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.noise import Round
from evenhand.profiles import users_by_bucket
from evenhand.release import Measurement
from evenhand.statistics.keys import PLACE, holding, occurring, placed
from evenhand.statistics.support_choice import BUCKETS
from evenhand.tables import Secret, Table
from evenhand.tables.expressions import Rows
from evenhand.tables.paired import PairedTable
from evenhand.tables.sampling import sampled_rows
from evenhand.tables.saturation import exact_sum
from evenhand.tables.table import key_names

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS = "evenhand_groups"
SUPPORT = "evenhand_support"


@dataclass(frozen=True)
class Pairs:
    """Who is in which group: one row for each user and group, kept in the engine.

    Args:
        table: one reading of the table.
        rows: the pairs.
        users: one row per user, with the number of groups.
        found: the different groups, numbered by `PLACE`.
        names: the key columns.
    """

    table: Table
    rows: Rows
    users: Rows
    found: Rows
    names: tuple[str, ...]

    def histogram(self) -> Measurement:
        """Users by number of groups."""
        return users_by_bucket(self.table, self.users, self.users[GROUPS], BUCKETS)

    def supports(self, look: Round, limit: int) -> Measurement:
        """The support of each group at its place, if a user supports at most ``limit`` groups."""
        return Measurement(lambda: self._supports(look, limit), look.l2_squared, look.l2_squared)

    @contextmanager
    def without(self, places: Sequence[int]) -> Iterator[Pairs]:
        """The pairs of all other groups."""
        with holding(self.table.engine, {PLACE: places}) as shown:
            left = self.rows.anti_join(self.found.join(shown, PLACE).select(*self.names), self.names)
            with self.table.engine.kept(left) as rows, _users(self.table, rows) as users:
                yield Pairs(self.table, rows, users, self.found, self.names)

    def _supports(self, look: Round, limit: int) -> Secret[list[int]]:
        """Users in few groups and users in many, one after the other; none is in both."""
        import ibis

        users, keys = self.users, list(self.table.user_names)
        with holding(self.table.engine, _weights(look, limit)) as weights:
            few = self.rows.join(users.join(weights, GROUPS).select(*keys, SUPPORT), keys)
            busy = users.filter(users[GROUPS] > limit).select(*keys)
            many = sampled_rows(self.table, self.rows.join(busy, keys), limit)
            many = many.mutate(**{SUPPORT: ibis.literal(look.weight(limit), "int64")})
            parts = [rows.select(*self.names, SUPPORT) for rows in (few, many)]
            summed = [
                rows.group_by(self.names).aggregate(**{SUPPORT: exact_sum(self.table, rows[SUPPORT])}) for rows in parts
            ]
            numbered = [rows.join(self.found, self.names).select(PLACE, SUPPORT) for rows in summed]
            return self.table.engine.fetch(ibis.union(*numbered)).map(_by_place)


@contextmanager
def pairs_of(table: Table, by: Sequence[str]) -> Iterator[Pairs]:
    """All pairs of a copy made by `Table.once`, or by `paired`."""
    names = tuple(key_names(len(by)))
    with ExitStack() as open_tables:
        rows = occurring(table, by)
        if not isinstance(table, PairedTable):
            rows = open_tables.enter_context(table.engine.kept(rows.distinct()))
        found = open_tables.enter_context(table.engine.kept(placed(rows.select(*names).distinct())))
        users = open_tables.enter_context(_users(table, rows))
        yield Pairs(table, rows, users, found, names)


@contextmanager
def _users(table: Table, rows: Rows) -> Iterator[Rows]:
    counted = rows.group_by(list(table.user_names)).aggregate(**{GROUPS: rows.count()})
    with table.engine.kept(counted) as users:
        yield users


def _weights(look: Round, limit: int) -> dict[str, list[int]]:
    groups = list(range(1, limit + 1))
    return {GROUPS: groups, SUPPORT: [look.weight(count) for count in groups]}


def _by_place(found: pa.Table) -> list[int]:
    """The supports in the order of their places: the position of a number is the place of its group."""
    places, supports = found[PLACE].to_pylist(), found[SUPPORT].to_pylist()
    result = [0] * (max(places, default=-1) + 1)
    for place, support in zip(places, supports, strict=True):
        result[place] += int(support)
    return result
