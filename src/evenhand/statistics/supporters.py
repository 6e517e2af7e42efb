"""How many values users can support if each supports at most ℓ: for `distinct`.

Users come in a fixed order, those with few values first, and each takes the first ℓ of their values that nobody has taken.
One user more adds at most ℓ taken values, and takes none away (docs/proofs/distinct.md). On the shapes of `benchmarks/accuracy` this
reaches 99% or more of the largest number that any assignment reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenhand.statistics.keys import ID
from evenhand.tables import Table
from evenhand.tables.expressions import Rows

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = npt.NDArray[np.int64]

_USER, _SIZE, _VALUE = "evenhand_user", "evenhand_size", "evenhand_value"


def numbered_pairs(table: Table, pairs: Rows, value: str) -> Rows:
    """The pairs of user and value as numbers, for `supported`: as one query over ``pairs``, in which none occurs twice.

    Users are numbered in their order: by their number of values, then by themselves. A value that some user has alone is
    taken by such a user in any case, so of those only their number by group leaves the engine, with the user −1.

    Args:
        table: the copy that the pairs come from.
        pairs: user columns, the group `ID`, and the value.
        value: the name of the value column.
    """
    import ibis

    names, whole = list(table.user_names), [ID, value]
    users = pairs.group_by(names).aggregate(**{_SIZE: pairs.count().cast("int64")})
    in_order = ibis.window(order_by=[users[_SIZE], *(users[name] for name in names)])
    users = users.mutate(**{_USER: ibis.row_number().over(in_order).cast("int64")})
    sized = pairs.join(users, names)
    values = sized.group_by(whole).aggregate(lightest=sized[_SIZE].min())
    alone = values.filter(values.lightest == 1)
    counted = alone.group_by(ID).aggregate(**{_SIZE: alone.count().cast("int64")})
    nobody = ibis.literal(-1, "int64")
    counted = counted.select(ID, _SIZE, **{_USER: nobody, _VALUE: nobody})
    others = values.filter(values.lightest > 1)
    in_order = ibis.window(order_by=[others[name] for name in whole])
    others = others.mutate(**{_VALUE: ibis.row_number().over(in_order).cast("int64")})
    rest = sized.join(others.select(*whole, _VALUE), whole).select(ID, _SIZE, _USER, _VALUE)
    return rest.union(counted)


def supported(found: pa.Table, groups: int, limits: Sequence[int]) -> list[list[int]]:
    """For each limit, the number of taken values by group."""
    group, size, user, value = (found[name].to_numpy().astype(np.int64) for name in (ID, _SIZE, _USER, _VALUE))
    counted = user < 0
    alone = np.bincount(group[counted], size[counted], groups).astype(np.int64)
    rest = ~counted
    group, size, user, value = group[rest], size[rest], user[rest], value[rest]
    in_order = np.lexsort((value, user))
    size, user, value = size[in_order], user[in_order], value[in_order]
    group_of = np.zeros(int(value.max()) + 1 if len(value) else 0, np.int64)
    group_of[value] = group[in_order]
    return [
        (alone + np.bincount(group_of[_taken(size, user, value, len(group_of), limit)], minlength=groups)).tolist()
        for limit in limits
    ]


def _taken(size: Numbers, user: Numbers, value: Numbers, values: int, limit: int) -> npt.NDArray[np.bool_]:
    """Which values are taken; the pairs are sorted by user, so those of light users, who take all of theirs, come first."""
    taken = np.zeros(values, np.bool_)
    heavy = int(np.searchsorted(size, limit, side="right"))
    taken[value[:heavy]] = True
    free = ~taken[value[heavy:]]
    user, value = user[heavy:][free], value[heavy:][free]
    ends = np.append(np.flatnonzero(np.diff(user)) + 1, len(user)).tolist() if len(user) else []
    marks, first = bytearray(taken.tobytes()), 0
    for last in ends:
        left = limit
        for one in value[first:last].tolist():
            if not marks[one]:
                marks[one] = 1
                left -= 1
                if not left:
                    break
        first = last
    return np.frombuffer(bytes(marks), np.bool_)
