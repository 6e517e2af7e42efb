"""Ibis tables, told apart and traced to what evaluates them."""

from __future__ import annotations

from evenhand.tables.expressions import Backend, Rows


def is_ibis(source: object) -> bool:
    """Whether this is an Ibis table, without importing Ibis for what is none."""
    if type(source).__module__.partition(".")[0] != "ibis":
        return False
    import ibis.expr.types as ir

    return isinstance(source, ir.Table)


def ibis_backend(table: Rows) -> Backend:
    """What evaluates an Ibis table; Ibis' default for one in memory."""
    return table._find_backend(use_default=True)
