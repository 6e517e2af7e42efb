"""At most h random rows of each user.

Every row draws its own random number from the engine, which seeds itself anew for each query; a user keeps the
rows with the h smallest. So the choice depends neither on the order of rows nor on any other user's rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.tables.expressions import Column, Rows
from evenhand.tables.table import Table


def sampled_sums(table: Table, rows: Rows, above: Mapping[str, Column], limit: int) -> Rows:
    """Per user: how many rows were kept, and the sum of each value over them."""
    import ibis

    drawn = rows.select(**table.user_keys(rows), **above, evenhand_draw=ibis.random())
    return table.engine.sampled_sums(drawn, list(table.user_names), list(above), limit)


def sampled_rows(table: Table, rows: Rows, limit: int) -> Rows:
    """At most ``limit`` random rows of each user; the rows carry the user columns under their inner names."""
    import ibis

    drawn = rows.mutate(evenhand_draw=ibis.random())
    return first_rows(drawn, table.user_names, limit).drop("evenhand_draw", "evenhand_rank")


def first_rows(drawn: Rows, users: Sequence[str], limit: int) -> Rows:
    """The rows of each user with the smallest draws."""
    import ibis

    window = ibis.window(group_by=list(users), order_by="evenhand_draw")
    ranked = drawn.mutate(evenhand_rank=ibis.row_number().over(window))
    return ranked.filter(ranked.evenhand_rank < limit)
