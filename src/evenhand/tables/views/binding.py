"""Expressions as people give them: Ibis (`evenhand._`), SQL text, or a constant.

An Ibis expression is never printed here: it may run its query, or show the rows of a table in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from evenhand.guarantee import DataError, UsageError, suggest, told
from evenhand.tables.expressions import Column, Operation

if TYPE_CHECKING:
    from evenhand.tables.table import Table

_LONGEST = 1000
"""Characters of an expression in words: a ledger keeps them, and people read them."""


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


def as_written(given: object) -> str:
    """An expression in words, for people and for the ledger: as it was given, or what it does with which columns."""
    import ibis.expr.types as ir
    from ibis.common.deferred import Deferred

    if isinstance(given, Deferred):
        with unprinted():
            return str(given)
    if isinstance(given, ir.Value):
        node = given.op()
        return str(node.map(_words)[node])
    return given if isinstance(given, str) else told(given)


def _words(node: Operation, _: object, **parts: object) -> str:
    """One operation, whose parts are in words already. Parts that are shared would double the text with each step, so it is cut."""
    import ibis.expr.operations as ops

    if isinstance(node, ops.Field):
        return str(node.name)
    if isinstance(node, ops.Literal):
        return told(node.value)
    if not isinstance(node, ops.Value):
        return type(node).__name__  # tables, which may hold rows
    inner = [each for part in parts.values() for each in (part if isinstance(part, tuple) else (part,))]
    words = ", ".join(str(each) for each in inner if each is not None)
    return f"{type(node).__name__}({words if len(words) <= _LONGEST else words[:_LONGEST] + '…'})"


def problem(error: Exception) -> str:
    """What Ibis finds wrong with an expression, in a line that holds no value: its own message prints what it was given."""
    from ibis.common.annotations import SignatureValidationError

    if not isinstance(error, SignatureValidationError):
        with unprinted():
            return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    given = [*error.args, *error.kwargs.values()]
    kinds = [str(each.type()) if hasattr(each, "type") and callable(each.type) else told(each) for each in given]
    return f"{error.func.__name__} is not defined for {', '.join(kinds)}"


@contextmanager
def unprinted() -> Iterator[None]:
    """A block in which Ibis runs no query when it names an expression, as it does in a notebook's interactive mode."""
    import ibis

    with _PRINTING:
        before, ibis.options.interactive = ibis.options.interactive, False
        try:
            yield
        finally:
            ibis.options.interactive = before


_PRINTING = RLock()


def _resolved(table: Table, given: Column, role: str) -> object:
    """A deferred expression on the table's rows; what Ibis finds wrong with it, in our words."""
    import ibis.common.exceptions as ibis_errors
    from ibis.common.annotations import SignatureValidationError

    rows = table.expression
    try:
        with unprinted():
            return given.resolve(rows)
    except AttributeError as error:
        name = str(getattr(error, "name", "") or "")
        if isinstance(error.obj, type(rows)):
            raise DataError(
                f"{role} uses a column {name!r}, and there is none; the columns are {list(table.columns)}.{suggest(name, table.columns)}"
            ) from None
        found = problem(error)
    except (ibis_errors.IbisError, SignatureValidationError, TypeError, ValueError, ArithmeticError) as error:
        found = problem(error)
    text = f" The columns {sorted(table.text)} were read as text: write _.name.cast('float64')." if table.text else ""
    methods = [name for name in table.columns if callable(getattr(type(rows), name, None))]
    named = f" Ibis has methods with the names of the columns {methods}: write _[{methods[0]!r}]." if methods else ""
    raise UsageError(f"{role} can't be understood: {found}.{text}{named}")
