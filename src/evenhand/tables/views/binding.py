"""Expressions as people give them: Ibis (`evenhand._`), SQL text, or a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.tables.expressions import Column

if TYPE_CHECKING:
    from evenhand.tables.table import Table


def bound(table: Table, given: object, role: str) -> Column:
    """An expression over the table's rows. Nothing is judged yet: see ``guard.py``."""
    import ibis
    import ibis.expr.types as ir
    from ibis.common.deferred import Deferred

    if isinstance(given, str):
        from evenhand.tables.views.sql import sql_expression

        return sql_expression(given, table)
    if isinstance(given, Deferred):
        given = _resolved(table, given, role)
    if isinstance(given, ir.Value):
        return given
    if given is None or isinstance(given, bool | int | float) or type(given).__module__ in ("datetime", "decimal"):
        return ibis.literal(given)
    raise UsageError(
        f"{role} is a {type(given).__name__}; expected an expression such as eh._.amount > 0, or the same as SQL text: 'amount > 0'."
    )


def _resolved(table: Table, given: Column, role: str) -> object:
    """A deferred expression on the table's rows; what Ibis finds wrong with it, in our words."""
    import ibis.common.exceptions as ibis_errors
    from ibis.common.annotations import SignatureValidationError

    rows = table.expression
    try:
        return given.resolve(rows)
    except AttributeError as error:
        name = str(getattr(error, "name", "") or "")
        if isinstance(error.obj, type(rows)):
            raise DataError(
                f"{role} uses a column {name!r}, and there is none; the columns are {list(table.columns)}.{suggest(name, table.columns)}"
            ) from None
        problem = str(error)
    except (ibis_errors.IbisError, SignatureValidationError, TypeError, ValueError, ArithmeticError) as error:
        problem = str(error).splitlines()[0]
    text = f" The columns {sorted(table.text)} were read as text: write _.name.cast('float64')." if table.text else ""
    methods = [name for name in table.columns if callable(getattr(type(rows), name, None))]
    named = f" Ibis has methods with the names of the columns {methods}: write _[{methods[0]!r}]." if methods else ""
    raise UsageError(f"{role} can't be understood: {problem.rstrip('.')}.{text}{named}")
