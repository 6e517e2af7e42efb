"""Names for what an engine has not computed yet, so that signatures say what they take.

Ibis has no type information, so a type checker takes each of these for `Any`; people read what is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import ibis.expr.types as ir

Rows: TypeAlias = "ir.Table"
"""A query: rows of a table, or what it was aggregated to."""

Column: TypeAlias = "ir.Column"
"""One value per row of a query."""

Integers: TypeAlias = "ir.IntegerColumn"
"""One whole number per row of a query."""
