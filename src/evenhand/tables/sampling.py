"""At most h random rows of each user.

Every row draws its own random number from the engine, which seeds itself anew for each query; a user keeps the
rows with the h smallest. So the choice depends neither on the order of rows nor on any other user's rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evenhand.tables.saturation import saturating_sum
from evenhand.tables.table import Table


def sampled_sums(table: Table, rows: Any, above: Mapping[str, Any], limit: int) -> Any:
    """Per user: how many rows were kept, and the sum of each value over them."""
    import ibis

    drawn = rows.select(*table.user, **above, evenhand_draw=ibis.random())
    if table.engine.name == "duckdb" and len(above) == 1:
        # A bounded heap a user instead of a sort: no window, memory h values a user.
        (name,) = above
        kept = drawn.group_by(list(table.user)).aggregate(
            evenhand_kept=_smallest()(drawn[name], drawn.evenhand_draw, limit)
        )
        values = kept.evenhand_kept
        return kept.mutate(rows=values.length(), **{name: values.sums()}).drop("evenhand_kept")
    window = ibis.window(group_by=list(table.user), order_by="evenhand_draw")
    ranked = drawn.mutate(evenhand_rank=ibis.row_number().over(window))
    kept = ranked.filter(ranked.evenhand_rank < limit)
    sums = {name: saturating_sum(table, kept[name]) for name in above}
    return kept.group_by(list(table.user)).aggregate(rows=kept.count(), **sums)


@lru_cache(maxsize=1)
def _smallest() -> Any:
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.agg.builtin(name="arg_min", signature=((dt.int64, dt.float64, dt.int64), dt.Array(dt.int64)))
    def arg_min(value, key, count): ...  # type: ignore[no-untyped-def]

    return arg_min
