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

_LARGEST_HEAP = 1_000_000  # DuckDB refuses larger ones


def sampled_sums(table: Table, rows: Any, above: Mapping[str, Any], limit: int) -> Any:
    """Per user: how many rows were kept, and the sum of each value over them."""
    import ibis

    drawn = rows.select(**table.user_keys(rows), **above, evenhand_draw=ibis.random())
    users = list(table.user_names)
    if table.engine.name == "duckdb" and len(above) == 1 and limit < _LARGEST_HEAP:
        # A bounded heap a user instead of a sort: no window, memory h values a user.
        (name,) = above
        kept = drawn.group_by(users).aggregate(evenhand_kept=_smallest()(drawn[name], drawn.evenhand_draw, limit))
        values = kept.evenhand_kept
        return kept.mutate(rows=values.length(), **{name: values.sums().cast("int64")}).drop("evenhand_kept")
    kept = _first(table, drawn, limit)
    sums = {name: saturating_sum(kept[name]) for name in above}
    return kept.group_by(users).aggregate(rows=kept.count(), **sums)


def sampled_rows(table: Table, rows: Any, limit: int) -> Any:
    """At most ``limit`` random rows of each user; the rows carry the user columns under their inner names."""
    import ibis

    return _first(table, rows.mutate(evenhand_draw=ibis.random()), limit).drop("evenhand_draw", "evenhand_rank")


def _first(table: Table, drawn: Any, limit: int) -> Any:
    """The rows of each user with the smallest draws."""
    import ibis

    window = ibis.window(group_by=list(table.user_names), order_by="evenhand_draw")
    ranked = drawn.mutate(evenhand_rank=ibis.row_number().over(window))
    return ranked.filter(ranked.evenhand_rank < limit)


@lru_cache(maxsize=1)
def _smallest() -> Any:
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.agg.builtin(name="arg_min", signature=((dt.float64, dt.float64, dt.int64), dt.Array(dt.float64)))
    def arg_min(value, key, count): ...  # type: ignore[no-untyped-def]

    return arg_min
