"""Names for what an engine has not computed yet, and for what it hands back, so that signatures say what they take.

Neither Ibis nor Arrow has type information, so a type checker takes each of these for `Any`; people read what is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.operations as ops
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

Rows: TypeAlias = "ir.Table"  # a query: rows of a table, or what it was aggregated to
Column: TypeAlias = "ir.Column"  # one value per row of a query
Integers: TypeAlias = "ir.IntegerColumn"  # one whole number per row of a query
Operation: TypeAlias = "ops.Node"  # one step of such a column
DataType: TypeAlias = "dt.DataType"  # the type of a column
Backend: TypeAlias = "BaseBackend"  # Ibis' connection to an engine

ArrowTable: TypeAlias = "pa.Table"  # in memory: what an engine hands back, or public rows that it takes in
ArrowBatch: TypeAlias = "pa.RecordBatch"
ArrowColumn: TypeAlias = "pa.ChunkedArray"
ArrowSchema: TypeAlias = "pa.Schema"
ArrowType: TypeAlias = "pa.DataType"
